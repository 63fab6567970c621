"""``python -m ckptfmt``: the command."""

import sys

from ckptfmt._cli import main

sys.exit(main())

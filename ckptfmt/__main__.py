"""``python -m ckptfmt``: the command."""

import sys

from ckptfmt.cli import main

sys.exit(main())

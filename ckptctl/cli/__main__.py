"""``python -m ckptctl.cli``."""

from ckptctl.cli import main

main()

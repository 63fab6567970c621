"""``python -m ckptctl._cli``."""

from ckptctl._cli import main

main()

"""``python -m ckptctl``: the command."""

from ckptctl._cli import main

main()

"""Which function runs a command. Each returns the exit status, and raises CheckpointError for the caller to
show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ckptfmt._cli import completion, copy_and_prune, export, reading
from ckptfmt._cli.arguments import Arguments
from ckptfmt._cli.output import Output

_COMMANDS: Final[dict[str, Callable[[Arguments, Output], int]]] = {
    "ls": reading.ls,
    "show": reading.show,
    "cat": reading.cat,
    "verify": reading.verify,
    "diff": reading.diff,
    "export": export.export,
    "report": export.report,
    "copy": copy_and_prune.copy,
    "prune": copy_and_prune.prune,
    "completion": completion.completion,
}


def run(arguments: Arguments, output: Output) -> int:
    """Run the command that ``arguments`` name."""
    return _COMMANDS[arguments.command](arguments, output)

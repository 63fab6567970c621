"""Which function runs a command. Each returns the exit status, and raises CheckpointError for the caller to
show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ckptfmt.cli import completion, keeping, looking, writing
from ckptfmt.cli.arguments import Arguments
from ckptfmt.cli.output import Output

_COMMANDS: Final[dict[str, Callable[[Arguments, Output], int]]] = {
    "ls": looking.ls,
    "show": looking.show,
    "cat": looking.cat,
    "verify": looking.verify,
    "diff": looking.diff,
    "export": writing.export,
    "report": writing.report,
    "copy": keeping.copy,
    "prune": keeping.prune,
    "completion": completion.completion,
}


def run(arguments: Arguments, output: Output) -> int:
    """Run the command that ``arguments`` name."""
    return _COMMANDS[arguments.command](arguments, output)

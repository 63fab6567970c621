"""The command ``ckptfmt``: look into checkpoints, verify, compare, copy and prune them.

Exit status: 0 good, 1 a problem in the data (damaged or incomplete), 2 wrong usage, not found, a store that
fails, or a mistake of our own. ``CKPTFMT_DEBUG=1`` shows where in the program an error came from.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NamedTuple

from ckptfmt._cli.arguments import WrongUsage, parse
from ckptfmt._cli.commands import run
from ckptfmt._cli.output import Output, abandon, complain
from ckptfmt._errors import BadCheckpoint, CheckpointError

GOOD, PROBLEM, WRONG = 0, 1, 2
_INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with ``argv`` (default: those of the process); returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:
        complain("ckptfmt: standard output is closed; open it, or redirect it to /dev/null")
        return WRONG
    output = Output(as_json="--json" in words)  # before they are read: wrong usage is said so, too
    program = "ckptfmt"
    try:
        arguments = parse(words)
        status = GOOD
        if arguments is not None:
            program = f"ckptfmt {arguments.command}"
            status = run(arguments, output)
        output.flush()
    except WrongUsage as error:
        return _tell(output, error.program, _Failure("usage", str(error), WRONG))
    except BrokenPipeError:
        abandon(sys.stdout)  # the reader has what it wanted (| head)
        return GOOD
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        if os.environ.get("CKPTFMT_DEBUG") == "1" and sys.stderr is not None:
            traceback.print_exc()
        return _tell(output, program, _failure(error))
    return status


class _Failure(NamedTuple):
    """Why a command ended."""

    code: str
    message: str
    status: int


def _failure(error: Exception) -> _Failure:
    if isinstance(error, CheckpointError):
        return _Failure(error.code, str(error), PROBLEM if isinstance(error, BadCheckpoint) else WRONG)
    if isinstance(error, OSError):  # of the output: a full disk behind a redirection, a missing folder
        what = error.filename or "the output"
        return _Failure("store_error", f"cannot write {what}: {error.strerror or error}", WRONG)
    said = f"internal error: {type(error).__name__}: {error}"
    return _Failure("internal_error", f"{said}; CKPTFMT_DEBUG=1 shows where; please report it", WRONG)


def _tell(output: Output, program: str, failure: _Failure) -> int:
    """Say it on both outputs, as far as they can be written; returns the exit status."""
    complain(f"{program}: {failure.message}")
    try:
        output.error(failure.code, failure.message)
    except OSError:
        abandon(sys.stdout)
    return failure.status

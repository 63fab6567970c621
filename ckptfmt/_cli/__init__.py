"""The command ``ckptfmt``: read, verify, compare, copy and prune checkpoints.

Exit status: 0 good, 1 a problem in the data (damaged or incomplete), 2 wrong usage, not found, a store error,
or an error of the program, 130 interrupted. ``CKPTFMT_DEBUG=1`` prints the traceback of an error.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final, NamedTuple

from ckptfmt._cli.app import PROGRAM, Job
from ckptfmt._cli.arguments import WrongUsage
from ckptfmt._cli.output import Output, complain, discard
from ckptfmt._cli.parsing import parse, split_json_option
from ckptfmt._errors import BadCheckpoint, CheckpointError

_GOOD: Final = 0
_PROBLEM: Final = 1
_WRONG: Final = 2
_INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: The words after the name of the program; None for those of the process.

    Returns:
        The exit status.
    """
    if sys.stdout is None:
        complain(f"{PROGRAM}: standard output is closed; open it, or redirect it to /dev/null")
        return _WRONG
    words, as_json = split_json_option(sys.argv[1:] if argv is None else argv)
    output = Output(as_json=as_json)
    program = PROGRAM
    try:
        status = parse(words, output)
        if isinstance(status, Job):
            job = status
            program = f"{PROGRAM} {job.arguments.command}"
            status = job.run(job.arguments, output)
        output.flush()
    except WrongUsage as error:
        return _report(output, error.program, _Failure("usage", str(error), _WRONG))
    except BrokenPipeError:
        discard(sys.stdout)  # the reader has read as much as it wanted, such as head
        return _GOOD
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        if os.environ.get("CKPTFMT_DEBUG") == "1" and sys.stderr is not None:
            traceback.print_exc()
        return _report(output, program, _failure(error))
    return status


class _Failure(NamedTuple):
    """Why a command failed."""

    code: str
    message: str
    status: int


def _failure(error: Exception) -> _Failure:
    if isinstance(error, CheckpointError):
        return _Failure(error.code, str(error), _PROBLEM if isinstance(error, BadCheckpoint) else _WRONG)
    if isinstance(error, OSError):  # of the output: a full disk behind a redirection, a missing folder
        what = error.filename or "the output"
        return _Failure("store_error", f"cannot write {what}: {error.strerror or error}", _WRONG)
    message = f"internal error: {type(error).__name__}: {error}"
    return _Failure("internal_error", f"{message}; CKPTFMT_DEBUG=1 shows where; please report it", _WRONG)


def _report(output: Output, program: str, failure: _Failure) -> int:
    """Write the failure to standard error, and to standard output as JSON; returns the exit status."""
    complain(f"{program}: {failure.message}")
    try:
        output.error(failure.code, failure.message)
    except OSError:
        discard(sys.stdout)
    return failure.status

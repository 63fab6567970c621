"""The command ``ckptfmt``: look into checkpoints, verify, compare, copy and prune them.

Exit status: 0 good, 1 a problem in the data (damaged or incomplete), 2 wrong usage, not found, or a store
that fails.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ckptfmt.cli.arguments import parse
from ckptfmt.cli.commands import run
from ckptfmt.cli.output import Output
from ckptfmt.display import printable
from ckptfmt.errors import CheckpointError, Damaged, Unsupported

GOOD, PROBLEM, WRONG = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with ``argv`` (default: those of the process); returns the exit status."""
    arguments = parse(sys.argv[1:] if argv is None else argv)
    output = Output(as_json=arguments.json)
    try:
        status = run(arguments, output)
        output.flush()
    except BrokenPipeError:
        # The reader has what it wanted (| head). Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GOOD
    except KeyboardInterrupt:
        return 130
    except CheckpointError as error:
        in_the_data = isinstance(error, Damaged) or (
            isinstance(error, Unsupported) and error.file is not None
        )
        return _failed(output, arguments.command, error.code, str(error), in_the_data)
    except OSError as error:  # of the output: a full disk behind a redirection, a folder that is not there
        what = error.filename or "the output"
        return _failed(
            output, arguments.command, "store_error", f"cannot write {what}: {error.strerror}", False
        )
    return status


def _failed(output: Output, command: str, code: str, message: str, in_the_data: bool) -> int:
    sys.stderr.write(f"ckptfmt {command}: {printable(message)}\n")
    output.error(code, message)
    return PROBLEM if in_the_data else WRONG

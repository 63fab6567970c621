"""Reads the command line with typer, and turns what typer prints or raises into outputs of this program."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Final

import typer
from typer.main import get_command

from ckptfmt._cli.app import JSON_OPTION, PROGRAM, Job, app
from ckptfmt._cli.arguments import WrongUsage
from ckptfmt._cli.output import Output, complain

_INTERRUPTED: Final = 130  # typer returns it for an interrupt


def split_json_option(words: Sequence[str]) -> tuple[list[str], bool]:
    """Take ``--json`` out of a command line: the other words, and whether it was there.

    The option may stand anywhere before ``--``. It is found before the rest is read, because an error in
    the rest must be reported as JSON too.
    """
    end = words.index("--") if "--" in words else len(words)
    options = [word for word in words[:end] if word != JSON_OPTION]
    return [*options, *words[end:]], len(options) < end


def parse(words: Sequence[str], output: Output) -> Job | int:
    """Read a command line.

    Help, the version and the answers of shell completion are written to ``output`` here.

    Args:
        words: The words after the name of the program, without ``--json``.
        output: Takes what typer prints.

    Returns:
        The work of the command, or the exit status when there is nothing more to do.

    Raises:
        WrongUsage: The command line is wrong, or typer cannot complete for this shell.
    """
    # What typer prints goes through Output, which reports a full disk and a closed pipe as it does elsewhere.
    printed, complaints = StringIO(), StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(complaints):
            result = get_command(app).main(words, prog_name=PROGRAM, standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as ended:  # by shell completion
        status = ended.code if isinstance(ended.code, int) else 0
        for line in complaints.getvalue().splitlines():
            complain(line)
        output.text(printed.getvalue())
        return status
    except Exception as error:
        usage_error = _usage_error(error, words)
        if usage_error is None:
            raise
        raise usage_error from None
    if isinstance(result, Job):
        return result
    if result == _INTERRUPTED:
        raise KeyboardInterrupt
    if result:  # there is no completion for the shell that runs
        raise WrongUsage(PROGRAM, (complaints.getvalue() or printed.getvalue()).strip())
    output.text(printed.getvalue())
    return 0


def _usage_error(error: Exception, words: Sequence[str]) -> WrongUsage | None:
    """The wrong usage that an error of typer describes; None for an error of another kind."""
    # Not every version of typer makes the base class of these errors public.
    describe = getattr(error, "format_message", None)
    if describe is None:
        return None
    context = getattr(error, "ctx", None)
    if context is not None:
        program = context.command_path
    else:  # An option of a command lacks its value: the options before the command have none.
        program = " ".join([PROGRAM, *[word for word in words if not word.startswith("-")][:1]])
    return WrongUsage(program, describe())

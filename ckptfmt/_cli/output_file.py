"""The file that ``-o`` names. It is written completely, or it does not appear."""

from __future__ import annotations

import os
import secrets
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final, NoReturn

from ckptfmt._errors import Conflict
from ckptfmt._model.names import CHECKPOINT_FILE, is_written_in_a_cut

STDOUT: Final = "-"
_ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)


def is_stdout(path: str) -> bool:
    """Whether ``path`` is standard output: ``-``, or a name of it such as ``/dev/stdout``."""
    if path == STDOUT:
        return True
    with suppress(OSError, ValueError):
        return os.path.samestat(os.stat(path), os.fstat(sys.stdout.fileno()))
    return False


@contextmanager
def outfile(path: str) -> Iterator[IO[bytes]]:
    """Open a file for writing.

    A regular file gets its name when the block ends without an error, and replaces the file of that name. A
    symbolic link is followed. A device or a FIFO is written to directly.

    Args:
        path: Path of the file, or a name of standard output.

    Yields:
        The open file.

    Raises:
        Conflict: ``path`` names a file of a checkpoint.
        OSError: The file cannot be written; the error names ``path``.
    """
    if is_stdout(path):
        yield sys.stdout.buffer
        return
    try:
        if path.endswith("/") or _is_not_regular(path):
            with open(path, "wb") as file:
                yield file
        else:
            with _replacing(os.path.realpath(path)) as file:
                yield file
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            error.filename, error.filename2 = path, None
        raise


def _is_not_regular(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


@contextmanager
def _replacing(target: str) -> Iterator[IO[bytes]]:
    name = os.path.basename(target)
    if os.path.exists(target) and (name == CHECKPOINT_FILE or is_written_in_a_cut(name)):
        raise Conflict(f"{target}: a file of this name belongs to a checkpoint; choose another name")
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    with _exits_on_signals():
        try:
            with open(temporary, "xb") as file:
                yield file
            os.replace(temporary, target)
        finally:
            with suppress(OSError):
                os.unlink(temporary)


@contextmanager
def _exits_on_signals() -> Iterator[None]:
    """Turn the signals that end a process into :class:`SystemExit` within the block, so that it cleans up."""
    may_set = threading.current_thread() is threading.main_thread()
    ours = [each for each in _ENDING_SIGNALS if may_set and signal.getsignal(each) == signal.SIG_DFL]
    for each in ours:
        signal.signal(each, _exit)
    try:
        yield
    finally:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)


def _exit(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)

"""The outputs of the command: tables or one line of JSON on standard output, errors on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

import orjson

from ckptfmt._show.tables import table_lines
from ckptfmt._text import printable


class Output:
    """Writes the results of a command to standard output.

    Args:
        as_json: Write one line of JSON instead of lines and tables.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def text(self, text: str) -> None:
        """Write text as it is, also with JSON: help, the version, a completion."""
        _write(text)

    def line(self, text: str) -> None:
        """Write a line of text, unless JSON is wanted."""
        if not self._as_json:
            _write_line(printable(text))

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        notes: Sequence[str | None] = (),
    ) -> None:
        """Write a table, unless JSON is wanted; see :func:`ckptfmt._text.table_lines`."""
        if self._as_json:
            return
        head, *lines = table_lines(columns, list(rows), notes)
        _write_line(f"\x1b[1m{head}\x1b[0m" if _shows_bold() else head)
        for line in lines:
            _write_line(line)

    def stored(self, line: bytes) -> None:
        """Write a stored line as it is, with its line feed."""
        sys.stdout.buffer.write(line)

    def result(self, value: dict[str, Any]) -> None:
        """Write the one line of JSON, if JSON is wanted."""
        if self._as_json:
            self.flush()
            try:
                line = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
            except orjson.JSONEncodeError:
                line = orjson.dumps(_encodable(value), option=orjson.OPT_APPEND_NEWLINE)
            sys.stdout.buffer.write(line)

    def error(self, code: str, message: str) -> None:
        """Write an error as the one line of JSON, if JSON is wanted."""
        self.result({"error": {"code": code, "message": message}})
        self.flush()

    def flush(self) -> None:
        """Write what is still in the buffer of standard output. Raises OSError."""
        sys.stdout.flush()


def complain(text: str) -> None:
    """Write a line to standard error. If that is closed or full, only the exit status reports the error."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
    except OSError:
        discard(sys.stderr)


def discard(stream: IO[str]) -> None:
    """Discard what is not written yet: otherwise Python fails again when it flushes the stream at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write_line(text: str) -> None:
    _write(f"{text}\n")


def _write(text: str) -> None:
    encoding = sys.stdout.encoding
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _shows_bold() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _encodable(value: Any) -> Any:
    """A copy of ``value`` that JSON can hold.

    Bytes of a path that are not UTF-8, which Python represents as surrogates, are escaped.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(each) for each in value]
    return value

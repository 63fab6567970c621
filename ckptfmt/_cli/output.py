"""Where the command writes: tables for people, or one line of JSON; errors go to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

import orjson

from ckptfmt._show.tables import table_lines
from ckptfmt._text import printable


class Output:
    """With ``as_json`` only the one line of JSON goes to stdout, else what is for people."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json

    def line(self, text: str) -> None:
        """A line for people."""
        if not self._as_json:
            _write_line(printable(text))

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        notes: Sequence[str | None] = (),
    ) -> None:
        """A table for people; see :func:`ckptfmt._text.table_lines`."""
        if self._as_json:
            return
        head, *lines = table_lines(columns, list(rows), notes)
        _write_line(f"\x1b[1m{head}\x1b[0m" if _shows_bold() else head)
        for line in lines:
            _write_line(line)

    def stored(self, line: bytes) -> None:
        """A stored line, as it is, with its line feed."""
        sys.stdout.buffer.write(line)

    def result(self, value: dict[str, Any]) -> None:
        """The one line of JSON, when it was asked for."""
        if self._as_json:
            self.flush()
            try:
                line = orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
            except orjson.JSONEncodeError:
                line = orjson.dumps(_encodable(value), option=orjson.OPT_APPEND_NEWLINE)
            sys.stdout.buffer.write(line)

    def error(self, code: str, message: str) -> None:
        self.result({"error": {"code": code, "message": message}})
        self.flush()

    def flush(self) -> None:
        sys.stdout.flush()


def complain(text: str) -> None:
    """One line on standard error. When nobody can hear it, the exit status still says it."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
    except OSError:
        abandon(sys.stderr)


def abandon(stream: IO[str]) -> None:
    """Let what is still unwritten vanish: Python would fail again when it flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write_line(text: str) -> None:
    encoding = sys.stdout.encoding
    sys.stdout.write(f"{text.encode(encoding, 'backslashreplace').decode(encoding)}\n")


def _shows_bold() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _encodable(value: Any) -> Any:
    """``value`` with every string as JSON can hold it: a path need not be UTF-8, and Python shows such bytes
    as surrogates."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(each) for each in value]
    return value

"""Where the command writes: tables for people, or one line of JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ckptfmt.display import printable

_WIDTH_WHEN_PIPED = 200


class Output:
    """With ``as_json`` only the one line of JSON goes to stdout, else what is for people."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        width = None if sys.stdout.isatty() else _WIDTH_WHEN_PIPED
        # Ids are data: no markup, no emoji codes, no highlighting of what looks like something.
        self._console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False, width=width)

    def line(self, text: str) -> None:
        """A line for people."""
        if not self._as_json:
            self._console.print(Text(printable(text)), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table for people; None is shown as nothing, numbers stand to the right."""
        if self._as_json:
            return
        listed = [list(row) for row in rows]
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for number, name in enumerate(columns):
            is_number = all(isinstance(row[number], int | None) for row in listed)
            table.add_column(name, justify="right" if is_number else "left", overflow="fold")
        for row in listed:
            table.add_row(*(Text("" if cell is None else printable(str(cell))) for cell in row))
        self._console.print(table)

    def stored(self, line: bytes) -> None:
        """A stored line, as it is, with its line feed."""
        sys.stdout.buffer.write(line)

    def result(self, value: dict[str, Any]) -> None:
        """The one line of JSON, when it was asked for."""
        if self._as_json:
            self.flush()
            sys.stdout.buffer.write(orjson.dumps(value) + b"\n")

    def error(self, code: str, message: str) -> None:
        self.result({"error": {"code": code, "message": message}})
        self.flush()

    def flush(self) -> None:
        sys.stdout.flush()

"""The rows as text tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
Cell = Callable[[Row], str]


def show(rows: list[Row], console: Console) -> None:
    """Print a table for each kind of row."""
    for title, cases, columns in _TABLES:
        chosen = [row for row in rows if row["case"] in cases]
        if chosen:
            console.print(_table(title, chosen, columns))


def _table(title: str, rows: Iterable[Row], columns: dict[str, Cell]) -> Table:
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f}"


_COMPARED: dict[str, Cell] = {
    "case": lambda row: row["case"],
    "shape": lambda row: row["shape"] + (f" ({row['nan']:.0%} NaN)" if row["nan"] else ""),
    "method": lambda row: row["method"],
    "seconds": lambda row: f"{row['seconds']:.2f}",
    "MB/s": lambda row: f"{row['bytes'] / row['seconds'] / 1e6:.0f}",
    "times faster than source-method": lambda row: f"{row['ratio_vs_source_method']:.1f}",
    "of the floor": lambda row: f"{row['ratio_vs_floor']:.2f}",
    "MiB beyond the records": lambda row: f"{row['peak_beyond_records'] / 2**20:.0f}",
}
_ONE: dict[str, Cell] = {
    "records": lambda row: f"{row['records']:,}",
    "ms, opening included": lambda row: _ms(row["seconds"]),
}
_STREAM: dict[str, Cell] = {
    "shape": lambda row: row["shape"],
    "MB": lambda row: f"{row['bytes'] / 1e6:.0f}",
    "seconds, building included": lambda row: f"{row['seconds']:.1f}",
    "MiB at most": lambda row: f"{row['peak_rss'] / 2**20:.0f}",
}
_LAG: dict[str, Cell] = {
    "shape": lambda row: row["shape"],
    "records": lambda row: f"{row['records']} of {row['bytes'] / row['records'] / 1e6:.2f} MB",
    "median ms": lambda row: _ms(row["median"]),
    "p99 ms": lambda row: _ms(row["p99"]),
    "max ms": lambda row: _ms(row["max"]),
}
_STATUS: dict[str, Cell] = {
    "shape": lambda row: row["shape"],
    "commit seconds": lambda row: f"{row['seconds']:.2f}",
    "idle median ms": lambda row: _ms(row["idle"]["median"]),
    "idle p99": lambda row: _ms(row["idle"]["p99"]),
    "during median ms": lambda row: _ms(row["during"]["median"]),
    "during p99": lambda row: _ms(row["during"]["p99"]),
    "during max": lambda row: _ms(row["during"]["max"]),
}
_TABLES = (
    ("Commit and restore", ("commit-local", "restore-lazy", "restore-decoded"), _COMPARED),
    ("One record", ("one-record",), _ONE),
    ("Memory of a commit whose records are built one by one", ("stream",), _STREAM),
    ("Event-loop lag during a commit in the same process", ("lag",), _LAG),
    ("Replies to status, over HTTP, during a commit", ("status-during-commit",), _STATUS),
)

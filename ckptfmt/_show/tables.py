"""Tables as text, and listings as such tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from ckptfmt._display import text_of
from ckptfmt._read.listed import Listed
from ckptfmt._run.listing import Listing
from ckptfmt._text import count_text, printable, size_text

_SIZES: Final = frozenset({"size", "stored", "plain", "share"})


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str | None] = ()
) -> list[str]:
    """A table as lines: the column names, then the rows, with aligned columns.

    None is shown as an empty cell, and numbers are right-aligned. The note of a row is on a line of its own
    below the row. Nothing is shortened or wrapped, so that names can be copied.
    """
    texts = [list(columns)]
    texts += [["" if cell is None else printable(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = right_columns(columns, rows)
    lines = []
    for row, note in zip_longest(texts, (None, *notes)):
        cells = zip(row, widths, right, strict=True)
        shown = (cell.rjust(width) if at_right else cell.ljust(width) for cell, width, at_right in cells)
        lines.append("  ".join(shown).rstrip())
        if note is not None:
            lines.append(f"  {printable(note)}")
    return lines


def right_columns(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[bool]:
    """Which columns are right-aligned: those of numbers and of sizes."""
    return [
        name in _SIZES or (bool(rows) and all(isinstance(row[at], int | None) for row in rows))
        for at, name in enumerate(columns)
    ]


class ListingTable(NamedTuple):
    """A listing as a table: a row and a reason for each checkpoint. The reason of a complete one is None."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    reasons: list[str | None]


def listing_table(listing: Sequence[Listed]) -> ListingTable:
    """The table of a listing. The id column is omitted when all ids equal the names of the folders."""
    columns: tuple[str, ...] = ("checkpoint", "state", "sequence", "participants", "episodes", "size")
    rows: list[tuple[object, ...]] = [
        (
            *(each.name, each.state, each.sequence, each.participants, each.episodes),
            None if each.size is None else size_text(each.size),
        )
        for each in listing
    ]
    if any(each.checkpoint_id not in (None, each.name) for each in listing):
        columns += ("id",)
        rows = [(*row, each.checkpoint_id) for row, each in zip(rows, listing, strict=True)]
    return ListingTable(columns, rows, [each.reason for each in listing])


def run_text(listing: Listing) -> str:
    """The numbers of checkpoints and lives of a run."""
    lives = count_text(len(listing.lives), "life", "lives")
    return f"{count_text(len(listing), 'checkpoint')}, {lives}"


@text_of.register
def listing_text(listing: Listing) -> str:
    """A listing as a table, with a line about the orphans."""
    lines = [f"{printable(listing.url)}: {run_text(listing)}"]
    if len(listing):
        lines += table_lines(*listing_table(listing))
    if listing.orphans:
        lines.append(orphans_text(listing))
    return "\n".join(lines)


def orphans_text(listing: Listing) -> str:
    """The number and size of the orphans: one line."""
    size = sum(each.size for each in listing.orphans)
    count = count_text(len(listing.orphans), "orphan")
    return f"{count}, {size_text(size)}: ckptfmt prune removes old orphans"

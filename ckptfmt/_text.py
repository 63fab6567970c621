"""Data as text for people: ids and numbers come from files, so nothing in them may act on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ckptfmt._read.checkpoint import Checkpoint
    from ckptfmt._run.listing import Listed, Listing

_SIZES: Final = frozenset({"size", "stored", "plain", "share"})
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


def printable(text: str) -> str:
    """``text`` with everything that is not printable escaped (control characters, changes of direction)."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def size_text(size: int) -> str:
    """A number of bytes with a unit: ``512 bytes``, ``3.4 MiB``."""
    if size < 1024:
        return f"{size} bytes"
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}"


def count_text(count: int, one: str, many: str = "") -> str:
    """A number of things: ``1 record``, ``2 records``, ``3 lives``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def fraction_text(part: float, whole: float) -> str:
    """``part`` of ``whole`` in percent."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def table_lines(
    columns: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str | None] = ()
) -> list[str]:
    """Rows as aligned columns, two spaces between them, their names first.

    None is shown as nothing, numbers stand to the right; a row's note stands on a line of its own below it.
    Nothing is cut or folded: names are there to be copied.
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
    """Which columns stand to the right: those of numbers, and of sizes."""
    return [
        name in _SIZES or (bool(rows) and all(isinstance(row[at], int | None) for row in rows))
        for at, name in enumerate(columns)
    ]


class ListingTable(NamedTuple):
    """A listing as a table: one row and one reason (None: it is complete) for each checkpoint."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    reasons: list[str | None]


def listing_table(listing: Sequence[Listed]) -> ListingTable:
    """The table of a listing; ids are left out where all are the names of their folders."""
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
    """How much there is in a run."""
    lives = count_text(len(listing.lives), "life", "lives")
    return f"{count_text(len(listing), 'checkpoint')}, {lives}"


def listing_text(listing: Listing) -> str:
    """A listing as a table, and a line for what belongs to no checkpoint."""
    lines = [f"{printable(listing.url)}: {run_text(listing)}"]
    if len(listing):
        lines += table_lines(*listing_table(listing))
    if listing.leftovers:
        lines.append(leftovers_text(listing))
    return "\n".join(lines)


def leftovers_text(listing: Listing) -> str:
    """How much belongs to no checkpoint: one line."""
    size = sum(each.size for each in listing.leftovers)
    count = count_text(len(listing.leftovers), "leftover")
    return f"{count}, {size_text(size)}: ckptfmt prune removes what is old"


def checkpoint_text(checkpoint: Checkpoint) -> str:
    """One line about a checkpoint, from what was read when it was opened."""
    url = printable(checkpoint.url)
    body = checkpoint.body
    participants = count_text(len(checkpoint), "participant")
    if body is None:
        return f"<Checkpoint {url}: {participants}, without checkpoint.json>"
    restarts = f", {count_text(len(body.restarts), 'restart')}" if body.restarts else ""
    return (
        f"<Checkpoint {url}: {printable(body.checkpoint_id)}, sequence {body.sequence}, "
        f"{count_text(len(body.episodes), 'episode')}{restarts}, {participants}, complete>"
    )

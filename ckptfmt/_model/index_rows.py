"""Rows of the index: where each record of a participant lies, in columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

INTEGER_COLUMNS: Final = ("segment", "offset", "stored", "start", "length", "crc32")
COLUMNS: Final = ("episode", "boundary", *INTEGER_COLUMNS)


def integers(values: Iterable[int] = ()) -> array[int]:
    """A column: eight bytes a number, where a list of Python ints takes forty."""
    return array("q", values)


@dataclass(slots=True)
class Rows:
    """Columns with one row per record.

    ``segment`` is the number of the record's segment; ``offset`` and ``stored`` are the place and the bytes
        of its frame in that segment; ``start`` and ``length`` those of its line in the plain frame, line feed
        included; ``crc32`` is that of the line.
    """

    episode: list[str] = field(default_factory=list)
    boundary: list[int | None] = field(default_factory=list)
    segment: array[int] = field(default_factory=integers)
    offset: array[int] = field(default_factory=integers)
    stored: array[int] = field(default_factory=integers)
    start: array[int] = field(default_factory=integers)
    length: array[int] = field(default_factory=integers)
    crc32: array[int] = field(default_factory=integers)

    def __len__(self) -> int:
        return len(self.episode)

    def columns(self) -> list[tuple[str, list[str] | list[int | None] | array[int]]]:
        """Names and columns, in the order of the format."""
        return [(name, getattr(self, name)) for name in COLUMNS]

    def extend(self, more: Rows) -> None:
        """Add these rows after ours."""
        for name in COLUMNS:
            getattr(self, name).extend(getattr(more, name))

    def cut(self, start: int, end: int) -> Rows:
        """Copies of rows ``start`` to ``end``, that one excluded."""
        return Rows(*(getattr(self, name)[start:end] for name in COLUMNS))

    def picked(self, order: Sequence[int]) -> Rows:
        """The rows of these numbers, in this order."""
        if len(order) < 2:  # of one number itemgetter makes no tuple
            return self.cut(order[0], order[0] + 1) if order else Rows()
        pick = itemgetter(*order)
        return Rows(
            list(pick(self.episode)),
            list(pick(self.boundary)),
            *(integers(pick(getattr(self, name))) for name in INTEGER_COLUMNS),
        )

    def by_key(self) -> Rows:
        """Sorted by capture key: the order of the index file. Keys are ASCII, so text sorts as bytes."""
        return self.picked(sorted(range(len(self)), key=self.episode.__getitem__))

    def by_place(self) -> Rows:
        """Sorted by place: the order in which the records were written."""
        # Three sorts of plain ints, the last one ruling, take half the time of one of tuples.
        order = sorted(range(len(self)), key=self.start.tolist().__getitem__)
        for column in (self.offset, self.segment):
            order.sort(key=column.tolist().__getitem__)
        return self.picked(order)

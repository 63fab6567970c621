"""Rows of the index in columns: the place of each record of a participant."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

INTEGER_COLUMNS: Final = ("segment", "offset", "stored", "start", "length", "crc32")
COLUMNS: Final = ("episode", "boundary", *INTEGER_COLUMNS)


def integers(values: Iterable[int] = ()) -> array[int]:
    """A column of integers of eight bytes each; a list of Python ints takes forty bytes for each."""
    return array("q", values)


@dataclass(slots=True)
class Rows:
    """Columns of the index, with one row for each record.

    Attributes:
        episode: The capture keys.
        boundary: The steps after which the episodes can continue; None for an episode that starts over.
        segment: The numbers of the records' segments.
        offset: The first byte of the record's frame in its segment.
        stored: The stored bytes of the frame.
        start: The first byte of the record's line in the plain frame.
        length: The bytes of the line, line feed included.
        crc32: The CRC-32 of the line.
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
        """The names and columns in the order of the format.

        Returns:
            Pairs of a name and a column.
        """
        return [(name, getattr(self, name)) for name in COLUMNS]

    def extend(self, more: Rows) -> None:
        """Append the rows of another table.

        Args:
            more: The rows to append.
        """
        for name in COLUMNS:
            getattr(self, name).extend(getattr(more, name))

    def cut(self, start: int, end: int) -> Rows:
        """Copy a range of rows.

        Args:
            start: The first row.
            end: The row after the last one.

        Returns:
            The copied rows.
        """
        return Rows(*(getattr(self, name)[start:end] for name in COLUMNS))

    def picked(self, order: Sequence[int]) -> Rows:
        """Copy rows by their numbers.

        Args:
            order: The numbers of the rows.

        Returns:
            The rows in the order of ``order``.
        """
        if len(order) < 2:  # itemgetter returns no tuple for a single number
            return self.cut(order[0], order[0] + 1) if order else Rows()
        pick = itemgetter(*order)
        return Rows(
            list(pick(self.episode)),
            list(pick(self.boundary)),
            *(integers(pick(getattr(self, name))) for name in INTEGER_COLUMNS),
        )

    def by_key(self) -> Rows:
        """Sort by capture key, which is the order of the index file.

        Returns:
            The sorted rows. Keys are ASCII, so sorting text is sorting bytes.
        """
        return self.picked(sorted(range(len(self)), key=self.episode.__getitem__))

    def by_place(self) -> Rows:
        """Sort by place, which is the order in which the records were written.

        Returns:
            The sorted rows.
        """
        # Three stable sorts by plain ints, the most significant last, take half the time of one sort by
        # tuples.
        order = sorted(range(len(self)), key=self.start.tolist().__getitem__)
        for column in (self.offset, self.segment):
            order.sort(key=column.tolist().__getitem__)
        return self.picked(order)

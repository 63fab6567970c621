"""One pass over the segments of a participant.

Every stored byte is read, hashed and compared with the index, in bounded memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import accumulate
from typing import Final, NamedTuple

from ckptfmt._errors import BadCheckpoint, Damaged
from ckptfmt._limits import Limits
from ckptfmt._model.index_check import rows_by_segment
from ckptfmt._model.index_rows import Rows
from ckptfmt._model.layout import ParticipantLayout
from ckptfmt._model.manifest import Manifest, Segment
from ckptfmt._read.background_hash import BackgroundHash
from ckptfmt._read.checked_line import CheckedLine, check_line
from ckptfmt._read.zstd_frame import unpack_frame
from ckptfmt.stores import OpenFile

OnProblem = Callable[[BadCheckpoint], None]
"""Called with each problem. It may raise it, which ends the pass, or record it; then the pass continues."""

_GROUP_BYTES: Final = 1024 * 1024


class Row(NamedTuple):
    """One record: the number of its row in the index, and its line."""

    number: int
    checked: CheckedLine


class _RowGroup(NamedTuple):
    """Rows ``first`` to ``end`` of a segment, which are read together: the rows of a frame, or many lines.

    ``end`` is exclusive; ``stored`` and ``plain`` are the bytes before and after unpacking.
    """

    first: int
    end: int
    stored: int
    plain: int


def _group_lines(rows: Rows) -> Iterator[_RowGroup]:
    """Groups of about one mebibyte of uncompressed lines."""
    ends = list(accumulate(rows.length))
    first = start = 0
    while first < len(ends):
        last = min(bisect_left(ends, start + _GROUP_BYTES, first), len(ends) - 1)
        size = ends[last] - start
        yield _RowGroup(first, last + 1, size, size)
        first, start = last + 1, ends[last]


def _group_frames(rows: Rows) -> Iterator[_RowGroup]:
    """One group for each frame."""
    first = 0
    while first < len(rows):
        end = bisect_right(rows.offset, rows.offset[first], first)
        yield _RowGroup(first, end, rows.stored[first], sum(rows.length[first:end]))
        first = end


def read_rows(
    layout: ParticipantLayout, manifest: Manifest, index: Rows, on_problem: OnProblem, limits: Limits
) -> Iterator[Row]:
    """Every record, in the order written, which is the order of ``index``.

    ``index`` must have been checked against the manifest. A record is checked before it is yielded; the
    digest of a segment is checked after its last record.
    """
    first = 0
    for _, segment, rows in rows_by_segment(index, manifest):
        yield from _SegmentReader(layout, segment, rows, first, on_problem, limits).records()
        first += len(rows)


class _SegmentReader:
    """Reads one segment. ``first`` is the number of its first row in the whole index."""

    def __init__(
        self,
        layout: ParticipantLayout,
        segment: Segment,
        rows: Rows,
        first: int,
        on_problem: OnProblem,
        limits: Limits,
    ) -> None:
        self._layout = layout
        self._segment = segment
        self._rows = rows
        self._first = first
        self._file = layout.file(segment.file)
        self._limits = limits
        self._on_problem = on_problem
        self._had_problem = False

    def _report(self, error: BadCheckpoint) -> None:
        self._had_problem = True
        self._on_problem(error)

    def records(self) -> Iterator[Row]:
        with ExitStack() as stack:
            stored = self._open(stack)
            if stored is not None:
                yield from self._read(stored)

    def _open(self, stack: ExitStack) -> OpenFile | None:
        file, expected = self._file, self._segment.stored
        try:
            stored = stack.enter_context(self._layout.open(self._segment.file, "the records file is missing"))
        except BadCheckpoint as error:
            self._report(error)
            return None
        if stored.size != expected:
            how = "is cut short" if stored.size < expected else "has bytes added"
            self._report(Damaged(f"{file}: the file {how}: {stored.size} bytes, not {expected}", file=file))
            return None
        return stored

    def _read(self, stored: OpenFile) -> Iterator[Row]:
        compressed = self._segment.codec == "zstd"
        with BackgroundHash() as hashed:
            for group in (_group_frames if compressed else _group_lines)(self._rows):
                data = stored.read(group.stored)
                hashed.update(data)
                if compressed:
                    try:
                        data = unpack_frame(data, group.plain, group.plain, self._file, self._limits)
                    except Damaged as error:
                        self._report(error)
                        continue
                yield from self._compare(data, group)
            if not self._had_problem and hashed.hexdigest() != self._segment.digest:
                self._report(
                    Damaged(
                        f"{self._file}: it was changed after writing: its digest is not the one in its name",
                        file=self._file,
                    )
                )

    def _compare(self, data: bytes, group: _RowGroup) -> Iterator[Row]:
        rows, start = self._rows, 0
        for number in range(group.first, group.end):
            length = rows.length[number]
            try:
                checked = check_line(
                    data,
                    start,
                    length,
                    rows.crc32[number],
                    rows.episode[number],
                    rows.boundary[number],
                    self._file,
                )
            except Damaged as error:
                self._report(error)
            else:
                yield Row(self._first + number, checked)
            start += length

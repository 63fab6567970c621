"""Packing batches into segments, and noting in the index where each record lies. No threads."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat

from ckptfmt._errors import SnapshotChanged
from ckptfmt._limits import Tuning
from ckptfmt._model.index_rows import Rows
from ckptfmt._model.manifest import Codec, Segment
from ckptfmt._write.batch import Batch
from ckptfmt.stores import Buffer, StagedFile


@dataclass(slots=True)
class ClosedSegment:
    """A finished segment that is not placed yet."""

    segment: Segment
    staged: StagedFile


class _OpenSegment:
    def __init__(self, staged: StagedFile) -> None:
        self.staged = staged
        self.hash = hashlib.sha256()
        self.stored = 0
        self.plain = 0
        self.records = 0


class Packer:
    """Turns batches into closed segments. What it does depends on the batches alone, never on time.

    ``stage`` begins the file of a segment. ``expected`` are digests that the first segments had when the same
        records were written before; another one raises :class:`SnapshotChanged`.
    """

    def __init__(
        self, codec: Codec, tuning: Tuning, stage: Callable[[], StagedFile], expected: Sequence[str] = ()
    ) -> None:
        self.rows = Rows()
        self.closed: deque[ClosedSegment] = deque()
        self.digests: list[str] = []
        self.codec = codec
        self._tuning = tuning
        self._stage = stage
        self._expected = expected
        self._open: _OpenSegment | None = None

    def add(self, batch: Batch, chunks: Sequence[Buffer], stopped: Callable[[], bool]) -> None:
        """Pack one batch, which ``chunks`` are the stored form of.

        After a StoreError the same batch can be added again. Raises Stopped, SnapshotChanged, too.
        """
        if batch.alone and self._open is not None and self._open.records:  # else: of a try that failed
            self.finish()
        if self._open is None:
            self._open = _OpenSegment(self._stage())
        segment = self._open
        segment.staged.append(chunks, stopped)
        for chunk in chunks:
            segment.hash.update(chunk)
        stored = sum(map(len, chunks))
        self._note(batch, segment, stored)
        segment.stored += stored
        segment.plain += batch.size
        segment.records += len(batch.lines)
        if batch.alone or segment.stored >= self._tuning.segment_bytes:
            self.finish()

    def _note(self, batch: Batch, segment: _OpenSegment, stored: int) -> None:
        """The batch's rows of the index."""
        rows, count = self.rows, len(batch.lines)
        _, lengths, crc32, episodes, boundaries = zip(*batch.lines, strict=True)
        starts = accumulate(lengths[:-1], initial=0)
        if self.codec == "none":  # each line is its own frame
            rows.offset.extend(map(segment.stored.__add__, starts))
            rows.stored.extend(lengths)
            rows.start.extend(repeat(0, count))
        else:
            rows.offset.extend(repeat(segment.stored, count))
            rows.stored.extend(repeat(stored, count))
            rows.start.extend(starts)
        rows.episode += episodes
        rows.boundary += boundaries
        rows.segment.extend(repeat(len(self.digests), count))
        rows.length.extend(lengths)
        rows.crc32.extend(crc32)

    def finish(self) -> None:
        """Close the open segment, if there is one. Raises :class:`SnapshotChanged`."""
        segment = self._open
        if segment is None:
            return
        number, digest = len(self.digests), segment.hash.hexdigest()
        if number < len(self._expected) and self._expected[number] != digest:
            raise SnapshotChanged(
                f"segment {number} was written a second time with other bytes: a record changed after it was "
                "handed over; this checkpoint cannot be finished"
            )
        self._open = None
        self.digests.append(digest)
        file = Segment.file_name(digest, self.codec)
        row = Segment(file, segment.stored, segment.plain, segment.records, self.codec)
        self.closed.append(ClosedSegment(row, segment.staged))

    @property
    def is_open(self) -> bool:
        """Whether a segment is growing."""
        return self._open is not None

    @property
    def unsynced(self) -> int:
        """Bytes of the open segment that are not durable yet."""
        segment = self._open
        return 0 if segment is None else segment.staged.unsynced

    def sync(self) -> None:
        """Make the open segment durable so far; for another thread than ``add``. Raises StoreError."""
        segment = self._open
        if segment is not None:
            segment.staged.sync()

    @property
    def lost(self) -> bool:
        """Whether the store lost bytes that are not placed: all records must be written again."""
        return any(staged.lost for staged in self._unplaced())

    def discard(self) -> None:
        """Free everything that waits."""
        for staged in self._unplaced():
            staged.discard()
        self._open = None
        self.closed.clear()

    def _unplaced(self) -> list[StagedFile]:
        opened = self._open  # first: the packing thread may be moving it to the others
        found = [closed.staged for closed in list(self.closed)]
        return found if opened is None else [*found, opened.staged]

"""Packing batches into segments and recording the place of each record in the index. No threads."""

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
    """A closed segment that is not placed yet."""

    segment: Segment
    staged: StagedFile


class _OpenSegment:
    """The segment that batches are added to."""

    def __init__(self, staged: StagedFile) -> None:
        self.staged = staged
        self.hash = hashlib.sha256()
        self.stored = 0
        self.plain = 0
        self.records = 0


class SegmentPacker:
    """Packs batches into segments.

    The result depends on the batches alone, never on timing.

    Args:
        codec: How the batches are stored.
        tuning: Sizes at which a segment closes.
        stage: Begins the file of a segment.
        expected: The digests of the first segments when the same records were written before. A segment with
            another digest raises :class:`SnapshotChanged`.
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
        """Pack one batch, whose stored form is ``chunks``.

        After a StoreError the same batch can be added again. Also raises Stopped and SnapshotChanged.
        """
        # A segment without records is the one that a failed attempt to add this batch began.
        if batch.has_own_segment and self._open is not None and self._open.records:
            self.finish()
        if self._open is None:
            self._open = _OpenSegment(self._stage())
        segment = self._open
        segment.staged.append(chunks, stopped)
        for chunk in chunks:
            segment.hash.update(chunk)
        stored = sum(map(len, chunks))
        self._add_rows(batch, segment, stored)
        segment.stored += stored
        segment.plain += batch.size
        segment.records += len(batch.lines)
        if batch.has_own_segment or segment.stored >= self._tuning.segment_bytes:
            self.finish()

    def _add_rows(self, batch: Batch, segment: _OpenSegment, stored: int) -> None:
        """Add the rows of a batch to the index."""
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
                f"segment {number} has other bytes than when it was first written: a record changed after it "
                "was given to the writer; this checkpoint cannot be finished"
            )
        self._open = None
        self.digests.append(digest)
        file = Segment.file_name(digest, self.codec)
        row = Segment(file, segment.stored, segment.plain, segment.records, self.codec)
        self.closed.append(ClosedSegment(row, segment.staged))

    @property
    def is_open(self) -> bool:
        """Whether there is an open segment."""
        return self._open is not None

    @property
    def unsynced(self) -> int:
        """Bytes of the open segment that are not durable yet."""
        segment = self._open
        return 0 if segment is None else segment.staged.unsynced

    def sync(self) -> None:
        """Make the bytes of the open segment durable. May run while ``add`` does. Raises StoreError."""
        segment = self._open
        if segment is not None:
            segment.staged.sync()

    @property
    def lost(self) -> bool:
        """Whether the store lost bytes of an unplaced segment: then all records must be written again."""
        return any(staged.lost for staged in self._unplaced_files())

    def discard(self) -> None:
        """Discard the unplaced segments."""
        for staged in self._unplaced_files():
            staged.discard()
        self._open = None
        self.closed.clear()

    def _unplaced_files(self) -> list[StagedFile]:
        opened = self._open  # read before the closed ones: the packing thread may be closing it
        found = [closed.staged for closed in list(self.closed)]
        return found if opened is None else [*found, opened.staged]

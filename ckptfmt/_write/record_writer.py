"""The base of all writers: takes records one at a time and places them as segments."""

from __future__ import annotations

import threading
import time
import weakref
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, Literal, Self

from ckptfmt._errors import LimitExceeded, NotFound, SnapshotChanged, wrong_type
from ckptfmt._limits import KIB, Limits, Tuning
from ckptfmt._model.index_rows import Rows
from ckptfmt._model.manifest import CODECS, Codec, Segment
from ckptfmt._model.names import check_label, check_participant_name
from ckptfmt._model.record_line import Record, encode_line
from ckptfmt._write.batch import LARGE_LINE
from ckptfmt._write.gate import Gate
from ckptfmt._write.pipeline import THREAD_NAME_PREFIX, Pipeline
from ckptfmt._write.segment_packer import SegmentPacker
from ckptfmt._write.spool import SpooledFile
from ckptfmt.stores import LocalPath, StagedFile, Store, Url, choose_store
from ckptfmt.stores._urls import local_path

Compression = Literal["auto", "none", "zstd"]

_BYTES_BETWEEN_YIELDS: Final = 256 * KIB
_RECORD_COST: Final = 2 * KIB
"""The fixed cost of one record in bytes, added to its size: small records take time, too."""


class RecordWriter(ABC):
    """Takes records, from one thread at a time.

    Subclasses publish them. As a context manager it completes at the end of the block, and aborts when the
    block raises.
    """

    def __init__(
        self,
        url: Url,
        *,
        participant: str,
        kind: str,
        checkpoint_id: str,
        compression: Compression,
        spool: LocalPath | None,
        gate: Gate | None,
        limits: Limits,
        tuning: Tuning,
    ) -> None:
        if compression not in ("auto", *CODECS):
            raise ValueError(f"compression is auto, none or zstd, not {compression!r}")
        self._store = choose_store(url)
        self._participant = check_participant_name(participant)
        self._kind = check_label(kind, "kind")
        self._checkpoint_id = check_label(checkpoint_id, "checkpoint id")
        self._codec: Codec = "none" if compression == "auto" else compression
        self._spool = None if spool is None else local_path(spool)
        self._gate = Gate() if gate is None else gate
        self._limits = limits
        self._tuning = tuning
        # Without compression a line is its own frame, so a batch may hold more than a frame.
        self._batch_bytes = tuning.frame_bytes if self._codec == "zstd" else tuning.batch_bytes
        self._folder = self._store.at(participant)
        self._expected: list[str] = []
        self._start_over()

    def _start_over(self) -> None:
        folder, spool = self._folder, self._spool

        def stage() -> StagedFile:
            return folder.stage() if spool is None else SpooledFile(folder, spool)

        packer = SegmentPacker(self._codec, self._tuning, stage, self._expected)
        # The threads reference the pipeline and not this object, so an abandoned writer can be garbage
        # collected, and its finalizer ends the threads.
        self._pipeline = Pipeline(packer, self._tuning)
        self._finalizer = weakref.finalize(self, _clean_up, self._pipeline, folder)
        self._batch = self._pipeline.empty_batch()
        self._rollouts: set[str] = set()
        self._since_yield = 0
        self._closed = False
        self.accepted = 0
        """The number of records taken so far. After an error, continue with this record."""
        self._update_unfinished = False  # still true after an interrupt in the middle of an update

    def write(self, record: Record) -> None:
        """Take one record. ``accepted`` counts it when this returns.

        A call that raises has not taken the record. After Ctrl-C it may have: then ``accepted`` counts the
        record, or the next call raises ValueError until :meth:`retry` was called.

        Args:
            record: The record. Keep it unchanged until the writer has published: it may have to be written
                again after :meth:`retry`.

        Raises:
            InexactValue: The payload would not read back as it is.
            LimitExceeded: The record is too large, or the writer has a record of its rollout already.
            Stopped: The gate was stopped.
            SnapshotChanged: Records that were written again differ from the first time.
            StoreError: The store failed for an earlier record. Call :meth:`retry`.
            TypeError: ``record`` is not a :class:`ckptfmt.Record`.
            ValueError: The writer has published or was aborted, or must be retried after an interrupt.
        """
        if not isinstance(record, Record):
            raise wrong_type("write", "a Record", record)
        self._check_usable()
        self._gate.check()
        self._pipeline.raise_failure()
        if self._batch.full:
            self._enqueue()
        rollout = record.episode.rollout_id
        if rollout in self._rollouts:
            raise LimitExceeded(
                f"episode {record.episode}: there is a record of rollout {rollout} already; "
                "a participant has at most one record per rollout"
            )
        key = record.episode.capture_key
        line = encode_line(record, self._limits)
        size = sum(map(len, line))
        has_own_segment = size >= self._tuning.segment_bytes
        if self._batch.lines and (has_own_segment or size >= LARGE_LINE):
            self._enqueue()
        self._update_unfinished = True
        self._rollouts.add(rollout)
        batch = self._batch
        batch.add(line, size, key, record.boundary)
        batch.has_own_segment = has_own_segment
        self.accepted += 1
        if has_own_segment or batch.full or batch.size >= self._batch_bytes:
            batch.full = True
            self._try_enqueue()
        self._update_unfinished = False
        self._yield_to_other_threads(size)

    def _yield_to_other_threads(self, size: int) -> None:
        """Release the GIL now and then, so that an event loop in another thread can run while records encode.

        Not for each small record: one yield takes as long as encoding 30 to 100 KB.
        """
        self._since_yield += size + _RECORD_COST
        if self._since_yield >= _BYTES_BETWEEN_YIELDS:
            self._since_yield = 0
            time.sleep(0)

    def _enqueue(self) -> None:
        """Enqueue the batch, waiting for room. When this raises, the batch is not enqueued."""
        while not self._try_enqueue():
            self._pipeline.wait_for_room(self._batch, self._gate.check)

    def _try_enqueue(self) -> bool:
        self._update_unfinished = True
        was_enqueued = self._pipeline.try_enqueue(self._batch)
        if was_enqueued:
            self._batch = self._pipeline.empty_batch()
        self._update_unfinished = False
        return was_enqueued

    def _place_all(self) -> tuple[tuple[Segment, ...], Rows]:
        """Place the remaining records. Returns the segments and the index rows. Raises like :meth:`write`."""
        self._check_usable()
        self._gate.check()
        if self._batch.lines:
            self._enqueue()
        self._pipeline.finish(self._gate.check)
        if len(self._pipeline.placed) < len(self._expected):
            raise SnapshotChanged(
                "fewer records were written than the first time; this checkpoint cannot be finished"
            )
        segments, rows = tuple(self._pipeline.placed), self._pipeline.packer.rows
        if not self.accepted == len(rows) == sum(segment.records for segment in segments):
            raise RuntimeError("a bug in ckptfmt: records were lost or duplicated; nothing was published")
        return segments, rows

    def retry(self) -> bool:
        """Continue after a :class:`ckptfmt.StoreError` or an interrupt.

        Returns:
            True: unplaced segments are placed again with the same bytes; continue with record number
            ``accepted``. False: the writer has started over with ``accepted == 0``, because a placed segment
            is missing, the store lost bytes, or an interrupt left a record half taken. Then write all records
            again; a segment that differs from the first time raises :class:`ckptfmt.SnapshotChanged`.

        Raises:
            SnapshotChanged: The failure was that records differ from the first time. It is final.
            StoreError: The store failed again.
            ValueError: The writer was aborted.
        """
        if self._is_complete:
            return True
        self._check_open()
        if not self._update_unfinished:
            placed = list(self._pipeline.placed)
            if all(is_placed(self._folder, each) for each in placed) and self._pipeline.retry():
                return True
        self._update_unfinished = True  # until _start_over has finished
        self._expected = max(self._expected, list(self._pipeline.packer.digests), key=len)
        self._pipeline.close()
        self._finalizer.detach()
        self._start_over()
        return False

    def abort(self) -> None:
        """Stop writing: nothing is published, and no temporary file is left.

        After publishing it has no effect. The call is idempotent, and can also be repeated after it was
        interrupted.
        """
        self._close()
        if not self._is_complete:
            self._folder.remove_created_folders()

    def _close(self) -> None:
        """End the threads. Can be repeated, also after an interrupt such as Ctrl-C while the disk hangs."""
        self._closed = True
        self._pipeline.close()
        self._finalizer.detach()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("this writer has published or was aborted; create a new one")

    def _check_usable(self) -> None:
        self._check_open()
        if self._update_unfinished:
            raise ValueError(
                "the writer was interrupted in the middle of a record; "
                "call retry(), which starts over, or abort()"
            )

    @property
    @abstractmethod
    def _is_complete(self) -> bool:
        """Whether the records are published or the part is finished."""

    @abstractmethod
    def _complete(self) -> None:
        """Publish, or finish the part: called at the end of a ``with`` block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._complete()
        finally:
            self.abort()

    def __repr__(self) -> str:
        state = "complete" if self._is_complete else "closed" if self._closed else "open"
        return f"<ckptfmt.{type(self).__name__} of {self._participant}: {self.accepted} records, {state}>"


def is_placed(folder: Store, segment: Segment) -> bool:
    """Whether the file of the segment exists and has its size. Raises :class:`StoreError`."""
    try:
        found = folder.stat(segment.file)
    except NotFound:
        return False
    return found.is_file and found.size == segment.stored


def _clean_up(pipeline: Pipeline, folder: Store) -> None:
    """Clean up after a writer that was not closed. The garbage collector may call this in any thread."""
    if threading.current_thread().name.startswith(THREAD_NAME_PREFIX):
        # This is a thread of a pipeline, which cannot wait for itself: another thread must do it.
        threading.Thread(target=_clean_up, args=(pipeline, folder), daemon=True).start()
        return
    pipeline.close()
    folder.remove_created_folders()

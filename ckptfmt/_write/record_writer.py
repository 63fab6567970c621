"""Taking records one at a time and placing them as segments: what every writer does before it publishes."""

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
from ckptfmt._write.pipeline import THREADS, Pipeline
from ckptfmt._write.segment_packer import Packer
from ckptfmt._write.spool import SpooledFile
from ckptfmt.stores import LocalPath, StagedFile, Store, Url, choose_store
from ckptfmt.stores._urls import local_path

Compression = Literal["auto", "none", "zstd"]

_BYTES_BETWEEN_YIELDS: Final = 256 * KIB
_RECORD_COST: Final = 2 * KIB
"""What the work on one record counts as, in bytes, besides its own: small ones take time, too."""


class RecordWriter(ABC):
    """Takes records, from one thread at a time; what becomes of them in the end is for the kinds of it.

    As a context manager it completes when the block ends, and aborts when it raises.
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
        self._begin()

    def _begin(self) -> None:
        folder, spool = self._folder, self._spool

        def stage() -> StagedFile:
            return folder.stage() if spool is None else SpooledFile(folder, spool)

        packer = Packer(self._codec, self._tuning, stage, self._expected)
        # The threads know the pipeline and not this object, so a forgotten writer is collected, and ends
        # them.
        self._pipeline = Pipeline(packer, self._tuning)
        self._finalizer = weakref.finalize(self, _abandon, self._pipeline, folder)
        self._batch = self._pipeline.spare()
        self._rollouts: set[str] = set()
        self._since_yield = 0
        self._closed = False
        self.accepted = 0
        """Records taken so far; after an error, the number of the record to go on with."""
        self._is_midway = False

    def write(self, record: Record) -> None:
        """Take one record; ``accepted`` then counts it. A call that raises has taken nothing (one that Ctrl-C
        interrupted may have: ``accepted`` says so, or the next call asks for :meth:`retry`).

        Raises :class:`InexactValue`, :class:`LimitExceeded` (a second record of one rollout, too),
        :class:`Stopped`, :class:`SnapshotChanged`, and, for a segment before, :class:`StoreError` (see
        :meth:`retry`).
        """
        if not isinstance(record, Record):
            raise wrong_type("write", "a Record", record)
        self._check_usable()
        self._gate.check()
        self._pipeline.raise_failure()
        if self._batch.full:
            self._hand_over()
        rollout = record.episode.rollout_id
        if rollout in self._rollouts:
            raise LimitExceeded(
                f"episode {record.episode}: the participant has a record of rollout {rollout} already; "
                "one manifest holds at most one record per rollout"
            )
        key = record.episode.capture_key
        line = encode_line(record, self._limits)
        size = sum(map(len, line))
        alone = size >= self._tuning.segment_bytes
        if self._batch.lines and (alone or size >= LARGE_LINE):
            self._hand_over()
        self._is_midway = True
        self._rollouts.add(rollout)
        batch = self._batch
        batch.add(line, size, key, record.boundary)
        batch.alone = alone
        self.accepted += 1
        if alone or batch.full or batch.size >= self._batch_bytes:
            batch.full = True
            self._offer()
        self._is_midway = False
        self._yield_after(size)

    def _yield_after(self, size: int) -> None:
        """Encoding holds the GIL: let an event loop in another thread run, though not for each small record.

        One yield takes as long as encoding 30 to 100 KB.
        """
        self._since_yield += size + _RECORD_COST
        if self._since_yield >= _BYTES_BETWEEN_YIELDS:
            self._since_yield = 0
            time.sleep(0)

    def _hand_over(self) -> None:
        """Give the batch to the pipeline, waiting for room; when that raises, the batch is still here."""
        while not self._offer():
            self._pipeline.wait_for_room(self._batch, self._gate.check)

    def _offer(self) -> bool:
        self._is_midway = True
        taken = self._pipeline.offer(self._batch)
        if taken:
            self._batch = self._pipeline.spare()
        self._is_midway = False
        return taken

    def _place_all(self) -> tuple[tuple[Segment, ...], Rows]:
        """Place what is left; returns the segments and the rows of the index. Raises like :meth:`write`."""
        self._check_usable()
        self._gate.check()
        if self._batch.lines:
            self._hand_over()
        self._pipeline.finish(self._gate.check)
        if len(self._pipeline.placed) < len(self._expected):
            raise SnapshotChanged(
                "fewer records were written the second time; this checkpoint cannot be finished"
            )
        segments, rows = tuple(self._pipeline.placed), self._pipeline.packer.rows
        if not self.accepted == len(rows) == sum(segment.records for segment in segments):
            raise RuntimeError("a fault in ckptfmt: records were lost or doubled; nothing was published")
        return segments, rows

    def retry(self) -> bool:
        """After a :class:`StoreError`: try again what failed.

        True: segments that are not placed yet are placed again, with the same bytes; go on with record
        number ``accepted``. False: one that had been placed is gone, or the store could not make durable what
        it had taken, or an interrupt came in between: the writer has started over at ``accepted == 0``; write
        all records again: each
        segment must have its former digest, else :class:`SnapshotChanged`. Raises :class:`StoreError` when
        the store cannot say what is there.
        """
        if self._is_complete:
            return True
        self._check_open()
        if not self._is_midway:
            placed = list(self._pipeline.placed)
            if all(is_placed(self._folder, each) for each in placed) and self._pipeline.go_on():
                return True
        self._is_midway = True  # until all of the following is done
        self._expected = max(self._expected, list(self._pipeline.packer.digests), key=len)
        self._pipeline.close()
        self._finalizer.detach()
        self._begin()
        return False

    def abort(self) -> None:
        """Give up: nothing is published, and no temporary file is left. Once complete, it does nothing."""
        self._close()
        if not self._is_complete:
            self._folder.remove_created_folders()

    def _close(self) -> None:
        """It can be called again, also when it was interrupted (a disk that hangs makes people impatient)."""
        self._closed = True
        self._pipeline.close()
        self._finalizer.detach()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("this writer has published or was aborted; create another one")

    def _check_usable(self) -> None:
        self._check_open()
        if self._is_midway:
            raise ValueError(
                "an interrupt came while records were taken; call retry(), which starts over, or abort()"
            )

    @property
    @abstractmethod
    def _is_complete(self) -> bool: ...

    @abstractmethod
    def _complete(self) -> None:
        """Do what the end of a ``with`` block does."""

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
    """Whether the segment's file is there, by its size. Raises :class:`StoreError`."""
    try:
        found = folder.stat(segment.file)
    except NotFound:
        return False
    return found.is_file and found.size == segment.stored


def _abandon(pipeline: Pipeline, folder: Store) -> None:
    """Clean up after a writer that nobody closed. The garbage collector may find it in any thread."""
    if threading.current_thread().name.startswith(THREADS):
        # One of ours, in the middle of something: somebody else has to wait for it.
        threading.Thread(target=_abandon, args=(pipeline, folder), daemon=True).start()
        return
    pipeline.close()
    folder.remove_created_folders()

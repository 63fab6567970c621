"""The threads of a writer: two compress batches, one packs them into segments, one places the segments.

The caller's thread encodes records, which holds the GIL. Compressing, hashing and writing release it, so a
commit takes about as long as the slowest stage. Back-pressure: the caller waits while a few megabytes are
queued or too many segments are unplaced. A failure stops the threads, keeps all unplaced data, and is raised
at the caller's next call; ``retry`` continues from there.
"""

from __future__ import annotations

import _thread
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from ckptfmt._errors import StoreError
from ckptfmt._limits import Tuning
from ckptfmt._model.manifest import Segment
from ckptfmt._write.batch import Batch
from ckptfmt._write.compression import Compressor
from ckptfmt._write.segment_packer import SegmentPacker

THREAD_NAME_PREFIX: Final = "ckptfmt"
"""The names of the threads begin with this."""

_POLL_SECONDS: Final = 0.05
_WAKE_UP_SECONDS: Final = 1.0


class _QueuedBatch:
    """A batch in the queue, and its frame once compression was submitted."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.frame: Future[list[bytes]] | None = None


class Pipeline:
    """Moves batches from the caller's thread to the store.

    Only the caller's thread may call public methods. The caller's thread is often the main thread, where
    Ctrl-C may interrupt any Python code. It therefore uses the lock directly, which is implemented in C, and
    never waits for the condition.
    """

    def __init__(self, packer: SegmentPacker, tuning: Tuning) -> None:
        self.packer = packer
        self.placed: list[Segment] = []
        self._tuning = tuning
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # the threads wait for it
        self._progress = threading.Lock()  # the caller waits for it; released when the state changes
        self._progress.acquire()
        self._queue: deque[_QueuedBatch] = deque()
        self._empty_batches: list[Batch] = []
        self._failure: BaseException | None = None
        self._finishing = False
        self._closing = False
        self._threads: list[threading.Thread] = []

    def empty_batch(self) -> Batch:
        """An empty batch: a reused one, if possible."""
        return self._empty_batches.pop() if self._empty_batches else Batch()

    def try_enqueue(self, batch: Batch) -> bool:
        """Enqueue ``batch`` if there is room now.

        Returns whether it was enqueued. Raises RuntimeError when no thread can be started.
        """
        with self._lock:
            if self._failure is not None or not self._has_room(batch):
                return False
            self._finishing = False
            self._ensure_started()
            self._queue.append(_QueuedBatch(batch))
            self._work.notify_all()
            return True

    def wait_for_room(self, batch: Batch, check: Callable[[], None]) -> None:
        """Wait until ``batch`` can be enqueued. Raises the error of a failed thread, or of ``check``."""
        self._wait(lambda: self._has_room(batch), check)

    def _has_room(self, batch: Batch) -> bool:
        waiting = sum(each.batch.size for each in self._queue)
        return waiting == 0 or waiting + batch.size <= self._tuning.waiting_bytes

    def finish(self, check: Callable[[], None]) -> None:
        """Wait until everything that was enqueued is placed. Raises like :meth:`wait_for_room`."""
        with self._lock:
            self._finishing = True
            self._work.notify_all()
        self._wait(lambda: not (self._queue or self.packer.is_open or self.packer.closed), check)

    def raise_failure(self) -> None:
        """Raise the error of a failed thread, if there is one."""
        failure = self._failure  # without the lock, because this runs before every record
        if failure is not None:
            raise failure

    def retry(self) -> bool:
        """Let the threads retry after a StoreError.

        Returns False when the store lost bytes of a segment. Any other failure is final and is raised again.
        """
        with self._lock:
            if self.packer.lost:
                return False
            if isinstance(self._failure, StoreError):
                self._failure = None
            self._work.notify_all()
        self.raise_failure()
        return True

    def close(self) -> None:
        """End the threads, which stops writes in progress, and discard all unplaced data.

        The call is idempotent, and can also be repeated after it was interrupted.
        """
        with self._lock:
            self._closing = True
            self._work.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._queue.clear()
        self.packer.discard()

    def _is_closing(self) -> bool:
        return self._closing

    def _wait(self, ready: Callable[[], bool], check: Callable[[], None]) -> None:
        while True:
            check()
            with self._lock:
                if self._failure is not None:
                    raise self._failure
                if ready():
                    return
            # Polls, because a gate that is stopped sends no notification.
            self._progress.acquire(timeout=_POLL_SECONDS)

    def _ensure_started(self) -> None:
        # Thread.start waits in Python code, where an interrupt would leave it half done. So a C function
        # starts a thread that interrupts do not reach, and that thread starts the others. Starting it twice
        # is harmless.
        if not self._threads:
            _thread.start_new_thread(self._start_threads, ())

    def _start_threads(self) -> None:
        with self._lock:
            if self._threads or self._closing:
                return
            try:
                for loop, name in ((self._pack_all, "pack"), (self._place_all, "place")):
                    # Daemon threads: a process that ends without closing its writers must not hang.
                    thread = threading.Thread(target=loop, name=f"{THREAD_NAME_PREFIX}-{name}", daemon=True)
                    thread.start()
                    self._threads.append(thread)
            except RuntimeError as error:  # too many threads, or the interpreter is shutting down
                self._failure = error
                self._notify()

    def _wait_for_work(self, ready: Callable[[], bool]) -> bool:
        """Wait in a thread until ``ready`` returns true. Returns False when the thread must end."""
        with self._lock:
            while not self._closing and (self._failure is not None or not ready()):
                # With a timeout: an interrupt in the caller's thread may have prevented the notification.
                self._work.wait(_WAKE_UP_SECONDS)
            return not self._closing

    def _may_pack(self) -> bool:
        work = bool(self._queue) or (self._finishing and self.packer.is_open)
        return work and len(self.packer.closed) < self._tuning.unplaced_segments

    def _pack_all(self) -> None:
        compressor = Compressor() if self.packer.codec == "zstd" else None
        try:
            while self._wait_for_work(self._may_pack):
                try:
                    self._pack(compressor)
                except BaseException as error:  # is raised in the caller's thread
                    self._fail(error)
        finally:
            if compressor is not None:
                compressor.close()

    def _pack(self, compressor: Compressor | None) -> None:
        """Pack the first batch of the queue. When the queue is empty and finishing, close the segment."""
        if not self._queue:
            with self._lock:  # waiting threads see the segment either open or closed
                self.packer.finish()
                self._notify()
            return
        if compressor is not None:
            for each in list(self._queue):
                if each.frame is None:
                    each.frame = compressor.submit(each.batch)
        batch, frame = self._queue[0].batch, self._queue[0].frame
        self.packer.add(batch, batch.chunks() if frame is None else frame.result(), self._is_closing)
        batch.clear()
        self._empty_batches.append(batch)
        with self._lock:
            self._queue.popleft()
            self._notify()

    def _may_place(self) -> bool:
        return bool(self.packer.closed) or self.packer.unsynced >= self._tuning.sync_bytes

    def _place_all(self) -> None:
        while self._wait_for_work(self._may_place):
            try:
                if self.packer.closed:
                    self._place()
                else:
                    self.packer.sync()
            except BaseException as error:  # is raised in the caller's thread
                self._fail(error)

    def _place(self) -> None:
        closed = self.packer.closed[0]
        closed.staged.place(closed.segment.file, self._is_closing)
        with self._lock:
            self.packer.closed.popleft()
            self.placed.append(closed.segment)
            self._notify()
        closed.staged.discard()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._failure is None:  # two threads may fail: report the first error
                self._failure = error
            self._notify()

    def _notify(self) -> None:
        """Wake up the threads and the caller after a change. Requires the lock."""
        self._work.notify_all()
        if self._progress.locked():
            self._progress.release()

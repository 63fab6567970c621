"""Threads beside the caller's: two compress batches, one packs them into segments, one places the segments.

The caller encodes, which holds the GIL; compressing, hashing and writing do not, so a commit takes about as
long as the slowest of them. A few megabytes may wait for the packer, and only so many segments may be
unplaced: then the caller waits. A failure stops the threads where they are, keeps everything that is
unplaced, and is raised to the caller at its next call; ``go_on`` tries again from there.
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
from ckptfmt._write.segment_packer import Packer

THREADS: Final = "ckptfmt"
"""What the names of our threads begin with."""

_POLL_SECONDS: Final = 0.05
_LOOK_AGAIN_SECONDS: Final = 1.0


class _Waiting:
    """A batch, and its frame once it is being compressed."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.frame: Future[list[bytes]] | None = None


class Pipeline:
    """Moves batches from the caller's thread to the store. All public methods are for the caller's thread.

    That one is often the main thread, where Ctrl-C may interrupt any Python code: so it holds the lock by
    itself (which is C) and never waits for the condition.
    """

    def __init__(self, packer: Packer, tuning: Tuning) -> None:
        self.packer = packer
        self.placed: list[Segment] = []
        self._tuning = tuning
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # for the threads
        self._progress = threading.Lock()  # for the caller: held until something changes
        self._progress.acquire()
        self._queue: deque[_Waiting] = deque()
        self._spare: list[Batch] = []
        self._failure: BaseException | None = None
        self._finishing = False
        self._ending = False
        self._threads: list[threading.Thread] = []

    def spare(self) -> Batch:
        """An empty batch."""
        return self._spare.pop() if self._spare else Batch()

    def offer(self, batch: Batch) -> bool:
        """Hand over ``batch`` if that needs no waiting. Raises RuntimeError when no thread can be started."""
        with self._lock:
            if self._failure is not None or not self._has_room(batch):
                return False
            self._finishing = False
            self._start()
            self._queue.append(_Waiting(batch))
            self._work.notify_all()
            return True

    def wait_for_room(self, batch: Batch, check: Callable[[], None]) -> None:
        """Wait until ``batch`` can be offered. Raises what a thread failed with, or what ``check`` raises."""
        self._wait(lambda: self._has_room(batch), check)

    def _has_room(self, batch: Batch) -> bool:
        waiting = sum(each.batch.size for each in self._queue)
        return waiting == 0 or waiting + batch.size <= self._tuning.waiting_bytes

    def finish(self, check: Callable[[], None]) -> None:
        """Wait until everything handed over is placed. Raises like :meth:`wait_for_room`."""
        with self._lock:
            self._finishing = True
            self._work.notify_all()
        self._wait(lambda: not (self._queue or self.packer.is_open or self.packer.closed), check)

    def raise_failure(self) -> None:
        failure = self._failure  # no lock: it is asked before every record
        if failure is not None:
            raise failure

    def go_on(self) -> bool:
        """After a StoreError: the threads try again what failed. Any other failure is final, and raised
        again. False: the store lost bytes, so that nothing can go on."""
        with self._lock:
            if self.packer.lost:
                return False
            if isinstance(self._failure, StoreError):
                self._failure = None
            self._work.notify_all()
        self.raise_failure()
        return True

    def close(self) -> None:
        """End the threads (what is being written gives up) and free what waits.

        Harmless when repeated, also after it was interrupted itself.
        """
        with self._lock:
            self._ending = True
            self._work.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._queue.clear()
        self.packer.discard()

    def _is_ending(self) -> bool:
        return self._ending

    def _wait(self, ready: Callable[[], bool], check: Callable[[], None]) -> None:
        while True:
            check()
            with self._lock:
                if self._failure is not None:
                    raise self._failure
                if ready():
                    return
            # A gate that is stopped does not notify us: look again soon.
            self._progress.acquire(timeout=_POLL_SECONDS)

    def _start(self) -> None:
        # Thread.start waits in Python code, which an interrupt would leave half done: only C starts a thread
        # here, and that one, which no interrupt reaches, starts the others. More than one does no harm.
        if not self._threads:
            _thread.start_new_thread(self._launch, ())

    def _launch(self) -> None:
        with self._lock:
            if self._threads or self._ending:
                return
            try:
                for loop, name in ((self._pack_all, "pack"), (self._place_all, "place")):
                    # Daemons: a process that ends without closing its writers must not hang.
                    thread = threading.Thread(target=loop, name=f"{THREADS}-{name}", daemon=True)
                    thread.start()
                    self._threads.append(thread)
            except RuntimeError as error:  # there are too many threads, or the interpreter is ending
                self._failure = error
                self._tell()

    def _await_work(self, ready: Callable[[], bool]) -> bool:
        """For the threads: False when they are to end."""
        with self._lock:
            while not self._ending and (self._failure is not None or not ready()):
                # Not for ever: an interrupt in the caller's thread may have swallowed the notice.
                self._work.wait(_LOOK_AGAIN_SECONDS)
            return not self._ending

    def _may_pack(self) -> bool:
        work = bool(self._queue) or (self._finishing and self.packer.is_open)
        return work and len(self.packer.closed) < self._tuning.unplaced_segments

    def _pack_all(self) -> None:
        compressor = Compressor() if self.packer.codec == "zstd" else None
        try:
            while self._await_work(self._may_pack):
                try:
                    self._pack(compressor)
                except BaseException as error:  # it belongs to the caller's thread
                    self._fail(error)
        finally:
            if compressor is not None:
                compressor.close()

    def _pack(self, compressor: Compressor | None) -> None:
        """Pack the first batch, or, when there is none and no more will come, finish the segment."""
        if not self._queue:
            with self._lock:  # whoever waits sees the segment either open or closed
                self.packer.finish()
                self._tell()
            return
        if compressor is not None:
            for each in list(self._queue):
                if each.frame is None:
                    each.frame = compressor.submit(each.batch)
        batch, frame = self._queue[0].batch, self._queue[0].frame
        self.packer.add(batch, batch.chunks() if frame is None else frame.result(), self._is_ending)
        batch.clear()
        self._spare.append(batch)
        with self._lock:
            self._queue.popleft()
            self._tell()

    def _may_place(self) -> bool:
        return bool(self.packer.closed) or self.packer.unsynced >= self._tuning.sync_bytes

    def _place_all(self) -> None:
        while self._await_work(self._may_place):
            try:
                if self.packer.closed:
                    self._place()
                else:
                    self.packer.sync()
            except BaseException as error:  # it belongs to the caller's thread
                self._fail(error)

    def _place(self) -> None:
        closed = self.packer.closed[0]
        closed.staged.place(closed.segment.file, self._is_ending)
        with self._lock:
            self.packer.closed.popleft()
            self.placed.append(closed.segment)
            self._tell()
        closed.staged.discard()

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            if self._failure is None:  # two threads may fail: the first one says why
                self._failure = error
            self._tell()

    def _tell(self) -> None:
        """Something has changed, for whoever waits."""
        self._work.notify_all()
        if self._progress.locked():
            self._progress.release()

"""Threads beside the caller's: two compress batches, one packs them into segments, one places the segments.

The caller encodes, which holds the GIL; compressing, hashing and writing do not, so a commit takes about as
long as the slowest of them. A few megabytes may wait for the packer, and only so many segments may be
unplaced: then the caller waits. A failure stops the threads where they are, keeps everything that is
unplaced, and is raised to the caller at its next call; ``go_on`` tries again from there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, NamedTuple

from ckptfmt.batch import Batch
from ckptfmt.compression import Compressor
from ckptfmt.errors import StoreError
from ckptfmt.limits import Limits
from ckptfmt.manifest import Segment
from ckptfmt.segments import Packer

THREADS: Final = "ckptfmt"
"""What the names of our threads begin with."""

_POLL_SECONDS: Final = 0.05


class _Waiting(NamedTuple):
    batch: Batch
    frame: Future[list[bytes]] | None


class Pipeline:
    """Moves batches from the caller's thread to the store. All public methods are for the caller's thread."""

    def __init__(self, packer: Packer, limits: Limits) -> None:
        self.packer = packer
        self.placed: list[Segment] = []
        self._limits = limits
        self._changed = threading.Condition()
        self._queue: deque[_Waiting] = deque()
        self._spare: list[Batch] = []
        self._failure: BaseException | None = None
        self._ending = False
        self._threads: list[threading.Thread] = []
        self._compressor: Compressor | None = None

    def spare(self) -> Batch:
        """An empty batch."""
        return self._spare.pop() if self._spare else Batch()

    def offer(self, batch: Batch) -> bool:
        """Hand over ``batch`` if that needs no waiting; raises nothing."""
        with self._changed:
            if self._failure is not None or not self._has_room(batch):
                return False
            self._start()
            frame = None if self._compressor is None else self._compressor.submit(batch)
            self._queue.append(_Waiting(batch, frame))
            self._changed.notify_all()
            return True

    def hand_over(self, batch: Batch, check: Callable[[], None]) -> None:
        """Hand over ``batch``, waiting for room. Raises what a thread failed with, or what ``check``
        raises."""
        self._wait(lambda: self._has_room(batch), check)
        self.offer(batch)

    def _has_room(self, batch: Batch) -> bool:
        waiting = sum(each.batch.size for each in self._queue)
        return waiting == 0 or waiting + batch.size <= self._limits.waiting_bytes

    def finish(self, check: Callable[[], None]) -> None:
        """Wait until everything handed over is placed. Raises like :meth:`hand_over`."""
        self._wait(lambda: not self._queue, check)
        with self._changed:
            self.packer.finish()  # the packing thread has nothing to do, and we hold the lock
            if self.packer.closed:
                self._start()
            self._changed.notify_all()
        self._wait(lambda: not self.packer.closed, check)

    def raise_failure(self) -> None:
        failure = self._failure  # no lock: it is asked before every record
        if failure is not None:
            raise failure

    def go_on(self) -> None:
        """After a StoreError: the threads try again what failed. Any other failure is final, and raised
        again."""
        with self._changed:
            if isinstance(self._failure, StoreError):
                self._failure = None
            self._changed.notify_all()
        self.raise_failure()

    def close(self) -> None:
        """End the threads (what is being written gives up) and free what waits. Harmless when repeated."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._compressor is not None:
            self._compressor.close()
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
            with self._changed:
                if self._failure is not None:
                    raise self._failure
                if ready():
                    return
                # A gate that is stopped does not notify us: look again soon.
                self._changed.wait(_POLL_SECONDS)

    def _start(self) -> None:
        if not self._threads:
            if self.packer.codec == "zstd":
                self._compressor = Compressor()
            # Daemons: a process that ends without closing its writers must not hang.
            self._threads = [
                threading.Thread(target=self._pack_all, name=f"{THREADS}-pack", daemon=True),
                threading.Thread(target=self._place_all, name=f"{THREADS}-place", daemon=True),
            ]
            for thread in self._threads:
                thread.start()

    def _await_work(self, ready: Callable[[], bool]) -> bool:
        """For the threads: False when they are to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ending or (self._failure is None and ready()))
            return not self._ending

    def _may_pack(self) -> bool:
        return bool(self._queue) and len(self.packer.closed) < self._limits.unplaced_segments

    def _pack_all(self) -> None:
        while self._await_work(self._may_pack):
            waiting = self._queue[0]
            try:
                self._pack(waiting)
            except BaseException as error:  # it belongs to the caller's thread
                self._fail(error)
            else:
                waiting.batch.clear()
                self._spare.append(waiting.batch)
                with self._changed:
                    self._queue.popleft()
                    self._changed.notify_all()

    def _pack(self, waiting: _Waiting) -> None:
        batch, frame = waiting
        self.packer.add(batch, batch.chunks() if frame is None else frame.result(), self._is_ending)

    def _place_all(self) -> None:
        packer = self.packer
        while self._await_work(lambda: bool(packer.closed) or packer.unsettled >= self._limits.settle_bytes):
            try:
                if packer.closed:
                    self._place()
                else:
                    packer.settle()
            except BaseException as error:  # it belongs to the caller's thread
                self._fail(error)

    def _place(self) -> None:
        closed = self.packer.closed[0]
        closed.staged.place(closed.segment.file, self._is_ending)
        with self._changed:
            self.packer.closed.popleft()
            self.placed.append(closed.segment)
            self._changed.notify_all()
        closed.staged.discard()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            if self._failure is None:  # two threads may fail: the first one says why
                self._failure = error
            self._changed.notify_all()

"""Two threads beside the caller's: one packs frames into segments, one places finished segments.

The caller encodes, which holds the GIL; compressing, hashing and writing do not, so a commit takes about as
long as the slowest of them. One frame may wait for the packer, and only so many segments may be unplaced:
then the caller waits. A failure stops both threads where they are, keeps everything that is unplaced, and
is raised to the caller at its next call; ``go_on`` tries again from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from ckptfmt.errors import StoreError
from ckptfmt.manifest import Segment
from ckptfmt.segments import Batch, ClosedSegment, Packer

Place = Callable[[ClosedSegment, Callable[[], bool]], None]
"""Places one segment; the second argument says whether to give up."""

_POLL_SECONDS: Final = 0.05


class Pipeline:
    """Moves batches from the caller's thread to the store. All public methods are for the caller's thread."""

    def __init__(self, packer: Packer, place: Place, unplaced: int) -> None:
        self.packer = packer
        self.placed: list[Segment] = []
        self._place = place
        self._unplaced = unplaced
        self._changed = threading.Condition()
        self._batch: Batch | None = None
        self._failure: BaseException | None = None
        self._ending = False
        self._threads: list[threading.Thread] = []

    def offer(self, batch: Batch) -> bool:
        """Hand over ``batch`` if that needs no waiting; raises nothing."""
        with self._changed:
            if self._batch is not None or self._failure is not None:
                return False
            self._batch = batch
            self._start()
            self._changed.notify_all()
            return True

    def hand_over(self, batch: Batch, check: Callable[[], None]) -> None:
        """Hand over ``batch``, waiting for room. Raises what a thread failed with, or what ``check``
        raises."""
        self._wait(lambda: self._batch is None, check)
        self.offer(batch)

    def finish(self, check: Callable[[], None]) -> None:
        """Wait until everything handed over is placed. Raises like :meth:`hand_over`."""
        self._wait(lambda: self._batch is None, check)
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
        """End the threads (a placing under way gives up) and free what waits. Harmless when repeated."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():  # the collector may find a forgotten writer anywhere
                thread.join()
        self._threads.clear()
        self._batch = None
        self.packer.discard()

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
            # Daemons: a process that ends without closing its writers must not hang.
            self._threads = [
                threading.Thread(target=self._pack_all, name="ckptfmt-pack", daemon=True),
                threading.Thread(target=self._place_all, name="ckptfmt-place", daemon=True),
            ]
            for thread in self._threads:
                thread.start()

    def _await_work(self, ready: Callable[[], bool]) -> bool:
        """For the threads: False when they are to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._ending or (self._failure is None and ready()))
            return not self._ending

    def _pack_all(self) -> None:
        while self._await_work(lambda: self._batch is not None and len(self.packer.closed) < self._unplaced):
            batch = self._batch
            assert batch is not None
            try:
                self.packer.add(batch)
            except BaseException as error:  # it belongs to the caller's thread
                self._fail(error)
            else:
                with self._changed:
                    self._batch = None
                    self._changed.notify_all()

    def _place_all(self) -> None:
        while self._await_work(lambda: bool(self.packer.closed)):
            closed = self.packer.closed[0]
            try:
                self._place(closed, lambda: self._ending)
            except BaseException as error:  # it belongs to the caller's thread
                self._fail(error)
            else:
                with self._changed:
                    self.packer.closed.popleft()
                    self.placed.append(closed.segment)
                    self._changed.notify_all()
                closed.holder.discard()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failure = error
            self._changed.notify_all()

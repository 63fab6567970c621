"""Stopping a writer so that nothing is published afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ckptfmt._errors import Stopped


class Gate:
    """Shared by a writer and whoever may stop it, in different threads.

    A writer checks before each record, and holds the gate's lock round its last check and the creation of
        the manifest. So after ``stop()``, once ``wait_published()`` has returned True, no manifest can appear
        any more: either it is there already, or it never will be.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """From now on every check raises Stopped. Does not wait."""
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def check(self) -> None:
        """Raise :class:`ckptfmt.Stopped` once the gate is stopped."""
        if self._stopped.is_set():
            raise Stopped("the commit was stopped before its manifest was created; nothing was published")

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Hold the lock, checked: round the creation of a manifest. Raises :class:`ckptfmt.Stopped`."""
        with self._lock:
            self.check()
            yield

    def wait_published(self, timeout: float | None = None) -> bool:
        """Wait until no creation is under way; False when ``timeout`` seconds (None: no limit) did not
        suffice."""
        if not self._lock.acquire(timeout=-1 if timeout is None else max(timeout, 0.0)):
            return False
        self._lock.release()
        return True

"""Stopping a writer with the guarantee that nothing is published afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ckptfmt._errors import Stopped


class Gate:
    """Stops a writer from another thread.

    A writer checks the gate before each record, and holds the lock of the gate during its last check and the
    creation of the manifest. So once :meth:`wait_published` has returned true after :meth:`stop`, the
    manifest either exists or is never created.

    Example:
        ::

            gate = ckptfmt.Gate()
            writer = ckptfmt.create(
                "run/step-1", participant="a", kind="agent", checkpoint_id="c", gate=gate
            )
            # in another thread:
            gate.stop()
            gate.wait_published()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Let every later check raise :class:`ckptfmt.Stopped`, without waiting."""
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        """Whether :meth:`stop` was called."""
        return self._stopped.is_set()

    def check(self) -> None:
        """Check that the gate is not stopped.

        Raises:
            Stopped: The gate is stopped.
        """
        if self._stopped.is_set():
            raise Stopped("the commit was stopped before its manifest was created; nothing was published")

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Check the gate and hold its lock, as a context manager: for the creation of a manifest.

        Yields:
            Nothing.

        Raises:
            Stopped: The gate is stopped.
        """
        with self._lock:
            self.check()
            yield

    def wait_published(self, timeout: float | None = None) -> bool:
        """Wait until no manifest is being created.

        Args:
            timeout: The longest wait in seconds; None: no limit.

        Returns:
            False when a manifest was still being created after ``timeout`` seconds.
        """
        if not self._lock.acquire(timeout=-1 if timeout is None else max(timeout, 0.0)):
            return False
        self._lock.release()
        return True

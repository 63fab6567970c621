"""The timer of a server's lease: it ends a checkpoint whose controller stopped calling (CP8).

It also retries a reopening that failed, since no call may come that does: one at a time, after any error,
until it succeeds or a call has replaced it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ckptctl._server.lease import Lease
from ckptctl._server.tasks import loop_time

EXPIRY_RETRY_SECONDS = 30.0
"""How long an expiry tries to resume, and how long it waits before it tries again (CP8, CM7)."""


class LeaseTimer:
    """A `Lease` on the clock of the event loop."""

    def __init__(
        self,
        grace_seconds: float,
        *,
        end: Callable[[], asyncio.Task[None]],
        reopen_pending: Callable[[], bool],
    ) -> None:
        """Make a timer that is not running.

        ``end`` begins a resume, or returns the one under way; ``reopen_pending`` tells whether a reopening is
        still to be done although no lease runs.
        """
        self._lease = Lease(grace_seconds)
        self._end = end
        self._reopen_pending = reopen_pending
        self._wake = asyncio.Event()  # Set when the timer must look at the lease at once.
        self._timer: asyncio.Task[None] | None = None

    @property
    def expired(self) -> bool:
        return self._lease.expired(loop_time())

    @property
    def seconds_left(self) -> float | None:
        return self._lease.seconds_left(loop_time())

    def start(self) -> None:
        """A checkpoint or restore opens."""
        self._lease.start(loop_time())
        self._start_timer()

    def stop(self) -> None:
        """It has ended."""
        self._lease.stop()

    def retry(self) -> None:
        """A resume failed: try it again, now and then periodically."""
        self._start_timer()
        self._wake.set()

    def close(self) -> None:
        """The server is shutting down."""
        if self._timer is not None:
            self._timer.cancel()

    @contextmanager
    def call_in_progress(self) -> Iterator[None]:
        """While an accepted call that names the open id is in progress, the lease does not run."""
        self._lease.enter_call()
        try:
            yield
        finally:
            self._lease.leave_call(loop_time())

    def _start_timer(self) -> None:
        if self._timer is None or self._timer.done():
            self._timer = asyncio.create_task(self._run(), name="ckptctl-lease")

    async def _run(self) -> None:
        while True:
            left = self.seconds_left
            if left:
                self._wake.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._wake.wait()
            elif left is None and not self._reopen_pending():
                return
            else:
                end = self._end()
                await asyncio.wait([end], timeout=EXPIRY_RETRY_SECONDS)
                if end.done() and (end.cancelled() or end.exception() is not None):
                    await asyncio.sleep(EXPIRY_RETRY_SECONDS)

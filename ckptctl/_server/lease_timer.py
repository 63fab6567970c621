"""The watch over one server's lease: it ends a checkpoint whose controller stopped calling (CP8).

It also retries a reopening that failed, since nobody else may: one at a time, after any error, until it
succeeds or a call has brought something new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from ckptctl._server.lease import Lease
from ckptctl._server.waiting import now

EXPIRY_RETRY_SECONDS = 30.0
"""How long an expiry tries to resume, and how long it waits before it tries again (CP8, CM7)."""


class LeaseWatch:
    """A `Lease` on the clock of the event loop. ``end`` begins a resume, or joins the one under way;
    ``reopen_pending`` says whether a reopening is still to be made although no lease runs."""

    def __init__(
        self,
        grace_seconds: float,
        *,
        end: Callable[[], asyncio.Task[None]],
        reopen_pending: Callable[[], bool],
    ) -> None:
        self._lease = Lease(grace_seconds)
        self._end = end
        self._reopen_pending = reopen_pending
        self._wake = asyncio.Event()  # Set when the watcher must look again at once.
        self._watcher: asyncio.Task[None] | None = None

    @property
    def expired(self) -> bool:
        return self._lease.expired(now())

    @property
    def seconds_left(self) -> float | None:
        return self._lease.seconds_left(now())

    def start(self) -> None:
        """A checkpoint or restore opens."""
        self._lease.start(now())
        self._watch()

    def stop(self) -> None:
        """It is over."""
        self._lease.stop()

    def retry(self) -> None:
        """A resume failed: see to it that it is tried again."""
        self._watch()
        self._wake.set()

    def close(self) -> None:
        """The server is going away."""
        if self._watcher is not None:
            self._watcher.cancel()

    @contextmanager
    def held(self) -> Iterator[None]:
        """An accepted call that names the open id is in progress: the lease runs from its end."""
        self._lease.enter_call()
        try:
            yield
        finally:
            self._lease.leave_call(now())

    def _watch(self) -> None:
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._run(), name="ckptctl-lease")

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

"""A deadline whose clock can be stopped, so that the time in which an episode is parked does not count."""

from __future__ import annotations

import asyncio
from types import TracebackType


class PausableTimeout:
    """`asyncio.timeout` that can be paused. ``seconds``: None for no deadline."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._left: float | None = None  # Seconds, while paused.

    async def __aenter__(self) -> PausableTimeout:
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(self._seconds)
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._timeout.__aexit__(kind, error, traceback)

    def pause(self) -> None:
        """Stop the clock.

        Pausing twice is the same as once; a deadline that has passed stays so.
        """
        ends_at = self._timeout.when()
        if ends_at is not None and not self._timeout.expired():
            self._left = ends_at - self._loop.time()
            self._timeout.reschedule(None)

    def resume(self) -> None:
        """Let the clock run on.

        Without a pause nothing changes.
        """
        if self._left is not None:
            self._timeout.reschedule(self._loop.time() + self._left)
            self._left = None

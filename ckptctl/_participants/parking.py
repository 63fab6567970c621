"""Whether the episodes of a server are parked, which are exempt, and how many block a checkpoint.

One object for all episodes of a server. An episode asks it whether to wait at a boundary, and tells it
when it begins or stops to block a checkpoint.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from ckptfmt import EpisodeId


class Parking:
    """While it is closed, episodes wait at their boundaries, except for the exempt ones."""

    def __init__(self, on_none_blocking: Callable[[], None]) -> None:
        """``on_none_blocking``: called when the last blocking episode stops blocking, only while closed."""
        self._on_none_blocking = on_none_blocking
        self._open = asyncio.Event()
        self._open.set()
        self._exempt: frozenset[EpisodeId] = frozenset()
        self._blocking = 0

    @property
    def closed(self) -> bool:
        """Whether a checkpoint or restore is open."""
        return not self._open.is_set()

    @property
    def blocking(self) -> int:
        """How many episodes block a checkpoint now: a running count, so that asking is cheap (ST7)."""
        return self._blocking

    def close(self, exempt: Collection[EpisodeId]) -> None:
        self._exempt = frozenset(exempt)
        self._open.clear()

    def reopen(self) -> None:
        self._exempt = frozenset()
        self._open.set()

    def exempts(self, episode: EpisodeId) -> bool:
        """Whether this episode goes on while closed, since no server saves it."""
        return episode in self._exempt

    async def wait_until_open(self) -> None:
        """Wait for the reopening.

        It may have closed again by the time that the caller runs.
        """
        await self._open.wait()

    def begin_blocking(self) -> None:
        """One more episode blocks a checkpoint."""
        self._blocking += 1

    def end_blocking(self) -> None:
        """An episode that blocked a checkpoint no longer does."""
        self._blocking -= 1
        if not self._blocking and self.closed:
            self._on_none_blocking()

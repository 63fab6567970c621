"""Admission: whether a request may begin an execution now.

A request that arrives while admission is closed waits for the reopening: it is no execution, and blocks
nothing (CP13). Restarts keep running through a checkpoint, so they pass (RS2). Marks are checked when
a request is admitted, so that one that waited out a retire is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from ckptctl._retired import Marks
from ckptfmt import EpisodeId


class ClientGone(Exception):
    """The client of a waiting request has gone: it is dropped, and never runs."""


class Admission:
    """The gate that the data plane of a server passes before it begins an execution."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks
        self._open = asyncio.Event()
        self._open.set()
        self._exempt: frozenset[EpisodeId] = frozenset()
        self.admitted_any = False
        """Whether any execution was admitted since this process started (CP4)."""
        self.unattributed = 0
        """How many executions without any identity were admitted: they are in no scope and never block."""

    @property
    def closed(self) -> bool:
        return not self._open.is_set()

    def close(self, exempt: Collection[EpisodeId] = ()) -> None:
        self._exempt = frozenset(exempt)
        self._open.clear()

    def reopen(self) -> None:
        self._exempt = frozenset()
        self._open.set()

    async def enter(
        self, episode: EpisodeId | None, *, client_gone: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait until this request may run. Begin the execution without awaiting anything in between (read a
        body before): else a prepare or a retire that comes meanwhile does not see it.

        Raises `ControlError` ``stale_attempt`` when its attempt is retired, `ClientGone` when its client
        went away while it waited.
        """
        while self.closed and episode not in self._exempt:
            await self._open.wait()
            if client_gone():
                raise ClientGone
        if episode is not None:
            self._marks.check(episode)
        else:
            self.unattributed += 1
        self.admitted_any = True

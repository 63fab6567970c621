"""Admission: whether a request may begin an execution now.

A request that arrives while admission is closed waits for the reopening: it is not an execution, and
blocks nothing (CP13). Restarts keep running through a checkpoint, so they pass (RS2). Whether an attempt is
retired is checked when it is admitted, so a request that was waiting during a retire is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from ckptctl._errors import ClientGone
from ckptctl._retired import RetiredAttempts
from ckptfmt import EpisodeId


class Admission:
    """What every request of a server's data plane passes before it begins an execution.

    A `ControlPlane` has one and opens and closes it.

    Args:
        marks: The retired attempts of this server.

    Attributes:
        admitted_any: Whether any execution was admitted since this process started (CP4).
        unattributed: How many executions without any identity were admitted: no checkpoint saves them or
            waits for them.
    """

    def __init__(self, marks: RetiredAttempts) -> None:
        self._marks = marks
        self._open = asyncio.Event()
        self._open.set()
        self._exempt: frozenset[EpisodeId] = frozenset()
        self.admitted_any = False
        self.unattributed = 0

    @property
    def closed(self) -> bool:
        """Whether requests wait now."""
        return not self._open.is_set()

    def close(self, exempt: Collection[EpisodeId] = ()) -> None:
        """Let requests wait from now on.

        Args:
            exempt: Episodes whose requests pass nevertheless.
        """
        self._exempt = frozenset(exempt)
        self._open.clear()

    def reopen(self) -> None:
        """Let requests pass from now on, also those that wait."""
        self._exempt = frozenset()
        self._open.set()

    async def enter(
        self, episode: EpisodeId | None, *, client_gone: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait until this request may run.

        Begin the execution without awaiting anything in between (read a body before): otherwise a prepare or
        a retire that comes meanwhile misses it.

        Args:
            episode: The attempt that the request belongs to; None for one without identity.
            client_gone: Tells whether the client has disconnected. Asked after a wait.

        Raises:
            ControlError: ``stale_attempt``, when the attempt is retired.
            ClientGone: The client disconnected while the request waited.
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

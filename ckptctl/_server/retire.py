"""Retiring rollouts: concurrent up to a bound, each attempt stopped once (RT3, RT4, RT6)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ckptctl._participants.interface import Participant
from ckptctl._participants.steps import latest_attempts
from ckptctl._server.waiting import observe, uncancelled
from ckptfmt import EpisodeId

CONCURRENT_RETIRES = 32


class Retiring:
    """The retires under way, and those that failed: what they should have ended may still run.

    A repeated one waits for the task of the first, or begins anew if that failed.
    """

    def __init__(self, participant: Participant) -> None:
        self._participant = participant
        self._slots = asyncio.Semaphore(CONCURRENT_RETIRES)
        self._tasks: dict[EpisodeId, asyncio.Task[None]] = {}

    def begin(self, episodes: Collection[EpisodeId]) -> list[asyncio.Task[None]]:
        """The task of each rollout named, through its latest attempt. They go on without their caller."""
        return [self._task(EpisodeId(*last)) for last in latest_attempts(episodes).items()]

    def busy(self, rollout_id: str) -> bool:
        """Whether a retired task of this rollout has not ended."""
        return any(episode.rollout_id == rollout_id for episode in self._tasks)

    def _task(self, episode: EpisodeId) -> asyncio.Task[None]:
        task = self._tasks.get(episode)
        if task is None or task.done():
            task = self._tasks[episode] = asyncio.create_task(self._retire(episode), name="ckptctl-retire")
            task.add_done_callback(observe)
        return task

    async def _retire(self, episode: EpisodeId) -> None:
        async with self._slots:
            await uncancelled(self._participant.retire([episode]))
        # Not when it failed: forget must keep the mark (RT10). An earlier attempt's failure is made good.
        for each in [each for each in self._tasks if each.rollout_id == episode.rollout_id]:
            if each == episode or (each < episode and self._tasks[each].done()):
                del self._tasks[each]

"""Retiring rollouts: concurrently up to a bound, each attempt stopped once (RT3, RT4, RT6)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from ckptctl._errors import ControlError
from ckptctl._participants.interface import Participant
from ckptctl._retired import RetiredAttempts, latest_attempts
from ckptctl._server.tasks import await_participant, done_by, mark_retrieved
from ckptfmt import EpisodeId

CONCURRENT_RETIRES = 32


class RetireOperations:
    """The retires under way, and those that failed: what they should have ended may still run.

    A repeated retire waits for the task of the first one, or begins again if that failed.
    """

    def __init__(self, participant: Participant, marks: RetiredAttempts) -> None:
        self._participant = participant
        self._marks = marks
        self._slots = asyncio.Semaphore(CONCURRENT_RETIRES)
        self._tasks: dict[EpisodeId, asyncio.Task[None]] = {}

    async def retire(
        self, episodes: Collection[EpisodeId], installing: asyncio.Task[Any] | None, deadline: float
    ) -> None:
        """Retire each rollout named, up to its latest attempt.

        The tasks go on without their caller.

        ``installing``: a restore that may still add episodes. Raises ``deadline_exceeded`` when work has not
        ended by then, and the error of a participant that failed; the attempts are refused either way.
        """
        for episode in episodes:
            self._marks.retire(episode.rollout_id, episode.attempt)
        if installing is not None and not await done_by([installing], deadline):
            raise ControlError("deadline_exceeded", "an install has not finished; the attempts are refused")
        tasks = [self._task(EpisodeId(*last)) for last in latest_attempts(episodes).items()]
        if not await done_by(tasks, deadline):
            raise ControlError(
                "deadline_exceeded", "a retired attempt has not ended yet; the attempts are refused"
            )
        for task in tasks:
            task.result()

    def forget(self, rollouts: Collection[str]) -> list[str]:
        """End the refusal of rollouts.

        Returns those of which a retire runs or has failed, which are kept.
        """
        unfinished = {episode.rollout_id for episode in self._tasks}
        kept = sorted(unfinished.intersection(rollouts))
        for rollout_id in set(rollouts).difference(kept):
            self._marks.forget(rollout_id)
        return kept

    def _task(self, episode: EpisodeId) -> asyncio.Task[None]:
        task = self._tasks.get(episode)
        if task is None or task.done():
            task = self._tasks[episode] = asyncio.create_task(self._retire(episode), name="ckptctl-retire")
            task.add_done_callback(mark_retrieved)
        return task

    async def _retire(self, episode: EpisodeId) -> None:
        async with self._slots:
            await await_participant(self._participant.retire([episode]))
        # Not when it failed: forget must then keep the rollout (RT10). The success for a later attempt makes
        # up for the failure for an earlier one.
        for each in [each for each in self._tasks if each.rollout_id == episode.rollout_id]:
            if each == episode or (each < episode and self._tasks[each].done()):
                del self._tasks[each]

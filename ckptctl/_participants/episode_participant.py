"""A participant whose whole state is what its episodes recorded at their boundaries."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ckptctl._participants.interface import Blocker, Participant, PrepareReport, RestoredRecord
from ckptctl._participants.steps import EpisodeSteps
from ckptfmt import EpisodeId, Record


class EpisodeParticipant(Participant):
    """An environment server, an agent, or a policy model: run its work through ``self.steps``.

    Override `cleared` when the server keeps files for each episode.
    """

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self.steps = EpisodeSteps()

    async def close(self, restarts: Collection[EpisodeId]) -> None:
        self.steps.changed = self.changed
        self.steps.close(restarts)

    async def reopen(self) -> None:
        self.steps.reopen()

    def ready(self) -> bool:
        return not self.steps.blocking

    def blockers(self, limit: int) -> tuple[list[Blocker], int]:
        return self.steps.blockers(limit)

    async def prepare(self) -> PrepareReport:
        return PrepareReport(restarts=self.steps.restarts(), episodes=self.steps.saveable())

    async def export(self, scope: Collection[EpisodeId]) -> Sequence[Record]:
        return self.steps.export(scope)

    async def install(self, records: Sequence[RestoredRecord], scope: Collection[EpisodeId]) -> None:
        for episode in scope:
            self.cleared(episode)
        self.steps.install(records)

    async def retire(self, episodes: Collection[EpisodeId]) -> None:
        await self.steps.retire(episodes)
        for episode in episodes:
            self.cleared(episode)

    def cleared(self, episode: EpisodeId) -> None:
        """All state of this rollout up to this attempt is gone: remove what belongs to it outside memory."""

    def episode_count(self) -> int:
        return len(self.steps)

    def restart_count(self) -> int:
        return len(self.steps.restarts())

"""A participant whose whole state is what its episodes recorded at their boundaries."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ckptctl._participants.interface import Blocker, Participant, PrepareReport, RestoredRecord
from ckptctl._participants.steps import EpisodeSteps
from ckptfmt import EpisodeId, Record


class EpisodeParticipant(Participant):
    """An environment server, an agent, or a policy model, which runs its work through ``steps``.

    Override `cleared` when the server keeps files for each episode.

    Args:
        name: Its name, unique in a run.
        kind: ``environment``, ``policy_model``, ``agent`` or another word.

    Attributes:
        steps: The episodes of this server.

    Example:
        A server that counts to three, and continues to count after a crash::

            participant = EpisodeParticipant("counter-0", "environment")
            plane = ControlPlane(participant, settings)

            async def run(episode_id: EpisodeId) -> int:
                async with participant.steps.episode(episode_id) as episode:
                    while (episode.number or 0) < 3:
                        async with episode.step():
                            count = (episode.state or 0) + 1
                        await episode.boundary(count)
                    return episode.state
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
        """Remove what belongs to an episode outside memory, such as files.

        Does nothing by default.

        Called after a retire, and before a restore installs records.

        Args:
            episode: This attempt and the earlier ones of its rollout have no state in memory any more.
        """

    def episode_count(self) -> int:
        return len(self.steps)

    def restart_count(self) -> int:
        return len(self.steps.restarts())

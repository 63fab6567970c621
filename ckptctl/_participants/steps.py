"""Episode steps: how an agent loop, or any other loop, tells what of it can be saved.

The only order is: ``step`` then ``boundary``, any number of times, then the end of the block. A *wait*
step blocks a checkpoint from its start to the boundary after it; a *replay* step never does: the boundary
before it is saved, and its call is repeated after a crash, which must be safe (ST2). While a checkpoint
is open no step begins, and no episode ends (ST9, ST10); restarts are exempt from all of it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence

from ckptctl._participants.episode import Episode
from ckptctl._participants.interface import Blocker, RestoredRecord
from ckptctl._participants.live_episode import LiveEpisode
from ckptctl._participants.parking import Parking
from ckptctl._participants.registry import EpisodeRegistry
from ckptctl._retired import latest_attempts
from ckptfmt import EpisodeId, Record


class EpisodeSteps:
    """The episodes of one server: running ones, and inactive ones, which have a state and no task.

    An episode is inactive when it was restored and no request has continued it yet, or when it ended and
    is kept for a repeated call (``keep=True``), until `discard`.

    Attributes:
        changed: Called when the last blocking episode stops blocking, only while a checkpoint is open.

    Example:
        A loop that can be saved between any two of its model calls::

            async with steps.episode(episode_id) as episode:
                state = episode.state or {"messages": []}        # the restored state, if there is one
                while not done(state):
                    async with episode.step("replay"):           # a checkpoint does not wait for it
                        reply = await call_model(state)
                    state = {"messages": [*state["messages"], reply]}
                    await episode.boundary(state)                # waits here while a checkpoint is open
    """

    def __init__(self) -> None:
        self.changed: Callable[[], None] = lambda: None
        self._parking = Parking(self._none_blocks)
        self._episodes = EpisodeRegistry()

    @property
    def closed(self) -> bool:
        """Whether a checkpoint is open: episodes wait at their boundaries."""
        return self._parking.closed

    @property
    def blocking(self) -> int:
        """How many episodes a checkpoint has to wait for.

        A running count, so cheap to ask (ST7).
        """
        return self._parking.blocking

    def episode(
        self,
        episode_id: EpisodeId,
        *,
        deadline: float | None = None,
        restart: str | None = None,
        keep: bool = False,
    ) -> Episode:
        """Return the context of one running episode, which continues the inactive one of this id.

        Args:
            episode_id: The attempt.
            deadline: Seconds that the block may take; the time in which a checkpoint parks the episode
                does not count (ST3). Past it the block gets TimeoutError.
            restart: Why this episode can never be saved; None when it can.
            keep: Keep the last boundary as an inactive episode when the block ends, whatever ends it
                except a retire.

        Returns:
            An async context manager. Entering it raises `ControlError` ``invalid_request`` when the
            episode runs already.
        """
        live = LiveEpisode(episode_id, self._parking, deadline=deadline, restart=restart)
        return Episode(live, self._episodes, keep=keep)

    def close(self, exempt: Collection[EpisodeId] = ()) -> None:
        """Park every episode at its next boundary, except for restarts.

        Args:
            exempt: Episodes that are restarts on other servers, and go on here as well.
        """
        self._parking.close(exempt)
        for episode in self._episodes.live:
            episode.server_closed()

    def reopen(self) -> None:
        """Let every episode go on."""
        self._parking.reopen()
        for episode in self._episodes.live:
            episode.server_reopened()

    def blockers(self, limit: int) -> tuple[list[Blocker], int]:
        """Return the episodes that a checkpoint has to wait for.

        Args:
            limit: How many to list at most.

        Returns:
            At most ``limit`` of them, and how many there are.
        """
        found = (each.blocker for each in self._episodes.live if each.blocks)
        return list(itertools.islice(found, limit)), self._parking.blocking

    def saveable(self) -> list[EpisodeId]:
        """Return every episode that an export can contain.

        Returns:
            Running and inactive episodes, except for restarts and those that are being retired.
        """
        return [*(each.id for each in self._episodes.live if each.saveable), *self._episodes.inactive]

    def restarts(self) -> list[EpisodeId]:
        """Return the running episodes that cannot be saved.

        Returns:
            Their ids, in the order in which they began.
        """
        return [each.id for each in self._episodes.live if each.restart is not None]

    def export(self, scope: Collection[EpisodeId]) -> list[Record]:
        """Return a record of every saveable episode in scope, at its last boundary (ST4).

        Args:
            scope: The episodes to save. Those that this server does not hold are left out.

        Returns:
            The records, sorted by episode.
        """
        wanted = set(scope)
        saved = [each.saved_state() for each in self._episodes.live if each.id in wanted and each.saveable]
        saved += [each for episode_id, each in self._episodes.inactive.items() if episode_id in wanted]
        records = [each.record() if isinstance(each, RestoredRecord) else each for each in saved]
        return sorted(records, key=lambda record: record.episode)

    def install(self, records: Sequence[RestoredRecord]) -> None:
        """Add restored episodes, inactive until a request continues them.

        Args:
            records: The records of a checkpoint, under their replacement attempts.
        """
        self._episodes.inactive.update((record.episode, record) for record in records)

    def inactive(self, episode_id: EpisodeId) -> Record | RestoredRecord | None:
        """Return the last boundary of an inactive episode.

        Args:
            episode_id: The attempt.

        Returns:
            Its record, or None when no inactive episode has this id.
        """
        return self._episodes.inactive.get(episode_id)

    def discard(self, episode_id: EpisodeId) -> None:
        """Remove an inactive episode.

        Args:
            episode_id: The attempt. One that is not inactive changes nothing.
        """
        self._episodes.inactive.pop(episode_id, None)

    async def retire(self, episodes: Collection[EpisodeId]) -> None:
        """Cancel these attempts and earlier ones, wait until they have ended, and remove inactive ones.

        Args:
            episodes: The attempts to retire.
        """
        last = latest_attempts(episodes)
        stopping = [
            each for each in self._episodes.live if each.id.attempt <= last.get(each.id.rollout_id, -1)
        ]
        for episode in stopping:
            episode.retire()
        if stopping:
            await asyncio.wait([episode.ended for episode in stopping])
        for episode_id in list(self._episodes.inactive):
            if episode_id.attempt <= last.get(episode_id.rollout_id, -1):
                del self._episodes.inactive[episode_id]

    def _none_blocks(self) -> None:
        self.changed()

    def __iter__(self) -> Iterator[EpisodeId]:
        return iter(self._episodes)

    def __len__(self) -> int:
        return len(self._episodes)

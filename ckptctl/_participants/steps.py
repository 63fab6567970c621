"""Episode steps: how an agent loop, or any other loop, tells what of it can be saved.

::

    steps = EpisodeSteps()

    async with steps.episode(episode_id) as episode:
        state = episode.state or {"messages": []}        # restored state, if there is any
        while not done(state):
            async with episode.step("replay"):           # the checkpoint does not wait for it
                reply = await call_model(state)
            state = {"messages": [*state["messages"], reply]}
            await episode.boundary(state)                # parks here while a checkpoint is open

Orders there are: ``step`` then ``boundary``, again and again, then the end of the block. A *wait* step
blocks a checkpoint from its start to the boundary after it; a *replay* step never does: the boundary
before it is saved, and its call is repeated after a crash, which must be safe (ST2). While a checkpoint
is open no step begins, and no episode ends (ST9, ST10); restarts are exempt from all of it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence

from ckptctl._participants.episode import Episode
from ckptctl._participants.interface import Blocker, RestoredRecord
from ckptfmt import EpisodeId, Record


class EpisodeSteps:
    """The episodes of one server: those that run, and those that rest with no task of their own.

    An episode rests when it was restored and not yet claimed by a request, or when it ended and is kept
    for a repeated call (``keep=True``), until `discard`.
    """

    def __init__(self) -> None:
        self.changed: Callable[[], None] = lambda: None
        """Called when the last blocking episode stops blocking, only while a checkpoint is open (ST7)."""
        self._open = asyncio.Event()
        self._open.set()
        self._exempt: frozenset[EpisodeId] = frozenset()
        self._live: dict[EpisodeId, Episode] = {}
        self._resting: dict[EpisodeId, RestoredRecord | Record] = {}
        self._blocking = 0

    @property
    def closed(self) -> bool:
        return not self._open.is_set()

    @property
    def blocking(self) -> int:
        """How many episodes a checkpoint would have to wait for: a running count (ST7)."""
        return self._blocking

    def episode(
        self,
        episode_id: EpisodeId,
        *,
        deadline: float | None = None,
        restart: str | None = None,
        keep: bool = False,
    ) -> Episode:
        """The context of one running episode; it takes up what rests under its id.

        ``deadline``: seconds, parked time not counted (ST3); past it the block gets TimeoutError.
        ``restart``: the reason why this episode can never be saved. ``keep``: leave the last boundary
        resting when the block ends, whatever ends it but a retire.

        Entering raises `ControlError` ``invalid_request`` when the episode runs already.
        """
        return Episode(self, episode_id, deadline=deadline, restart=restart, keep=keep)

    def close(self, exempt: Collection[EpisodeId] = ()) -> None:
        """Park every episode at its next boundary but the restarts, own ones and those given."""
        self._exempt = frozenset(exempt)
        self._open.clear()
        for episode in self._live.values():
            episode._checkpoint_opened()

    def reopen(self) -> None:
        self._exempt = frozenset()
        self._open.set()
        for episode in self._live.values():
            episode._checkpoint_ended()

    def blockers(self, limit: int) -> tuple[list[Blocker], int]:
        """At most ``limit`` blocking episodes, and their number."""
        found = (each._blocker for each in self._live.values() if each._counted)
        return list(itertools.islice(found, limit)), self._blocking

    def saveable(self) -> list[EpisodeId]:
        """Every episode that an export can hold: live or resting, no restart, none being retired."""
        return [*(each.id for each in self._live.values() if each._saveable), *self._resting]

    def restarts(self) -> list[EpisodeId]:
        return [each.id for each in self._live.values() if each.restart is not None]

    def export(self, scope: Collection[EpisodeId]) -> list[Record]:
        """A record of every saveable episode in scope, at its last boundary (ST4), sorted by episode."""
        wanted = set(scope)
        records = [each._record() for each in self._live.values() if each.id in wanted and each._saveable]
        for episode_id, rest in self._resting.items():
            if episode_id in wanted:
                records.append(rest.record() if isinstance(rest, RestoredRecord) else rest)
        return sorted(records, key=lambda record: record.episode)

    def install(self, records: Sequence[RestoredRecord]) -> None:
        """Let restored episodes rest until a request claims them."""
        self._resting.update((record.episode, record) for record in records)

    def resting(self, episode_id: EpisodeId) -> Record | RestoredRecord | None:
        """What rests under this id, if anything."""
        return self._resting.get(episode_id)

    def discard(self, episode_id: EpisodeId) -> None:
        """Free what rests under this id. Nothing resting is no error."""
        self._resting.pop(episode_id, None)

    async def retire(self, episodes: Collection[EpisodeId]) -> None:
        """Cancel these attempts and earlier ones, wait until their tasks have ended, free what rests."""
        last = latest_attempts(episodes)
        stopping = [
            each for each in self._live.values() if each.id.attempt <= last.get(each.id.rollout_id, -1)
        ]
        for episode in stopping:
            episode._retire()
        if stopping:
            await asyncio.wait([episode._ended for episode in stopping])
        for episode_id in list(self._resting):
            if episode_id.attempt <= last.get(episode_id.rollout_id, -1):
                del self._resting[episode_id]

    def __iter__(self) -> Iterator[EpisodeId]:
        yield from self._live
        yield from self._resting

    def __len__(self) -> int:
        return len(self._live) + len(self._resting)

    def _count(self, by: int) -> None:
        self._blocking += by
        if not self._blocking and self.closed:
            self.changed()


def latest_attempts(episodes: Collection[EpisodeId]) -> dict[str, int]:
    """Rollout id to the highest attempt named, so that each rollout is stopped once (RT6)."""
    last: dict[str, int] = {}
    for episode in episodes:
        last[episode.rollout_id] = max(episode.attempt, last.get(episode.rollout_id, -1))
    return last

"""What the steps of a checkpoint and of a restore bring the controller. Results are values: they pickle."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import ckptfmt
from ckptfmt import EpisodeId

E = TypeVar("E", EpisodeId, str)


class Commits(Protocol):
    """What a prepared cut needs of its `ckptctl.Coordination`."""

    async def commit(
        self, prepared: PrepareResult, scope: Collection[EpisodeId], *, deadline: float
    ) -> CommitResult: ...


@dataclass(frozen=True)
class PrepareResult:
    """Every server is prepared. ``episodes``: the keys that each participant can save, by its name."""

    coordination: Commits = field(repr=False)
    checkpoint_id: str
    directory: str
    cut: ckptfmt.Cut
    restarts: frozenset[EpisodeId]
    """The union over all participants (RS6)."""
    episodes: Mapping[str, Sequence[str]]

    def continued(self, episodes: Iterable[E]) -> list[E]:
        """These episodes without the restarts, in the given order (RS3): the scope of a commit."""
        return [each for each in episodes if as_episode(each) not in self.restarts]

    async def commit(self, scope: Collection[EpisodeId | str], *, deadline: float = 600.0) -> CommitResult:
        """Save these episodes on every server. May be called again after a retryable error.

        Raises `ckptctl.CoordinationError` with the error of each server that failed, and `ControlError`
        ``restart_in_scope``, with nothing sent, for a scope that names a restart.
        """
        return await self.coordination.commit(self, [as_episode(each) for each in scope], deadline=deadline)


@dataclass(frozen=True)
class CommitResult:
    """Every server has committed. The checkpoint is complete only once `publish` has returned."""

    checkpoint_id: str
    directory: str
    cut: str
    manifests: Mapping[str, str]
    """Manifest digest by participant."""
    bytes: int
    """Stored bytes of all records."""
    scope: frozenset[EpisodeId]
    owners: Mapping[EpisodeId, Sequence[str]]
    """The participants that saved an episode, by episode."""
    restarts: frozenset[EpisodeId]
    references: Mapping[EpisodeId, Sequence[str]]
    """What the records refer to and the controller must find in its own state, by episode."""
    marks: Mapping[str, int]

    @property
    def episodes(self) -> frozenset[EpisodeId]:
        """The episodes that at least one server has saved."""
        return frozenset(self.owners)

    def on_the_wire(self, outstanding: Iterable[EpisodeId]) -> list[EpisodeId]:
        """Those outstanding runs whose reply must be on the wire: nobody saved them, nobody will (CO3)."""
        return [each for each in outstanding if each not in self.owners and each not in self.restarts]

    async def settle(
        self, outstanding: Mapping[EpisodeId, asyncio.Future[Any]], *, timeout: float
    ) -> list[EpisodeId]:
        """Wait for the replies on the wire, at most ``timeout`` seconds, and for no restart (CO3).

        Returns those without a reply by then: their request waits at closed admission, so it never
        began, and a restore must send it again from its input.
        """
        waiting = {each: outstanding[each] for each in self.on_the_wire(outstanding)}
        pending = [future for future in waiting.values() if not future.done()]
        if pending:
            await asyncio.wait(pending, timeout=timeout)
        return [each for each, future in waiting.items() if not future.done()]

    def publish(self, *, sequence: int, state: Any = None, unstarted: Iterable[EpisodeId] = ()) -> str:
        """Create ``checkpoint.json``, which makes the checkpoint complete (CO11). Returns its digest.

        ``state``: the controller's own cut, an exact JSON value. ``unstarted``: what `settle` returned;
        these start over like the restarts. Synchronous and thread-safe.
        """
        return ckptfmt.publish(
            self.directory,
            participants=dict(self.manifests),
            sequence=sequence,
            state=state,
            cut=self.cut,
            restarts=sorted({*self.restarts, *unstarted}),
            marks=dict(self.marks),
        )


@dataclass(frozen=True)
class RestoreResult:
    """Every server has restored; admission opens when the block of ``restored`` ends."""

    checkpoint_id: str
    """Of this restore: new each time."""
    source_checkpoint_id: str
    life: int
    episodes: Mapping[EpisodeId, EpisodeId]
    """Saved episode to the replacement attempt that continues it: dispatch these first."""
    restarts: Sequence[EpisodeId]
    """Retire these attempts, then send their rollouts again from the input (RS5)."""
    restored: Mapping[str, Sequence[EpisodeId]]
    """The replacement attempts that each participant has a record of, by its name."""
    state: Any
    """The controller's own cut, as it was given to ``publish``."""


def as_episode(each: EpisodeId | str) -> EpisodeId:
    """An episode given as such, or by its capture key. Raises `ckptfmt.InvalidId`."""
    return each if isinstance(each, EpisodeId) else EpisodeId.from_capture_key(each)

"""The results of the steps of a checkpoint and of a restore, as values."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import ckptfmt
from ckptfmt import EpisodeId

E = TypeVar("E", EpisodeId, str)


@dataclass(frozen=True)
class PrepareResult:
    """A cut for which every server is prepared.

    Attributes:
        checkpoint_id: The id of the checkpoint.
        directory: The folder of the checkpoint, as it was given.
        cut: The folder of the cut, in which the participants write.
        restarts: The episodes that some participant cannot save (RS6).
        episodes: The capture keys that each participant can save, by its name.
    """

    checkpoint_id: str
    directory: str
    cut: ckptfmt.Cut
    restarts: frozenset[EpisodeId]
    episodes: Mapping[str, Sequence[str]]
    _commit: Callable[..., Awaitable[CommitResult]] = field(repr=False)

    def continued(self, episodes: Iterable[E]) -> list[E]:
        """Return the episodes that can be saved: the scope of a commit (RS3).

        Args:
            episodes: Attempts or their capture keys, such as all that are in flight.

        Returns:
            Those of them that are not restarts, in the given order.

        Raises:
            ckptfmt.InvalidId: A string is not a capture key.
        """
        return [each for each in episodes if as_episode(each) not in self.restarts]

    async def commit(self, scope: Collection[EpisodeId | str], *, deadline: float = 600.0) -> CommitResult:
        """Save these episodes on every server.

        May be called again after a retryable error.

        Args:
            scope: Attempts or their capture keys.
            deadline: Seconds.

        Returns:
            What every server has saved, to be published.

        Raises:
            CoordinationError: A server failed.
            ControlError: ``restart_in_scope``, when the scope names a restart. Nothing was sent then.
            ckptfmt.InvalidId: A string is not a capture key.
        """
        return await self._commit(self, [as_episode(each) for each in scope], deadline=deadline)


@dataclass(frozen=True)
class CommitResult:
    """What every server has saved.

    The checkpoint is complete only once `publish` has returned.

    It can be pickled, so another process may publish.

    Attributes:
        checkpoint_id: The id of the checkpoint.
        directory: The folder of the checkpoint.
        cut: The name of the folder of the cut.
        manifests: Participant name to the digest of its manifest.
        bytes: Stored bytes of all records.
        scope: The episodes that were to be saved.
        owners: Episode to the names of the participants that saved it.
        restarts: The episodes that some participant cannot save.
        references: Episode to what its records refer to and the controller must find in its own state.
        marks: Rollout id to highest retired attempt.
    """

    checkpoint_id: str
    directory: str
    cut: str
    manifests: Mapping[str, str]
    bytes: int
    scope: frozenset[EpisodeId]
    owners: Mapping[EpisodeId, Sequence[str]]
    restarts: frozenset[EpisodeId]
    references: Mapping[EpisodeId, Sequence[str]]
    marks: Mapping[str, int]

    @property
    def episodes(self) -> frozenset[EpisodeId]:
        """The episodes that at least one server has saved."""
        return frozenset(self.owners)

    def awaiting_reply(self, outstanding: Iterable[EpisodeId]) -> list[EpisodeId]:
        """Return the runs whose reply must be under way: no server has saved them, or cannot save them (CO3).

        Args:
            outstanding: The attempts that were sent and have no reply yet.

        Returns:
            Those that are neither saved nor restarts, in the given order.
        """
        return [each for each in outstanding if each not in self.owners and each not in self.restarts]

    async def wait_for_replies(
        self, outstanding: Mapping[EpisodeId, asyncio.Future[Any]], *, timeout: float
    ) -> list[EpisodeId]:
        """Wait for the replies that are under way; see `awaiting_reply` (CO3).

        Args:
            outstanding: The attempts that were sent and have no reply yet, each with the future or task
                that gets its reply.
            timeout: Seconds.

        Returns:
            Those without a reply by then. Their request waits for admission, so it has not begun: a restore
            must send it again from its input. Pass them to `publish` as ``unstarted``.
        """
        waiting = {each: outstanding[each] for each in self.awaiting_reply(outstanding)}
        pending = [future for future in waiting.values() if not future.done()]
        if pending:
            await asyncio.wait(pending, timeout=timeout)
        return [each for each, future in waiting.items() if not future.done()]

    def publish(self, *, sequence: int, state: Any = None, unstarted: Iterable[EpisodeId] = ()) -> str:
        """Create ``checkpoint.json``, which makes the checkpoint complete (CO11).

        Blocking, thread-safe.

        Args:
            sequence: Orders the checkpoints of a run, such as the training step.
            state: The controller's own part of the cut, an exact JSON value.
            unstarted: What `wait_for_replies` returned. A restore starts these over, like the restarts.

        Returns:
            The digest of the checkpoint.

        Raises:
            ckptfmt.CheckpointError: What :func:`ckptfmt.publish` raises.
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
    """What every server has restored.

    Admission opens when the block of ``restored`` ends.

    It can be pickled.

    Attributes:
        checkpoint_id: The id of this restore, new each time.
        source_checkpoint_id: The id of the checkpoint.
        life: The number of the life that began.
        episodes: Saved episode to the replacement attempt that continues it: send these first.
        restarts: The episodes that were not saved: retire these attempts, then send their rollouts again
            from their input (RS5).
        restored: Participant name to the replacement attempts of which it has a record.
        state: The controller's own part of the cut, as it was given to `CommitResult.publish`.
    """

    checkpoint_id: str
    source_checkpoint_id: str
    life: int
    episodes: Mapping[EpisodeId, EpisodeId]
    restarts: Sequence[EpisodeId]
    restored: Mapping[str, Sequence[EpisodeId]]
    state: Any


def as_episode(each: EpisodeId | str) -> EpisodeId:
    """An episode given as such, or by its capture key.

    Raises `ckptfmt.InvalidId`.
    """
    return each if isinstance(each, EpisodeId) else EpisodeId.from_capture_key(each)


def commit_result(
    prepared: PrepareResult,
    scope: Collection[EpisodeId],
    replies: Mapping[str, Mapping[str, Any]],
    marks: Mapping[str, int],
) -> CommitResult:
    """The result of a commit, from the reply of each server by its name."""
    references: dict[str, list[str]] = {}
    owners: dict[str, list[str]] = {}
    for name, reply in sorted(replies.items()):
        for key in reply["episode_ids"]:
            owners.setdefault(key, []).append(name)
        for key, named in reply["references"].items():
            references.setdefault(key, []).extend(named)
    return CommitResult(
        checkpoint_id=prepared.checkpoint_id,
        directory=prepared.directory,
        cut=prepared.cut.name,
        manifests={name: reply["manifest"]["sha256"] for name, reply in sorted(replies.items())},
        bytes=sum(reply["manifest"]["bytes"] for reply in replies.values()),
        scope=frozenset(scope),
        owners={as_episode(key): tuple(names) for key, names in sorted(owners.items())},
        restarts=prepared.restarts,
        references={as_episode(key): tuple(named) for key, named in sorted(references.items())},
        marks=marks,
    )

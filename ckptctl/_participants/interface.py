"""What a server implements to take part in a checkpoint.

Most servers need not implement it all: `ckptctl.EpisodeParticipant` does it for a server whose state is
what its episodes recorded at their boundaries, `ckptctl.SessionParticipant` for one that holds a session
for each episode and changes it call by call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ckptfmt import EpisodeId, JsonPayload, Record, StoredRecord


@dataclass(frozen=True)
class Blocker:
    """An execution that is not at a boundary, so that a checkpoint waits for it.

    Attributes:
        episode: The attempt that it belongs to.
        reason: What it does, for people.
        since: For how many seconds it has been blocking.
    """

    episode: EpisodeId
    reason: str
    since: float

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object of a prepare reply.

        Returns:
            The members ``episode`` (a capture key), ``reason`` and ``since`` (seconds).
        """
        return {"episode": self.episode.capture_key, "reason": self.reason, "since": round(self.since, 3)}


@dataclass(frozen=True)
class PrepareReport:
    """What a participant reports once it is ready, or at the deadline.

    Attributes:
        restarts: The episodes that it cannot save, all of them (RS1).
        episodes: The episodes that it can save, all of them.
    """

    restarts: Collection[EpisodeId] = ()
    episodes: Collection[EpisodeId] = ()


@dataclass(frozen=True)
class RestoredRecord:
    """A record of a checkpoint under the replacement attempt that the restore's scope names (RE7).

    Attributes:
        episode: The replacement attempt.
        stored: The record as it is in the checkpoint.
    """

    episode: EpisodeId
    stored: StoredRecord

    @property
    def saved_as(self) -> EpisodeId:
        """The attempt that was saved."""
        return self.stored.episode

    @property
    def boundary(self) -> int | None:
        """The number of the boundary that was saved, if the participant counts them."""
        return self.stored.boundary

    @property
    def size(self) -> int:
        """Bytes of the payload's JSON text."""
        return self.stored.size

    def payload(self) -> Any:
        """Decode the payload.

        Returns:
            The saved value, a new object each time.

        Raises:
            ckptfmt.CheckpointError: When a large payload, which is read from the store again, cannot be
                read any more.
        """
        return self.stored.payload

    def record(self) -> Record:
        """Return this record for the next checkpoint, unchanged except for its episode (CM2).

        Returns:
            A record with the same payload, which is not decoded for it.

        Raises:
            ckptfmt.CheckpointError: When a large payload, which is read from the store again, cannot be
                read any more.
        """
        payload: JsonPayload = self.stored.json_payload
        return Record(
            episode=self.episode,
            payload=payload,
            boundary=self.stored.boundary,
            schema=self.stored.schema,
            references=tuple(self.stored.references),
        )


class Participant(ABC):
    """One server that holds state of episodes.

    All methods run on the event loop of its control plane.

    A method may raise any exception. The control call that needed it then fails with an error reply: a
    `ControlError` keeps its code, a :class:`ckptfmt.CheckpointError` has the code that
    ``docs/protocol.md`` names for it, all else is ``internal_error`` (from `export`: ``export_failed``).

    Attributes:
        name: Unique in a run, ignoring case: segments of ``[A-Za-z0-9][A-Za-z0-9._-]*`` joined by ``/``.
        kind: ``environment``, ``policy_model``, ``agent``, ``resources``, or another word; a
            `Server` of another kind needs ranks of its own.
        changed: Set by the control plane. Call it whenever `ready` may have become true.
    """

    name: str
    kind: str

    changed: Callable[[], None] = staticmethod(lambda: None)

    @abstractmethod
    async def close(self, restarts: Collection[EpisodeId]) -> None:
        """Let every execution stop at its next boundary.

        Args:
            restarts: Episodes that are restarts on other servers. They go on, as do the restarts of this
                server.

        Raises:
            Exception: Any error. The prepare or restore fails, and `reopen` is called.
        """

    @abstractmethod
    async def reopen(self) -> None:
        """Let the executions go on.

        Called after every `close`, also after one that failed halfway.

        Raises:
            Exception: Any error. The resume fails, and is tried again until it succeeds.
        """

    @abstractmethod
    def ready(self) -> bool:
        """Tell whether every running execution that can be saved is at a boundary.

        Called often (CP7).

        Returns:
            True when a checkpoint has nothing to wait for.

        Raises:
            Exception: Any error. The prepare fails.
        """

    @abstractmethod
    def blockers(self, limit: int) -> tuple[list[Blocker], int]:
        """Return the executions that keep `ready` false.

        Called often, with a limit of 0 by status.

        Args:
            limit: How many to list at most.

        Returns:
            At most ``limit`` of them, and how many there are.

        Raises:
            Exception: Any error. The prepare or status fails.
        """

    @abstractmethod
    async def prepare(self) -> PrepareReport:
        """Report what can be saved.

        Called once ready, or at the deadline; may be called again.

        Returns:
            All episodes that can be saved, and all that cannot.

        Raises:
            Exception: Any error. The prepare fails.
        """

    @abstractmethod
    async def export(self, scope: Collection[EpisodeId]) -> Sequence[Record]:
        """Return snapshots of the episodes in scope that this server holds, each at most once.

        Args:
            scope: The episodes to save.

        Returns:
            Their records. The payloads must not change until the checkpoint is resumed: pass copies,
            never live state.

        Raises:
            Exception: Any error. Every commit of this checkpoint id fails with
                ``export_failed``.
        """

    @abstractmethod
    async def install(self, records: Sequence[RestoredRecord], scope: Collection[EpisodeId]) -> None:
        """Add restored episodes under their replacement attempts.

        Args:
            records: What a checkpoint holds of this participant.
            scope: All episodes that the restore continues, also those without a record here: a server
                that keeps files for each episode removes what earlier processes left of them (RE4).

        Raises:
            ValueError: A record is not one of this server (as do TypeError, LookupError and
                AttributeError): the restore fails with ``invalid_checkpoint_state``.
            Exception: Any other error. The restore fails.
        """

    @abstractmethod
    async def retire(self, episodes: Collection[EpisodeId]) -> None:
        """Stop each attempt and its earlier ones, wait until their work has ended, free their state (RT3).

        May be cancelled by a deadline and called again: it then waits without stopping anything twice.

        Args:
            episodes: The attempts to retire.

        Raises:
            Exception: Any error. The retire fails, and can be called again.
        """

    async def delete_restored(self, episodes: Collection[EpisodeId]) -> None:
        """Free restored episodes that never ran here.

        Their attempts may be restored again later.

        By default it calls `retire`.

        Args:
            episodes: The attempts to free.

        Raises:
            Exception: Any error. The restore that needed it fails.
        """
        await self.retire(episodes)

    def episode_count(self) -> int:
        """Count the episodes that this server holds, for status.

        Returns:
            Their number. 0 by default.
        """
        return 0

    def restart_count(self) -> int:
        """Count those of them that are restarts, for status.

        Returns:
            Their number. 0 by default.
        """
        return 0

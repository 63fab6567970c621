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
    """An execution that is not at a boundary: ``since`` is the seconds it has been blocked so far."""

    episode: EpisodeId
    reason: str
    since: float

    def to_wire(self) -> dict[str, Any]:
        return {"episode": self.episode.capture_key, "reason": self.reason, "since": round(self.since, 3)}


@dataclass(frozen=True)
class PrepareReport:
    """What a participant says once it is ready, or at the deadline.

    ``restarts``: episodes it cannot save (never capped, RS1). ``episodes``: all that it can save.
    """

    restarts: Collection[EpisodeId] = ()
    episodes: Collection[EpisodeId] = ()


@dataclass(frozen=True)
class RestoredRecord:
    """A record of a checkpoint under the replacement attempt that the restore's scope names (RE7)."""

    episode: EpisodeId
    stored: StoredRecord

    @property
    def saved_as(self) -> EpisodeId:
        """The attempt that was saved."""
        return self.stored.episode

    @property
    def boundary(self) -> int | None:
        return self.stored.boundary

    @property
    def size(self) -> int:
        """Bytes of the payload's text."""
        return self.stored.size

    def payload(self) -> Any:
        """The decoded payload, a fresh object each time."""
        return self.stored.payload

    def record(self) -> Record:
        """This record for the next checkpoint, unchanged but for its episode (CM2): nothing is decoded."""
        payload: JsonPayload = self.stored.json_payload
        return Record(
            episode=self.episode,
            payload=payload,
            boundary=self.stored.boundary,
            schema=self.stored.schema,
            references=tuple(self.stored.references),
        )


class Participant(ABC):
    """One server that holds episode state. All methods run on the event loop of its control plane.

    ``changed`` is set by the control plane: call it whenever `ready` may have become true.
    Any exception of a method becomes a typed error of the control call that needed it.
    """

    name: str
    """Unique in a run, ignoring case: segments of ``[A-Za-z0-9][A-Za-z0-9._-]*`` joined by ``/``."""
    kind: str
    """``environment``, ``policy_model``, ``agent``, ``resources``, or another word with a rank of its own."""

    changed: Callable[[], None] = staticmethod(lambda: None)

    @abstractmethod
    async def close(self, restarts: Collection[EpisodeId]) -> None:
        """Let every execution stop at its next boundary. ``restarts`` and this server's own go on."""

    @abstractmethod
    async def reopen(self) -> None:
        """Let the executions go on. Called after every close, also one that failed part way."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether every live execution that can be saved is at a boundary. Cheap: asked often (CP7)."""

    @abstractmethod
    def blockers(self, limit: int) -> tuple[list[Blocker], int]:
        """At most ``limit`` of the executions that keep `ready` false, and how many there are."""

    @abstractmethod
    async def prepare(self) -> PrepareReport:
        """Report once ready, or at the deadline. May be asked again."""

    @abstractmethod
    async def export(self, scope: Collection[EpisodeId]) -> Sequence[Record]:
        """Snapshots of the episodes in scope that this server holds, each at most once.

        Their payloads must not change until the checkpoint is resumed: hand out copies, never live state.
        """

    @abstractmethod
    async def install(self, records: Sequence[RestoredRecord], scope: Collection[EpisodeId]) -> None:
        """Take up restored episodes under their replacement attempts.

        ``scope`` is all that the restore continues, also episodes without a record here: a server that
        keeps files for each episode clears what dead executions of those rollouts left (RE4).
        """

    @abstractmethod
    async def retire(self, episodes: Collection[EpisodeId]) -> None:
        """Stop each attempt and its earlier ones, wait for the end of their work, free their state (RT3).

        May be cancelled by a deadline and called again: it then waits without stopping anything twice.
        """

    async def delete_restored(self, episodes: Collection[EpisodeId]) -> None:
        """Free restored episodes that never ran here, leaving nothing that refuses their attempt later."""
        await self.retire(episodes)

    def episode_count(self) -> int:
        """How many episodes this server holds, for status."""
        return 0

    def restart_count(self) -> int:
        """How many of them are restarts, for status."""
        return 0

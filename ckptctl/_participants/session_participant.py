"""A participant that holds a session for each episode and changes it call by call."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ckptctl._errors import ControlError
from ckptctl._participants.interface import Blocker, Participant, PrepareReport, RestoredRecord
from ckptctl._retired import latest_attempts, stale_attempt
from ckptfmt import EpisodeId, Record


class SessionParticipant(Participant):
    """A resources server, which runs each call inside `call` and says how a session is saved and loaded.

    A checkpoint waits for the end of running calls.

    Args:
        name: Its name, unique in a run.
        kind: ``resources`` or another word.

    Example:
        A server that holds a list of notes for each episode::

            class Notes(SessionParticipant):
                def __init__(self) -> None:
                    super().__init__("notes-0")
                    self.notes: dict[EpisodeId, list[str]] = {}

                async def add(self, episode: EpisodeId, note: str) -> None:
                    async with self.call(episode):
                        self.notes.setdefault(episode, []).append(note)

                def sessions(self) -> Iterable[EpisodeId]:
                    return list(self.notes)

                def save(self, episode: EpisodeId) -> Any:
                    return {"notes": list(self.notes[episode])}

                def load(self, episode: EpisodeId, payload: Any) -> None:
                    self.notes[episode] = payload["notes"]

                def drop(self, episode: EpisodeId) -> None:
                    del self.notes[episode]
    """

    def __init__(self, name: str, kind: str = "resources") -> None:
        self.name = name
        self.kind = kind
        self._calls: dict[EpisodeId, dict[asyncio.Task[Any], float]] = {}
        self._idle = asyncio.Event()
        self._exempt: frozenset[EpisodeId] = frozenset()
        self._retiring: set[EpisodeId] = set()

    @abstractmethod
    def sessions(self) -> Iterable[EpisodeId]:
        """Return the episodes that have a session now.

        Returns:
            Their ids, in any order.

        Raises:
            Exception: Any error. The control call that needed it fails.
        """

    @abstractmethod
    def save(self, episode: EpisodeId) -> Any:
        """Return the state of a session.

        Args:
            episode: One of `sessions`.

        Returns:
            A new exact JSON value, never a live object.

        Raises:
            Exception: Any error. Every commit of the checkpoint fails with ``export_failed``.
        """

    @abstractmethod
    def load(self, episode: EpisodeId, payload: Any) -> None:
        """Make a session from a saved state.

        Args:
            episode: The attempt that gets the session.
            payload: What `save` returned for the saved attempt.

        Raises:
            ValueError: The payload is not one that `save` returns (as do TypeError, LookupError and
                AttributeError): the restore fails with ``invalid_checkpoint_state``.
            Exception: Any other error. The restore fails.
        """

    @abstractmethod
    def drop(self, episode: EpisodeId) -> None:
        """Free the session of an episode.

        Args:
            episode: One of `sessions`.

        Raises:
            Exception: Any error. The control call that needed it fails.
        """

    def cleared(self, episode: EpisodeId) -> None:
        """Remove what belongs to an episode outside memory, such as files.

        Does nothing by default.

        Called after a retire, and before a restore installs records (RE4).

        Args:
            episode: The sessions of this attempt and the earlier ones of its rollout are dropped.
        """

    def boundary(self, episode: EpisodeId) -> int | None:
        """Return how many calls a session has completed, if the server counts them.

        Args:
            episode: One of `sessions`.

        Returns:
            The number that the saved record gets. None by default.
        """
        return None

    @asynccontextmanager
    async def call(self, episode: EpisodeId) -> AsyncIterator[None]:
        """Run the code of one call: a checkpoint waits for its end.

        Args:
            episode: The attempt that the call belongs to.

        Yields:
            None.

        Raises:
            ControlError: ``stale_attempt``, when the attempt is being retired, or is retired during the call.
        """
        if episode in self._retiring:
            raise stale_attempt(episode)
        task = asyncio.current_task()
        assert task is not None
        cancellations = task.cancelling()
        running = self._calls.setdefault(episode, {})
        running[task] = asyncio.get_running_loop().time()
        try:
            yield
        except asyncio.CancelledError:
            if episode not in self._retiring or task.cancelling() > cancellations + 1:
                raise
            raise stale_attempt(episode) from None
        finally:
            if episode in self._retiring:
                task.uncancel()  # The cancellation by the retire ends here, also one that the call ignored.
            del running[task]
            if not running:
                del self._calls[episode]
                self._retiring.discard(episode)
            self._idle.set()
            if self.ready():
                self.changed()

    async def close(self, restarts: Collection[EpisodeId]) -> None:
        self._exempt = frozenset(restarts)

    async def reopen(self) -> None:
        self._exempt = frozenset()

    def ready(self) -> bool:
        return self._calls.keys() <= self._exempt and not self._retiring

    def blockers(self, limit: int) -> tuple[list[Blocker], int]:
        now = asyncio.get_running_loop().time()
        found = []
        for episode, since in self._calls.items():
            if episode in self._retiring:
                found.append(Blocker(episode, "being retired", now - min(since.values())))
            elif episode not in self._exempt:
                found.append(Blocker(episode, "in a call", now - min(since.values())))
        return found[:limit], len(found)

    async def prepare(self) -> PrepareReport:
        return PrepareReport(episodes=[each for each in self.sessions() if each not in self._exempt])

    async def export(self, scope: Collection[EpisodeId]) -> Sequence[Record]:
        records = []
        for episode in sorted(set(scope) & set(self.sessions())):
            records.append(Record(episode, payload=self.save(episode), boundary=self.boundary(episode)))
            await asyncio.sleep(0)  # Let status reply between two sessions.
        return records

    async def install(self, records: Sequence[RestoredRecord], scope: Collection[EpisodeId]) -> None:
        for episode in scope:
            self._drop_up_to(episode)
        for record in records:
            try:
                self.load(record.episode, record.payload())
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                key = record.episode.capture_key
                raise ControlError(
                    "invalid_checkpoint_state",
                    f"the record of {key} cannot be loaded: {type(error).__name__}: {error}",
                    details={"episode": key},
                ) from error
            await asyncio.sleep(0)

    async def retire(self, episodes: Collection[EpisodeId]) -> None:
        last = latest_attempts(episodes)
        stopping = [each for each in self._calls if each.attempt <= last.get(each.rollout_id, -1)]
        for episode in stopping:
            if episode not in self._retiring:
                self._retiring.add(episode)
                for task in self._calls[episode]:
                    task.cancel()
        while any(episode in self._calls for episode in stopping):
            self._idle.clear()
            await self._idle.wait()
        for rollout_id, attempt in last.items():
            self._drop_up_to(EpisodeId(rollout_id, attempt))

    def _drop_up_to(self, episode: EpisodeId) -> None:
        for each in list(self.sessions()):
            if each.rollout_id == episode.rollout_id and each.attempt <= episode.attempt:
                self.drop(each)
        self.cleared(episode)

    def episode_count(self) -> int:
        return len(set(self.sessions()))

"""What the tests of a control plane share: real participants, real files, a controller's calls."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptctl import ControlError, ControlPlane, Participant, SessionParticipant, Settings
from ckptctl.testing import FaultyParticipant, ScriptedParticipant, Step
from ckptfmt import EpisodeId, Record
from ckptfmt.testing import DiskCall, Operation, failing_disk

GRACE = 600.0
"""The lease of the planes under test: the default one, in seconds."""
HOOKED: tuple[Operation, ...] = ("create", "write", "link", "open_for_reading", "sync_directory")
"""The operations of a commit and a restore at which a `HookedDisk` can do something."""


def settings(**changed: Any) -> Settings:
    return Settings(**{"enabled": True, "control_auth_token": "secret", **changed})


def ids(*keys: str) -> list[EpisodeId]:
    return [EpisodeId.from_capture_key(key) for key in keys]


@contextmanager
def refused(code: str, match: str | None = None) -> Iterator[pytest.ExceptionInfo[ControlError]]:
    """The call inside must fail with this code."""
    with pytest.raises(ControlError, match=match) as caught:
        yield caught
    assert caught.value.code == code, caught.value


class Caller:
    """A control plane, and the calls of a controller to it, with real bodies."""

    def __init__(self, participant: Participant, directory: Path | str, **changed: Any) -> None:
        self.participant = participant
        self.plane = ControlPlane(participant, settings(**changed))
        self.directory = str(directory)

    async def __call__(
        self, verb: str, *, within: float | None = None, instance: str | None = None, **fields: Any
    ) -> dict[str, Any]:
        """``within``: the deadline in seconds. Other keywords are the members of the body."""
        body = b"" if verb == "status" else json.dumps(fields).encode()
        return await self.plane.handle(verb, body, deadline_seconds=within, instance=instance)

    async def prepare(self, checkpoint_id: str = "c1", **fields: Any) -> dict[str, Any]:
        return await self(
            "prepare", **{"checkpoint_id": checkpoint_id, "directory": self.directory, **fields}
        )

    async def commit(
        self, episodes: Iterable[str] = (), checkpoint_id: str = "c1", **fields: Any
    ) -> dict[str, Any]:
        body = {"checkpoint_id": checkpoint_id, "directory": self.directory, "episodes": list(episodes)}
        return await self("commit", **{**body, **fields})

    async def resume(self, checkpoint_id: str = "c1", **fields: Any) -> dict[str, Any]:
        return await self("resume", checkpoint_id=checkpoint_id, **fields)

    async def restore(
        self, episodes: Iterable[str] = (), checkpoint_id: str = "r1", **fields: Any
    ) -> dict[str, Any]:
        body = {"checkpoint_id": checkpoint_id, "directory": self.directory, "episodes": list(episodes)}
        return await self("restore", **{**body, **fields})

    async def retire(self, *episodes: str, **fields: Any) -> dict[str, Any]:
        return await self("retire", episodes=list(episodes), **fields)

    async def forget(self, *rollouts: str, **fields: Any) -> dict[str, Any]:
        return await self("forget", rollouts=list(rollouts), **fields)

    @property
    def phase(self) -> str:
        return str(self.plane.status()["phase"])

    @property
    def admits(self) -> bool:
        return not self.plane.admission.closed


class Steps(Caller):
    """A control plane over a scripted `EpisodeParticipant`, behind faults."""

    def __init__(self, directory: Path | str, **changed: Any) -> None:
        self.faults = FaultyParticipant(ScriptedParticipant())
        self.episodes = self.faults.inner
        self._tasks: list[asyncio.Task[list[int]]] = []
        super().__init__(self.faults, directory, **changed)
        self.episodes.admission = self.plane.admission

    def start(
        self, key: str, *script: Step, deadline: float | None = None, restart: str | None = None
    ) -> asyncio.Task[list[int]]:
        """A scripted episode in a task of its own."""
        episode = EpisodeId.from_capture_key(key)
        return self.episodes.start(episode, script, deadline=deadline, restart=restart)

    def begin(self, key: str, *script: Step, restart: str | None = None) -> None:
        """An episode whose end the test does not wait for."""
        self._tasks.append(self.start(key, *script, restart=restart))

    async def at_boundary(self, *keys: str, steps: int = 1) -> dict[str, asyncio.Task[list[int]]]:
        """Episodes that have ``steps`` boundaries and are in a long replay step after them."""
        tasks = {key: self.start(key, *[Step(1.0)] * steps, Step(5000.0)) for key in keys}
        await asyncio.sleep(steps + 0.5)
        return tasks


class Notebook(SessionParticipant):
    """A resources server: a session is a list of notes, a call adds one."""

    def __init__(self, name: str = "resources-0") -> None:
        super().__init__(name)
        self.notes: dict[EpisodeId, list[Any]] = {}
        self.cleared_up_to: list[str] = []

    async def add(self, episode: EpisodeId, note: Any, *, seconds: float = 1.0) -> None:
        async with self.call(episode):
            await asyncio.sleep(seconds)
            self.notes.setdefault(episode, []).append(note)

    def sessions(self) -> Iterable[EpisodeId]:
        return list(self.notes)

    def save(self, episode: EpisodeId) -> Any:
        return {"notes": list(self.notes[episode])}

    def load(self, episode: EpisodeId, payload: Any) -> None:
        self.notes[episode] = payload["notes"]

    def drop(self, episode: EpisodeId) -> None:
        del self.notes[episode]

    def cleared(self, episode: EpisodeId) -> None:
        self.cleared_up_to.append(episode.capture_key)


class HookedDisk:
    """The disk, with something before chosen operations: `Stall.wait`, or an error."""

    def __init__(self) -> None:
        self._before: dict[str, Callable[[], None]] = {}
        self._number = -1
        self._at_number: Callable[[], None] = lambda: None
        self.calls: list[tuple[str, str]] = []
        """The operations in order, with the last part of their path."""

    def in_use(self) -> AbstractContextManager[object]:
        """Within the block, everything that is stored or read goes through this disk."""
        return failing_disk(on_call=self._happen)

    def before(self, operation: Operation, happen: Callable[[], None], path: str = "") -> None:
        """Call ``happen`` before each such operation on a path that ends in ``path``."""
        self._before[operation + path] = happen

    def full(self, operation: Operation, *, times: int = 1, path: str = "") -> None:
        """The next ``times`` such operations find no space left."""
        left = [times]

        def happen() -> None:
            if left[0]:
                left[0] -= 1
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        self.before(operation, happen, path)

    def before_number(self, number: int, happen: Callable[[], None]) -> None:
        """Call ``happen`` before the operation of this number, counted from now, whatever it is."""
        self._number, self._at_number = number, happen

    def _happen(self, call: DiskCall) -> None:
        if call.operation not in HOOKED:
            return
        name = os.path.basename(call.path)
        self.calls.append((call.operation, name))
        self._number -= 1
        if self._number == -1:
            self._at_number()
        for key in (call.operation, call.operation + name):
            if key in self._before:
                self._before[key]()
                return


def files(directory: Path) -> list[str]:
    """Every file below a directory, sorted, relative to it."""
    return sorted(str(each.relative_to(directory)) for each in directory.rglob("*") if each.is_file())


def temporary(directory: Path) -> list[str]:
    """The temporary files below a directory."""
    return [name for name in files(directory) if "/." in f"/{name}"]


def manifests(directory: Path) -> list[str]:
    """The manifests below a directory: each is the commit of a participant."""
    return [name for name in files(directory) if name.endswith("manifest.json")]


def saved(directory: Path, participant: str = "agent-0") -> dict[str, tuple[int | None, Any]]:
    """What a participant committed: boundary and payload by capture key."""
    part = ckptfmt.open_participant(directory, participant)
    return {str(each.episode): (each.boundary, each.payload) for each in part}


def write_part(directory: Path, records: Sequence[Record], participant: str = "agent-0") -> None:
    """A participant's committed part, as an earlier process left it."""
    with ckptfmt.create(directory, participant=participant, kind="agent", checkpoint_id="saved") as writer:
        for record in records:
            writer.write(record)


def done_record(key: str, done: Sequence[int], boundary: int | None = None) -> Record:
    """The record of a scripted episode at the boundary after these steps."""
    return Record(
        EpisodeId.from_capture_key(key),
        payload={"done": list(done)},
        boundary=len(done) if boundary is None else boundary,
    )

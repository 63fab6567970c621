"""Participants for tests: episodes that follow a script, and faults in front of any participant.

They live on the event loop of the test. With `ckptctl.testing.on_virtual_clock` no real time passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from ckptctl._participants.episode import Episode
from ckptctl._participants.episode_participant import EpisodeParticipant
from ckptctl._participants.interface import Blocker, Participant, PrepareReport, RestoredRecord
from ckptctl._participants.live_episode import Mode
from ckptctl._server.admission import Admission
from ckptfmt import EpisodeId, Record

P = TypeVar("P", bound=Participant)

Method = Literal["close", "reopen", "prepare", "export", "install", "retire", "delete_restored"]
"""The methods of a participant that can be made to fail."""


@dataclass(frozen=True)
class Step:
    """One step of a scripted episode.

    Attributes:
        seconds: How long it takes, on the clock of the loop.
        mode: ``"wait"`` or ``"replay"``, as in :meth:`ckptctl.Episode.step`.
        restart: The episode becomes a restart for this reason at the end of the step, while still in it.
        error: The step fails with this at its end.
        ignored_cancellations: How many cancellations the step ignores before one ends it.
    """

    seconds: float = 1.0
    mode: Mode = "replay"
    restart: str | None = None
    error: Exception | None = None
    ignored_cancellations: int = 0


class ScriptedParticipant(EpisodeParticipant):
    """An `EpisodeParticipant` whose episodes follow scripts.

    The state of an episode is ``{"done": [0, 1, …]}``, the steps that it has done, so an episode that was
    restored continues with the first step that is not in it.

    Args:
        name: Its name, unique in a run.
        kind: ``environment``, ``policy_model``, ``agent`` or another word.

    Attributes:
        admission: If set, episodes wait here before they begin. Use that of the control plane.
        executed: The steps that were run to their end, as capture key and number, in order.
        cleared_up_to: The capture keys that `cleared` was called with, in order.

    Example:
        A checkpoint waits for the end of a step::

            participant = ScriptedParticipant("agent-0", "agent")
            plane = ControlPlane(participant, settings)
            participant.start(EpisodeId("r"), [Step(2.0, mode="wait"), Step(1.0)])
    """

    def __init__(self, name: str = "agent-0", kind: str = "agent") -> None:
        super().__init__(name, kind)
        self.admission: Admission | None = None
        self.executed: list[tuple[str, int]] = []
        self.cleared_up_to: list[str] = []

    def cleared(self, episode: EpisodeId) -> None:
        self.cleared_up_to.append(episode.capture_key)

    def start(
        self,
        episode: EpisodeId,
        script: Sequence[Step],
        *,
        deadline: float | None = None,
        restart: str | None = None,
        keep: bool = False,
    ) -> asyncio.Task[list[int]]:
        """Run an episode in a task of its own.

        Args:
            episode: The attempt.
            script: Its steps.
            deadline: As in :meth:`ckptctl.EpisodeSteps.episode`.
            restart: As in :meth:`ckptctl.EpisodeSteps.episode`.
            keep: As in :meth:`ckptctl.EpisodeSteps.episode`.

        Returns:
            The task. Its result is the numbers of the steps that are done, in this process or before.
        """
        return asyncio.create_task(self._run(episode, script, deadline, restart, keep), name=str(episode))

    async def _run(
        self,
        episode_id: EpisodeId,
        script: Sequence[Step],
        deadline: float | None,
        restart: str | None,
        keep: bool,
    ) -> list[int]:
        if self.admission is not None:
            await self.admission.enter(episode_id)
        async with self.steps.episode(episode_id, deadline=deadline, restart=restart, keep=keep) as episode:
            state = episode.state or {"done": []}
            for number in range(len(state["done"]), len(script)):
                async with episode.step(script[number].mode):
                    await self._step(episode, script[number])
                self.executed.append((episode_id.capture_key, number))
                state = {"done": [*state["done"], number]}
                await episode.boundary(state)
            return list(state["done"])

    @staticmethod
    async def _step(episode: Episode, step: Step) -> None:
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + step.seconds
        to_ignore = step.ignored_cancellations
        while (left := ends_at - loop.time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                if not to_ignore:
                    raise
                to_ignore -= 1
        if step.restart is not None:
            await episode.become_restart(step.restart)
        if step.error is not None:
            raise step.error


class Hold:
    """A place where a method of a participant waits until the test releases it.

    Args:
        ignored_cancellations: How many cancellations the wait ignores before one ends it.
    """

    def __init__(self, *, ignored_cancellations: int = 0) -> None:
        self._to_ignore = ignored_cancellations
        self._reached = asyncio.Event()
        self._released = asyncio.Event()

    async def wait(self) -> None:
        """Wait for `release`.

        Returns at once afterwards.
        """
        self._reached.set()
        while not self._released.is_set():
            try:
                await self._released.wait()
            except asyncio.CancelledError:
                if not self._to_ignore:
                    raise
                self._to_ignore -= 1

    async def reached(self) -> None:
        """Wait until a method waits here."""
        await self._reached.wait()

    def release(self) -> None:
        """Let the method go on."""
        self._released.set()


@dataclass
class _Fault:
    happen: Callable[[], Awaitable[None]]
    times: int | None
    after: bool


class FaultyParticipant(Participant, Generic[P]):
    """Any participant, with faults that a test arranges.

    A fault happens in the next ``times`` calls of its method (None: in all of them), in place of the method,
    or with ``after=True`` once the method has done its work, as when a server fails halfway.

    Args:
        inner: The participant. Its calls go through this object.

    Attributes:
        inner: The participant.
        calls: The methods that were called, in order, also those that failed.

    Example:
        An export that fails once, and a reopening that waits::

            participant = FaultyParticipant(ScriptedParticipant())
            plane = ControlPlane(participant, settings)
            participant.fail("export", OSError("scripted"))
            hold = participant.hold("reopen")          # the next reopen waits until hold.release()
    """

    def __init__(self, inner: P) -> None:
        self.inner = inner
        self.name = inner.name
        self.kind = inner.kind
        self.calls: list[Method] = []
        self._faults: dict[Method, list[_Fault]] = {}
        inner.changed = self._relay

    def _relay(self) -> None:
        # Not bound earlier: the control plane sets `changed` after this object was made.
        self.changed()

    def fail(
        self, method: Method, error: BaseException, *, times: int | None = 1, after: bool = False
    ) -> None:
        """Let a method raise an error.

        Args:
            method: The method.
            error: What it raises. `asyncio.CancelledError` stands for a cancelled task that it awaits.
            times: In how many of its next calls; None for all.
            after: Once the method has done its work, instead of in its place.
        """

        async def happen() -> None:
            raise error

        self._faults.setdefault(method, []).append(_Fault(happen, times, after))

    def delay(self, method: Method, seconds: float, *, times: int | None = None, after: bool = False) -> None:
        """Let a method take time.

        Args:
            method: The method.
            seconds: How long, on the clock of the loop.
            times: In how many of its next calls; None for all.
            after: Once the method has done its work, instead of before.
        """

        async def happen() -> None:
            await asyncio.sleep(seconds)

        self._faults.setdefault(method, []).append(_Fault(happen, times, after))

    def hold(
        self, method: Method, *, times: int | None = 1, after: bool = False, ignored_cancellations: int = 0
    ) -> Hold:
        """Let a method wait until the test releases it.

        Args:
            method: The method.
            times: In how many of its next calls; None for all.
            after: Once the method has done its work, instead of before.
            ignored_cancellations: How many cancellations the wait ignores before one ends it.

        Returns:
            Where it waits.
        """
        hold = Hold(ignored_cancellations=ignored_cancellations)
        self._faults.setdefault(method, []).append(_Fault(hold.wait, times, after))
        return hold

    async def _happen(self, method: Method, *, after: bool) -> None:
        for fault in list(self._faults.get(method, ())):
            if fault.after is after and fault.times != 0:
                if fault.times is not None:
                    fault.times -= 1
                await fault.happen()

    async def close(self, restarts: Collection[EpisodeId]) -> None:
        self.calls.append("close")
        await self._happen("close", after=False)
        await self.inner.close(restarts)
        await self._happen("close", after=True)

    async def reopen(self) -> None:
        self.calls.append("reopen")
        await self._happen("reopen", after=False)
        await self.inner.reopen()
        await self._happen("reopen", after=True)

    def ready(self) -> bool:
        return self.inner.ready()

    def blockers(self, limit: int) -> tuple[list[Blocker], int]:
        return self.inner.blockers(limit)

    async def prepare(self) -> PrepareReport:
        self.calls.append("prepare")
        await self._happen("prepare", after=False)
        report = await self.inner.prepare()
        await self._happen("prepare", after=True)
        return report

    async def export(self, scope: Collection[EpisodeId]) -> Sequence[Record]:
        self.calls.append("export")
        await self._happen("export", after=False)
        records = await self.inner.export(scope)
        await self._happen("export", after=True)
        return records

    async def install(self, records: Sequence[RestoredRecord], scope: Collection[EpisodeId]) -> None:
        self.calls.append("install")
        await self._happen("install", after=False)
        await self.inner.install(records, scope)
        await self._happen("install", after=True)

    async def retire(self, episodes: Collection[EpisodeId]) -> None:
        self.calls.append("retire")
        await self._happen("retire", after=False)
        await self.inner.retire(episodes)
        await self._happen("retire", after=True)

    async def delete_restored(self, episodes: Collection[EpisodeId]) -> None:
        self.calls.append("delete_restored")
        await self._happen("delete_restored", after=False)
        await self.inner.delete_restored(episodes)
        await self._happen("delete_restored", after=True)

    def episode_count(self) -> int:
        return self.inner.episode_count()

    def restart_count(self) -> int:
        return self.inner.restart_count()

"""One running episode and its steps. The registry of a server's episodes, and how to use them: `steps`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from ckptctl._errors import ControlError, StepOrderError
from ckptctl._participants.interface import Blocker, RestoredRecord
from ckptctl._retired import stale_attempt
from ckptfmt import EpisodeId, JsonPayload, Record

if TYPE_CHECKING:
    from ckptctl._participants.steps import EpisodeSteps

Mode = Literal["wait", "replay"]
"""A closing checkpoint waits for a *wait* step; a *replay* step runs again after a crash (ST2)."""


class Episode:
    """One running episode. Made by `EpisodeSteps.episode`; every method is for the task that entered it."""

    def __init__(
        self,
        steps: EpisodeSteps,
        episode_id: EpisodeId,
        *,
        deadline: float | None,
        restart: str | None,
        keep: bool,
    ) -> None:
        self.id = episode_id
        self.number: int | None = None
        """Number of the last boundary: how many steps are done. None before the first."""
        self.state: Any = None
        """The state of the last boundary; after a restore, the restored one."""
        self.restart = restart
        self._steps = steps
        self._keep = keep
        self._deadline = deadline
        self._references: tuple[str, ...] = ()
        self._rest: RestoredRecord | Record | None = None  # What it took up, until its first boundary here.
        self._in_step: Mode | None = None
        self._step_done = False  # A step has ended whose boundary is not recorded yet.
        self._blocked_by: str | None = None  # Why this episode is not at a boundary, if it is not.
        self._counted = False  # Whether it is in the running count of blocking episodes, and since when.
        self._since = 0.0
        self._retiring = False
        self._completing = False
        self._cancellations = 0  # Of its task, before it entered.
        self._left = False
        self._seconds_left: float | None = None  # Of the deadline, while its clock stands still.

    async def __aenter__(self) -> Episode:
        steps = self._steps
        if self.restart is not None:
            # Restarts that prepare reported must not change before its commit (RS4).
            while steps.closed and self.id not in steps._exempt:
                await steps._open.wait()
        if self.id in steps._live:
            raise ControlError("invalid_request", f"episode {self.id.capture_key} runs already", status=409)
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        rest = steps._resting.get(self.id)
        if rest is not None:
            self._rest = rest
            self.number = rest.boundary
            self.state = _state(rest)
            # Only now: a payload that cannot be read again is not lost, and nothing starts over in silence.
            del steps._resting[self.id]
        steps._live[self.id] = self
        self._cancellations = task.cancelling()
        self._timeout = asyncio.timeout(self._deadline)
        await self._timeout.__aenter__()
        if steps.closed and not self._exempt:
            self._pause_clock()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                await self.complete()
            elif issubclass(kind, Exception) and not self._blocks:
                await self._park()  # A failure at a boundary is a reply too: it waits for the resume (ST9).
        except BaseException as raised:
            kind, error, traceback = type(raised), raised, raised.__traceback__
            await self._leave(kind, error, traceback)
            raise
        await self._leave(kind, error, traceback)

    async def _leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        steps = self._steps
        self._left = True
        self._update()
        del steps._live[self.id]
        if self._keep and self._saveable and self.number is not None:
            # What it took up and did not go beyond rests again as it was.
            steps._resting[self.id] = self._record() if self._rest is None else self._rest
        self._ended.set_result(None)
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        finally:
            # The retire's own cancellation ends here, also one that the block ignored.
            others = self._retiring and self._task.uncancel() > self._cancellations
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        if self._retiring and cancelled and not others:
            raise stale_attempt(self.id) from None

    def step(self, mode: Mode = "wait") -> _Step:
        """The context of one step. Entering waits while a checkpoint is open.

        Raises `StepOrderError` when the step before it has no boundary yet, or still runs.
        """
        return _Step(self, mode)

    async def boundary(self, state: Any, *, references: Sequence[str] = ()) -> int:
        """Record the state after a completed step, park while a checkpoint is open, return its number.

        ``state`` is an exact JSON value (or a `ckptfmt.JsonPayload`) that must never change afterwards: pass
        a new object, not the live one. ``references``: what the controller must find in its own state.
        """
        if self._in_step:
            raise StepOrderError(f"episode {self.id.capture_key}: a boundary inside a step")
        self.number = (self.number or 0) + 1
        self.state = state
        self._rest = None
        self._references = tuple(references)
        self._step_done = False
        self._set_blocked(None)
        await self._park()
        return self.number

    async def become_restart(self, reason: str) -> None:
        """This episode cannot be saved from now on (RS4). Waits while a checkpoint is open, and does not
        block it meanwhile: until then the episode stands at the boundary before the running step."""
        if self._steps.closed and not self._exempt:
            blocked_by, self._blocked_by = self._blocked_by, None
            self._update()
            await self._park()
            self._blocked_by = blocked_by
        self.restart = reason
        self._update()

    async def complete(self) -> None:
        """Wait while a checkpoint is open; from here to the end of the block the episode blocks one.

        The end of the block calls it. Call it before clean-up that a checkpoint must not cut in two.
        """
        if self._completing:
            return
        if self._step_done or self._in_step:
            raise StepOrderError(f"episode {self.id.capture_key}: its last step has no boundary")
        await self._park()
        self._completing = True
        self._set_blocked("completing")

    @property
    def _exempt(self) -> bool:
        return self.restart is not None or self.id in self._steps._exempt

    @property
    def _saveable(self) -> bool:
        return self.restart is None and not self._retiring

    async def _park(self) -> None:
        while self._steps.closed and not self._exempt:
            self._pause_clock()
            await self._steps._open.wait()

    def _record(self) -> Record:
        if self._rest is not None:
            # As it was saved, whatever the loop does with the state that it was handed.
            return self._rest.record() if isinstance(self._rest, RestoredRecord) else self._rest
        payload = self.state if self.number is not None else None
        return Record(episode=self.id, payload=payload, boundary=self.number, references=self._references)

    def _retire(self) -> None:
        if not self._retiring:
            self._retiring = True
            self._update()
            self._task.cancel()

    def _set_blocked(self, reason: str | None) -> None:
        self._blocked_by = reason
        self._update()

    @property
    def _blocks(self) -> bool:
        if self._left:
            return False
        # An episode being retired blocks a checkpoint whatever its state, a restart too (ST6).
        return self._retiring or (self._blocked_by is not None and not self._exempt)

    @property
    def _blocker(self) -> Blocker:
        reason = "being retired" if self._retiring else self._blocked_by or ""
        return Blocker(self.id, reason, self._loop.time() - self._since)

    def _update(self) -> None:
        blocks = self._blocks
        if blocks != self._counted:
            self._counted = blocks
            self._since = self._loop.time()
            self._steps._count(1 if blocks else -1)

    def _checkpoint_opened(self) -> None:
        self._update()
        if not self._blocks and not self._exempt:
            self._pause_clock()  # It stands at a boundary; the callee of a replay step is parked.

    def _checkpoint_ended(self) -> None:
        self._update()
        self._run_clock()

    def _pause_clock(self) -> None:
        ends_at = self._timeout.when()
        if ends_at is not None and not self._timeout.expired():
            self._seconds_left = ends_at - self._loop.time()
            self._timeout.reschedule(None)

    def _run_clock(self) -> None:
        if self._seconds_left is not None:
            self._timeout.reschedule(self._loop.time() + self._seconds_left)
            self._seconds_left = None


def _state(rest: RestoredRecord | Record) -> Any:
    """The state that a resting episode stands at, decoded if it was saved or recorded as JSON."""
    if isinstance(rest, RestoredRecord):
        return rest.payload()
    return rest.payload.value() if isinstance(rest.payload, JsonPayload) else rest.payload


class _Step:
    """The context of one step of an episode."""

    __slots__ = ("_episode", "_mode")

    def __init__(self, episode: Episode, mode: Mode) -> None:
        self._episode = episode
        self._mode = mode

    async def __aenter__(self) -> None:
        episode = self._episode
        if episode._step_done or episode._in_step:
            raise StepOrderError(
                f"episode {episode.id.capture_key}: record a boundary after each step, before the next one"
            )
        await episode._park()
        episode._in_step = self._mode
        if self._mode == "wait":
            episode._set_blocked("in a step")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A wait step goes on blocking until its boundary is recorded; a replay step never does (ST5).
        self._episode._in_step = None
        self._episode._step_done = True

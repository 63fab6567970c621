"""The state of one running episode, as its server sees it: the last boundary, and whether it blocks.

`Episode` is what the author of a server uses; it and the registry of episodes drive the object here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal

from ckptctl._errors import StepOrderError
from ckptctl._participants.interface import Blocker, RestoredRecord
from ckptctl._participants.parking import Parking
from ckptctl._participants.pausable_timeout import PausableTimeout
from ckptctl._retired import stale_attempt
from ckptfmt import EpisodeId, JsonPayload, Record

Mode = Literal["wait", "replay"]
"""A closing checkpoint waits for a *wait* step; a *replay* step runs again after a crash (ST2)."""


class LiveEpisode:
    """One running episode.

    All methods but `record` and the properties belong to the task that runs it.
    """

    def __init__(
        self, episode_id: EpisodeId, parking: Parking, *, deadline: float | None, restart: str | None
    ) -> None:
        self.id = episode_id
        self.number: int | None = None
        self.state: Any = None
        self.restart = restart
        """Why the episode cannot be saved, if it cannot."""
        self.completing = False
        """Whether it has passed its last boundary and runs to its end."""
        self._parking = parking
        self._timeout = PausableTimeout(deadline)
        self._references: tuple[str, ...] = ()
        self._continued: RestoredRecord | Record | None = None  # Until the first boundary of its own.
        self._in_step: Mode | None = None
        self._step_done = False  # A step has ended whose boundary is not recorded yet.
        self._blocked_by: str | None = None  # Why this episode is not at a boundary, if it is not.
        self._counted = False  # Whether the parking counts it among the blocking ones, and since when.
        self._since = 0.0
        self._retiring = False
        self._cancellations = 0  # Of its task, before it entered.
        self._left = False

    # How it begins and ends

    def bind(self) -> None:
        """Run in the current task from now on."""
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()

    def continue_from(self, saved: RestoredRecord | Record) -> None:
        """Begin at a saved boundary.

        Raises what decoding its payload raises.
        """
        self._continued = saved
        self.number = saved.boundary
        self.state = _state(saved)

    async def start_clock(self) -> None:
        """Count the deadline from now, and later only while the episode is not parked."""
        self._cancellations = self._task.cancelling()
        await self._timeout.__aenter__()
        if self._parking.closed and not self.exempt:
            self._timeout.pause()

    def leave(self) -> None:
        """The block of the episode has ended: it blocks no checkpoint any more."""
        self._left = True
        self._update()

    async def finish(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the deadline and the cancellation of a retire.

        Raises TimeoutError for a block that the deadline ended, and ``stale_attempt`` for one that the
        retire ended.
        """
        self._ended.set_result(None)
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        finally:
            # The cancellation by the retire ends here, also one that the block ignored.
            others = self._retiring and self._task.uncancel() > self._cancellations
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        if self._retiring and cancelled and not others:
            raise stale_attempt(self.id) from None

    # Steps and boundaries

    async def begin_step(self, mode: Mode) -> None:
        """Wait while parked, then be in a step.

        Raises `StepOrderError` without a boundary before it.
        """
        if self._step_done or self._in_step:
            raise StepOrderError(
                f"episode {self.id.capture_key}: record a boundary after each step, before the next one"
            )
        await self.park()
        self._in_step = mode
        if mode == "wait":
            self._set_blocked("in a step")

    def end_step(self) -> None:
        """The step has ended.

        A wait step still blocks until its boundary; a replay step never does (ST5).
        """
        self._in_step = None
        self._step_done = True

    async def record_boundary(self, state: Any, references: Sequence[str]) -> int:
        """Stand at a new boundary, wait while parked, and return its number."""
        if self._in_step:
            raise StepOrderError(f"episode {self.id.capture_key}: a boundary inside a step")
        self.number = (self.number or 0) + 1
        self.state = state
        self._continued = None
        self._references = tuple(references)
        self._step_done = False
        self._set_blocked(None)
        await self.park()
        return self.number

    async def become_restart(self, reason: str) -> None:
        """Wait while parked, without blocking meanwhile; then no checkpoint saves the episode."""
        if self._parking.closed and not self.exempt:
            blocked_by, self._blocked_by = self._blocked_by, None
            self._update()
            await self.park()
            self._blocked_by = blocked_by
        self.restart = reason
        self._update()

    async def complete(self) -> None:
        """Wait while parked; from then on the episode blocks until it leaves."""
        if self.completing:
            return
        if self._step_done or self._in_step:
            raise StepOrderError(f"episode {self.id.capture_key}: its last step has no boundary")
        await self.park()
        self.completing = True
        self._set_blocked("completing")

    async def park(self) -> None:
        """Wait while the server is closed, unless the episode is exempt.

        The deadline is paused meanwhile.
        """
        while self._parking.closed and not self.exempt:
            self._timeout.pause()
            await self._parking.wait_until_open()

    async def wait_to_begin(self) -> None:
        """Wait until the episode may begin.

        It has no clock yet.
        """
        if self.restart is not None:
            # Restarts that prepare reported must not change before its commit (RS4).
            while self._parking.closed and not self._parking.exempts(self.id):
                await self._parking.wait_until_open()

    # What its server asks and tells

    @property
    def exempt(self) -> bool:
        """Whether it goes on while the server is closed."""
        return self.restart is not None or self._parking.exempts(self.id)

    @property
    def saveable(self) -> bool:
        """Whether an export can contain it."""
        return self.restart is None and not self._retiring

    @property
    def blocks(self) -> bool:
        """Whether a checkpoint has to wait for it."""
        if self._left:
            return False
        # An episode being retired blocks a checkpoint whatever its state, a restart too (ST6).
        return self._retiring or (self._blocked_by is not None and not self.exempt)

    @property
    def blocker(self) -> Blocker:
        """Why a checkpoint has to wait for it.

        Only while it `blocks`.
        """
        reason = "being retired" if self._retiring else self._blocked_by or ""
        return Blocker(self.id, reason, self._loop.time() - self._since)

    @property
    def ended(self) -> asyncio.Future[None]:
        """Done once the task has left the episode."""
        return self._ended

    def saved_state(self) -> RestoredRecord | Record:
        """The last boundary.

        Before the first of its own: the record that it continues, unchanged.
        """
        if self._continued is not None:
            return self._continued
        payload = self.state if self.number is not None else None
        return Record(episode=self.id, payload=payload, boundary=self.number, references=self._references)

    def retire(self) -> None:
        """Cancel its task, once."""
        if not self._retiring:
            self._retiring = True
            self._update()
            self._task.cancel()

    def server_closed(self) -> None:
        """Its server has closed.

        At a boundary the deadline is paused: it, or its callee, is parked.
        """
        self._update()
        if not self.blocks and not self.exempt:
            self._timeout.pause()

    def server_reopened(self) -> None:
        """Its server has reopened."""
        self._update()
        self._timeout.resume()

    def _set_blocked(self, reason: str | None) -> None:
        self._blocked_by = reason
        self._update()

    def _update(self) -> None:
        blocks = self.blocks
        if blocks != self._counted:
            self._counted = blocks
            self._since = self._loop.time()
            if blocks:
                self._parking.begin_blocking()
            else:
                self._parking.end_blocking()


def _state(saved: RestoredRecord | Record) -> Any:
    """The state of a saved boundary, decoded if it was saved or recorded as JSON."""
    if isinstance(saved, RestoredRecord):
        return saved.payload()
    return saved.payload.value() if isinstance(saved.payload, JsonPayload) else saved.payload

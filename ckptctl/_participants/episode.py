"""One running episode, as the code of a server uses it. `ckptctl.EpisodeSteps` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

from ckptctl._participants.live_episode import LiveEpisode, Mode
from ckptctl._participants.registry import EpisodeRegistry
from ckptfmt import EpisodeId


class Episode:
    """One running episode: the async context that :meth:`ckptctl.EpisodeSteps.episode` returns.

    Every method is for the task that entered it.

    Raises:
        ControlError: On entering, ``invalid_request`` when the episode runs already. On leaving,
            ``stale_attempt`` when the episode was retired meanwhile.
        TimeoutError: On leaving, when the deadline of the episode has passed.
        StepOrderError: On leaving, when the last step has no boundary.
    """

    def __init__(self, live: LiveEpisode, registry: EpisodeRegistry, *, keep: bool) -> None:
        self._live = live
        self._registry = registry
        self._keep = keep

    @property
    def id(self) -> EpisodeId:
        """The attempt."""
        return self._live.id

    @property
    def number(self) -> int | None:
        """Number of the last boundary, which is how many steps are done.

        None before the first one.
        """
        return self._live.number

    @property
    def state(self) -> Any:
        """The state of the last boundary; after a restore, the restored one.

        None before the first one.
        """
        return self._live.state

    @property
    def restart(self) -> str | None:
        """Why the episode cannot be saved; None when it can."""
        return self._live.restart

    async def __aenter__(self) -> Episode:
        live = self._live
        await live.wait_to_begin()
        live.bind()
        self._registry.begin(live)
        await live.start_clock()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        live = self._live
        try:
            if kind is None:
                await live.complete()
            elif issubclass(kind, Exception) and not live.blocks:
                await live.park()  # A failure at a boundary is a reply, too: it waits for the resume (ST9).
        except BaseException as raised:  # Re-raised: also a cancellation must leave the episode.
            await self._leave(type(raised), raised, raised.__traceback__)
            raise
        await self._leave(kind, error, traceback)

    async def _leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.leave()
        self._registry.end(self._live, keep=self._keep)
        await self._live.finish(kind, error, traceback)

    def step(self, mode: Mode = "wait") -> AbstractAsyncContextManager[None]:
        """Return the context of one step.

        Entering it waits while a checkpoint is open.

        Args:
            mode: A checkpoint waits for a ``"wait"`` step and the boundary after it. It does not wait for
                a ``"replay"`` step, which runs again after a crash and must be safe to repeat.

        Returns:
            An async context manager for the code of the step.

        Raises:
            StepOrderError: On entering, when the step before has no boundary yet, or still runs.
        """
        return _Step(self._live, mode)

    async def boundary(self, state: Any, *, references: Sequence[str] = ()) -> int:
        """Record the state after a completed step, and wait here while a checkpoint is open.

        Args:
            state: An exact JSON value, or a :class:`ckptfmt.JsonPayload`. It must never change
                afterwards: pass a new object, not the live one.
            references: Names of what the controller must find in its own state.

        Returns:
            The number of the boundary, counted from 1.

        Raises:
            StepOrderError: Inside a step.
        """
        return await self._live.record_boundary(state, references)

    async def become_restart(self, reason: str) -> None:
        """Declare that this episode cannot be saved from now on (RS4): after a crash it starts over.

        Waits while a checkpoint is open, and does not block it meanwhile: that checkpoint saves the
        episode at the boundary before the running step.

        Args:
            reason: Why, for people.
        """
        await self._live.become_restart(reason)

    async def complete(self) -> None:
        """Wait while a checkpoint is open; from then to the end of the block the episode blocks one.

        The end of the block calls it. Call it earlier, before clean-up that no checkpoint may interrupt.

        Raises:
            StepOrderError: When the last step has no boundary.
        """
        await self._live.complete()


class _Step:
    """The context of one step of an episode."""

    __slots__ = ("_live", "_mode")

    def __init__(self, live: LiveEpisode, mode: Mode) -> None:
        self._live = live
        self._mode = mode

    async def __aenter__(self) -> None:
        await self._live.begin_step(self._mode)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.end_step()

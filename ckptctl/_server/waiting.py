"""Waiting for work that outlives its caller: until a deadline, never by cancelling it (CP9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

from ckptctl._errors import ControlError

T = TypeVar("T")


def now() -> float:
    """The time of the running event loop, in seconds: the only clock there is here."""
    return asyncio.get_running_loop().time()


async def finished(tasks: Collection[asyncio.Future[Any]], deadline: float) -> bool:
    """Whether all tasks are done by ``deadline``, a time of the running loop. They go on either way."""
    waiting = [task for task in tasks if not task.done()]
    if not waiting:
        return True
    left = max(0.0, deadline - now())
    _, pending = await asyncio.wait(waiting, timeout=left)
    return not pending


async def within(task: asyncio.Future[T], deadline: float) -> T:
    """The task's result. Raises ``deadline_exceeded`` in time, ``checkpoint_conflict`` if it was stopped."""
    if not await finished([task], deadline):
        raise ControlError(
            "deadline_exceeded", "the deadline passed; the work goes on, the same call waits for it again"
        )
    if task.cancelled():
        raise ControlError("checkpoint_conflict", "the checkpoint was resumed meanwhile")
    return task.result()


async def uncancelled(work: Awaitable[T]) -> T:
    """Await a participant's method. It may await a task of its own that was cancelled: that is its failure
    (RuntimeError), and not a cancellation of the task that called it."""
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("the participant awaited something that was cancelled") from error


def failing(note: Callable[[BaseException], None]) -> Callable[[asyncio.Task[Any]], None]:
    """A done callback that hands the error of a task to ``note``, also when no call waits for it any more."""

    def done(task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            note(error)

    return done


def observe(task: asyncio.Task[Any]) -> None:
    """A done callback for a task whose error is read elsewhere, or by nobody: never "not retrieved"."""
    if not task.cancelled():
        task.exception()

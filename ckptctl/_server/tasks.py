"""Waiting for work that goes on without its caller: until a deadline, never by cancelling it (CP9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar

from ckptctl._errors import ControlError

T = TypeVar("T")


def loop_time() -> float:
    """The time of the running event loop in seconds: the only clock of a control plane."""
    return asyncio.get_running_loop().time()


async def done_by(tasks: Collection[asyncio.Future[Any]], deadline: float) -> bool:
    """Whether all tasks are done by ``deadline``, a time of the running loop.

    They go on either way.
    """
    waiting = [task for task in tasks if not task.done()]
    if not waiting:
        return True
    left = max(0.0, deadline - loop_time())
    _, pending = await asyncio.wait(waiting, timeout=left)
    return not pending


async def result_by(task: asyncio.Future[T], deadline: float) -> T:
    """The result of a task that is done by ``deadline``, a time of the running loop.

    Raises its error; ``deadline_exceeded`` when it is not done; ``checkpoint_conflict`` for a cancelled one.
    """
    if not await done_by([task], deadline):
        raise ControlError(
            "deadline_exceeded",
            "the deadline has passed; the work goes on, and the same call waits for it again",
        )
    if task.cancelled():
        raise ControlError("checkpoint_conflict", "the checkpoint was resumed meanwhile")
    return task.result()


async def true_by(condition: Callable[[], bool], changed: asyncio.Event, deadline: float) -> bool:
    """Whether the condition is true by ``deadline``.

    It is asked again whenever ``changed`` is set.
    """
    while not condition():
        changed.clear()
        try:
            async with asyncio.timeout_at(deadline):
                await changed.wait()
        except TimeoutError:
            return condition()
    return True


async def await_participant(work: Awaitable[T]) -> T:
    """Await a method of a participant.

    The method may await a task of its own that was cancelled. That is a failure of the method (RuntimeError)
    and not a cancellation of the task that calls it.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("the participant awaited something that was cancelled") from error


def on_failure(note: Callable[[BaseException], None]) -> Callable[[asyncio.Task[Any]], None]:
    """A done callback that passes the error of a task to ``note``, also when no call waits for the task."""

    def done(task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            note(error)

    return done


def mark_retrieved(task: asyncio.Task[Any]) -> None:
    """A done callback that keeps asyncio from logging an error that may never be retrieved."""
    if not task.cancelled():
        task.exception()

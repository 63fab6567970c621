"""Ending what a controller began, also when its task is cancelled or the clean-up itself fails (CO4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from ckptctl._errors import CoordinationError

T = TypeVar("T")


@asynccontextmanager
async def always_ended(
    clean_up: Callable[[bool], Coroutine[Any, Any, list[CoordinationError]]],
) -> AsyncIterator[None]:
    """Run the block, then ``clean_up(failed)`` to its end, also when the task is cancelled meanwhile.

    What the clean-up returns are its failures: they become notes of the error that the block raised, or the
    first of them is raised.
    """
    first: BaseException | None = None
    try:
        yield
    except BaseException as error:
        first = error
        raise
    finally:
        failures, cancelled = await _to_the_end(clean_up(first is not None))
        leaving = cancelled or first
        for failure in failures:
            if leaving is None:
                raise failure
            leaving.add_note(f"and while cleaning up: {failure}")
        if cancelled is not None:
            raise cancelled


async def failure_of(work: Awaitable[None]) -> CoordinationError | None:
    """The error of a call to many servers; None when all of them did it."""
    try:
        await work
    except CoordinationError as error:
        return error
    return None


async def _to_the_end(work: Coroutine[Any, Any, T]) -> tuple[T, asyncio.CancelledError | None]:
    """Await ``work`` to its end even when this task is cancelled meanwhile.

    Returns its result, and the cancellation, which the caller must raise.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    return task.result(), cancelled

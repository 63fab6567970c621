"""Blocking calls in daemon threads of their own, away from the event loop.

Not in the default executor of the loop: a hung disk must neither use up a shared pool nor keep the process
from exiting. A thread cannot be cancelled: when the awaiting task is cancelled, the thread runs on and its
result is dropped.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

_numbers = itertools.count()
_lock = threading.Lock()
_running = 0


def running_threads() -> int:
    """How many such threads run now in this process.

    A virtual clock waits for them.
    """
    return _running


async def in_thread(function: Callable[[], T], *, name: str = "ckptctl-io") -> T:
    """Run ``function`` in a daemon thread and return its result, or raise its error."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = function()
        except BaseException as raised:  # Raised again in the task that waits.
            # A StopIteration cannot be set on a future.
            error = RuntimeError(repr(raised)) if isinstance(raised, StopIteration) else raised
        # Counted down here and not in `deliver`, which a loop that is closed first never runs.
        with suppress(RuntimeError):  # The loop is closed: nothing waits for the result any more.
            loop.call_soon_threadsafe(deliver, result, error)
        _count(-1)

    thread = threading.Thread(target=run, name=f"{name}-{next(_numbers)}", daemon=True)
    _count(1)
    try:
        thread.start()
    except BaseException:  # Re-raised: the thread does not run.
        _count(-1)
        raise
    return await done


def _count(by: int) -> None:
    global _running
    with _lock:
        _running += by

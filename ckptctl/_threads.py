"""Blocking calls away from the event loop, in daemon threads of their own.

Not the loop's default executor: a hung disk must neither use up a shared pool nor keep the process
from exiting. A thread cannot be cancelled; cancelling the awaiting task leaves it running, and its
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


def running() -> int:
    """How many such threads run now in this process. A virtual clock stands still while one does."""
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
        except BaseException as raised:
            # A StopIteration cannot be set on a future.
            error = RuntimeError(repr(raised)) if isinstance(raised, StopIteration) else raised
        # Counted down here and not in `deliver`: a loop that ends first never runs that.
        with suppress(RuntimeError):  # The loop has closed: nobody waits any more.
            loop.call_soon_threadsafe(deliver, result, error)
        _count(-1)

    thread = threading.Thread(target=run, name=f"{name}-{next(_numbers)}", daemon=True)
    _count(1)
    try:
        thread.start()
    except BaseException:
        _count(-1)
        raise
    return await done


def _count(by: int) -> None:
    global _running
    with _lock:
        _running += by

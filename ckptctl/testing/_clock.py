"""An asyncio event loop with a virtual clock: hours of timers in no time, in a fixed order.

When no callback is ready, the clock jumps to the next timer. While a thread of this package runs, the
clock does not move and the loop waits for the thread in real time, so that reading and writing files takes
no virtual time. In a test in which time is to pass while a thread hangs, the thread waits in a `Stall`.

Sockets and processes do not follow the virtual clock: do not use them on such a loop.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from ckptctl import _threads as threads

P = ParamSpec("P")
T = TypeVar("T")

_REAL_WAIT_SECONDS = 0.002
"""How long the loop sleeps before it checks again whether a thread has ended or stalled."""

_PATIENCE_SECONDS = 5.0
"""How long a run that has ended waits for threads, which may hang because of what made the run fail."""

_lock = threading.Lock()
_stalled = 0


class Stall:
    """A place where threads wait until the test releases them.

    Virtual time passes meanwhile.

    Args:
        behind: How many more threads hang meanwhile because the one that waits here holds a lock.

    Example:
        A deadline passes while a write hangs::

            with Stall() as stall:
                disk.before("link", stall.wait)          # called in the thread
                commit = asyncio.create_task(plane.handle("commit", body))
                await stall.reached()
                await asyncio.sleep(60)                  # the deadline passes while the thread hangs
                stall.release()
    """

    def __init__(self, *, behind: int = 0) -> None:
        self._behind = behind
        self._waiting = 0
        self._arrived = 0
        self._released = threading.Event()
        self._watched_by: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def wait(self) -> None:
        """Wait here, in a thread, until `release`.

        Returns at once afterwards.
        """
        global _stalled
        with _lock:
            if self._released.is_set():
                return
            self._waiting += 1
            self._arrived += 1
            # Before it counts as stalled, so that the loop sees the arrival before any time passes.
            for loop, arrival in self._watched_by:
                loop.call_soon_threadsafe(arrival.set)
            _stalled += 1 + self._behind
        self._released.wait()

    def release(self) -> None:
        """Let every thread go on.

        From now on, and not only once they run, the clock does not move.
        """
        global _stalled
        with _lock:
            _stalled -= self._waiting * (1 + self._behind)
            self._waiting = 0
            self._released.set()

    async def reached(self, count: int = 1) -> None:
        """Wait until threads have arrived here.

        Virtual time passes if it has to.

        Args:
            count: How many, since the stall was made.
        """
        arrival = asyncio.Event()
        watcher = (asyncio.get_running_loop(), arrival)
        with _lock:
            self._watched_by.append(watcher)
        try:
            while self._arrived < count:
                arrival.clear()
                await arrival.wait()
        finally:
            with _lock:
                self._watched_by.remove(watcher)

    def __enter__(self) -> Stall:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


class _JumpingSelector(selectors.SelectSelector):
    """Moves the clock to the next timer where the loop would wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        while True:
            # Before the select: it then finds what a thread delivered before it ended.
            busy = threads.running_threads() > _stalled
            found = super().select(_REAL_WAIT_SECONDS if busy else 0)
            if found:
                return found
            if not busy:
                break
        if timeout is None:
            raise RuntimeError("nothing can happen: no timer, no thread, no callback that is ready")
        self.now += timeout
        return []


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time` starts at 0 and jumps to the next timer when no callback is ready.

    Raises:
        RuntimeError: From a task that waits, when there is no timer and no thread to wait for.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual time.

        Returns:
            Seconds since the loop was made.
        """
        return self._jumping.now

    def advance(self, seconds: float) -> None:
        """Let time pass without running anything, as for a process that was suspended.

        Args:
            seconds: How much.
        """
        self._jumping.now += seconds


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new `VirtualClockLoop`, as `asyncio.run` does on a real one.

    At its end the tasks that are left are cancelled, and threads that still run are waited for.

    Args:
        main: The coroutine.

    Returns:
        Its result.

    Raises:
        RuntimeError: For what asyncio would only log, such as an error of a task that was never retrieved.
    """
    logged: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: logged.append(context))
        try:
            return_value = runner.run(main)
        finally:
            give_up = time.monotonic() + _PATIENCE_SECONDS
            while threads.running_threads() > _stalled and time.monotonic() < give_up:
                time.sleep(_REAL_WAIT_SECONDS)
    if logged:
        error = logged[0].get("exception")
        raise RuntimeError(f"unhandled in the event loop: {logged[0].get('message')}") from error
    return return_value


def on_virtual_clock(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Turn an async test function into a plain one that runs on a virtual clock.

    A decorator.

    Args:
        test: The async function.

    Returns:
        A function with the same parameters.

    Example:
        Ten minutes that take no time::

            @on_virtual_clock
            async def test_the_lease_expires() -> None:
                plane = ...
                await asyncio.sleep(600)
                assert plane.status()["phase"] == "idle"
    """

    @wraps(test)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(test(*args, **kwargs))

    return wrapper

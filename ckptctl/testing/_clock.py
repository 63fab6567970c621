"""An asyncio event loop whose clock jumps: hours of timers in no time, in a fixed order.

::

    @on_virtual_clock
    async def test_the_lease_runs_out() -> None:
        plane = ...
        await asyncio.sleep(600)          # takes no time at all
        assert plane.status()["phase"] == "idle"

When no callback is ready, the clock jumps to the next timer. While a thread of `ckptctl.threads` runs, it
stands still and the loop really waits for the thread, so that reading and writing files costs no virtual
time. A test that wants time to pass while a thread hangs lets the thread wait for a `Stall`.

Sockets and processes have clocks of their own: they have no place on such a loop.
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
"""How long the loop sleeps before it looks again whether a thread has ended or stalled."""

_PATIENCE_SECONDS = 5.0
"""How long a run that has ended waits for threads: one may hang because of what made the run fail."""

_lock = threading.Lock()
_stalled = 0


class Stall:
    """A place where threads hang until the test lets them go; time may pass meanwhile.

    ::

        with Stall() as stall:
            disk.before("link", stall.wait)          # called in the thread
            commit = asyncio.create_task(plane.handle("commit", ...))
            await stall.reached()
            await asyncio.sleep(60)                  # the deadline passes while the thread hangs
            stall.release()

    ``behind``: how many more threads hang meanwhile, because the one that waits here holds a lock of theirs.
    """

    def __init__(self, *, behind: int = 0) -> None:
        self._behind = behind
        self._waiting = 0
        self._arrived = 0
        self._released = threading.Event()
        self._watched_by: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def wait(self) -> None:
        """Hang here, in a thread, until `release`. Passes at once afterwards."""
        global _stalled
        with _lock:
            if self._released.is_set():
                return
            self._waiting += 1
            self._arrived += 1
            # Told before it counts as stalled, so that no time passes before the loop has heard of it.
            for loop, arrival in self._watched_by:
                loop.call_soon_threadsafe(arrival.set)
            _stalled += 1 + self._behind
        self._released.wait()

    def release(self) -> None:
        """Let every thread go on. The clock stands still again from this moment, not only once they wake."""
        global _stalled
        with _lock:
            _stalled -= self._waiting * (1 + self._behind)
            self._waiting = 0
            self._released.set()

    async def reached(self, count: int = 1) -> None:
        """Wait until ``count`` threads have come here. Time passes if it must."""
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
    """Where the loop would wait for a timer, it jumps to it."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(0)
        while True:
            # Asked before looking: what a thread delivered before it ended is then seen in this look.
            busy = threads.running() > _stalled
            found = super().select(_REAL_WAIT_SECONDS if busy else 0)
            if found:
                return found
            if not busy:
                break
        if timeout is None:
            raise RuntimeError("the virtual clock stands: no timer, no thread, and nothing is ready to run")
        self.now += timeout
        return []


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time` starts at 0 and jumps to the next timer when nothing is ready."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def advance(self, seconds: float) -> None:
        """Let time pass without running anything: what a stopped process sees when it goes on."""
        self._jumping.now += seconds


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run ``main`` on a new `VirtualClockLoop` and return its result.

    At its end the tasks that are left are cancelled, and threads that still run are waited for. Raises
    RuntimeError for what asyncio would only log, such as an error of a task that nobody looked at.
    """
    logged: list[dict[str, Any]] = []
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: logged.append(context))
        try:
            return_value = runner.run(main)
        finally:
            give_up = time.monotonic() + _PATIENCE_SECONDS
            while threads.running() > _stalled and time.monotonic() < give_up:
                time.sleep(_REAL_WAIT_SECONDS)
    if logged:
        error = logged[0].get("exception")
        raise RuntimeError(f"unhandled in the event loop: {logged[0].get('message')}") from error
    return return_value


def on_virtual_clock(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Decorator: an async test function becomes a plain one that runs on a virtual clock."""

    @wraps(test)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        return run(test(*args, **kwargs))

    return wrapper

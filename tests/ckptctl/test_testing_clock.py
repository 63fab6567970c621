"""The virtual clock that the other tests rely on."""

import asyncio
import time

import pytest

from ckptctl._threads import in_thread, running_threads
from ckptctl.testing import Stall, VirtualClockLoop, on_virtual_clock, run
from tests.polling import block_until


@on_virtual_clock
async def test_timers_take_no_time_and_keep_their_order() -> None:
    began = time.monotonic()
    loop = asyncio.get_running_loop()
    woken: list[float] = []

    async def sleeper(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(loop.time())

    await asyncio.gather(sleeper(86_400 * 30), sleeper(1), sleeper(60))
    assert woken == [1, 60, 86_400 * 30]
    assert time.monotonic() - began < 10


@on_virtual_clock
async def test_no_time_passes_while_a_thread_works() -> None:
    loop = asyncio.get_running_loop()
    asleep = asyncio.create_task(asyncio.sleep(0.001))
    await asyncio.sleep(0)

    def work() -> str:
        for _ in range(20):  # The loop runs while the thread works.
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result()
        return "done"

    assert await in_thread(work) == "done"
    assert (loop.time(), asleep.done()) == (0, False)


@on_virtual_clock
async def test_time_passes_while_a_thread_is_stalled_and_stops_at_its_release() -> None:
    loop = asyncio.get_running_loop()
    with Stall() as stall:
        work = asyncio.create_task(in_thread(stall.wait))
        await stall.reached()
        await asyncio.sleep(3600)
        assert (loop.time(), work.done()) == (3600, False)
        stall.release()
        late = asyncio.create_task(asyncio.sleep(0.001))
        await work
        assert not late.done()
    assert loop.time() == 3600


@on_virtual_clock
async def test_waiting_for_a_stall_lets_time_pass_until_a_thread_comes() -> None:
    with Stall() as stall:

        async def work() -> None:
            await asyncio.sleep(5)
            await in_thread(stall.wait)

        task = asyncio.create_task(work())
        await stall.reached()
        assert asyncio.get_running_loop().time() == 5
        stall.release()
        await task


@on_virtual_clock
async def test_a_thread_raises_what_its_function_raises() -> None:
    def fail() -> None:
        raise LookupError("mine")

    def stop() -> None:
        raise StopIteration

    with pytest.raises(LookupError, match="mine"):
        await in_thread(fail)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await in_thread(stop)


def test_a_loop_in_which_nothing_can_happen_raises() -> None:
    async def wait_for_nothing() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="nothing can happen"):
        run(wait_for_nothing())


def test_a_thread_that_ends_after_its_loop_is_not_counted_any_more() -> None:
    with Stall() as stall:

        async def leave_it() -> None:
            task = asyncio.create_task(in_thread(stall.wait))
            await stall.reached()
            task.cancel()

        run(leave_it())
        assert running_threads() == 1
    block_until(lambda: not running_threads())


def test_an_error_that_was_never_retrieved_fails_the_run() -> None:
    async def forget_a_task() -> None:
        async def fail() -> None:
            raise LookupError("lost")

        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        del task

    with pytest.raises(RuntimeError, match="never retrieved"):
        run(forget_a_task())


def test_time_can_pass_as_in_a_suspended_process() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        loop.advance(700)
        return loop.time()

    assert run(main()) == 700

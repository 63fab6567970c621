"""Episode steps: what of a running loop can be saved, and what waits while a checkpoint is open."""

import asyncio

import pytest

from ckptctl import ControlError, Episode, EpisodeSteps, StepOrderError
from ckptctl.testing import on_virtual_clock
from ckptfmt import EpisodeId

R = EpisodeId("r")


def now() -> float:
    return asyncio.get_running_loop().time()


def record(steps: EpisodeSteps, episode: EpisodeId = R) -> tuple[int | None, object]:
    """What a checkpoint would save of an episode."""
    (found,) = steps.export([episode])
    return found.boundary, found.payload


async def work(episode: Episode, count: int, *, mode: str, seconds: float = 10.0) -> None:
    for number in range(episode.number or 0, count):
        async with episode.step("wait" if mode == "wait" else "replay"):
            await asyncio.sleep(seconds)
        await episode.boundary({"steps": number + 1})


async def run_episode(
    steps: EpisodeSteps,
    count: int = 2,
    *,
    mode: str = "wait",
    deadline: float | None = None,
    log: list[str] | None = None,
) -> float:
    """An episode of ``count`` steps of 10 s; returns when it ended."""
    async with steps.episode(R, deadline=deadline) as episode:
        for number in range(count):
            async with episode.step("wait" if mode == "wait" else "replay"):
                await asyncio.sleep(10)
                if log is not None:
                    log.append(f"step {number} at {now():.0f}")
            await episode.boundary({"steps": number + 1})
    return now()


@pytest.mark.req("ST1", "ST4")
@on_virtual_clock
async def test_a_boundary_is_what_is_saved_and_none_before_the_first() -> None:
    steps = EpisodeSteps()
    task = asyncio.create_task(run_episode(steps, 3, mode="replay"))
    await asyncio.sleep(5)
    assert record(steps) == (None, None)
    for number in (1, 2):
        await asyncio.sleep(10)
        assert record(steps) == (number, {"steps": number})
    await task
    assert steps.export([R]) == []


@pytest.mark.req("ST1")
@on_virtual_clock
async def test_a_step_needs_a_boundary_before_the_next_step_and_before_the_end() -> None:
    steps = EpisodeSteps()
    async with steps.episode(R) as episode:
        async with episode.step():
            with pytest.raises(StepOrderError):
                async with episode.step():
                    pass
        with pytest.raises(StepOrderError):
            async with episode.step():
                pass
        await episode.boundary({})
    with pytest.raises(StepOrderError):
        async with steps.episode(R) as episode:
            async with episode.step():
                pass
    with pytest.raises(StepOrderError):
        async with steps.episode(R) as episode, episode.step():
            await episode.boundary({})
    assert (len(steps), steps.blocking) == (0, 0)


@pytest.mark.req("ST2")
@on_virtual_clock
async def test_a_checkpoint_waits_for_a_wait_step_up_to_its_boundary() -> None:
    steps = EpisodeSteps()
    task = asyncio.create_task(run_episode(steps, mode="wait"))
    await asyncio.sleep(5)
    steps.close()
    (blocker,), count = steps.blockers(9)
    assert (blocker.episode, blocker.reason, blocker.since, count) == (R, "in a step", 5.0, 1)
    await asyncio.sleep(100)
    assert steps.blocking == 0
    assert record(steps) == (1, {"steps": 1})
    steps.reopen()
    await task


@pytest.mark.req("ST2")
@on_virtual_clock
async def test_a_replay_step_never_blocks_and_the_boundary_before_it_is_saved() -> None:
    steps = EpisodeSteps()
    task = asyncio.create_task(run_episode(steps, 3, mode="replay"))
    await asyncio.sleep(15)
    steps.close()
    assert steps.blocking == 0
    assert record(steps) == (1, {"steps": 1})
    steps.reopen()
    await task


@pytest.mark.req("ST2")
@on_virtual_clock
async def test_wait_is_the_default_mode() -> None:
    steps = EpisodeSteps()
    async with steps.episode(R) as episode:
        async with episode.step():
            assert steps.blocking == 1
        assert steps.blocking == 1  # Until the boundary: the state of the step is not recorded before.
        await episode.boundary({})
        assert steps.blocking == 0


@pytest.mark.req("ST3")
@pytest.mark.parametrize(("mode", "deadline"), [("wait", 31), ("replay", 26)])
@on_virtual_clock
async def test_parked_time_does_not_count_against_the_deadline(mode: str, deadline: float) -> None:
    steps = EpisodeSteps()
    task = asyncio.create_task(run_episode(steps, 3, mode=mode, deadline=deadline))
    await asyncio.sleep(15)
    steps.close()
    await asyncio.sleep(1000)
    steps.reopen()
    # Steps of 30 s in all; 995 s were parked. The callee of a replay step is parked, so it is too: 5 s more.
    assert await task == 1025


@pytest.mark.req("ST3")
@on_virtual_clock
async def test_time_that_is_not_parked_counts_against_the_deadline() -> None:
    steps = EpisodeSteps()
    began = now()
    task = asyncio.create_task(run_episode(steps, 3, mode="wait", deadline=25))
    await asyncio.sleep(15)
    steps.close()  # The step runs on until 20 s, then it parks with 5 s left.
    await asyncio.sleep(985)
    steps.reopen()
    with pytest.raises(TimeoutError):
        await task
    assert now() - began == 1005


@pytest.mark.req("ST3", "ST9")
@on_virtual_clock
async def test_a_deadline_does_not_end_an_episode_between_two_steps_of_an_open_checkpoint() -> None:
    steps = EpisodeSteps()

    async def dawdle() -> None:
        async with steps.episode(R, deadline=20) as episode:
            await episode.boundary({"steps": 1})
            await asyncio.sleep(30)

    task = asyncio.create_task(dawdle())
    await asyncio.sleep(10)
    steps.close()
    await asyncio.sleep(500)
    assert not task.done()
    assert record(steps) == (1, {"steps": 1})
    steps.reopen()
    await task


@pytest.mark.req("ST5", "ST10")
@on_virtual_clock
async def test_a_replay_step_that_ends_in_an_open_checkpoint_leaves_the_boundary_before_it() -> None:
    steps = EpisodeSteps()
    log: list[str] = []
    ended_step = asyncio.Event()
    boundary = asyncio.Event()

    async def run() -> None:
        async with steps.episode(R) as episode:
            await work(episode, 1, mode="replay")
            async with episode.step("replay"):
                await asyncio.sleep(10)
                log.append("step 1")
            ended_step.set()
            await boundary.wait()
            await episode.boundary({"steps": 2})
            log.append("after")

    task = asyncio.create_task(run())
    await asyncio.sleep(15)
    steps.close()
    await ended_step.wait()
    assert steps.blocking == 0
    assert record(steps) == (1, {"steps": 1})
    boundary.set()
    await asyncio.sleep(10)
    # Its boundary parks it, with the result of the step.
    assert steps.blocking == 0
    assert record(steps) == (2, {"steps": 2})
    assert log == ["step 1"]
    steps.reopen()
    await task
    assert log == ["step 1", "after"]


@pytest.mark.req("ST9")
@on_virtual_clock
async def test_no_episode_ends_while_a_checkpoint_is_open() -> None:
    steps = EpisodeSteps()

    async def run() -> str:
        async with steps.episode(R) as episode:
            await work(episode, 1, mode="wait")
        return "reply"

    task = asyncio.create_task(run())
    await asyncio.sleep(5)
    steps.close()
    await asyncio.sleep(1000)
    assert not task.done()
    assert record(steps) == (1, {"steps": 1})
    steps.reopen()
    assert await task == "reply"
    assert now() == 1005


@pytest.mark.req("ST9")
@on_virtual_clock
async def test_an_episode_that_fails_at_a_boundary_does_not_end_while_a_checkpoint_is_open() -> None:
    steps = EpisodeSteps()

    async def run() -> None:
        async with steps.episode(R) as episode:
            await work(episode, 1, mode="replay")
            async with episode.step("replay"):
                await asyncio.sleep(10)
                raise LookupError("the callee failed")

    task = asyncio.create_task(run())
    await asyncio.sleep(15)
    steps.close()
    await asyncio.sleep(1000)
    assert not task.done()
    assert record(steps) == (1, {"steps": 1})
    steps.reopen()
    with pytest.raises(LookupError):
        await task
    assert now() == 1015


@on_virtual_clock
async def test_an_episode_that_fails_in_a_wait_step_ends_and_blocks_no_longer() -> None:
    steps = EpisodeSteps()

    async def run() -> None:
        async with steps.episode(R) as episode, episode.step("wait"):
            await asyncio.sleep(10)
            raise LookupError("the callee failed")

    task = asyncio.create_task(run())
    await asyncio.sleep(5)
    steps.close()
    with pytest.raises(LookupError):
        await task
    assert (steps.blocking, len(steps)) == (0, 0)


@pytest.mark.req("ST10")
@pytest.mark.parametrize("mode", ["wait", "replay"])
@on_virtual_clock
async def test_no_step_begins_while_a_checkpoint_is_open_and_none_runs_twice(mode: str) -> None:
    steps = EpisodeSteps()
    log: list[str] = []
    task = asyncio.create_task(run_episode(steps, 3, mode=mode, log=log))
    await asyncio.sleep(5)
    steps.close()
    await asyncio.sleep(995)
    assert log == ["step 0 at 10"]
    steps.reopen()
    await task
    assert log == ["step 0 at 10", "step 1 at 1010", "step 2 at 1020"]


@pytest.mark.req("ST10")
@pytest.mark.parametrize("entered", ["before", "meanwhile"])
@on_virtual_clock
async def test_an_episode_that_is_between_two_steps_begins_no_further_one(entered: str) -> None:
    steps = EpisodeSteps()
    began: list[float] = []

    async def run() -> None:
        if entered == "meanwhile":
            await asyncio.sleep(10)
        async with steps.episode(R, deadline=15) as episode:
            await asyncio.sleep(20)
            async with episode.step("wait"):
                began.append(now())
            await episode.boundary({})

    task = asyncio.create_task(run())
    await asyncio.sleep(5)
    steps.close()
    await asyncio.sleep(495)
    assert (began, steps.blocking, record(steps)) == ([], 0, (None, None))
    steps.reopen()
    await task
    assert began == [500]


@pytest.mark.req("ST10")
@on_virtual_clock
async def test_a_checkpoint_that_follows_at_once_parks_what_has_not_run_since() -> None:
    steps = EpisodeSteps()
    log: list[str] = []
    task = asyncio.create_task(run_episode(steps, 2, mode="wait", log=log, deadline=25))
    await asyncio.sleep(5)
    steps.close()
    await asyncio.sleep(95)
    steps.reopen()
    steps.close()
    await asyncio.sleep(100)
    assert (log, steps.blocking) == (["step 0 at 10"], 0)
    steps.reopen()
    await asyncio.sleep(5)
    steps.close()
    await asyncio.sleep(95)
    for _ in range(3):  # It is at its last boundary, then completing.
        steps.reopen()
        steps.close()
        await asyncio.sleep(100)
        assert not task.done()
    steps.reopen()
    assert await task == 600


@on_virtual_clock
async def test_a_request_of_an_episode_that_runs_already_is_refused() -> None:
    steps = EpisodeSteps()
    async with steps.episode(R):
        with pytest.raises(ControlError, match="runs already"):
            async with steps.episode(R):
                pass
        assert len(steps) == 1


@on_virtual_clock
async def test_a_kept_episode_is_inactive_at_its_last_boundary_until_it_is_discarded() -> None:
    steps = EpisodeSteps()
    async with steps.episode(R, keep=True) as episode:
        await work(episode, 2, mode="wait")
    assert record(steps) == (2, {"steps": 2})
    async with steps.episode(R) as again:
        assert (again.number, again.state) == (2, {"steps": 2})
    async with steps.episode(R, keep=True) as episode:
        await episode.boundary({"steps": 3})
    steps.discard(R)
    steps.discard(R)
    assert steps.export([R]) == []

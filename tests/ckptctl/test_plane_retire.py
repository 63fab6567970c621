"""retire and forget: refuse first, then stop, wait and free; the refusal lasts until forget."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ckptctl._server.retire import CONCURRENT_RETIRES
from ckptctl.testing import Step, on_virtual_clock
from ckptfmt import EpisodeId
from tests.ckptctl.support import Caller, Notebook, Steps, ids, refused


def now() -> float:
    return asyncio.get_running_loop().time()


async def assert_refused(server: Caller, *keys: str) -> None:
    for episode in ids(*keys):
        with refused("stale_attempt"):
            await server.plane.admission.enter(episode)


STUBBORN = Step(30.0, ignored_cancellations=1)
"""A step that goes on when it is cancelled for the first time."""


@pytest.mark.req("RT1", "CP9")
@on_virtual_clock
async def test_the_mark_comes_before_any_work_that_the_deadline_limits(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.faults.hold("retire", times=2)
    with refused("deadline_exceeded") as caught:
        await server.retire("late", within=0)
    assert caught.value.retryable
    with refused("deadline_exceeded"):
        await server.retire("slow-a2", within=10)
    server.faults.fail("retire", OSError("scripted"))
    with refused("internal_error"):
        await server.retire("failed")
    await assert_refused(server, "late", "slow", "slow-a2", "failed")
    assert server.plane.status()["retired_rollouts"] == 3


@pytest.mark.req("RT3")
@on_virtual_clock
async def test_a_retire_stops_the_attempt_and_earlier_ones_waits_and_frees(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    tasks = await server.at_boundary("r", "r-a1", "r-a2", "other")
    assert (await server.retire("r-a1"))["retired_count"] == 1
    # Its reply comes after the end of the work and of its state.
    assert [task.done() for task in tasks.values()] == [True, True, False, False]
    assert sorted(map(str, server.episodes.steps)) == ["other", "r-a2"]
    assert server.episodes.cleared_up_to == ["r-a1"]
    for key in ("r", "r-a1"):
        with refused("stale_attempt"):
            await tasks[key]


@pytest.mark.req("RT3")
@on_virtual_clock
async def test_a_retire_stops_calls_of_a_session_waits_and_drops_it(tmp_path: Path) -> None:
    notebook = Notebook()
    server = Caller(notebook, tmp_path)
    old, new, other = ids("r", "r-a1", "other")
    for episode in (old, new, other):
        await notebook.add(episode, 1)

    async def slow_to_end() -> None:
        async with notebook.call(old):
            try:
                await asyncio.sleep(500)
            finally:
                await asyncio.sleep(20)

    calls = [
        asyncio.create_task(slow_to_end()),
        asyncio.create_task(notebook.add(old, 2, seconds=500)),
        asyncio.create_task(notebook.add(new, 2, seconds=500)),
    ]
    await asyncio.sleep(1)
    began = now()
    await server.retire("r")
    assert now() - began == 20
    assert [call.done() for call in calls] == [True, True, False]
    assert (sorted(notebook.notes), notebook.cleared_up_to) == ([other, new], ["r"])
    for call in calls[:2]:
        with refused("stale_attempt"):
            await call


@pytest.mark.req("RT4")
@on_virtual_clock
async def test_after_an_interrupted_retire_the_episode_is_known_and_a_retry_does_not_cancel_it_again(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    task = server.start("r", STUBBORN, Step())
    await asyncio.sleep(10)
    for _ in range(2):
        with refused("deadline_exceeded"):
            await server.retire("r", within=5)
        assert list(map(str, server.episodes.steps)) == ["r"]
    assert (await server.forget("r"))["kept"] == ["r"]
    # Another retire of a later attempt does not cancel it again either.
    assert (await server.retire("r-a1", "r", within=100))["retired_count"] == 2
    assert (now(), server.episodes.executed, task.done()) == (31, [("r", 0), ("r", 1)], True)
    assert await task == [0, 1]


@pytest.mark.req("RT4", "ST6")
@on_virtual_clock
async def test_an_episode_whose_retire_was_interrupted_blocks_a_checkpoint_and_is_not_saved(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    task = server.start("r", STUBBORN)
    await asyncio.sleep(10)
    with refused("deadline_exceeded"):
        await server.retire("r", within=5)
    reply = await server.prepare(within=5)
    assert [blocker["reason"] for blocker in reply["blockers"]] == ["being retired"]
    assert reply["episodes"] == []
    # It parks at its boundary, since it ignored its only cancellation: resume, then retire.
    await server.resume()
    assert await task == [0]
    assert (await server.prepare("c2"))["phase"] == "prepared"
    assert (await server.commit(["r"], "c2"))["episode_ids"] == []


@pytest.mark.req("RT4", "ST6")
@on_virtual_clock
async def test_a_session_whose_retire_was_interrupted_blocks_only_until_its_call_has_ended(
    tmp_path: Path,
) -> None:
    notebook = Notebook()
    (episode,) = ids("r")

    async def ignores_it() -> None:
        async with notebook.call(episode):
            for _ in range(2):
                try:
                    await asyncio.sleep(30)
                except asyncio.CancelledError:
                    continue

    call = asyncio.create_task(ignores_it())
    await asyncio.sleep(1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await notebook.retire([episode])
    with refused("stale_attempt"):  # No further call begins meanwhile.
        await notebook.add(episode, 1)
    assert ([each.reason for each in notebook.blockers(5)[0]], notebook.ready()) == (["being retired"], False)
    await call
    assert (call.cancelling(), notebook.ready()) == (0, True)
    await notebook.retire([episode])
    assert notebook.ready()


@pytest.mark.req("RT5")
@on_virtual_clock
async def test_a_mark_never_goes_down_and_ends_only_through_forget(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.retire("r-a5")
    await server.retire("r-a2")
    await server.prepare()
    await server.commit()
    await server.resume()
    await assert_refused(server, "r", "r-a2", "r-a5")
    assert server.plane.status()["retired_rollouts"] == 1
    assert (await server.forget("r"))["forgotten_count"] == 1
    assert server.plane.status()["retired_rollouts"] == 0
    await server.plane.admission.enter(EpisodeId("r"))


class Counting(Notebook):
    """Counts how many retires run at once, and which."""

    def __init__(self) -> None:
        super().__init__()
        self.running = self.most = 0
        self.retired: list[str] = []

    async def retire(self, episodes: Any) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        self.retired += map(str, episodes)
        await asyncio.sleep(10)
        self.running -= 1


@pytest.mark.req("RT6")
@on_virtual_clock
async def test_retires_run_side_by_side_up_to_a_bound_and_each_rollout_once(tmp_path: Path) -> None:
    participant = Counting()
    server = Caller(participant, tmp_path)
    keys = [f"r{number}-a{attempt}" for number in range(2 * CONCURRENT_RETIRES) for attempt in (1, 3, 2)]
    assert (await server.retire(*keys, *keys))["retired_count"] == len(keys)
    assert (now(), participant.most) == (20, CONCURRENT_RETIRES)
    assert sorted(participant.retired) == sorted(f"r{number}-a3" for number in range(64))


@pytest.mark.req("CP5")
@on_virtual_clock
async def test_retire_and_forget_are_refused_while_a_checkpoint_is_open(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    tasks = await server.at_boundary("r")
    await server.retire("old")
    server.begin("busy", Step(20.0, mode="wait"))
    await asyncio.sleep(1)

    async def refuse() -> None:
        for call in (server.retire("r"), server.forget("old")):
            with refused("wrong_phase"):
                await call

    await server.prepare(within=1)
    assert server.phase == "preparing"
    await refuse()
    await server.prepare()
    await refuse()
    await server.commit()
    await refuse()
    assert (server.phase, server.plane.status()["retired_rollouts"]) == ("committed", 1)
    assert not tasks["r"].done()
    await server.resume()
    # What still runs: resume, retire, prepare again under a new id.
    assert (await server.retire("r", "busy"))["retired_count"] == 2
    assert (await server.prepare("c2"))["episodes"] == []


@pytest.mark.req("CP5")
@on_virtual_clock
async def test_retire_is_refused_while_a_restore_runs(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.faults.hold("close")
    restore = asyncio.create_task(server.restore(["r-a1"]))
    await asyncio.sleep(1)
    for call in (server.retire("x"), server.forget("r")):
        with refused("wrong_phase"):
            await call
    assert server.plane.status()["retired_rollouts"] == 1
    restore.cancel()


@pytest.mark.req("RT10")
@on_virtual_clock
async def test_forget_keeps_what_has_not_ended_and_is_harmless_when_repeated(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    task = server.start("busy", STUBBORN)
    await asyncio.sleep(1)
    with refused("deadline_exceeded"):
        await server.retire("busy", "done", within=5)
    for count in range(2):
        reply = await server.forget("busy", "done", "never-seen", "done")
        assert (reply["forgotten_count"], reply["kept"]) == (2, ["busy"]), count
    await assert_refused(server, "busy")
    await server.plane.admission.enter(EpisodeId("done"))
    with refused("invalid_request"):
        await server.forget("done-a1")
    await task
    await asyncio.sleep(1)
    assert (await server.forget("busy"))["kept"] == []


@pytest.mark.req("RT1", "RT10")
@pytest.mark.parametrize("error", [OSError("scripted"), asyncio.CancelledError()])
@on_virtual_clock
async def test_a_retire_that_fails_is_an_error_reply_and_a_retry_stops_the_work(
    tmp_path: Path, error: BaseException
) -> None:
    server = Steps(tmp_path)
    tasks = await server.at_boundary("r")
    server.faults.fail("retire", error)
    with refused("internal_error"):
        await server.retire("r")
    await assert_refused(server, "r")
    assert not tasks["r"].done()
    assert (await server.forget("r"))["kept"] == ["r"]
    assert (await server.retire("r-a1"))["retired_count"] == 1
    assert tasks["r"].done()
    assert (await server.forget("r"))["kept"] == []
    assert tasks["r"].exception() is not None


@pytest.mark.req("RT4")
@on_virtual_clock
async def test_a_retire_continues_without_its_caller_and_a_retry_joins_it(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.faults.delay("retire", 20)
    call = asyncio.create_task(server.retire("r"))
    await asyncio.sleep(1)
    call.cancel()
    await asyncio.sleep(1)
    assert (await server.retire("r"))["retired_count"] == 1
    assert (now(), server.faults.calls.count("retire")) == (20, 1)

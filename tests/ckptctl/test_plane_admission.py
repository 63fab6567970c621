"""Admission: requests that wait while it is closed, and what is refused when it opens."""

import asyncio
from pathlib import Path

import pytest

from ckptctl import ClientGone
from ckptctl.testing import Step, on_virtual_clock
from ckptfmt import EpisodeId
from tests.ckptctl.support import Caller, Notebook, Steps, refused

R = EpisodeId("r")


@pytest.mark.req("CP13")
@on_virtual_clock
async def test_a_request_waits_for_the_reopening_and_is_no_execution_meanwhile(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    parked = [server.start("r", Step()), server.start("r2", Step(mode="wait"))]
    await asyncio.sleep(100)
    status = server.plane.status()
    assert (status["blockers"], status["episodes"], server.episodes.executed) == (0, 0, [])
    assert (await server.prepare())["episodes"] == []
    assert (await server.commit(["r"]))["episode_ids"] == []
    await asyncio.sleep(100)
    await server.resume()
    assert await asyncio.gather(*parked) == [[0], [0]]
    assert asyncio.get_running_loop().time() == 201


@pytest.mark.req("CP13")
@on_virtual_clock
async def test_a_waiting_request_does_not_run_in_a_checkpoint_that_follows_at_once(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    parked = server.start("r", Step())
    await asyncio.sleep(1)
    await server.resume()
    await server.prepare("c2", within=0)
    await server.prepare("c2")
    await asyncio.sleep(100)
    assert server.plane.status()["blockers"] == 0
    assert not parked.done()
    await server.resume("c2")
    assert await parked == [0]


@pytest.mark.req("CP13")
@on_virtual_clock
async def test_a_request_that_has_not_run_since_the_reopening_waits_for_the_next_one(tmp_path: Path) -> None:
    admission = Steps(tmp_path).plane.admission
    admission.close()
    parked = asyncio.create_task(admission.enter(R))
    await asyncio.sleep(1)
    admission.reopen()
    admission.close()
    await asyncio.sleep(1)
    assert not parked.done()
    admission.reopen()
    await parked


@pytest.mark.req("CP13", "RT2")
@on_virtual_clock
async def test_marks_are_checked_when_a_request_is_admitted(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.faults.fail("close", OSError("scripted"), after=True)
    hold = server.faults.hold("reopen")
    failing = asyncio.create_task(server.prepare(within=1))
    await hold.reached()
    # Sent before the retire, and not admitted before its end.
    parked = {key: server.start(key, Step()) for key in ("r", "r-a1", "r-a2", "other")}
    await asyncio.sleep(1)
    await server.retire("r-a1")
    hold.release()
    await asyncio.wait([failing, *parked.values()])
    assert failing.exception() is not None
    for key in ("r", "r-a1"):
        with refused("stale_attempt"):
            await parked[key]
    assert (await parked["r-a2"], await parked["other"]) == ([0], [0])


@pytest.mark.req("CP13")
@on_virtual_clock
async def test_a_request_whose_client_has_disconnected_is_dropped(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    gone = False
    waiting = asyncio.create_task(server.plane.admission.enter(R, client_gone=lambda: gone))
    cancelled = asyncio.create_task(server.plane.admission.enter(R))
    await asyncio.sleep(10)
    gone = True
    cancelled.cancel()
    await server.resume()
    with pytest.raises(ClientGone):
        await waiting
    # It has not run: the process may still restore.
    assert not server.plane.admission.admitted_any


@pytest.mark.req("RT2")
@on_virtual_clock
async def test_a_marked_attempt_is_refused_until_forget_and_a_later_one_is_not(tmp_path: Path) -> None:
    notebook = Notebook()
    server = Caller(notebook, tmp_path)
    await server.retire("r-a1")
    for _ in range(2):
        for key in ("r", "r-a1"):
            with refused("stale_attempt") as caught:
                await server.plane.admission.enter(EpisodeId.from_capture_key(key))
            assert (caught.value.status, caught.value.details) == (409, {"episode": key})
        await server.plane.admission.enter(EpisodeId("r", 2))
        await server.retire("r")  # The mark does not go down.
    await server.forget("r")
    await server.plane.admission.enter(R)


@pytest.mark.req("CP4")
@on_virtual_clock
async def test_a_refused_request_does_not_make_a_process_stale(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.retire("r")
    with refused("stale_attempt"):
        await server.plane.admission.enter(R)
    with refused("invalid_checkpoint_state"):
        await server.restore(["r-a1"])
    await server.plane.admission.enter(None)
    with refused("not_fresh"):
        await server.restore(["r-a1"])

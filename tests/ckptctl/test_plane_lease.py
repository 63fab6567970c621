"""The lease: what it ends, what extends it, and when it is checked."""

import asyncio
from pathlib import Path

import pytest

from ckptctl.testing import Stall, Step, VirtualClockLoop, on_virtual_clock
from ckptfmt import EpisodeId
from tests.ckptctl.support import (
    Caller,
    HookedDisk,
    Notebook,
    Steps,
    done_record,
    files,
    manifests,
    refused,
    temporary,
    write_part,
)


def now() -> float:
    return asyncio.get_running_loop().time()


def stop_process(seconds: float) -> None:
    """The process is suspended: time passes, and none of its timers run."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualClockLoop)
    loop.advance(seconds)


@pytest.mark.req("CP8", "CP2")
@pytest.mark.parametrize("phase", ["preparing", "prepared", "committed", "restoring", "restored"])
@on_virtual_clock
async def test_an_expiry_in_each_phase_counts_as_a_resume(tmp_path: Path, phase: str) -> None:
    server = Steps(tmp_path)
    write_part(tmp_path / "saved", [done_record("r", [0])])
    if phase in ("restoring", "restored"):
        if phase == "restoring":
            server.faults.delay("install", 300)
        restore = asyncio.create_task(
            server.restore(["r-a1"], "c1", directory=str(tmp_path / "saved"), within=3000)
        )
        await asyncio.sleep(1)
        if phase == "restoring":
            restore.cancel()  # Its caller is gone, and no call follows.
        await asyncio.wait([restore])
    else:
        if phase == "preparing":
            server.begin("r", Step(5000.0, mode="wait"))
            await asyncio.sleep(1)
        await server.prepare(within=1)
        if phase == "committed":
            await server.commit()
    assert server.phase == phase
    await asyncio.sleep(590)
    assert (server.phase, server.admits) == (phase, False)
    await asyncio.sleep(20)
    assert (server.phase, server.admits, server.plane.status()["lease_seconds_left"]) == ("idle", True, None)
    with refused("checkpoint_conflict"):
        await server.prepare("c1")


@pytest.mark.req("CP8")
@on_virtual_clock
async def test_only_accepted_calls_that_name_the_open_id_extend_it(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    await asyncio.sleep(300)
    await server("renew", checkpoint_id="c1")
    await asyncio.sleep(300)
    await server.commit()
    await asyncio.sleep(300)
    await server.commit()
    assert server.plane.status()["lease_seconds_left"] == 600
    await asyncio.sleep(300)
    for code, call in (
        ("checkpoint_conflict", server.prepare("c2")),
        ("checkpoint_conflict", server.resume("c2")),
        ("checkpoint_conflict", server.commit(["other"])),
        ("wrong_phase", server.prepare("c1")),
        ("wrong_phase", server.retire("r")),
        ("wrong_phase", server.forget("r")),
        ("invalid_request", server("renew", checkpoint_id="c1", more=1)),
        ("wrong_instance", server("renew", checkpoint_id="c1", instance="another")),
    ):
        with refused(code):
            await call
    await server("status")
    assert server.plane.status()["lease_seconds_left"] == 300


@pytest.mark.req("CP8", "CM5")
@on_virtual_clock
async def test_a_commit_that_is_refused_for_good_does_not_extend_it(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    server.faults.fail("export", LookupError("scripted"))
    with refused("export_failed"):
        await server.commit()
    for _ in range(5):
        await asyncio.sleep(110)
        with refused("export_failed"):
            await server.commit()
    await asyncio.sleep(60)
    assert server.phase == "idle"


@pytest.mark.req("CP8", "CM5")
@on_virtual_clock
async def test_a_commit_that_is_refused_since_readiness_regressed_does_not_extend_it(tmp_path: Path) -> None:
    notebook = Notebook()
    server = Caller(notebook, tmp_path)
    await server.prepare()
    late = asyncio.create_task(notebook.add(EpisodeId("r"), 1, seconds=301))
    await asyncio.sleep(300)
    with refused("export_failed"):
        await server.commit()
    assert server.plane.status()["lease_seconds_left"] == 300
    await late


@pytest.mark.req("CP8")
@on_virtual_clock
async def test_it_does_not_run_out_while_a_call_is_in_progress_and_runs_from_its_end(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path, lease_grace_seconds=50)
    server.begin("r", Step(300.0, mode="wait"))
    await asyncio.sleep(1)
    prepare = asyncio.create_task(server.prepare(within=1000))
    await asyncio.sleep(200)
    assert (await server("renew", checkpoint_id="c1"))["lease_seconds_left"] == 50
    assert (await prepare)["phase"] == "prepared"
    server.faults.delay("export", 300)
    await server.commit(["r"], within=1000)
    assert (now(), server.phase) == (600, "committed")
    await asyncio.sleep(49)
    assert server.phase == "committed"
    await asyncio.sleep(2)
    assert server.phase == "idle"


@pytest.mark.req("CP8")
@on_virtual_clock
async def test_it_runs_from_the_end_of_a_call_that_timed_out_and_stops_the_write(tmp_path: Path) -> None:
    server = Steps(tmp_path / "cut", lease_grace_seconds=50)
    (tmp_path / "cut").mkdir()
    await server.at_boundary("r")
    await server.prepare()
    disk = HookedDisk()
    with Stall() as stall, disk.in_use():
        disk.before("write", stall.wait)
        with refused("deadline_exceeded"):
            await server.commit(["r"], within=10)
        assert server.phase == "prepared"
        await asyncio.sleep(55)
        assert (server.phase, server.admits) == ("idle", True)
        stall.release()
    await asyncio.sleep(1)
    assert (manifests(tmp_path), temporary(tmp_path)) == ([], [])


@pytest.mark.req("CP8")
@pytest.mark.parametrize("verb", ["commit", "renew", "prepare"])
@on_virtual_clock
async def test_a_process_that_was_suspended_past_its_lease_refuses_the_call_that_waited(
    tmp_path: Path, verb: str
) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r")
    await server.prepare()
    stop_process(700)
    with refused("checkpoint_conflict"):
        if verb == "commit":
            await server.commit(["r"])
        elif verb == "prepare":
            await server.prepare()
        else:
            await server("renew", checkpoint_id="c1")
    assert (server.phase, server.admits) == ("idle", True)
    assert files(tmp_path) == []


@pytest.mark.req("CP8")
@on_virtual_clock
async def test_a_process_that_was_suspended_past_its_lease_can_be_resumed_and_prepared_again(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    stop_process(700)
    assert (await server.prepare("c2"))["phase"] == "prepared"
    stop_process(700)
    assert (await server.resume("c2"))["phase"] == "idle"
    await server.prepare("c3")
    stop_process(700)
    assert (await server.retire("r"))["retired_count"] == 1


@pytest.mark.req("CP8", "CM7")
@on_virtual_clock
async def test_an_expiry_that_cannot_resume_tries_again_every_30_seconds_after_any_error(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    server.faults.fail("reopen", OSError("a worker is gone"), times=2)
    server.faults.fail("reopen", asyncio.CancelledError(), times=1)
    await server.prepare()
    await asyncio.sleep(601)
    assert (server.phase, server.admits) == ("prepared", False)
    assert server.plane.status()["last_error"]["code"] == "internal_error"
    with refused("checkpoint_conflict"):
        await server.commit()
    assert server.phase == "prepared"
    await asyncio.sleep(200)
    assert (server.phase, server.admits) == ("idle", True)
    assert server.faults.calls.count("reopen") == 4


@pytest.mark.req("CP8")
@on_virtual_clock
async def test_an_expiry_waits_for_a_slow_reopening(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.faults.delay("reopen", 100, times=1)
    await server.prepare()
    await asyncio.sleep(650)
    assert server.phase == "prepared"
    await asyncio.sleep(51)
    assert (server.phase, server.faults.calls.count("reopen")) == ("idle", 1)


@pytest.mark.req("CP8")
@on_virtual_clock
async def test_the_lease_of_one_checkpoint_does_not_end_the_next(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    for number in range(4):
        await server.prepare(f"c{number}")
        await asyncio.sleep(400)
        assert server.phase == "prepared"
        await server.resume(f"c{number}")
        await asyncio.sleep(400)

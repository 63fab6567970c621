"""A restore that failed or reached its deadline: its install, admission, and the calls that follow."""

import asyncio
from pathlib import Path

import pytest

from ckptctl.testing import on_virtual_clock
from tests.ckptctl.support import Steps, done_record, refused, write_part


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    write_part(tmp_path, [done_record("r1", [0, 1]), done_record("r2", [0])])
    return tmp_path


@pytest.mark.req("RE5", "CP9")
@on_virtual_clock
async def test_admission_reopens_only_once_an_install_that_outlived_its_restore_has_finished(
    checkpoint: Path,
) -> None:
    server = Steps(checkpoint)
    server.faults.delay("install", 100)
    with refused("deadline_exceeded"):
        await server.restore(["r1-a100"], within=10)
    assert (now(), server.phase, server.admits) == (10, "idle", False)
    assert server.plane.status()["reopen_pending"]
    with refused("deadline_exceeded"):
        await server.resume("r1", within=10)
    prepare = asyncio.create_task(server.prepare("c1", within=10))
    with refused("deadline_exceeded", "reopening"):
        await prepare
    assert (now(), server.admits) == (30, False)
    assert (await server.resume("r1", within=100))["phase"] == "idle"
    assert (now(), server.admits) == (100, True)


@pytest.mark.req("RE5", "RT1", "CP9")
@on_virtual_clock
async def test_a_retire_waits_for_the_install_and_frees_what_it_installed(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    server.faults.delay("install", 100)
    with refused("deadline_exceeded"):
        await server.restore(["r1-a100"], within=10)
    with refused("deadline_exceeded"):
        await server.retire("r1-a100", within=10)
    assert now() == 20
    assert (await server.retire("r1-a100", within=100))["retired_count"] == 1
    assert (now(), list(server.episodes.steps)) == (100, [])


@pytest.mark.req("RE5", "CP4")
@on_virtual_clock
async def test_the_next_restore_waits_for_the_install_frees_it_and_installs_its_own(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    server.faults.delay("install", 100, times=1)
    with refused("deadline_exceeded"):
        await server.restore(["r1-a100"], within=10)
    with refused("deadline_exceeded"):
        await server.restore(["r1-a100"], within=10)  # The same one again.
    reply = await server.restore(["r2-a200"], "r2", within=200)
    assert (now(), reply["restored"], server.phase) == (100, ["r2-a200"], "restored")
    assert list(map(str, server.episodes.steps)) == ["r2-a200"]
    await asyncio.sleep(100)
    # The reopening of the first one must not open what the second has closed.
    assert (server.admits, server.episodes.steps.closed, server.phase) == (False, True, "restored")
    await server.resume("r2")
    assert (server.admits, server.episodes.steps.closed) == (True, False)


@pytest.mark.req("RE5")
@pytest.mark.parametrize("ignored", [0, 1])
@on_virtual_clock
async def test_a_restore_that_comes_during_a_reopening_stays_closed(checkpoint: Path, ignored: int) -> None:
    server = Steps(checkpoint)
    hold = server.faults.hold("reopen", ignored_cancellations=ignored)
    server.faults.fail("install", OSError("scripted"))
    with refused("internal_error"):
        await server.restore(["r1-a100"], within=1)
    await hold.reached()
    restore = asyncio.create_task(server.restore(["r1-a200"], "r2", within=100))
    await asyncio.sleep(1)
    # It cancels the reopening, and waits only when that takes a while to end.
    assert restore.done() == (not ignored)
    hold.release()
    assert (await restore)["restored"] == ["r1-a200"]
    await asyncio.sleep(10)
    assert (server.phase, server.admits, server.episodes.steps.closed) == ("restored", False, True)
    assert (await server.resume("r2"))["phase"] == "idle"
    assert (server.admits, server.episodes.steps.closed) == (True, False)


@on_virtual_clock
async def test_a_resume_right_after_a_restore_that_replaced_a_reopening_ends_it(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    hold = server.faults.hold("reopen", ignored_cancellations=1)
    server.faults.fail("install", OSError("scripted"))
    with refused("internal_error"):
        await server.restore(["r1-a100"], within=1)
    await hold.reached()
    restore = asyncio.create_task(server.restore(["r1-a200"], "r2", within=100))
    await asyncio.sleep(0)
    resume = asyncio.create_task(server.resume("r2"))
    await asyncio.sleep(1)
    hold.release()
    assert (await resume)["phase"] == "idle"
    with refused("checkpoint_conflict"):
        await restore
    assert (server.phase, server.admits, server.episodes.steps.closed) == ("idle", True, False)


@pytest.mark.req("CM7")
@on_virtual_clock
async def test_a_resume_waits_for_a_running_install(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    server.faults.delay("install", 100)
    restore = asyncio.create_task(server.restore(["r1-a100"], within=500))
    await asyncio.sleep(10)
    with refused("deadline_exceeded"):
        await server.resume("r1", within=10)
    assert (server.phase, server.admits) == ("restoring", False)
    with refused("checkpoint_conflict"):
        await server.restore(["r1-a100"])
    assert (await server.resume("r1", within=500))["phase"] == "idle"
    assert now() == 100
    with refused("checkpoint_conflict"):
        await restore


@pytest.mark.req("RE6", "CP2")
@on_virtual_clock
async def test_a_restore_whose_close_fails_halfway_reopens(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    server.faults.fail("close", OSError("a worker is gone"), after=True)
    with refused("internal_error", "a worker is gone"):
        await server.restore(["r1-a100"])
    assert (server.phase, server.admits, server.episodes.steps.closed) == ("idle", True, False)
    assert (await server.restore(["r1-a100"]))["restored"] == ["r1-a100"]


@pytest.mark.req("CM9", "CP15")
@on_virtual_clock
async def test_a_reopening_that_fails_after_a_failed_restore_stays_pending(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    server.faults.fail("install", OSError("scripted"))
    server.faults.fail("reopen", OSError("a worker is gone"), times=2)
    with refused("internal_error", "scripted"):
        await server.restore(["r1-a100"])
    await asyncio.sleep(1)
    assert server.plane.status()["reopen_pending"]
    assert (await server.resume("r1"))["phase"] == "idle"
    assert (server.admits, server.plane.status()["reopen_pending"]) == (True, False)


@pytest.mark.req("CP2")
@on_virtual_clock
async def test_a_restore_that_fails_without_its_caller_reopens(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    server.faults.delay("install", 10)
    server.faults.fail("install", asyncio.CancelledError(), after=True)
    call = asyncio.create_task(server.restore(["r1-a100"]))
    await asyncio.sleep(1)
    call.cancel()
    await asyncio.sleep(1)
    assert (server.phase, server.admits) == ("restoring", False)
    await asyncio.sleep(20)
    assert (server.phase, server.admits) == ("idle", True)


@pytest.mark.req("CP16")
@on_virtual_clock
async def test_a_restore_continues_without_its_caller_and_a_repeat_gets_its_reply(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    server.faults.delay("install", 10)
    call = asyncio.create_task(server.restore(["r1-a100"]))
    await asyncio.sleep(1)
    call.cancel()
    await asyncio.sleep(20)
    assert (await server.restore(["r1-a100"], within=0))["restored"] == ["r1-a100"]
    assert (server.phase, server.faults.calls.count("install")) == ("restored", 1)

"""resume: what it stops, what it waits for, and that nothing is published after it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ckptctl import ControlError
from ckptctl.testing import Stall, Step, on_virtual_clock
from ckptfmt.testing import Operation
from tests.ckptctl.support import HookedDisk, Steps, files, manifests, refused, saved, temporary


def now() -> float:
    return asyncio.get_running_loop().time()


@asynccontextmanager
async def prepared(directory: Path, *keys: str) -> AsyncIterator[tuple[Steps, HookedDisk]]:
    """A prepared server with episodes at a boundary, on a disk that can fail."""
    server, disk = Steps(directory), HookedDisk()
    await server.at_boundary(*keys)
    await server.prepare()
    with disk.in_use():
        yield server, disk


@pytest.mark.req("CP15", "CM7")
@on_virtual_clock
async def test_a_repeated_resume_does_nothing_and_episodes_continue(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    task = server.start("r", Step(10.0, mode="wait"), Step(10.0, mode="wait"))
    await asyncio.sleep(1)
    await server.prepare()
    await asyncio.sleep(90)
    for _ in range(3):
        assert (await server.resume())["phase"] == "idle"
    assert server.faults.calls.count("reopen") == 1
    assert await task == [0, 1]
    assert now() == 110


@pytest.mark.req("CM7")
@on_virtual_clock
async def test_resume_cancels_a_running_export(tmp_path: Path) -> None:
    async with prepared(tmp_path, "r") as (server, _):
        hold = server.faults.hold("export")
        commit = asyncio.create_task(server.commit(["r"]))
        await hold.reached()
        began = now()
        assert (await server.resume(within=1))["phase"] == "idle"
        with refused("checkpoint_conflict"):
            await commit
        assert (now() - began, server.admits, files(tmp_path)) == (0, True, [])
        hold.release()
        await asyncio.sleep(100)
        assert files(tmp_path) == []


@pytest.mark.req("CM7", "CM8")
@on_virtual_clock
async def test_an_export_that_ignores_its_cancellation_writes_nothing_after_the_resume(
    tmp_path: Path,
) -> None:
    async with prepared(tmp_path, "r") as (server, _):
        hold = server.faults.hold("export", ignored_cancellations=3)
        commit = asyncio.create_task(server.commit(["r"], within=500))
        await hold.reached()
        assert (await server.resume())["phase"] == "idle"
        await server.prepare("c2")
        hold.release()
        with refused("checkpoint_conflict"):
            await commit
        assert files(tmp_path) == []
        assert (await server.commit(["r"], "c2"))["episode_ids"] == ["r"]


@pytest.mark.req("CM7", "CM8", "FS8")
@pytest.mark.parametrize("operation", ["create", "write"])
@on_virtual_clock
async def test_resume_stops_a_write_that_hangs_and_no_file_is_left(
    tmp_path: Path, operation: Operation
) -> None:
    async with prepared(tmp_path, "r") as (server, disk):
        with Stall() as stall:
            disk.before(operation, stall.wait)
            commit = asyncio.create_task(server.commit(["r"], within=500))
            await stall.reached()
            began = now()
            assert (await server.resume(within=10))["phase"] == "idle"
            assert now() - began <= 10
            assert (server.admits, manifests(tmp_path)) == (True, [])
            stall.release()
            with refused("checkpoint_conflict"):
                await commit
        await asyncio.sleep(100)
        assert (manifests(tmp_path), temporary(tmp_path)) == ([], [])


@pytest.mark.req("CM7", "CM8")
@on_virtual_clock
async def test_resume_waits_for_a_publication_under_way_and_keeps_the_phase_when_it_runs_out_of_time(
    tmp_path: Path,
) -> None:
    async with prepared(tmp_path, "r") as (server, disk):
        with Stall(behind=1) as stall:
            disk.before("link", stall.wait, "manifest.json")
            commit = asyncio.create_task(server.commit(["r"], within=500))
            await stall.reached()
            for _ in range(2):
                with refused("deadline_exceeded") as caught:
                    await server.resume(within=20)
                assert caught.value.retryable
                assert (server.phase, server.admits) == ("prepared", False)
            for call in (server.commit(["r"]), server.prepare()):
                with refused("checkpoint_conflict"):
                    await call
            resume = asyncio.create_task(server.resume(within=60))
            await asyncio.sleep(1)
            stall.release()
            assert (await resume)["phase"] == "idle"
        # The publication came first: the commit succeeded, and the resume waited for it.
        assert list(saved(tmp_path)) == ["r"]
        with refused("checkpoint_conflict"):
            await commit
        assert (server.admits, temporary(tmp_path)) == (True, [])


@pytest.mark.req("CM7", "CM8")
@on_virtual_clock
async def test_an_expired_lease_waits_for_a_publication_too(tmp_path: Path) -> None:
    async with prepared(tmp_path, "r") as (server, disk):
        with Stall(behind=1) as stall:
            disk.before("link", stall.wait, "manifest.json")
            with refused("deadline_exceeded"):
                await server.commit(["r"], within=10)
            await asyncio.sleep(700)
            assert (server.phase, server.admits) == ("prepared", False)
            stall.release()
            await asyncio.sleep(40)
        assert (server.phase, server.admits, len(manifests(tmp_path))) == ("idle", True, 1)


@pytest.mark.req("CM8")
@pytest.mark.parametrize("moment", range(12))
@on_virtual_clock
async def test_no_manifest_appears_once_resume_has_returned(tmp_path: Path, moment: int) -> None:
    async with prepared(tmp_path, "r1", "r2", "r3") as (server, _):
        commit = asyncio.create_task(server.commit(["r1", "r2", "r3"]))
        for _ in range(moment):  # Another place in the code each time.
            await asyncio.sleep(0)
        await server.resume()
        there = manifests(tmp_path)
        assert (server.phase, server.admits) == ("idle", True)
        await asyncio.gather(commit, return_exceptions=True)
        await asyncio.sleep(100)
        assert (manifests(tmp_path), temporary(tmp_path)) == (there, [])
        await server.prepare("c2")
        await server.resume("c2")


@pytest.mark.req("CM7", "CM8", "FS8")
@pytest.mark.parametrize("number", range(11))
@on_virtual_clock
async def test_resume_while_any_operation_of_a_commit_hangs(tmp_path: Path, number: int) -> None:
    async with prepared(tmp_path, "r1", "r2") as (server, disk):
        with Stall(behind=1) as stall:
            disk.before_number(number, stall.wait)
            commit = asyncio.create_task(server.commit(["r1", "r2"], within=500))
            await stall.reached()
            outcome = (await asyncio.gather(server.resume(within=10), return_exceptions=True))[0]
            if isinstance(outcome, ControlError):  # It waits for the publication.
                assert (outcome.code, server.phase, server.admits) == ("deadline_exceeded", "prepared", False)
                stall.release()
                await server.resume()
            there = manifests(tmp_path)
            assert (server.phase, server.admits) == ("idle", True)
            stall.release()
            await asyncio.gather(commit, return_exceptions=True)
        await asyncio.sleep(100)
        assert (manifests(tmp_path), temporary(tmp_path)) == (there, [])


@pytest.mark.req("FS8", "CM4")
@pytest.mark.parametrize("operation", ["create", "write", "link"])
@on_virtual_clock
async def test_resume_after_storing_failed_leaves_no_temporary_file(
    tmp_path: Path, operation: Operation
) -> None:
    async with prepared(tmp_path, "r") as (server, disk):
        disk.full(operation, times=1000)
        with refused("store_unusable"):
            await server.commit(["r"])
        assert (await server.resume())["phase"] == "idle"
        assert (manifests(tmp_path), temporary(tmp_path)) == ([], [])
        if operation != "link":
            assert list(tmp_path.iterdir()) == []


@pytest.mark.req("CM7")
@on_virtual_clock
async def test_a_second_resume_joins_the_first(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    server.faults.delay("reopen", 30)
    with refused("deadline_exceeded"):
        await server.resume(within=10)
    first, second = await asyncio.gather(server.resume(), server.resume())
    assert (first["phase"], second["phase"], now()) == ("idle", "idle", 30)
    assert server.faults.calls.count("reopen") == 1


@pytest.mark.req("CP16")
@on_virtual_clock
async def test_a_resume_continues_without_its_caller(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    server.faults.delay("reopen", 30)
    resume = asyncio.create_task(server.resume())
    await asyncio.sleep(1)
    resume.cancel()
    await asyncio.sleep(30)
    assert (server.phase, server.admits) == ("idle", True)


@pytest.mark.req("CP15")
@pytest.mark.parametrize("error", [OSError("a worker is gone"), asyncio.CancelledError()])
@on_virtual_clock
async def test_a_resume_that_cannot_reopen_keeps_the_phase_and_is_retried(
    tmp_path: Path, error: BaseException
) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    server.faults.fail("reopen", error, times=2)
    for _ in range(2):
        with refused("internal_error"):
            await server.resume()
        assert (server.phase, server.plane.status()["reopen_pending"]) == ("prepared", True)
        with refused("checkpoint_conflict"):
            await server.commit()
    assert (await server.resume())["phase"] == "idle"
    assert (server.admits, server.plane.status()["reopen_pending"]) == (True, False)


@pytest.mark.req("CP2", "FS8")
@on_virtual_clock
async def test_a_server_that_shuts_down_stops_its_write(tmp_path: Path) -> None:
    async with prepared(tmp_path, "r") as (server, disk):
        disk.full("link", path="manifest.json")
        with refused("store_unusable"):
            await server.commit(["r"])
        await server.plane.close()
        assert (manifests(tmp_path), temporary(tmp_path)) == ([], [])


@pytest.mark.req("CP16")
@on_virtual_clock
async def test_a_prepare_that_waits_for_blockers_ends_with_the_resume(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.begin("r", Step(5000.0, mode="wait"))
    await asyncio.sleep(1)
    waiting = [asyncio.create_task(server.prepare(within=1000)) for _ in range(2)]
    await asyncio.sleep(1)
    await server.resume()
    for each in waiting:
        with refused("checkpoint_conflict", "resumed"):
            await each
    assert now() == 2

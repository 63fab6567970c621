"""prepare: checks the directory, closes, waits for boundaries, then reports."""

import asyncio
from pathlib import Path

import pytest

import ckptfmt
from ckptctl import Blocker, PrepareReport
from ckptctl._protocol import MAX_BLOCKERS
from ckptctl.testing import ScriptedParticipant, Stall, Step, on_virtual_clock
from ckptfmt import EpisodeId
from tests.ckptctl.support import Caller, HookedDisk, Notebook, Steps, files, refused

WAIT = Step(10.0, mode="wait")


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.req("CP6")
@on_virtual_clock
async def test_prepare_returns_once_every_execution_is_at_a_boundary(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    tasks = [server.start("r1", WAIT), server.start("r2", Step(3.0, mode="wait")), server.start("r3", Step())]
    server.begin("lost", Step(5000.0, mode="wait"), restart="no hooks")
    await asyncio.sleep(0.5)
    reply = await server.prepare()
    assert now() == 10
    assert {**reply, "instance_id": ""} == {
        "phase": "prepared",
        "blockers": [],
        "blocker_count": 0,
        "restarts": ["lost"],
        "episodes": ["r1", "r2", "r3"],
        "unattributed": 0,
        "instance_id": "",
    }
    await server.resume()
    assert [await task for task in tasks] == [[0]] * 3


@pytest.mark.req("CP6", "CP16")
@on_virtual_clock
async def test_prepare_replies_with_its_blockers_at_the_deadline_and_can_be_called_again(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    for number in range(MAX_BLOCKERS + 20):
        server.begin(f"r{number}", WAIT)
    await asyncio.sleep(2)
    reply = await server.prepare(within=3)
    assert now() == 5
    assert (reply["phase"], reply["blocker_count"], len(reply["blockers"])) == ("preparing", 120, 100)
    assert reply["blockers"][0] == {"episode": "r0", "reason": "in a step", "since": 5.0}
    assert not server.admits
    with refused("not_ready") as caught:
        await server.commit(["r0"])
    assert caught.value.retryable
    reply = await server.prepare(within=30)
    assert (now(), reply["phase"], reply["blocker_count"]) == (10, "prepared", 0)
    assert server.faults.calls.count("close") == 1


@pytest.mark.req("CP6", "CP9")
@on_virtual_clock
async def test_a_deadline_of_zero_closes_and_replies_at_once(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    reply = await server.prepare(within=0)
    assert (now(), reply["phase"], reply["blockers"]) == (0, "preparing", [])
    assert (await server.prepare())["phase"] == "prepared"
    with refused("deadline_exceeded"):
        await server.commit(within=0)
    await server.commit()
    with refused("deadline_exceeded"):
        await server.resume(within=0)
    assert (await server.resume())["phase"] == "idle"


@pytest.mark.req("CP16")
@on_virtual_clock
async def test_a_second_prepare_joins_the_first_and_each_keeps_its_own_deadline(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.begin("r", WAIT)
    await asyncio.sleep(1)
    replies: list[tuple[float, str]] = []

    async def prepare(within: float) -> None:
        reply = await server.prepare(within=within)
        replies.append((now(), reply["phase"]))

    await asyncio.gather(prepare(60), prepare(4), prepare(60))
    assert replies == [(5, "preparing"), (10, "prepared"), (10, "prepared")]
    assert server.faults.calls.count("close") == 1


@pytest.mark.req("CP16")
@on_virtual_clock
async def test_a_repeat_in_prepared_gives_the_same_report_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r1", "r2")
    server.faults.delay("prepare", 2)
    first, joined = await asyncio.gather(server.prepare(), server.prepare())
    server.episodes.steps.discard(EpisodeId("r1"))
    # An execution that left its boundary must not make the repeat wait.
    monkeypatch.setattr(server.episodes, "ready", lambda: False)
    began = now()
    assert [joined, await server.prepare()] == [first, first]
    assert now() == began
    await server.resume()
    with refused("checkpoint_conflict"):
        await server.prepare(directory=str(tmp_path / "other"))


class Fickle(ScriptedParticipant):
    """Reports something else each time it is asked."""

    asked = 0

    async def prepare(self) -> PrepareReport:
        self.asked += 1
        await asyncio.sleep(2)
        return PrepareReport(episodes=[EpisodeId(f"r{self.asked}")])


@pytest.mark.req("CP16")
@on_virtual_clock
async def test_calls_that_joined_get_the_same_report(tmp_path: Path) -> None:
    server = Caller(Fickle(), tmp_path)
    replies = await asyncio.gather(*[server.prepare() for _ in range(3)])
    assert [*replies, await server.prepare()] == replies[:1] * 4


@pytest.mark.req("CP16")
@on_virtual_clock
async def test_a_prepare_continues_without_its_caller(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.begin("r", WAIT)
    await asyncio.sleep(1)
    call = asyncio.create_task(server.prepare())
    await asyncio.sleep(1)
    call.cancel()
    await asyncio.sleep(30)
    assert (server.phase, server.admits) == ("preparing", False)
    assert (await server.prepare(within=0))["phase"] == "prepared"


@pytest.mark.req("CM11")
@pytest.mark.parametrize("place", ["missing", "a file", "another cut", "another id", "no cut"])
@on_virtual_clock
async def test_a_directory_that_is_not_the_cut_is_refused_before_anything_is_parked(
    tmp_path: Path, place: str
) -> None:
    cut = ckptfmt.create_cut(tmp_path / "step-1", "c1")
    other = ckptfmt.create_cut(tmp_path / "step-1", "c2")
    (tmp_path / "file").write_text("no directory")
    directory, digest, checkpoint_id = {
        "missing": (str(tmp_path / "nowhere"), cut.digest, "c1"),
        "a file": (str(tmp_path / "file"), cut.digest, "c1"),
        "another cut": (cut.url, other.digest, "c1"),
        "another id": (cut.url, cut.digest, "c3"),
        "no cut": (str(tmp_path), cut.digest, "c1"),
    }[place]
    before = files(tmp_path)
    server = Steps(tmp_path)
    with refused("invalid_checkpoint_state"):
        await server.prepare(checkpoint_id, directory=directory, cut_digest=digest)
    assert (server.phase, server.admits, server.faults.calls) == ("idle", True, [])
    assert (await server.prepare("c1", directory=cut.url, cut_digest=cut.digest))["phase"] == "prepared"
    assert files(tmp_path) == before


@pytest.mark.req("CM11")
@on_virtual_clock
async def test_a_full_disk_at_prepare_is_retryable_and_parks_nothing(tmp_path: Path) -> None:
    disk = HookedDisk()
    disk.full("create")
    server = Steps(tmp_path)
    with disk.in_use():
        with refused("store_unusable") as caught:
            await server.prepare()
        assert (caught.value.retryable, server.phase, server.faults.calls) == (True, "idle", [])
        assert (await server.prepare())["phase"] == "prepared"


@pytest.mark.req("CP9")
@on_virtual_clock
async def test_a_hanging_disk_delays_neither_the_reply_nor_a_resume(tmp_path: Path) -> None:
    disk = HookedDisk()
    server = Steps(tmp_path)
    with Stall() as stall, disk.in_use():
        disk.before("create", stall.wait)
        reply = await server.prepare(within=7)
        assert (now(), reply["phase"], reply["blockers"]) == (7, "preparing", [])
        assert server.admits  # Nothing is closed before the directory is known to be good.
        again = asyncio.create_task(server.prepare(within=60))
        await asyncio.sleep(1)
        assert (await server.resume())["phase"] == "idle"
        with refused("checkpoint_conflict"):
            await again
        assert (now(), server.admits) == (8, True)
        stall.release()
    await asyncio.sleep(1)
    assert (server.phase, server.admits, "close" in server.faults.calls) == ("idle", True, False)


@pytest.mark.req("CP9")
@on_virtual_clock
async def test_a_participant_that_reports_late_does_not_delay_the_reply(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.faults.delay("prepare", 20, times=2)
    with refused("deadline_exceeded"):
        await server.prepare(within=5)
    assert (now(), server.phase) == (5, "preparing")
    # The first report may be outdated: it is asked again.
    assert (await server.prepare())["phase"] == "prepared"
    assert now() == 40
    await server.resume()
    server.begin("r", Step(5000.0, mode="wait"))
    await asyncio.sleep(1)
    server.faults.delay("prepare", 20)
    reply = await server.prepare("c2", within=5)
    assert (now(), reply["phase"], reply["blocker_count"]) == (46, "preparing", 1)


@pytest.mark.req("CP2", "CP9")
@on_virtual_clock
async def test_a_participant_is_not_asked_before_it_is_closed(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.faults.fail("prepare", OSError("scripted"))
    assert (await server.prepare(within=0))["phase"] == "preparing"
    with refused("internal_error"):
        await server.prepare()
    await asyncio.sleep(10)
    # The one that failed has left nothing closed.
    assert (server.phase, server.admits, server.episodes.steps.closed) == ("idle", True, False)


class Counted(ScriptedParticipant):
    """Counts how often it is asked for its blockers."""

    asked = 0

    def blockers(self, limit: int) -> tuple[list[Blocker], int]:
        self.asked += 1
        return super().blockers(limit)


@pytest.mark.req("CP7")
@on_virtual_clock
async def test_waiting_for_readiness_does_not_list_blockers(tmp_path: Path) -> None:
    participant = Counted()
    server = Caller(participant, tmp_path)
    tasks = [
        participant.start(EpisodeId(f"r{number}"), [Step(1.0 + number % 7, mode="wait")])
        for number in range(50)
    ]
    await asyncio.sleep(0.5)
    assert (await server.prepare(within=3))["phase"] == "preparing"
    assert participant.asked == 1
    assert (await server.prepare())["phase"] == "prepared"
    assert participant.asked == 1
    await server.resume()
    await asyncio.gather(*tasks)


@pytest.mark.req("CP2", "CP9")
@on_virtual_clock
async def test_a_resume_stops_a_close_that_hangs(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    hold = server.faults.hold("close")
    prepare = asyncio.create_task(server.prepare(within=500))
    await hold.reached()
    await asyncio.sleep(1)
    assert (await server.resume(within=5))["phase"] == "idle"
    with refused("checkpoint_conflict"):
        await prepare
    assert (now(), server.admits) == (1, True)


@pytest.mark.req("RS2")
@on_virtual_clock
async def test_restarts_of_earlier_ranks_do_not_block_and_keep_running(tmp_path: Path) -> None:
    notebook = Notebook()
    server = Caller(notebook, tmp_path)
    lost, kept = EpisodeId("lost"), EpisodeId("kept")
    calls = [asyncio.create_task(notebook.add(each, 1, seconds=50)) for each in (lost, kept)]
    await asyncio.sleep(10)
    reply = await server.prepare(restarts=["lost"], within=20)
    assert [blocker["episode"] for blocker in reply["blockers"]] == ["kept"]
    reply = await server.prepare(within=100)
    assert (now(), reply["phase"], reply["episodes"]) == (50, "prepared", ["kept"])
    # Its next request passes the closed admission, and does not make the commit late.
    async with asyncio.timeout(1):
        await server.plane.admission.enter(lost)
    calls.append(asyncio.create_task(notebook.add(lost, 2, seconds=50)))
    await asyncio.sleep(1)
    with refused("restart_in_scope"):
        await server.commit(["kept", "lost"])
    assert (await server.commit(["kept"]))["episode_ids"] == ["kept"]
    await asyncio.gather(*calls)
    assert now() == 100
    await server.resume()


@pytest.mark.req("CP14", "CP15")
@on_virtual_clock
async def test_a_reopening_that_fails_after_a_failed_close_stays_pending_and_is_retried(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    server.faults.fail("close", OSError("a worker is gone"), after=True)
    server.faults.fail("reopen", OSError("it is still gone"), times=3)
    with refused("internal_error", "a worker is gone"):
        await server.prepare()
    await asyncio.sleep(1)
    status = server.plane.status()
    assert (status["phase"], status["reopen_pending"], server.admits) == ("idle", True, False)
    assert "it is still gone" in status["last_error"]["message"]
    with refused("internal_error", "it is still gone"):
        await server.resume("another")
    assert (await server.resume("another"))["phase"] == "idle"
    assert (server.admits, server.plane.status()["reopen_pending"]) == (True, False)


@pytest.mark.req("CP14")
@on_virtual_clock
async def test_a_pending_reopening_is_retried_without_any_call(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.faults.fail("close", OSError("a worker is gone"), after=True)
    server.faults.fail("reopen", OSError("it is still gone"), times=4)
    with refused("internal_error"):
        await server.prepare()
    await asyncio.sleep(200)
    assert (server.admits, server.plane.status()["reopen_pending"]) == (True, False)


@on_virtual_clock
async def test_a_prepare_during_a_reopening_that_fails_is_not_reopened_by_its_retry(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    server.faults.fail("close", OSError("a worker is gone"), after=True)
    server.faults.delay("reopen", 10, times=2)
    server.faults.fail("reopen", OSError("it is still gone"))
    failing = asyncio.create_task(server.prepare(within=1))
    await asyncio.wait([failing])
    assert failing.exception() is not None
    # Comes while the reopening runs, which then fails and is retried at once.
    reply = await server.prepare("c2", within=100)
    assert (reply["phase"], server.admits) == ("prepared", False)
    await asyncio.sleep(100)
    assert (server.phase, server.admits) == ("prepared", False)


@on_virtual_clock
async def test_a_prepare_while_a_failed_reopening_is_pending_stays_closed_until_its_own_resume(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    server.faults.fail("close", OSError("a worker is gone"), after=True)
    server.faults.fail("reopen", OSError("it is still gone"), times=2)
    with refused("internal_error"):
        await server.prepare()
    await asyncio.sleep(1)
    assert server.plane.status()["reopen_pending"]
    assert (await server.prepare("c2"))["phase"] == "prepared"
    await asyncio.sleep(300)
    assert (server.phase, server.admits) == ("prepared", False)
    await server.resume("c2")
    assert (server.admits, server.plane.status()["reopen_pending"]) == (True, False)

"""One control plane, through its public calls: phases, ids, repeats, refusals, status."""

import asyncio
import json
from pathlib import Path

import pytest

from ckptctl._protocol import MAX_BODY_BYTES
from ckptctl.testing import Method, Stall, Step, on_virtual_clock
from tests.ckptctl.support import HookedDisk, Steps, refused


@pytest.mark.req("CP2")
@on_virtual_clock
async def test_a_checkpoint_closes_and_reopens_admission(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    assert (server.phase, server.admits) == ("idle", True)
    assert (await server.prepare())["phase"] == "prepared"
    assert (server.phase, server.admits) == ("prepared", False)
    await server.commit()
    assert (server.phase, server.admits) == ("committed", False)
    assert (await server.resume())["phase"] == "idle"
    assert (server.phase, server.admits) == ("idle", True)
    assert server.faults.calls == ["close", "prepare", "export", "reopen"]


@pytest.mark.req("CP2")
@on_virtual_clock
async def test_resume_before_a_commit_is_an_abort(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r", steps=0)
    await server.prepare(within=5)
    await server.resume()
    assert (server.phase, server.admits) == ("idle", True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("CP2", "CP14")
@pytest.mark.parametrize("method", ["close", "prepare"])
@on_virtual_clock
async def test_a_prepare_that_fails_by_itself_reopens_and_its_id_may_be_used_again(
    tmp_path: Path, method: Method
) -> None:
    server = Steps(tmp_path)
    # Halfway: one of several workers has closed.
    server.faults.fail(method, OSError("scripted"), after=True)
    with refused("internal_error", "scripted"):
        await server.prepare()
    assert (server.phase, server.admits, server.episodes.steps.closed) == ("idle", True, False)
    assert server.plane.status()["last_error"]["code"] == "internal_error"
    assert (await server.prepare())["phase"] == "prepared"
    assert server.plane.status()["last_error"] is None


@pytest.mark.req("CP3", "CP15")
@on_virtual_clock
async def test_a_second_id_conflicts_while_one_is_open(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.prepare("c1")
    for call in (
        server.prepare("c2"),
        server.commit(checkpoint_id="c2"),
        server("renew", checkpoint_id="c2"),
        server.restore(checkpoint_id="c2"),
        server.resume("c2"),
    ):
        with refused("checkpoint_conflict", "'c1' is open"):
            await call
    assert (server.phase, server.admits) == ("prepared", False)


@pytest.mark.req("CP3")
@on_virtual_clock
async def test_the_last_64_ids_that_ended_are_refused(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.prepare("c0")
    await server.commit(checkpoint_id="c0")
    await server.resume("c0")
    for call in (
        server.prepare("c0"),
        server.commit(checkpoint_id="c0"),
        server("renew", checkpoint_id="c0"),
        server.restore(checkpoint_id="c0"),
    ):
        with refused("checkpoint_conflict", "use a new id"):
            await call
    assert (await server.resume("c0"))["phase"] == "idle"
    for number in range(1, 64):
        await server.resume(f"c{number}")
    with refused("checkpoint_conflict"):
        await server.prepare("c0")
    await server.resume("c64")
    assert (await server.prepare("c0"))["phase"] == "prepared"


@pytest.mark.req("CP3", "CP15")
@on_virtual_clock
async def test_a_resume_of_an_id_never_seen_changes_nothing_and_a_late_prepare_of_it_is_refused(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    assert (await server.resume("late"))["phase"] == "idle"
    assert server.faults.calls == []
    with refused("checkpoint_conflict"):
        await server.prepare("late")
    assert (server.phase, server.admits) == ("idle", True)


@pytest.mark.req("CP3")
@on_virtual_clock
async def test_a_resume_remembers_its_id_though_the_close_it_stops_fails_meanwhile(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    hold = server.faults.hold("close", ignored_cancellations=1)
    server.faults.fail("close", OSError("a worker is gone"))
    prepare = asyncio.create_task(server.prepare())
    await hold.reached()
    resume = asyncio.create_task(server.resume())
    await asyncio.sleep(1)
    hold.release()
    assert (await resume)["phase"] == "idle"
    await asyncio.wait([prepare])
    assert prepare.exception() is not None
    assert (server.admits, server.plane.status()["reopen_pending"]) == (True, False)
    with refused("checkpoint_conflict"):
        await server.prepare()


@pytest.mark.req("CP10", "ID11")
@on_virtual_clock
async def test_status_reports_counts_in_every_phase_also_while_a_commit_writes(tmp_path: Path) -> None:
    server = Steps(tmp_path, lease_grace_seconds=100)
    await server.at_boundary("r1", "r2")
    server.begin("lost", Step(5000.0, mode="wait"), restart="no hooks")
    await server.plane.admission.enter(None)
    await server.retire("gone", "gone-a2", "gone2")
    status = await server("status")
    assert status == {
        "participant": {"name": "agent-0", "kind": "agent"},
        "phase": "idle",
        "checkpoint_id": None,
        "lease_seconds_left": None,
        "episodes": 3,
        "blockers": 0,
        "restarts": 1,
        "unattributed": 1,
        "retired_rollouts": 2,
        "reopen_pending": False,
        "last_error": None,
        "instance_id": server.plane.instance_id,
    }
    disk = HookedDisk()
    with Stall() as stall, disk.in_use():
        assert (await server.prepare())["unattributed"] == 1
        disk.before("link", stall.wait)
        commit = asyncio.create_task(server.commit(["r1"], within=60))
        await stall.reached()
        await asyncio.sleep(30)
        status = await server("status")
        assert (status["phase"], status["checkpoint_id"]) == ("prepared", "c1")
        assert status["lease_seconds_left"] == 100
        stall.release()
        await commit
    await asyncio.sleep(30)
    assert (await server("status"))["lease_seconds_left"] == 70


@pytest.mark.req("CP10")
@on_virtual_clock
async def test_status_reports_the_last_error_of_a_commit_that_no_call_waits_for(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    hold = server.faults.hold("export")
    server.faults.fail("export", LookupError("scripted"))
    with refused("deadline_exceeded"):
        await server.commit(within=1)
    hold.release()
    await asyncio.sleep(1)
    assert (await server("status"))["last_error"] == {
        "code": "export_failed",
        "message": "the export failed: LookupError: scripted",
    }


@pytest.mark.req("CP16")
@on_virtual_clock
async def test_renew_extends_the_lease_only_while_its_id_is_open(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    with refused("wrong_phase"):
        await server("renew", checkpoint_id="c1")
    await server.prepare()
    await asyncio.sleep(500)
    assert (await server("renew", checkpoint_id="c1"))["lease_seconds_left"] == 600
    await asyncio.sleep(500)
    assert server.phase == "prepared"


@pytest.mark.req("CP17")
@on_virtual_clock
async def test_the_first_check_that_fails_decides_the_refusal(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r")
    with refused("wrong_instance") as caught:
        await server("commit", instance="another", nonsense=1)
    assert caught.value.__cause__ is None
    with refused("invalid_request"):
        await server("commit", checkpoint_id="c1", directory=server.directory, episodes=["-a1"])
    await server.prepare()
    # An open id of another checkpoint comes before the phase, the phase before readiness and scope.
    with refused("checkpoint_conflict"):
        await server.restore(checkpoint_id="c2")
    with refused("wrong_phase"):
        await server.restore(checkpoint_id="c1")


@pytest.mark.req("CP17", "RS3")
@on_virtual_clock
async def test_a_refusal_changes_nothing(tmp_path: Path) -> None:
    server = Steps(tmp_path, lease_grace_seconds=100)
    await server.at_boundary("r")
    await server.prepare(restarts=["lost"])
    await asyncio.sleep(60)
    before = await server("status")
    for code, call in (
        ("wrong_instance", server.prepare(instance="another")),
        ("invalid_request", server.commit(["r", "r-a1"])),
        ("invalid_request", server("renew", checkpoint_id="c1", more=1)),
        ("checkpoint_conflict", server.prepare("c2")),
        ("checkpoint_conflict", server.prepare(directory=str(tmp_path / "other"))),
        ("wrong_phase", server.retire("r")),
        ("wrong_phase", server.restore(["r-a1"], "c1", marks={"r": 4})),
        ("restart_in_scope", server.commit(["r", "lost"])),
    ):
        with refused(code):
            await call
    assert await server("status") == before
    # The scope of the refused commit is not remembered.
    assert (await server.commit(["r"]))["episode_ids"] == ["r"]


@pytest.mark.req("CP18")
@on_virtual_clock
async def test_every_reply_names_its_process_and_a_call_to_another_one_is_refused(tmp_path: Path) -> None:
    server, again = Steps(tmp_path), Steps(tmp_path)
    instance = server.plane.instance_id
    assert instance != again.plane.instance_id
    for reply in (
        await server("status"),
        await server.retire("old", instance=instance),
        await server.forget("old", instance=instance),
        await server.prepare(instance=instance),
        await server("renew", checkpoint_id="c1", instance=instance),
        await server.commit(instance=instance),
        await server.resume(instance=instance),
    ):
        assert reply["instance_id"] == instance
    # The server was restarted inside a checkpoint: its new process must not reply for the old one.
    for call in (
        again("status", instance=instance),
        again.prepare(instance=instance),
        again.resume(instance=instance),
        again.retire("r", instance=instance),
    ):
        with refused("wrong_instance"):
            await call
    assert (again.phase, again.plane.status()["retired_rollouts"]) == ("idle", 0)


BODIES = {
    "no object": b"[]",
    "no JSON": b"{",
    "repeated key": b'{"checkpoint_id":"a","checkpoint_id":"b"}',
    "bad UTF-8": b'{"checkpoint_id":"\xff"}',
    "a surrogate": b'{"checkpoint_id":"\\ud800"}',
    "an unknown field of a surrogate": b'{"\\ud800":1}',
    "NaN": b'{"checkpoint_id":NaN}',
    "too deep": b"[" * 100_000,
    "a number too large": b'{"checkpoint_id":1' + b"0" * 5000 + b"}",
    "empty": b"",
}


@pytest.mark.req("CP11")
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("verb", ["prepare", "renew", "commit", "resume", "restore", "retire", "forget"])
@on_virtual_clock
async def test_an_invalid_body_is_a_client_error_that_can_be_sent(
    tmp_path: Path, verb: str, name: str
) -> None:
    server = Steps(tmp_path)
    with refused("invalid_request") as caught:
        await server.plane.handle(verb, BODIES[name])
    assert caught.value.status == 400
    json.dumps(caught.value.to_wire()).encode()
    assert server.phase == "idle"


@pytest.mark.req("CP11")
@on_virtual_clock
async def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with refused("invalid_request") as caught:
        await Steps(tmp_path).plane.handle("retire", b" " * (MAX_BODY_BYTES + 1))
    assert caught.value.status == 413


@on_virtual_clock
async def test_an_unknown_verb_is_a_client_error(tmp_path: Path) -> None:
    with refused("invalid_request"):
        await Steps(tmp_path).plane.handle("explode", b"{}")

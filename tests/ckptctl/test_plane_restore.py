"""restore: new processes, one verified pass, refusals first, installs that continue after their call."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptctl.testing import Stall, Step, on_virtual_clock
from ckptfmt import EpisodeId, Record
from tests.ckptctl.support import (
    Caller,
    HookedDisk,
    Notebook,
    Steps,
    done_record,
    refused,
    saved,
    write_part,
)


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """What an agent and a resources server saved: three rollouts each."""
    write_part(
        tmp_path, [done_record("r1", [0, 1]), done_record("r2-a3", [0]), Record(EpisodeId("r3"), None)]
    )
    write_part(
        tmp_path,
        [Record(EpisodeId(f"r{number}"), {"notes": [number]}) for number in (1, 2, 3)],
        "resources-0",
    )
    return tmp_path


@pytest.mark.req("CP2", "RE7", "ST4")
@on_virtual_clock
async def test_restored_episodes_continue_from_their_boundary_when_they_are_sent_again(
    checkpoint: Path,
) -> None:
    server = Steps(checkpoint)
    reply = await server.restore(["r3-a100", "r2-a100", "r1-a100", "unknown-a100"])
    assert (reply["restored"], reply["source_checkpoint_id"]) == (["r1-a100", "r2-a100", "r3-a100"], "saved")
    assert (server.phase, server.admits) == ("restored", False)
    early = server.start("r1-a100", *[Step()] * 4)
    await asyncio.sleep(10)
    assert server.episodes.executed == []
    await server.resume("r1")
    assert (server.phase, server.admits) == ("idle", True)
    assert await early == [0, 1, 2, 3]
    assert await server.start("r2-a100", *[Step()] * 2) == [0, 1]
    assert await server.start("r3-a100", Step()) == [0]
    # Only what was not done before the boundary was run again.
    assert server.episodes.executed == [("r1-a100", 2), ("r1-a100", 3), ("r2-a100", 1), ("r3-a100", 0)]


@pytest.mark.req("RE1", "RE4", "RE7")
@on_virtual_clock
async def test_only_the_scope_is_installed_and_the_participant_gets_all_of_it(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    await server.restore(["r1-a100", "unknown-a100"])
    assert sorted(map(str, server.episodes.steps)) == ["r1-a100"]
    # Files of earlier processes are removed for every episode in scope, with a record here or not.
    assert server.episodes.cleared_up_to == ["r1-a100", "unknown-a100"]
    notebook = Notebook()
    resources = Caller(notebook, checkpoint)
    assert (await resources.restore(["r2-a100", "unknown-a100"]))["restored"] == ["r2-a100"]
    assert notebook.notes == {EpisodeId("r2", 100): [2]}
    assert notebook.cleared_up_to == ["r2-a100", "unknown-a100"]


@pytest.mark.req("RE1")
@pytest.mark.parametrize("scope", [["r1-a100"], ["r3-a100"], []])
@on_virtual_clock
async def test_the_whole_part_is_verified_also_outside_the_scope(checkpoint: Path, scope: list[str]) -> None:
    (records,) = (checkpoint / "agent-0").glob("records-*.jsonl")
    data = bytearray(records.read_bytes())
    data[data.index(b"r2-a3") + 40] ^= 1
    records.write_bytes(data)
    server = Steps(checkpoint)
    with refused("invalid_checkpoint_state"):
        await server.restore(scope)
    assert (server.phase, server.admits, list(server.episodes.steps)) == ("idle", True, [])


@pytest.mark.req("RE1", "CP9", "CP10")
@on_virtual_clock
async def test_reading_happens_in_a_thread_and_does_not_delay_the_reply(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    disk = HookedDisk()
    with Stall() as stall, disk.in_use():
        disk.before("open_for_reading", stall.wait)
        restore = asyncio.create_task(server.restore(["r1-a100"], within=20))
        await stall.reached()
        assert (await server("status"))["phase"] == "restoring"
        await asyncio.sleep(19)
        assert not restore.done()
        with refused("deadline_exceeded"):
            await restore
        assert now() == 20
        stall.release()


@pytest.mark.req("RE2")
@on_virtual_clock
async def test_a_record_that_cannot_be_loaded_fails_only_inside_the_scope(tmp_path: Path) -> None:
    values: list[Any] = [[], None, {"x": 1}]
    bad = [Record(EpisodeId(f"bad{number}"), value) for number, value in enumerate(values)]
    write_part(tmp_path, [Record(EpisodeId("good"), {"notes": [1]}), *bad], "resources-0")
    notebook = Notebook()
    server = Caller(notebook, tmp_path)
    for number in range(3):
        with refused("invalid_checkpoint_state", f"bad{number}-a1") as caught:
            await server.restore(["good-a1", f"bad{number}-a1"])
        assert (caught.value.status, caught.value.details) == (422, {"episode": f"bad{number}-a1"})
        assert (server.phase, server.admits) == ("idle", True)
    assert (await server.restore(["good-a1"]))["restored"] == ["good-a1"]


@pytest.mark.req("RE3")
@pytest.mark.parametrize("damage", ["no part", "no manifest", "no JSON", "no records", "a file", "nowhere"])
@on_virtual_clock
async def test_whatever_is_wrong_with_a_checkpoint_is_invalid_checkpoint_state(
    checkpoint: Path, damage: str
) -> None:
    part = checkpoint / "agent-0"
    if damage == "no manifest":
        (part / "manifest.json").unlink()
    elif damage == "no JSON":
        (part / "manifest.json").write_bytes(b"{")
    elif damage == "no records":
        next(part.glob("records-*")).unlink()
    directory = {
        "no part": checkpoint / "resources-0",
        "a file": part / "manifest.json",
        "nowhere": part / "x",
    }
    server = Steps(directory.get(damage, checkpoint))
    with refused("invalid_checkpoint_state"):
        await server.restore(["r1-a100"])
    assert (server.phase, server.admits) == ("idle", True)


@pytest.mark.req("RE7", "CO13")
@on_virtual_clock
async def test_a_replacement_must_be_a_later_attempt_than_the_saved_one(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    for key in ("r2", "r2-a3"):
        with refused("invalid_request", "no later attempt"):
            await server.restore([key])
    assert (await server.restore(["r2-a4"]))["restored"] == ["r2-a4"]


@pytest.mark.req("RT7")
@on_virtual_clock
async def test_a_restore_marks_what_it_replaces_before_anything_can_fail(checkpoint: Path) -> None:
    server = Steps(checkpoint / "nowhere")
    with refused("deadline_exceeded"):
        await server.restore(["r1-a100", "unknown-a1", "fresh"], within=0, marks={"r1": 3, "done": 7})
    await asyncio.sleep(1)
    with refused("invalid_checkpoint_state"):
        await server.restore(["r9-a100"], "r2")
    for key in ("r1", "r1-a99", "unknown", "done-a7", "r9-a99"):
        with refused("stale_attempt"):
            await server.plane.admission.enter(EpisodeId.from_capture_key(key))
    for key in ("r1-a100", "unknown-a1", "fresh", "done-a8"):
        await server.plane.admission.enter(EpisodeId.from_capture_key(key))
    assert server.plane.status()["retired_rollouts"] == 4
    await server.forget("r1")
    await server.plane.admission.enter(EpisodeId("r1"))


@pytest.mark.req("CP4")
@on_virtual_clock
async def test_a_process_that_has_admitted_an_execution_cannot_restore(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    await server.restore(["r1-a100"])
    await server.resume("r1")
    await server.restore(["r1-a200"], "r2")
    await server.resume("r2")
    assert await server.start("r1-a200", *[Step()] * 3) == [0, 1, 2]
    with refused("not_fresh"):
        await server.restore(["r1-a300"], "r3")
    assert (server.phase, server.admits, server.plane.status()["retired_rollouts"]) == ("idle", True, 1)


@pytest.mark.req("CP4")
@on_virtual_clock
async def test_what_a_failed_restore_installed_is_freed_by_the_next(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    server.faults.fail("install", OSError("scripted"), times=2, after=True)
    server.faults.fail("delete_restored", OSError("scripted"), times=1)
    with refused("internal_error"):
        await server.restore(["r1-a100", "r2-a100"])
    assert sorted(map(str, server.episodes.steps)) == ["r1-a100", "r2-a100"]
    with refused("internal_error"):  # It cannot free them.
        await server.restore(["r3-a200"], "r2")
    with refused("internal_error"):  # And this one cannot install.
        await server.restore(["r2-a200"], "r3")
    assert sorted(map(str, server.episodes.steps)) == ["r2-a200"]
    assert (await server.restore(["r3-a300"], "r4"))["restored"] == ["r3-a300"]
    assert sorted(map(str, server.episodes.steps)) == ["r3-a300"]


@pytest.mark.req("CP16", "CM6")
@on_virtual_clock
async def test_a_repeat_waits_for_the_running_restore_and_then_gets_its_reply(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    server.faults.delay("install", 30)
    first = asyncio.create_task(server.restore(["r1-a100", "r2-a100"]))
    await asyncio.sleep(1)
    joined = asyncio.create_task(server.restore(["r2-a100", "r1-a100"]))
    for _ in range(2):  # While it runs, and after it finished.
        for call in (
            server.restore(["r1-a100"]),
            server.restore(["r1-a100", "r2-a100"], marks={"x": 1}),
            server.restore(["r1-a100", "r2-a100"], checkpoint_digest="0" * 64),
        ):
            with refused("checkpoint_conflict", "other arguments"):
                await call
        assert (await first) == (await joined)
    assert await server.restore(["r1-a100", "r2-a100"]) == await first
    assert (now(), server.faults.calls.count("install")) == (30, 1)


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_a_manifest_that_checkpoint_json_does_not_name_is_refused(tmp_path: Path) -> None:
    cut = ckptfmt.create_cut(tmp_path / "step-1", "saved")
    write_part(Path(cut.url), [done_record("r1", [0])])
    digest = ckptfmt.publish(
        tmp_path / "step-1",
        participants={"agent-0": ckptfmt.open_participant(cut.url, "agent-0").digest},
        sequence=1,
        cut=cut.name,
    )
    other = ckptfmt.create_cut(tmp_path / "step-1", "saved")
    write_part(Path(other.url), [done_record("r1", [0])])
    for directory, named in ((other.url, digest), (cut.url, "0" * 64)):
        with refused("invalid_checkpoint_state"):
            await Steps(directory).restore(["r1-a100"], checkpoint_digest=named)
    assert (await Steps(cut.url).restore(["r1-a100"], checkpoint_digest=digest))["restored"] == ["r1-a100"]
    write_part(Path(cut.url), [done_record("r2", [0])], "agent-1")
    stranger = Steps(cut.url)
    stranger.faults.name = "agent-1"
    with refused("invalid_checkpoint_state", "agent-1"):
        await stranger.restore(["r2-a100"], checkpoint_digest=digest)


@pytest.mark.req("RT8")
@on_virtual_clock
async def test_what_was_restored_can_be_retired_and_forgotten_before_it_runs(checkpoint: Path) -> None:
    server = Steps(checkpoint)
    await server.restore(["r1-a100", "r2-a100"])
    assert (await server.retire("r1-a100"))["retired_count"] == 1
    assert list(map(str, server.episodes.steps)) == ["r2-a100"]
    assert (await server.forget("r1"))["forgotten_count"] == 1
    assert server.phase == "restored"


@pytest.mark.req("CM2")
@on_virtual_clock
async def test_sessions_are_saved_again_after_a_restore(checkpoint: Path) -> None:
    notebook = Notebook()
    server = Caller(notebook, checkpoint)
    await server.restore(["r1-a100", "r2-a100"])
    await server.resume("r1")
    await notebook.add(EpisodeId("r1", 100), "more")
    server.directory = str(checkpoint / "next")
    (checkpoint / "next").mkdir()
    await server.prepare()
    await server.commit(["r1-a100", "r2-a100"])
    assert saved(checkpoint / "next", "resources-0") == {
        "r1-a100": (None, {"notes": [1, "more"]}),
        "r2-a100": (None, {"notes": [2]}),
    }

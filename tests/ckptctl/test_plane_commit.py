"""commit: one export, one write, the manifest last; what a repeat gets."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptctl import EpisodeParticipant
from ckptctl.testing import Stall, Step, on_virtual_clock
from ckptfmt import EpisodeId, Record
from ckptfmt.testing import Operation
from tests.ckptctl.support import (
    Caller,
    HookedDisk,
    Notebook,
    Steps,
    done_record,
    manifests,
    refused,
    saved,
    temporary,
    write_part,
)


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.req("CM1", "FS8")
@on_virtual_clock
async def test_a_commit_writes_the_records_and_then_the_manifest(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r1", "r2-a3", steps=2)
    await server.prepare()
    disk = HookedDisk()
    with Stall() as stall, disk.in_use():
        disk.before("link", stall.wait)
        commit = asyncio.create_task(server.commit(["r2-a3", "r1"]))
        await stall.reached()
        # Everything except the manifest is there, so nothing is committed yet.
        with pytest.raises(ckptfmt.Incomplete):
            saved(tmp_path)
        stall.release()
        reply = await commit
    part = ckptfmt.open_participant(tmp_path, "agent-0")
    assert part.verify() == []
    assert reply["manifest"] == {
        "sha256": part.digest,
        "records": 2,
        "bytes": part.manifest.segments[0].stored,
    }
    assert (reply["episode_ids"], reply["references"]) == (["r1", "r2-a3"], {})
    assert saved(tmp_path) == {"r1": (2, {"done": [0, 1]}), "r2-a3": (2, {"done": [0, 1]})}
    assert (part.kind, part.manifest.checkpoint_id) == ("agent", "c1")
    assert temporary(tmp_path) == []
    # The manifest is durable: its directory was synced after it appeared.
    assert ("sync_directory", "agent-0") in disk.calls[disk.calls.index(("link", "manifest.json")) :]


@pytest.mark.req("CM1")
@on_virtual_clock
async def test_sessions_are_committed_unchanged_and_so_is_an_empty_scope(tmp_path: Path) -> None:
    notebook = Notebook()
    server = Caller(notebook, tmp_path)
    await notebook.add(EpisodeId("r"), {"x": [1.5, None]})
    await server.prepare()
    assert (await server.commit(["r", "unknown"]))["episode_ids"] == ["r"]
    assert saved(tmp_path, "resources-0") == {"r": (None, {"notes": [{"x": [1.5, None]}]})}
    await server.resume()
    server.directory = str(tmp_path / "empty")
    (tmp_path / "empty").mkdir()
    await server.prepare("c2")
    assert (await server.commit([], "c2"))["manifest"]["records"] == 0
    assert saved(tmp_path / "empty", "resources-0") == {}


@pytest.mark.req("CM2")
@on_virtual_clock
async def test_only_the_scope_is_saved_and_live_episodes_outside_it_keep_running(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    tasks = [server.start(key, Step(), Step(10.0), Step()) for key in ("r1", "r2")]
    await asyncio.sleep(5)
    await server.prepare()
    await server.commit(["r1"])
    assert list(saved(tmp_path)) == ["r1"]
    await server.resume()
    assert [await task for task in tasks] == [[0, 1, 2]] * 2
    # Nothing ran twice.
    assert sorted(server.episodes.executed) == [(key, step) for key in ("r1", "r2") for step in range(3)]


@pytest.mark.req("CM2", "RE7")
@on_virtual_clock
async def test_unclaimed_restored_records_are_saved_again_unchanged_under_their_new_keys(
    tmp_path: Path,
) -> None:
    payload: dict[str, Any] = {"b": float("nan"), "a": [-0.0, 2**70, "\ud800"]}
    write_part(
        tmp_path / "one",
        [
            Record(EpisodeId("r1"), payload, boundary=4, schema=9, references=("ref",)),
            done_record("r2-a1", [0]),
            Record(EpisodeId("r3"), None),
        ],
    )
    server = Steps(tmp_path / "one")
    await server.restore(["r1-a100", "r2-a100", "r3-a100"])
    await server.resume("r1")
    (tmp_path / "two").mkdir()
    server.directory = str(tmp_path / "two")
    claimed = server.start("r2-a100", Step(), Step(), Step(5000.0))
    await asyncio.sleep(1.5)
    await server.prepare()
    reply = await server.commit(["r1-a100", "r2-a100"])
    assert reply["references"] == {"r1-a100": ["ref"]}
    one, two = (ckptfmt.open_participant(tmp_path / name, "agent-0") for name in ("one", "two"))
    assert two.episodes == ("r1-a100", "r2-a100")
    before, after = one["r1"], two["r1-a100"]
    assert (after.boundary, after.schema, after.references) == (4, 9, ("ref",))
    assert after.json_payload == before.json_payload
    assert two["r2-a100"].payload == {"done": [0, 1]}
    claimed.cancel()


@pytest.mark.req("CM4")
@on_virtual_clock
async def test_a_commit_exports_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r")
    await server.prepare()
    server.faults.delay("export", 50)
    disk = HookedDisk()
    with Stall() as stall, disk.in_use():
        disk.before("link", stall.wait)
        with refused("deadline_exceeded") as caught:
            await server.commit(["r"], within=10)  # While it exports.
        assert caught.value.retryable
        joined = [asyncio.create_task(server.commit(["r"], within=200)) for _ in range(2)]
        await stall.reached()
        with refused("deadline_exceeded"):
            await server.commit(["r"], within=10)  # While it writes.
        assert server.phase == "prepared"
        stall.release()
        replies = await asyncio.gather(*joined)
    replies.append(await server.commit(["r"]))  # After it finished.
    assert replies[1:] == replies[:-1]
    assert server.faults.calls.count("export") == 1
    assert disk.calls.count(("link", "manifest.json")) == 1


@pytest.mark.req("CM4")
@on_virtual_clock
async def test_a_commit_continues_without_its_caller_and_a_retry_gets_its_result(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r")
    await server.prepare()
    hold = server.faults.hold("export")
    call = asyncio.create_task(server.commit(["r"]))
    await hold.reached()
    call.cancel()
    await asyncio.sleep(1)
    hold.release()
    await asyncio.sleep(1)
    assert len(manifests(tmp_path)) == 1
    assert (await server.commit(["r"], within=0))["episode_ids"] == ["r"]
    assert (server.phase, server.faults.calls.count("export")) == ("committed", 1)


@pytest.mark.req("CM4", "CM11", "FS8")
@pytest.mark.parametrize("operation", ["create", "write", "link", "sync_directory"])
@on_virtual_clock
async def test_storing_that_failed_is_retried_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: Operation
) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r")
    await server.prepare()
    disk = HookedDisk()
    disk.full(operation, times=2)
    with disk.in_use():
        for _ in range(2):
            with refused("store_unusable") as caught:
                await server.commit(["r"])
            assert (caught.value.retryable, server.phase) == (True, "prepared")
        # The cut stays that of the first commit, although the episode changes meanwhile.
        monkeypatch.setattr(server.episodes.steps, "export", lambda scope: [done_record("r", [8, 9])])
        await server.commit(["r"])
    assert (server.phase, server.faults.calls.count("export")) == ("committed", 1)
    assert saved(tmp_path) == {"r": (1, {"done": [0]})}
    assert temporary(tmp_path) == []


@pytest.mark.req("CM11")
@on_virtual_clock
async def test_a_directory_that_cannot_hold_state_is_no_server_error_and_can_be_retried(
    tmp_path: Path,
) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r")
    await server.prepare()
    (tmp_path / "agent-0").write_text("a file where the directory should be")
    for _ in range(2):
        with refused("invalid_checkpoint_state") as caught:
            await server.commit(["r"])
        assert caught.value.status == 422
    (tmp_path / "agent-0").unlink()
    await server.commit(["r"])
    assert list(saved(tmp_path)) == ["r"]


@pytest.mark.req("CM5")
@pytest.mark.parametrize("error", [OSError("scripted"), asyncio.CancelledError()])
@on_virtual_clock
async def test_an_export_that_fails_ends_the_checkpoint_for_good(
    tmp_path: Path, error: BaseException
) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r")
    await server.prepare()
    server.faults.fail("export", error)
    for scope in (["r"], ["r"], []):  # Every commit of the id, also with other arguments.
        with refused("export_failed") as caught:
            await server.commit(scope)
        assert not caught.value.retryable
    assert (server.faults.calls.count("export"), manifests(tmp_path)) == (1, [])
    await server.resume()
    await server.prepare("c2")
    assert (await server.commit(["r"], "c2"))["episode_ids"] == ["r"]


@pytest.mark.req("CM5")
@on_virtual_clock
async def test_an_export_that_fails_after_its_commits_deadline_is_final_too(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.prepare()
    hold = server.faults.hold("export")
    server.faults.fail("export", OSError("scripted"))
    with refused("deadline_exceeded"):
        await server.commit(within=1)
    hold.release()
    await asyncio.sleep(1)
    with refused("export_failed"):
        await server.commit()


@pytest.mark.req("CM5")
@on_virtual_clock
async def test_readiness_that_regressed_before_the_export_is_final(tmp_path: Path) -> None:
    notebook = Notebook()
    server = Caller(notebook, tmp_path)
    await server.prepare()
    late = asyncio.create_task(notebook.add(EpisodeId("r"), 1))
    await asyncio.sleep(0.5)
    with refused("export_failed"):
        await server.commit()
    await late
    for scope in ([], ["r"]):
        with refused("export_failed"):
            await server.commit(scope)


@pytest.mark.req("CM5")
@pytest.mark.parametrize("value", [(1, 2), {1: 2}, {"x": {"y": b"z"}}, object()])
@on_virtual_clock
async def test_a_value_that_cannot_be_stored_exactly_fails_the_export_by_name(
    tmp_path: Path, value: object
) -> None:
    notebook = Notebook()
    server = Caller(notebook, tmp_path)
    await notebook.add(EpisodeId("good"), 1)
    await notebook.add(EpisodeId("r"), value)
    await server.prepare()
    for scope in (["good", "r"], ["good", "r"], ["good"]):
        with refused("export_failed", "episode r:") as caught:
            await server.commit(scope)
        assert caught.value.details["episode"] == "r"
        assert caught.value.details["path"].startswith("$.notes[0]")
    assert (manifests(tmp_path), temporary(tmp_path)) == ([], [])


class Overreaching(EpisodeParticipant):
    """Exports what it was not asked for, or the same twice."""

    exported: tuple[Record, ...] = ()

    async def export(self, scope: object) -> list[Record]:
        return list(self.exported)


@pytest.mark.req("CM2")
@on_virtual_clock
async def test_a_participant_that_exports_more_than_the_scope_fails(tmp_path: Path) -> None:
    for number, exported in enumerate(
        ([done_record("other", [])], [done_record("r", []), done_record("r", [])])
    ):
        participant = Overreaching("agent-0", "agent")
        participant.exported = tuple(exported)
        server = Caller(participant, tmp_path)
        await server.prepare(f"c{number}")
        with refused("export_failed"):
            await server.commit(["r"], f"c{number}")


@pytest.mark.req("CM6")
@on_virtual_clock
async def test_a_retry_with_other_arguments_conflicts_and_in_another_order_does_not(tmp_path: Path) -> None:
    server = Steps(tmp_path)
    await server.at_boundary("r1", "r2")
    await server.prepare()
    hold = server.faults.hold("export")
    first = asyncio.create_task(server.commit(["r1", "r2"]))
    await hold.reached()
    (tmp_path / "other").mkdir()
    for _ in range(2):  # From the start of the export, and after it.
        for call in (
            server.commit(["r1"]),
            server.commit(["r1", "r2-a1"]),
            server.commit(["r1", "r2"], directory=str(tmp_path / "other")),
        ):
            with refused("checkpoint_conflict", "other arguments"):
                await call
        hold.release()
        await first
    assert await server.commit(["r2", "r1"]) == await first


@pytest.mark.req("CM1")
@on_virtual_clock
async def test_a_manifest_of_another_writer_is_not_replaced_and_the_conflict_can_be_asked_again(
    tmp_path: Path,
) -> None:
    write_part(tmp_path, [done_record("r", [0, 1, 2])])
    server = Steps(tmp_path)
    await server.at_boundary("r")
    await server.prepare()
    for _ in range(2):
        with refused("checkpoint_conflict", "another writer"):
            await server.commit(["r"])
    assert saved(tmp_path) == {"r": (3, {"done": [0, 1, 2]})}
    assert (await server.resume())["phase"] == "idle"

"""A checkpoint over many servers, from prepare to `checkpoint.json`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptctl import ControlError, CoordinationError, NotPrepared
from ckptctl.testing import on_virtual_clock
from ckptfmt import EpisodeId
from tests.ckptctl.servers import Cluster, on_a_loop
from tests.ckptctl.support import HookedDisk, files, ids, manifests, refused


@pytest.mark.req("CO11", "RS6")
@on_virtual_clock
async def test_checkpoint_json_says_what_was_committed(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r", "s-a2", on=["environment", "agent-a"])
    await cluster.add_inactive("t", on=["agent-b"])
    await cluster.nodes["policy"].busy("p", restart="no hooks")
    await cluster.nodes["tools"].busy("q-a1", restart="restart_only")
    await cluster.coordination.retire(ids("old-a3"))
    async with cluster.coordination.prepared("step-7", str(tmp_path / "c")) as cut:
        committed = await cut.commit(ids("t", "s-a2", "r"))
        assert not (tmp_path / "c" / "checkpoint.json").exists()
    digest = committed.publish(sequence=7, state={"step": 7}, unstarted=ids("u"))
    found = ckptfmt.open(tmp_path / "c")
    body = ckptfmt.read_checkpoint(tmp_path / "c")
    assert body.digest == digest
    assert (body.checkpoint_id, body.sequence, body.state) == ("step-7", 7, {"step": 7})
    assert (body.episodes, body.restarts) == (("r", "s-a2", "t"), ("p", "q-a1", "u"))
    assert body.marks == {"old": 3}
    assert body.cut is not None
    assert body.cut.name == committed.cut
    assert ckptfmt.read_cut(tmp_path / "c" / committed.cut).digest == body.cut.digest
    assert {name: each.kind for name, each in body.participants.items()} == {
        "environment": "environment",
        "policy": "policy_model",
        "agent-a": "agent",
        "agent-b": "agent",
        "tools": "resources",
    }
    assert {name: each.manifest for name, each in body.participants.items()} == dict(committed.manifests)
    assert {name: part.digest for name, part in found.items()} == dict(committed.manifests)
    assert found.verify().ok
    raw = json.loads((tmp_path / "c" / "checkpoint.json").read_bytes())["body"]
    assert raw["format"] == 1


@pytest.mark.req("RS3", "RS1", "RS6")
@on_virtual_clock
async def test_the_scope_leaves_out_the_restarts_of_all_participants(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r", "s", "t")
    for number in range(150):
        await cluster.nodes["agent-a"].busy(f"a-{number}", restart="no hooks")
    await cluster.nodes["tools"].busy("b-0", restart="restart_only")
    async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
        # All of them are listed.
        assert cut.restarts == {*ids(*(f"a-{number}" for number in range(150))), EpisodeId("b-0")}
        assert cut.continued(["t", "a-149", "r", "b-0", "s"]) == ["t", "r", "s"]
        assert cut.continued(ids("s", "b-0", "r")) == ids("s", "r")
        assert cut.continued(["b-0-a1"]) == ["b-0-a1"]
        committed = await cut.commit(cut.continued(ids("t", "a-1", "r", "b-0")))
    assert committed.episodes == set(ids("t", "r"))
    assert committed.restarts == cut.restarts
    assert not committed.restarts & committed.episodes


@pytest.mark.req("RS3")
@on_virtual_clock
async def test_a_scope_that_names_a_restart_is_refused_before_any_server_commits(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r", on=["environment"])
    await cluster.nodes["tools"].busy("r", restart="restart_only")
    async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
        with refused("restart_in_scope") as caught:
            await cut.commit(["r"])
        assert caught.value.details == {"episodes": ["r"]}
        assert cluster.wire.named("commit") == []
        assert set(cluster.phases().values()) == {"prepared"}
        assert (await cut.commit([])).episodes == frozenset()


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_without_every_commit_there_is_nothing_to_publish(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r")
    cluster.nodes["policy"].faults.fail("export", RuntimeError("scripted"))
    with pytest.raises(CoordinationError) as caught:
        async with cluster.coordination.prepared("c", str(tmp_path / "c")) as cut:
            await cut.commit(["r"])
    assert caught.value.verb == "commit"
    assert list(caught.value.failures) == ["policy"]
    assert caught.value.has("export_failed")
    assert not caught.value.retryable
    assert cluster.all_run()
    assert len(manifests(tmp_path)) == 4
    assert not list(tmp_path.rglob("checkpoint.json"))
    with pytest.raises(ckptfmt.Incomplete):
        ckptfmt.open(tmp_path / "c")


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_checkpoint_json_is_never_replaced(tmp_path: Path) -> None:
    cluster = Cluster()
    committed = []
    for name in ("one", "two"):
        async with cluster.coordination.prepared(name, str(tmp_path / "c")) as cut:
            committed.append(await cut.commit([]))
    digest = committed[0].publish(sequence=1, state=1)
    assert committed[0].publish(sequence=1, state=1) == digest
    for other, state in ((0, 2), (1, 1)):
        with pytest.raises(ckptfmt.Conflict):
            committed[other].publish(sequence=1, state=state)
    assert ckptfmt.read_checkpoint(tmp_path / "c").digest == digest


@pytest.mark.req("CM4", "CO11")
@on_virtual_clock
async def test_a_commit_continues_after_a_failure_to_store(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r", "s")
    disk = HookedDisk()
    disk.full("write", times=2)
    async with cluster.coordination.prepared("c", str(tmp_path / "c")) as cut:
        with disk.in_use(), pytest.raises(CoordinationError) as caught:
            await cut.commit(["r", "s"])
        assert caught.value.has("store_unusable")
        assert caught.value.retryable
        committed = await cut.commit(["s", "r"])
    committed.publish(sequence=1)
    assert ckptfmt.open(tmp_path / "c").verify().ok
    assert [node.faults.calls.count("export") for node in cluster.nodes.values()] == [1] * 5


@pytest.mark.req("CM4", "CP16")
@on_virtual_clock
async def test_a_lost_reply_is_repeated_by_calling_again(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r")
    async with cluster.coordination.prepared("c", str(tmp_path / "c")) as cut:
        for lost in (["agent-a", "tools"], ["policy"]):
            for name in lost:
                cluster.wire.lose_reply(name, "commit", cluster.nodes[name].plane.call)
            with pytest.raises(CoordinationError) as caught:
                await cut.commit(["r"])
            assert set(caught.value.failures) == set(lost)
            assert caught.value.retryable
            cluster.wire.heal()
        committed = await cut.commit(["r"])
    committed.publish(sequence=1)
    assert ckptfmt.open(tmp_path / "c").verify().ok
    assert [node.faults.calls.count("export") for node in cluster.nodes.values()] == [1] * 5


@pytest.mark.req("CO10", "CP6")
@on_virtual_clock
async def test_blockers_end_prepare_and_a_repeat_with_the_same_id_continues(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r")
    for number in range(150):
        await cluster.nodes["agent-b"].busy(f"b-{number}")
    with pytest.raises(NotPrepared) as caught:
        await cluster.coordination.prepare("c", str(tmp_path / "c"), deadline=3)
    error = caught.value
    assert error.blockers.keys() == {"agent-b"}
    assert len(error.blockers["agent-b"]) == 100
    assert error.blockers["agent-b"][0] == {"episode": "b-0", "reason": "in a step", "since": 3.0}
    assert error.counts == {"agent-b": 150}
    # It ended there: the rank after it was not called.
    assert "tools" not in cluster.wire.named("prepare")
    assert cluster.nodes["tools"].phase == "idle"
    for number in range(150):
        await cluster.nodes["agent-b"].end(f"b-{number}")
    cut = await cluster.coordination.prepare("c", str(tmp_path / "c"), deadline=3)
    committed = await cut.commit(["r"])
    await cluster.coordination.resume("c")
    committed.publish(sequence=1)
    assert cluster.all_run()
    assert len({each.body["directory"] for each in cluster.wire.sent if each.verb == "prepare"}) == 1
    assert ckptfmt.open(tmp_path / "c").verify().ok


@pytest.mark.req("CO10")
@on_virtual_clock
async def test_the_context_resumes_after_blockers_and_another_id_begins_again(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.nodes["policy"].busy("b")
    with pytest.raises(NotPrepared):
        async with cluster.coordination.prepared("c", str(tmp_path), deadline=1):
            raise AssertionError("it is not prepared")
    assert cluster.all_run()
    await cluster.nodes["policy"].end("b")
    with pytest.raises(CoordinationError) as caught:
        async with cluster.coordination.prepared("c", str(tmp_path), deadline=1):
            pass
    assert caught.value.has("checkpoint_conflict")
    async with cluster.coordination.prepared("d", str(tmp_path), deadline=1) as cut:
        await cut.commit([])
    assert cluster.all_run()


@pytest.mark.req("CO10")
@on_virtual_clock
async def test_without_a_cut_no_server_is_closed_and_the_id_can_be_used(
    tmp_path: Path,
) -> None:
    cluster = Cluster()
    (tmp_path / "file").write_text("")
    with pytest.raises(ckptfmt.UnusableDirectory):
        async with cluster.coordination.prepared("c", str(tmp_path / "file")):
            raise AssertionError("it is not prepared")
    assert cluster.wire.sent == []
    async with cluster.coordination.prepared("c", str(tmp_path / "c")) as cut:
        await cut.commit([])


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_the_same_step_after_a_crash_before_publish_is_a_new_cut(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r", "s")
    async with cluster.coordination.prepared("step-1", str(tmp_path / "step-1")) as cut:
        await cut.commit(["r", "s"])
    left = files(tmp_path)
    # Crash before publish. The run is restored, and reaches the same step.
    cluster.restart()
    cluster.coordination = cluster.controller()
    await cluster.add_inactive("r")
    async with cluster.coordination.prepared("step-1", str(tmp_path / "step-1")) as again:
        committed = await again.commit(["r"])
    assert again.cut.name != cut.cut.name
    committed.publish(sequence=1)
    assert set(left) < set(files(tmp_path))
    found = ckptfmt.open(tmp_path / "step-1")
    assert (found.cut, found.episodes, found.verify().ok) == (again.cut.name, ("r",), True)
    cluster.restart()
    async with cluster.controller().restored(str(tmp_path / "step-1")) as back:
        assert list(back.episodes) == ids("r")
        assert {tuple(each) for each in back.restored.values()} == {tuple(back.episodes.values())}


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_the_same_step_again_is_a_new_cut_also_for_the_same_controller(
    tmp_path: Path,
) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r")
    async with cluster.coordination.prepared("step-1", str(tmp_path / "step-1")) as cut:
        (await cut.commit(["r"])).publish(sequence=1)
    async with cluster.coordination.prepared("step-2", str(tmp_path / "step-2")) as cut:
        await cut.commit(["r"])
    # The servers die before step-2 is published; the controller does not.
    cluster.restart()
    async with cluster.coordination.restored(str(tmp_path / "step-1")) as back:
        pass
    async with cluster.coordination.prepared("step-2", str(tmp_path / "step-2")) as again:
        committed = await again.commit(back.episodes.values())
    committed.publish(sequence=2)
    assert again.cut.name != cut.cut.name
    assert ckptfmt.open(tmp_path / "step-2").verify().ok


@pytest.mark.req("CO9")
@on_a_loop
async def test_it_is_published_before_or_after_the_resume(tmp_path: Path) -> None:
    cluster = Cluster()
    async with cluster.coordination.prepared("a", str(tmp_path / "a")) as cut:
        (await cut.commit([])).publish(sequence=1)
    async with cluster.coordination.prepared("b", str(tmp_path / "b")) as cut:
        committed = await cut.commit([])
    assert cluster.all_run()
    await asyncio.to_thread(committed.publish, sequence=2)
    assert [ckptfmt.open(tmp_path / name).sequence for name in "ab"] == [1, 2]


@pytest.mark.req("CO3", "RS5")
@on_virtual_clock
async def test_the_controller_waits_only_for_replies_that_are_under_way(tmp_path: Path) -> None:
    """Eight rollouts, each in one state: parked, with a reply under way, a restart, or never begun."""
    cluster = Cluster({"agent": "agent"})
    node = cluster.nodes["agent"]
    await cluster.add_inactive("parked-1", "parked-2", "parked-3")
    await node.busy("restart", restart="no hooks")
    loop = asyncio.get_running_loop()
    keys = ["parked-1", "parked-2", "parked-3", "restart", "wire-1", "wire-2", "failed", "never-begun"]
    runs: dict[EpisodeId, asyncio.Future[Any]] = {each: loop.create_future() for each in ids(*keys)}
    loop.call_later(1.0, runs[EpisodeId("wire-1")].set_result, "reply")
    loop.call_later(2.0, runs[EpisodeId("wire-2")].set_result, "reply")
    loop.call_later(1.5, runs[EpisodeId("failed")].set_exception, RuntimeError("scripted"))
    async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
        committed = await cut.commit(cut.continued(list(runs)))
        assert committed.awaiting_reply(runs) == ids("wire-1", "wire-2", "failed", "never-begun")
        began = loop.time()
        unstarted = await committed.wait_for_replies(runs, timeout=10)
        assert loop.time() - began == 10
        assert unstarted == ids("never-begun")
        assert (
            await committed.wait_for_replies({each: runs[each] for each in ids(*keys[:-1])}, timeout=10) == []
        )
        assert loop.time() - began == 10
    committed.publish(sequence=1, unstarted=unstarted)
    body = ckptfmt.read_checkpoint(tmp_path)
    assert body.episodes == ("parked-1", "parked-2", "parked-3")
    assert body.restarts == ("never-begun", "restart")
    assert isinstance(runs[EpisodeId("failed")].exception(), RuntimeError)
    for each in ids("parked-1", "restart"):
        assert not runs[each].done()


@pytest.mark.req("CO6")
@on_virtual_clock
async def test_who_saved_what_is_exact_and_sorted(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("s", "r-a10", "r2", on=["agent-a"])
    await cluster.add_inactive("s", on=["tools", "environment"])
    async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
        assert cut.episodes["agent-a"] == ["r-a10", "r2", "s"]
        committed = await cut.commit(["s", "unknown", "r-a10"])
    assert dict(committed.owners) == {
        EpisodeId("r", 10): ("agent-a",),
        EpisodeId("s"): ("agent-a", "environment", "tools"),
    }
    assert committed.scope == set(ids("s", "unknown", "r-a10"))
    assert committed.bytes == sum(
        part.manifest.bytes for part in ckptfmt.open(tmp_path / committed.cut).values()
    )


@on_virtual_clock
async def test_a_scope_of_two_attempts_of_a_rollout_is_refused(tmp_path: Path) -> None:
    cluster = Cluster()
    with pytest.raises(CoordinationError) as caught:
        async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
            await cut.commit(["r", "r-a1"])
    assert caught.value.has("invalid_request")
    assert isinstance(caught.value.first, ControlError)
    assert cluster.all_run()

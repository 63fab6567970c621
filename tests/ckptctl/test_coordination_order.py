"""In which order many servers are called, with what, and which servers there can be."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ckptctl import Call, Coordination, CoordinationError, NotPrepared, Server
from ckptctl.testing import on_virtual_clock
from tests.ckptctl.servers import Cluster, control_error
from tests.ckptctl.support import ids

CALLERS_FIRST = [{"environment"}, {"policy"}, {"agent-a", "agent-b"}, {"tools"}]
RETIRED = [{"environment"}, {"agent-a", "agent-b"}, {"policy", "tools"}]
EVERYWHERE = [{"environment", "policy", "agent-a", "agent-b", "tools"}]


async def checkpoint(cluster: Cluster, directory: Path, name: str = "c", *keys: str) -> None:
    async with cluster.coordination.prepared(name, str(directory)) as cut:
        committed = await cut.commit(ids(*keys))
    committed.publish(sequence=1)


@pytest.mark.req("CO1")
@on_virtual_clock
async def test_prepare_goes_down_the_ranks_and_resume_up_and_commit_is_at_once(tmp_path: Path) -> None:
    cluster = Cluster()
    await checkpoint(cluster, tmp_path / "c")
    assert cluster.wire.groups("prepare") == CALLERS_FIRST
    assert cluster.wire.groups("commit") == EVERYWHERE
    assert cluster.wire.groups("resume") == CALLERS_FIRST[::-1]
    verbs = [verb for verb, event, _ in cluster.wire.log if event == "began" and verb != "renew"]
    assert verbs == ["prepare"] * 5 + ["commit"] * 5 + ["resume"] * 5
    assert cluster.all_run()


@pytest.mark.req("CO1", "RT10")
@on_virtual_clock
async def test_retire_and_forget_call_callers_before_the_servers_they_call() -> None:
    cluster = Cluster()
    await cluster.coordination.retire(ids("r-a1"))
    assert await cluster.coordination.forget(["r"]) == []
    assert cluster.wire.groups("retire") == RETIRED
    assert cluster.wire.groups("forget") == RETIRED


@pytest.mark.req("CO1")
@on_virtual_clock
async def test_restore_is_at_once_and_its_resume_goes_up_the_ranks(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r")
    await checkpoint(cluster, tmp_path / "c", "c", "r")
    cluster.restart()
    cluster.wire.log.clear()
    async with cluster.coordination.restored(str(tmp_path / "c")):
        assert set(cluster.phases().values()) == {"restored"}
    assert cluster.wire.groups("restore") == EVERYWHERE
    assert cluster.wire.groups("resume") == CALLERS_FIRST[::-1]
    assert cluster.all_run()


@pytest.mark.req("CO1", "CO12")
@on_virtual_clock
async def test_another_kind_names_its_ranks(tmp_path: Path) -> None:
    cluster = Cluster(
        {"judge": "judge", "tools": "resources", "environment": "environment", "queue": "queue"},
        ranks={"judge": (2, 5), "queue": (-1, -1)},
    )
    async with cluster.coordination.prepared("c", str(tmp_path)):
        pass
    await cluster.coordination.retire(ids("r"))
    assert cluster.wire.groups("prepare") == [{"queue"}, {"environment"}, {"judge"}, {"tools"}]
    assert cluster.wire.groups("resume") == [{"tools"}, {"judge"}, {"environment"}, {"queue"}]
    assert cluster.wire.groups("retire") == [{"queue"}, {"environment"}, {"tools"}, {"judge"}]


async def _nowhere(call: Call) -> dict[str, Any]:
    raise AssertionError("no server is called here")


@pytest.mark.req("CO12")
@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/../b",
        ".a",
        "-a",
        "a b",
        "é",
        "a\n",
        "a" * 129,
        "a\\b",
        "a/.b",
    ],
)
def test_a_participant_has_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        Server(name, "agent", _nowhere)


@pytest.mark.req("CO12")
@pytest.mark.parametrize("name", ["a", "0", "gym/shard-0/replica_1", "A.b-c_d", "a" * 128])
def test_a_name_may_be_a_path_of_names(name: str) -> None:
    assert Server(name, "agent", _nowhere).name == name


@pytest.mark.req("CO12")
@pytest.mark.parametrize("names", [("a", "a"), ("agent", "Agent"), ("x/Y", "X/y")])
def test_names_are_unique_ignoring_case(names: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="unique"):
        Coordination(Server(name, "agent", _nowhere) for name in names)


@pytest.mark.req("CO12")
@pytest.mark.parametrize("ranks", [{}, {"rank": 1}, {"retire_rank": 1}])
def test_a_kind_without_a_preset_needs_both_ranks(ranks: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="judge"):
        Server("a", "judge", _nowhere, **ranks)
    assert Server("a", "judge", _nowhere, rank=0, retire_rank=3).prepare_rank == 0
    # A given rank replaces that of the kind.
    assert Server("a", "agent", _nowhere, rank=0).prepare_rank == 0


@pytest.mark.req("CO6")
@on_virtual_clock
async def test_a_fan_out_sends_one_encoding_to_all(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r", "s-a2")
    await checkpoint(cluster, tmp_path / "c", "c", "s-a2", "r")
    await cluster.coordination.retire(ids("r"))
    await cluster.coordination.forget(["r"])
    cluster.restart()
    async with cluster.coordination.restored(str(tmp_path / "c")):
        pass
    for verb in ("commit", "restore"):
        # The same object: it was encoded once.
        assert len({id(body) for body in cluster.wire.bodies(verb)}) == 1
    for verb in ("retire", "forget"):
        assert len(set(cluster.wire.bodies(verb))) == 1
    assert json.loads(cluster.wire.bodies("commit")[0])["episodes"] == ["r", "s-a2"]


@pytest.mark.req("RS2")
@on_virtual_clock
async def test_a_later_rank_is_told_the_restarts_of_the_ranks_before_it(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.nodes["policy"].busy("p-a1", restart="no hooks")
    await cluster.nodes["agent-b"].busy("b", restart="no hooks")
    # The last rank is in calls of both, and waits for neither.
    await cluster.nodes["tools"].busy("p-a1")
    await cluster.nodes["tools"].busy("b")
    async with cluster.coordination.prepared("c", str(tmp_path), deadline=5) as cut:
        assert cut.restarts == set(ids("p-a1", "b"))
    told = {each.name: each.body["restarts"] for each in cluster.wire.sent if each.verb == "prepare"}
    assert told == {
        "environment": [],
        "policy": [],
        "agent-a": ["p-a1"],
        "agent-b": ["p-a1"],
        "tools": ["b", "p-a1"],
    }


@pytest.mark.req("CP18")
@on_virtual_clock
async def test_after_its_first_reply_only_the_same_process_may_answer(tmp_path: Path) -> None:
    cluster = Cluster()
    own = {name: node.plane.instance_id for name, node in cluster.nodes.items()}
    await checkpoint(cluster, tmp_path / "c")
    for each in cluster.wire.sent:
        assert each.call.instance == (None if each.verb == "prepare" else own[each.name])
    cluster.restart("policy")
    found = await cluster.coordination.status()
    assert found.failures["policy"].code == "wrong_instance"
    assert found.replies.keys() == cluster.nodes.keys() - {"policy"}


@pytest.mark.req("CP18")
@on_virtual_clock
async def test_a_refusal_is_a_first_reply_too(tmp_path: Path) -> None:
    """Otherwise a server that was restarted between two prepares replies ``prepared`` with no episodes."""
    cluster = Cluster({"agent": "agent"})
    own = cluster.nodes["agent"].plane.instance_id
    cluster.wire.fail("agent", "prepare", control_error("deadline_exceeded", instance_id=own))
    with pytest.raises(CoordinationError):
        await cluster.coordination.prepare("c", str(tmp_path))
    cluster.wire.heal()
    cluster.restart()
    with pytest.raises(CoordinationError) as caught:
        await cluster.coordination.prepare("c", str(tmp_path))
    assert caught.value.has("wrong_instance")
    assert cluster.all_run()


@pytest.mark.req("CO2", "CO6")
@on_virtual_clock
async def test_the_deadline_of_a_call_is_one_for_all_servers(tmp_path: Path) -> None:
    cluster = Cluster()

    async def slowly(call: Call) -> dict[str, Any]:
        await asyncio.sleep(12)
        return await cluster.nodes["policy"].plane.call(call)

    cluster.wire.faults["policy", "prepare"] = slowly
    async with cluster.coordination.prepared("c", str(tmp_path), deadline=30) as cut:
        await cut.commit([], deadline=20)
    given = {(each.verb, each.name): each.call.deadline_seconds for each in cluster.wire.sent}
    assert given["prepare", "environment"] == 30
    assert given["prepare", "agent-a"] == given["prepare", "tools"] == 18
    assert {given["commit", name] for name in cluster.nodes} == {20}


@pytest.mark.req("CO10", "CP6")
@on_virtual_clock
async def test_a_deadline_of_zero_is_not_the_default(tmp_path: Path) -> None:
    cluster = Cluster({"tools": "resources", "agent": "agent"})
    await cluster.nodes["agent"].busy("b")
    loop = asyncio.get_running_loop()
    with pytest.raises(NotPrepared):
        await cluster.coordination.prepare("c", str(tmp_path), deadline=0)
    with pytest.raises(CoordinationError) as caught:
        await cluster.coordination.resume("c", deadline=0)
    assert caught.value.has("deadline_exceeded")
    assert loop.time() == 0
    assert {each.call.deadline_seconds for each in cluster.wire.sent} == {0}
    await asyncio.sleep(1)
    # The work that had begun has continued.
    assert cluster.all_run()
    await cluster.coordination.retire(ids("r"), deadline=0)
    assert all(node.marks == {"r": 0} for node in cluster.nodes.values())

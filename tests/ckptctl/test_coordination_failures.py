"""Servers that die, hang or send invalid replies, and cancelled controllers: the other servers run again."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptctl import Call, ControlError, CoordinationError
from ckptctl.testing import Method, on_virtual_clock
from tests.ckptctl.servers import Cluster, control_error
from tests.ckptctl.support import ids
from tests.ckptctl.test_coordination_restore import save

RETIRED = [{"environment"}, {"agent-a", "agent-b"}, {"policy", "tools"}]


@pytest.mark.req("CO4", "RT8")
@on_virtual_clock
async def test_a_failed_restore_retires_what_was_installed_and_resumes_every_server(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c")
    cluster = Cluster()
    cluster.nodes["agent-b"].faults.fail("install", ValueError("r-a100 has no messages"))
    with pytest.raises(CoordinationError) as caught:
        async with cluster.coordination.restored(directory):
            raise AssertionError("it is not restored")
    error = caught.value
    assert (error.verb, list(error.failures)) == ("restore", ["agent-b"])
    assert error.has("invalid_checkpoint_state")
    assert "no messages" in str(error)
    assert not hasattr(error, "__notes__")
    assert cluster.wire.groups("retire") == RETIRED
    assert cluster.wire.groups("resume")[0] == {"tools"}
    verbs = [verb for verb, _, _ in cluster.wire.log]
    assert verbs.index("retire") < verbs.index("resume")
    assert cluster.all_run()
    for node in cluster.nodes.values():
        assert node.held() == []
        assert node.marks == {"r": 100, "s": 100}


@pytest.mark.req("CO4")
@on_virtual_clock
async def test_errors_of_the_clean_up_do_not_replace_the_error_of_the_restore(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c")
    cluster = Cluster()
    cluster.nodes["agent-b"].faults.fail("install", ValueError("bad record"))
    cluster.wire.fail("policy", "retire", ConnectionResetError("gone"))
    cluster.wire.fail("tools", "resume", control_error("deadline_exceeded"))
    with pytest.raises(CoordinationError, match="bad record") as caught:
        async with cluster.coordination.restored(directory):
            raise AssertionError("it is not restored")
    assert list(caught.value.failures) == ["agent-b"]
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        retired, resumed = error.__notes__
        assert "retire failed" in retired
        assert "policy: no_reply: ConnectionResetError: gone" in retired
        assert "resume failed" in resumed
        assert "tools: deadline_exceeded" in resumed
    # The servers that it could reach are resumed and freed.
    cluster.wire.heal()
    for name in ("environment", "agent-a", "agent-b", "policy"):
        assert cluster.nodes[name].runs()
    for name in ("environment", "agent-a", "agent-b", "tools"):
        assert cluster.nodes[name].held() == []


@pytest.mark.req("CO4")
@on_virtual_clock
async def test_an_error_inside_the_block_of_a_restore_is_a_failed_restore(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c")
    cluster = Cluster()
    with pytest.raises(KeyError, match="ledger"):
        async with cluster.coordination.restored(directory):
            raise KeyError("ledger")
    assert cluster.all_run()
    assert all(node.held() == [] for node in cluster.nodes.values())


@pytest.mark.req("CO4", "RE5")
@on_virtual_clock
async def test_a_restore_that_is_cancelled_frees_what_is_installed_after_it(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c")
    cluster = Cluster()
    # Still restoring when the controller gives up: a retire is refused until it is resumed.
    cluster.nodes["tools"].faults.delay("install", 5)

    async def restore() -> None:
        async with cluster.coordination.restored(directory):
            raise AssertionError("it is not restored")

    task = asyncio.create_task(restore())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert not hasattr(caught.value, "__notes__")
    assert cluster.all_run()
    assert all(node.held() == [] for node in cluster.nodes.values())
    assert cluster.nodes["tools"].faults.calls.count("install") == 1


@pytest.mark.req("CO4", "CO13")
@on_virtual_clock
async def test_a_restore_may_be_tried_again_in_the_servers_of_a_failed_one(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c")
    cluster = Cluster()
    cluster.nodes["agent-b"].faults.fail("install", ValueError("scripted"))
    with pytest.raises(CoordinationError):
        async with cluster.coordination.restored(directory):
            raise AssertionError("it is not restored")
    # One of them was restarted meanwhile: the controller accepts the new process.
    cluster.restart("policy")
    async with cluster.coordination.restored(directory) as back:
        assert set(back.episodes.values()) == set(ids("r-a200", "s-a200"))
    assert cluster.all_run()
    assert all(node.held() == ["r-a200", "s-a200"] for node in cluster.nodes.values())


@pytest.mark.req("CO10")
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("moment", ["prepare", "commit", "body", "resume"])
@on_virtual_clock
async def test_a_cancelled_controller_still_resumes_every_server(
    moment: str, times: int, tmp_path: Path
) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r")
    methods: dict[str, Method] = {"prepare": "close", "commit": "export", "resume": "reopen"}
    hold = cluster.nodes["agent-a"].faults.hold(methods[moment]) if moment in methods else None
    reached = asyncio.Event()

    async def checkpoint() -> None:
        async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
            await cut.commit(["r"])
            if moment == "body":
                reached.set()
                await asyncio.sleep(1000)

    task = asyncio.create_task(checkpoint())
    await (hold.reached() if hold is not None else reached.wait())
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    if hold is not None:
        hold.release()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cluster.all_run()
    assert cluster.wire.groups("resume") == [{"tools"}, {"agent-a", "agent-b"}, {"policy"}, {"environment"}]


@pytest.mark.req("CO10")
@on_virtual_clock
async def test_a_timeout_around_the_block_is_a_timeout(tmp_path: Path) -> None:
    cluster = Cluster()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5), cluster.coordination.prepared("c", str(tmp_path)):
            await asyncio.sleep(1000)
    assert cluster.all_run()


@pytest.mark.req("CO10")
@pytest.mark.parametrize("error", [RuntimeError("mine"), KeyboardInterrupt(), SystemExit(1)])
@on_virtual_clock
async def test_whatever_raises_inside_every_server_is_resumed(error: BaseException, tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.wire.fail("policy", "resume", control_error("no_reply"))
    found: BaseException | None = None
    try:
        async with cluster.coordination.prepared("c", str(tmp_path)):
            raise error
    except BaseException as raised:
        found = raised
    assert found is error
    (note,) = error.__notes__
    assert "policy: no_reply" in note
    assert all(node.runs() for name, node in cluster.nodes.items() if name != "policy")


@pytest.mark.req("CO10")
@on_virtual_clock
async def test_a_failed_resume_after_success_is_raised_once_all_are_called(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.wire.fail("tools", "resume", control_error("unreachable"))
    with pytest.raises(CoordinationError) as caught:
        async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
            committed = await cut.commit([])
    assert (caught.value.verb, list(caught.value.failures)) == ("resume", ["tools"])
    assert caught.value.retryable
    committed.publish(sequence=1)
    cluster.wire.heal()
    await cluster.coordination.resume("c")
    assert cluster.all_run()


@pytest.mark.req("CP18")
@on_virtual_clock
async def test_a_server_that_was_replaced_cannot_commit_and_counts_as_resumed(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r")
    with pytest.raises(CoordinationError) as caught:
        async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
            cluster.restart("agent-a")
            await cut.commit(["r"])
    assert list(caught.value.failures) == ["agent-a"]
    assert caught.value.has("wrong_instance")
    assert not hasattr(caught.value, "__notes__")
    assert "agent-a" in cluster.wire.named("resume")
    assert cluster.all_run()


@pytest.mark.req("CO10")
@pytest.mark.parametrize("verb", ["prepare", "commit", "resume"])
@pytest.mark.parametrize("name", ["environment", "agent-a", "tools"])
@on_virtual_clock
async def test_a_server_that_never_replies_delays_no_other(name: str, verb: str, tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r")
    cluster.wire.hang(
        name, *{"prepare": ("prepare", "commit", "resume"), "commit": ("commit", "resume")}.get(verb, (verb,))
    )
    loop = asyncio.get_running_loop()
    with pytest.raises(CoordinationError) as caught:
        async with cluster.coordination.prepared("c", str(tmp_path), deadline=30) as cut:
            await cut.commit(["r"], deadline=30)
    assert caught.value.verb == verb
    assert list(caught.value.failures) == [name]
    assert caught.value.has("no_reply")
    # One deadline for the call, one for the resume, and a little for each rank after it.
    assert loop.time() < 30 + 10 + 60 + 10 + 3 * 15
    assert all(node.runs() for other, node in cluster.nodes.items() if other != name)
    # Those after it were not called with a deadline of 0.
    given = [each.call.deadline_seconds for each in cluster.wire.sent if each.verb == "resume"]
    assert len(given) == 5
    assert all(seconds is not None and seconds >= 5 for seconds in given)


@pytest.mark.req("CO10")
@on_virtual_clock
async def test_every_late_server_is_named_and_the_replies_of_the_others_are_kept(tmp_path: Path) -> None:
    names = [f"agent-{number}" for number in range(32)]
    cluster = Cluster(dict.fromkeys(names, "agent"))
    cluster.wire.hang("agent-7", "prepare")
    cluster.wire.fail("agent-9", "prepare", ConnectionResetError("died"))
    with pytest.raises(CoordinationError) as caught:
        async with cluster.coordination.prepared("c", str(tmp_path), deadline=5):
            raise AssertionError("it is not prepared")
    assert list(caught.value.failures) == ["agent-9", "agent-7"]
    assert caught.value.first is caught.value.failures["agent-9"]
    assert all(name in str(caught.value) for name in ("agent-7", "agent-9"))
    assert "agent-8" not in str(caught.value)
    cluster.wire.heal()
    assert all(node.runs() for node in cluster.nodes.values())


Reply = dict[str, Any]
GARBAGE: list[Callable[[Reply], Any]] = [
    lambda reply: None,
    lambda reply: [],
    lambda reply: "prepared",
    lambda reply: {},
    lambda reply: {"instance_id": reply["instance_id"]},
    lambda reply: {**reply, "instance_id": None},
    lambda reply: {**reply, "instance_id": ""},
    lambda reply: {**reply, "phase": "committed", "manifest": {"sha256": "x"}, "restored": "r"},
    lambda reply: {**reply, "restarts": None, "episode_ids": None, "restored": None},
    lambda reply: {**reply, "restarts": ["-a1"], "episode_ids": ["-a1"], "restored": ["-a1"]},
    lambda reply: {**reply, "episodes": {"r": 1}, "references": ["r"], "source_checkpoint_id": 5},
]


@pytest.mark.req("CO10", "CP12")
@pytest.mark.parametrize("change", GARBAGE)
@pytest.mark.parametrize("verb", ["prepare", "commit", "restore"])
@on_virtual_clock
async def test_an_invalid_reply_is_the_failure_of_the_server_that_sent_it(
    verb: str, change: Callable[[Reply], Any], tmp_path: Path
) -> None:
    directory = await save(tmp_path / "c")
    cluster = Cluster()

    async def garbage(call: Call) -> Any:
        return change(await cluster.nodes["policy"].plane.call(call))

    async def checkpoint() -> None:
        async with cluster.coordination.prepared("d", str(tmp_path / "d")) as cut:
            await cut.commit([])

    async def restore() -> None:
        async with cluster.coordination.restored(directory):
            raise AssertionError("it is not restored")

    cluster.wire.faults["policy", verb] = garbage
    work: Coroutine[Any, Any, None] = restore() if verb == "restore" else checkpoint()
    with pytest.raises(CoordinationError) as caught:
        await work
    assert (caught.value.verb, list(caught.value.failures)) == (verb, ["policy"])
    assert caught.value.has("bad_reply")
    assert cluster.all_run()


@on_virtual_clock
async def test_whatever_a_transport_raises_is_the_failure_of_its_server(tmp_path: Path) -> None:
    for error, code, retryable in [
        (ConnectionResetError("gone"), "no_reply", True),
        (TimeoutError(), "no_reply", True),
        (OSError("no route"), "no_reply", True),
        (asyncio.CancelledError(), "no_reply", True),
        (RuntimeError("actor died"), "internal_error", False),
        (ckptfmt.StoreError("disk"), "store_unusable", True),
        (control_error("a_code_of_later"), "a_code_of_later", False),
    ]:
        cluster = Cluster()
        cluster.wire.fail("policy", "prepare", error)
        with pytest.raises(CoordinationError) as caught:
            async with cluster.coordination.prepared("c", str(tmp_path)):
                raise AssertionError("it is not prepared")
        found = caught.value.failures["policy"]
        assert isinstance(found, ControlError)
        assert (found.code, found.retryable) == (code, retryable)
        pickle.loads(pickle.dumps(caught.value))
        assert cluster.all_run()


@pytest.mark.req("CO1")
@on_virtual_clock
async def test_a_retire_calls_the_ranks_after_a_failure() -> None:
    cluster = Cluster()
    cluster.wire.hang("environment", "retire")
    with pytest.raises(CoordinationError) as caught:
        await cluster.coordination.retire(ids("r-a1"), deadline=5)
    assert list(caught.value.failures) == ["environment"]
    assert cluster.wire.groups("retire")[1:] == RETIRED[1:]
    for name, node in cluster.nodes.items():
        assert node.marks == ({} if name == "environment" else {"r": 1})

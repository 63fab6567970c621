"""Clients that wait, disconnect and call again: requests at closed admission, and control calls."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ckptctl._protocol import PREFIX
from ckptfmt import Record, Writer
from tests.ckptctl.servers import Answer, Host, Node, on_a_loop, send, serving
from tests.polling import until


async def run(host: Host, key: str) -> Answer:
    return await send(host, "run", method="POST", path=f"/ng-rollout/{key}/run", token=None)


@asynccontextmanager
async def cut_off(host: Host, request: bytes) -> AsyncIterator[None]:
    """A client that has sent this request at the start of the block, and disconnects at its end."""
    _, writer = await asyncio.open_connection("127.0.0.1", host.port)
    writer.write(request)
    await writer.drain()
    yield
    writer.transport.abort()


def post(path: str, body: dict[str, Any] | None = None) -> bytes:
    data = json.dumps(body or {}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


@pytest.mark.req("CP13")
@on_a_loop
async def test_a_request_at_closed_admission_waits_and_one_whose_client_has_gone_never_runs(
    tmp_path: Path,
) -> None:
    node = Node()
    opening = {"checkpoint_id": "c", "directory": str(tmp_path)}
    async with serving(node) as host:
        await send(host, "prepare", opening)
        async with cut_off(host, post("/ng-rollout/gone/run")):
            await until(lambda: len(host.waiting) == 1)
            waits = asyncio.create_task(run(host, "waits"))
            await until(lambda: len(host.waiting) == 2)
            # It is not an execution: it blocks nothing and is in no report.
            again = (await send(host, "prepare", opening)).value
            assert (again["phase"], again["episodes"], again["blocker_count"]) == ("prepared", [], 0)
        await until(lambda: host.waiting[0].transport is None)
        assert (await send(host, "commit", {**opening, "episodes": ["gone", "waits"]})).status == 200
        assert host.ran == []
        assert not waits.done()
        await send(host, "resume", {"checkpoint_id": "c"})
        assert (await waits).value == {"ran": "waits"}
        assert host.ran == ["waits"]


@pytest.mark.req("CP13", "RT2")
@on_a_loop
async def test_marks_are_checked_when_a_waiting_request_is_admitted(tmp_path: Path) -> None:
    node = Node()
    body = {"checkpoint_id": "r", "directory": str(tmp_path / "missing"), "episodes": ["r-a100"]}
    async with serving(node) as host:
        await send(host, "prepare", {"checkpoint_id": "c", "directory": str(tmp_path)})
        late = asyncio.create_task(run(host, "r-a99"))
        fresh = asyncio.create_task(run(host, "r-a101"))
        await until(lambda: len(host.waiting) == 2)
        hold = node.faults.hold("reopen")
        resume = asyncio.create_task(send(host, "resume", {"checkpoint_id": "c"}))
        await hold.reached()
        node.plane.marks.retire("r", 100)
        hold.release()
        assert (await resume).status == 200
        assert (await late).code == "stale_attempt"
        assert (await fresh).status == 200
        assert host.ran == ["r-a101"]
        assert (await send(host, "restore", body)).code == "not_fresh"


@pytest.mark.req("ID10")
@pytest.mark.parametrize(
    "key",
    ["r-a1-a2", "-a1", "r-a1%0A", "%20r", "r%20", "r%2Fs", "%C3%A9", "%FF", ".r", "r-a1234567890", "a" * 257],
)
@on_a_loop
async def test_a_path_that_names_no_episode_is_a_client_error(key: str) -> None:
    async with serving(Node()) as host:
        answer = await run(host, key)
        assert (answer.status, answer.code) == (400, "invalid_request")
        assert host.ran == []
        assert (await run(host, "r-a0")).value == {"ran": "r-a0"}


@pytest.mark.req("CM4", "CP16")
@pytest.mark.parametrize("cancels", [False, True], ids=["goes-on", "host-cancels-handlers"])
@on_a_loop
async def test_a_commit_continues_without_its_client_and_a_retry_gets_its_result(
    cancels: bool, tmp_path: Path
) -> None:
    node = Node()
    opening = {"checkpoint_id": "c", "directory": str(tmp_path)}
    async with serving(node, handler_cancellation=cancels) as host:
        await node.add_inactive("r")
        hold = node.faults.hold("export")
        await send(host, "prepare", opening)
        async with cut_off(host, post(PREFIX + "commit", {**opening, "episodes": ["r"]})):
            await hold.reached()
        hold.release()
        answer = await send(host, "commit", {**opening, "episodes": ["r"]})
        assert (answer.status, answer.value["episode_ids"]) == (200, ["r"])
        assert node.faults.calls.count("export") == 1
        assert node.phase == "committed"


@pytest.mark.req("CP16", "CM7")
@pytest.mark.parametrize("cancels", [False, True], ids=["goes-on", "host-cancels-handlers"])
@on_a_loop
async def test_prepare_and_resume_continue_without_their_clients(cancels: bool, tmp_path: Path) -> None:
    node = Node()
    opening = {"checkpoint_id": "c", "directory": str(tmp_path)}
    async with serving(node, handler_cancellation=cancels) as host:
        hold = node.faults.hold("close")
        async with cut_off(host, post(PREFIX + "prepare", opening)):
            await hold.reached()
        hold.release()
        assert (await send(host, "prepare", opening)).value["phase"] == "prepared"
        hold = node.faults.hold("reopen")
        async with cut_off(host, post(PREFIX + "resume", {"checkpoint_id": "c"})):
            await hold.reached()
        hold.release()
        assert (await send(host, "resume", {"checkpoint_id": "c"})).value["phase"] == "idle"
        assert node.admits
        assert (node.faults.calls.count("close"), node.faults.calls.count("reopen")) == (1, 1)


@pytest.mark.req("CP10")
@on_a_loop
async def test_status_answers_while_a_commit_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing, go_on = threading.Event(), threading.Event()
    write = Writer.write

    def slow(writer: Writer, record: Record) -> None:
        writing.set()
        assert go_on.wait(30)
        write(writer, record)

    monkeypatch.setattr(Writer, "write", slow)
    node = Node()
    opening = {"checkpoint_id": "c", "directory": str(tmp_path)}
    async with serving(node) as host:
        await node.add_inactive("r")
        await send(host, "prepare", opening)
        commit = asyncio.create_task(send(host, "commit", {**opening, "episodes": ["r"]}))
        await until(writing.is_set)
        for _ in range(10):
            value = (await send(host, "status")).value
            assert (value["phase"], value["checkpoint_id"], value["episodes"]) == ("prepared", "c", 1)
        assert not commit.done()
        go_on.set()
        assert (await commit).status == 200
        assert (await send(host, "status")).value["phase"] == "committed"


@pytest.mark.req("CP10")
@on_a_loop
async def test_status_has_every_documented_member_in_every_phase(tmp_path: Path) -> None:
    node = Node()
    opening = {"checkpoint_id": "c", "directory": str(tmp_path)}
    async with serving(node) as host:
        await node.add_inactive("r")
        await node.busy("s", restart="no hooks")
        await node.busy("b")
        await send(host, "retire", {"episodes": ["kept", "kept-a1"]})
        for verb, body, phase, blockers in [
            ("renew", {"checkpoint_id": "c"}, "idle", 1),
            ("prepare", opening, "preparing", 1),
            ("prepare", opening, "prepared", 0),
            ("commit", {**opening, "episodes": ["r"]}, "committed", 0),
            ("resume", {"checkpoint_id": "c"}, "idle", 0),
        ]:
            await send(host, verb, body, headers=[b"x-ng-deadline-seconds: " + (b"0" if blockers else b"9")])
            value = (await send(host, "status")).value
            assert value.pop("instance_id") == node.plane.instance_id
            left = value.pop("lease_seconds_left")
            assert left is None if phase == "idle" else 590 < left <= 600
            assert value == {
                "participant": {"name": "agent-0", "kind": "agent"},
                "phase": phase,
                "checkpoint_id": None if phase == "idle" else "c",
                "episodes": 2 + blockers,
                "blockers": blockers,
                "restarts": 1,
                "unattributed": 0,
                "retired_rollouts": 1,
                "reopen_pending": False,
                "last_error": None,
            }
            if phase == "preparing":
                await node.end("b")


@pytest.mark.req("CO6", "RT10")
@on_a_loop
async def test_retire_and_forget_count_the_distinct_ones_also_on_a_repeat() -> None:
    async with serving(Node()) as host:
        for _ in range(2):
            answer = await send(host, "retire", {"episodes": ["r", "r", "r-a1", "s"]})
            assert answer.value["retired_count"] == 3
        for _ in range(2):
            answer = await send(host, "forget", {"rollouts": ["r", "r", "s", "unknown"]})
            assert (answer.value["forgotten_count"], answer.value["kept"]) == (3, [])


@pytest.mark.req("RT2")
@on_a_loop
async def test_a_retire_refuses_a_request_whose_body_is_still_coming() -> None:
    async with serving(Node()) as host:
        reader, writer = await asyncio.open_connection("127.0.0.1", host.port)
        request = post("/ng-rollout/late/run", {"some": "body"})
        writer.write(request[:-1])
        await until(lambda: len(host.waiting) == 1)
        assert (await send(host, "retire", {"episodes": ["late"]})).status == 200
        writer.write(request[-1:])
        status = await reader.readline()
        assert b" 409 " in status
        assert host.ran == []
        writer.transport.abort()

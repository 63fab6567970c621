"""Errors over HTTP: each code with its status, the order of the checks, and calls to another process."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from ckptctl import Blocker, ControlError, ControlPlane
from ckptctl._errors import CODES
from ckptctl._protocol import REQUESTS
from ckptfmt import EpisodeId
from tests.ckptctl.servers import Answer, Host, Node, on_a_loop, send, serving
from tests.ckptctl.support import HookedDisk
from tests.polling import until

OTHER_PROCESS = b"x-ng-instance: 0123456789abcdef"


class Client:
    """Calls of one controller to one host, about checkpoint ``c`` in one directory."""

    def __init__(self, host: Host, directory: Path | str) -> None:
        self.host = host
        self.directory = str(directory)

    async def __call__(self, verb: str, *, within: float | None = None, **fields: Any) -> Answer:
        headers = [] if within is None else [f"x-ng-deadline-seconds: {within}".encode()]
        return await send(self.host, verb, fields, headers=headers)

    async def prepare(self, name: str = "c", **fields: Any) -> Answer:
        return await self("prepare", checkpoint_id=name, directory=self.directory, **fields)

    async def commit(self, *episodes: str, name: str = "c", within: float | None = None) -> Answer:
        scope = list(episodes)
        return await self(
            "commit", within=within, checkpoint_id=name, directory=self.directory, episodes=scope
        )

    async def restore(self, *episodes: str, name: str = "r") -> Answer:
        scope = list(episodes)
        return await self("restore", checkpoint_id=name, directory=self.directory, episodes=scope)


def check(answer: Answer, code: str) -> dict[str, Any]:
    """Check that it is this error, with its status and flag, and return the details."""
    assert answer.code == code, answer.body
    assert (answer.status, answer.value["error"]["retryable"]) == tuple(CODES[code])
    assert answer.headers["content-type"].startswith("application/json")
    details: dict[str, Any] = answer.value["error"]["details"]
    return details


@pytest.mark.req("CP12", "CP3", "RS3")
@on_a_loop
async def test_the_conflicts_of_a_checkpoint(tmp_path: Path) -> None:
    node = Node()
    async with serving(node) as host:
        call = Client(host, tmp_path)
        await node.add_inactive("r")
        await node.busy("b")
        check(await call("renew", checkpoint_id="c"), "wrong_phase")
        assert (await call.prepare(within=0)).value["phase"] == "preparing"
        check(await call.commit("r"), "not_ready")
        assert check(await call.prepare("other"), "checkpoint_conflict") == {"checkpoint_id": "c"}
        check(await call("retire", episodes=["r"]), "wrong_phase")
        await node.end("b")
        assert (await call.prepare()).value["phase"] == "prepared"
        check(await call.commit("r", name="other"), "checkpoint_conflict")
        assert (await call.commit("r")).status == 200
        check(await call.commit(), "checkpoint_conflict")
        await call("resume", checkpoint_id="c")
        check(await call.prepare(), "checkpoint_conflict")


@pytest.mark.req("CP12", "RS3")
@on_a_loop
async def test_a_restart_in_the_scope(tmp_path: Path) -> None:
    node = Node()
    async with serving(node) as host:
        call = Client(host, tmp_path)
        await node.add_inactive("r")
        await node.busy("s", restart="no hooks")
        assert (await call.prepare(restarts=["t"])).value["restarts"] == ["s"]
        for key in ("s", "t"):
            details = check(await call.commit("r", key), "restart_in_scope")
            assert details == {"episodes": [key]}
        # Nothing was remembered: the right scope is not another one.
        assert (await call.commit("r")).value["episode_ids"] == ["r"]


@pytest.mark.req("CP12", "CM5")
@on_a_loop
async def test_a_failed_export(tmp_path: Path) -> None:
    node = Node()
    async with serving(node) as host:
        call = Client(host, tmp_path)
        node.faults.fail("export", RuntimeError("scripted"))
        await call.prepare()
        check(await call.commit(), "export_failed")
        check(await call.commit(), "export_failed")


@pytest.mark.req("CP12", "CP4", "RT2")
@on_a_loop
async def test_the_refusals_of_executions(tmp_path: Path) -> None:
    async with serving(Node()) as host:
        call = Client(host, tmp_path)
        await call("retire", episodes=["r-a2"])
        stale = await send(host, "run", method="POST", path="/ng-rollout/r-a2/run", token=None)
        assert check(stale, "stale_attempt") == {"episode": "r-a2"}
        assert (await send(host, "run", method="POST", path="/ng-rollout/r-a3/run", token=None)).status == 200
        check(await call.restore(), "not_fresh")
        assert host.ran == ["r-a3"]


@pytest.mark.req("CP12", "CM11")
@on_a_loop
async def test_a_directory_that_cannot_hold_state(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory in (tmp_path / "missing", tmp_path / "file", "s3://bucket/run", f"/{'x' * 300}"):
        node = Node()
        async with serving(node) as host:
            check(await Client(host, directory).prepare(), "invalid_checkpoint_state")
            check(await Client(host, directory).restore(), "invalid_checkpoint_state")
            await until(node.runs)


@pytest.mark.req("CP12", "CM11")
@on_a_loop
async def test_a_full_disk(tmp_path: Path) -> None:
    disk = HookedDisk()
    disk.full("write")
    node = Node()
    async with serving(node) as host:
        call = Client(host, tmp_path)
        await node.add_inactive("r")
        await call.prepare()
        with disk.in_use():
            check(await call.commit("r"), "store_unusable")
            assert (await call.commit("r")).status == 200


@pytest.mark.req("CP12", "CP9")
@on_a_loop
async def test_a_deadline_that_passes(tmp_path: Path) -> None:
    node = Node()
    async with serving(node) as host:
        call = Client(host, tmp_path)
        hold = node.faults.hold("export")
        await call.prepare()
        check(await call.commit(within=0.01), "deadline_exceeded")
        hold.release()
        assert (await call.commit()).status == 200


@pytest.mark.req("CP12")
@pytest.mark.parametrize("code", CODES)
@on_a_loop
async def test_every_code_is_sent_with_its_status_and_details(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise ControlError(code, f"what: {os.fsdecode(b'/' + bytes([255]))}", details={"episodes": ["r"]})

    monkeypatch.setattr(ControlPlane, "handle", fails)
    node = Node()
    async with serving(node) as host:
        answer = await send(host, "renew", {"checkpoint_id": "c"})
        assert check(answer, code) == {"episodes": ["r"]}
        assert answer.value["instance_id"] == node.plane.instance_id


@pytest.mark.req("CP12", "CP18")
@on_a_loop
async def test_what_a_participant_reports_that_is_not_json_is_an_error_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node()
    async with serving(node) as host:
        call = Client(host, tmp_path)
        node.faults.fail("close", ControlError("not_ready", "scripted", details={"held": {1, 2}}))
        assert check(await call.prepare(), "not_ready") == {}
        await until(node.runs)
        blocker = Blocker(EpisodeId("r"), "odd \ud800 reason", 1.0)
        monkeypatch.setattr(node.episodes, "ready", lambda: False)
        monkeypatch.setattr(node.episodes, "blockers", lambda limit: ([blocker], 1))
        answer = await call.prepare("d", within=0)
        check(answer, "internal_error")
        assert answer.value["instance_id"] == node.plane.instance_id
        await call("resume", checkpoint_id="d")


@pytest.mark.req("CP12")
@on_a_loop
async def test_an_unknown_route_and_a_wrong_method() -> None:
    node = Node()
    async with serving(node) as host:
        before = host.state()
        for unknown in (
            "",
            "nonsense",
            "prepare/",
            "prepare/x",
            "Prepare",
            "%00",
            "%ff",
            "status%20",
            "%C3%A9",
        ):
            path = f"/ng-control/v1/checkpoint/{unknown}"
            for method in ("GET", "POST"):
                answer = await send(host, unknown, {}, method=method, path=path)
                assert (answer.status, answer.code) == (404, "invalid_request"), unknown
                assert answer.value["instance_id"] == node.plane.instance_id
        for verb in ("status", *REQUESTS):
            right = "GET" if verb == "status" else "POST"
            for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - {right}:
                answer = await send(host, verb, {"checkpoint_id": "c"}, method=method)
                assert (answer.status, answer.code) == (405, "invalid_request"), (method, verb)
        assert host.state() == before


@pytest.mark.req("CP12")
@pytest.mark.parametrize("header", [b"", b"-1", b"soon", b"nan", b"1e3", b"\xff", b"9" * 50])
@on_a_loop
async def test_a_bad_deadline_header(header: bytes) -> None:
    async with serving(Node()) as host:
        before = host.state()
        for verb in ("status", *REQUESTS):
            body = {"checkpoint_id": "c"}
            answer = await send(host, verb, body, headers=[b"x-ng-deadline-seconds: " + header])
            assert (answer.status, answer.code) == (400, "invalid_request")
        assert host.state() == before


@pytest.mark.req("CP12")
@on_a_loop
async def test_a_deadline_is_clamped_to_the_maximum_and_has_a_default(tmp_path: Path) -> None:
    node = Node(default_deadline_seconds=0.02, maximum_deadline_seconds=0.03)
    async with serving(node) as host:
        call = Client(host, tmp_path)
        hold = node.faults.hold("export")
        await call.prepare()
        began = asyncio.get_running_loop().time()
        check(await call.commit(within=3600.0), "deadline_exceeded")
        check(await call.commit(), "deadline_exceeded")
        assert asyncio.get_running_loop().time() - began < 30
        hold.release()


@pytest.mark.req("CP17")
@on_a_loop
async def test_the_first_check_that_fails_decides_the_reply(tmp_path: Path) -> None:
    """Token, method and path, instance, body, checkpoint id, phase, readiness and scope, in this order."""
    node = Node()
    async with serving(node) as host:
        call = Client(host, tmp_path)
        await node.busy("b", restart="no hooks")
        await call.prepare()
        own = f"x-ng-instance: {node.plane.instance_id}".encode()
        packed = b"Content-Encoding: gzip"
        bad_deadline = b"x-ng-deadline-seconds: soon"
        wrong_all: dict[str, Any] = {
            "token": None,
            "headers": [OTHER_PROCESS, packed, bad_deadline],
            "method": "PUT",
        }
        opened = {"directory": str(tmp_path), "episodes": ["b"]}
        before = host.state()
        for expected, verb, body, options in [
            ((401, "unauthorized"), "nonsense", b"{", wrong_all),
            ((404, "invalid_request"), "nonsense", b"{", {**wrong_all, "token": b"Bearer secret"}),
            ((405, "invalid_request"), "commit", b"{", {**wrong_all, "token": b"Bearer secret"}),
            ((409, "wrong_instance"), "commit", b"{", {"headers": [OTHER_PROCESS, packed, bad_deadline]}),
            ((409, "wrong_instance"), "commit", b" " * 2**24 + b"x", {"headers": [OTHER_PROCESS]}),
            ((400, "invalid_request"), "commit", b"{", {"headers": [own, packed]}),
            ((400, "invalid_request"), "commit", {"checkpoint_id": "d"}, {"headers": [own]}),
            ((409, "checkpoint_conflict"), "restore", {"checkpoint_id": "d", **opened}, {"headers": [own]}),
            ((409, "checkpoint_conflict"), "commit", {"checkpoint_id": "d", **opened}, {}),
            ((409, "wrong_phase"), "restore", {"checkpoint_id": "c", **opened}, {}),
            ((409, "restart_in_scope"), "commit", {"checkpoint_id": "c", **opened}, {}),
        ]:
            answer = await send(host, verb, body, **options)
            assert (answer.status, answer.code) == expected, (verb, body)
            assert host.state() == before
        # No refused scope was remembered as this checkpoint's arguments.
        assert (await call.commit()).status == 200


@pytest.mark.req("CP17")
@on_a_loop
async def test_the_id_is_checked_before_the_phase_and_the_phase_before_the_scope(tmp_path: Path) -> None:
    node = Node()
    async with serving(node) as host:
        call = Client(host, tmp_path)
        await node.busy("b")
        await node.busy("s", restart="no hooks")
        await call.prepare(within=0.0)
        check(await call.commit("s"), "not_ready")
        await call("resume", checkpoint_id="c")
        # It is idle: the ended id is named first, then the phase.
        check(await call("renew", checkpoint_id="c"), "checkpoint_conflict")
        check(await call("renew", checkpoint_id="unseen"), "wrong_phase")
        check(await call.commit("s", name="unseen"), "wrong_phase")


@pytest.mark.req("CP18")
@on_a_loop
async def test_every_reply_names_its_process_and_another_one_refuses(tmp_path: Path) -> None:
    nodes = [Node(), Node()]
    assert len({node.plane.instance_id for node in nodes}) == 2
    async with serving(nodes[0]) as host:
        for header in (
            f"x-ng-instance: {nodes[1].plane.instance_id}".encode(),
            b"x-ng-instance: ",
            b"x-ng-instance: \xff",
        ):
            before = host.state()
            for verb, body in [
                ("status", {}),
                ("prepare", {"checkpoint_id": "c", "directory": str(tmp_path)}),
                ("resume", {"checkpoint_id": "c"}),
                ("retire", {"episodes": ["r"]}),
                ("forget", {"rollouts": ["r"]}),
            ]:
                answer = await send(host, verb, body, headers=[header])
                check(answer, "wrong_instance")
                assert answer.value["instance_id"] == nodes[0].plane.instance_id
            assert host.state() == before
        own = f"x-ng-instance: {nodes[0].plane.instance_id}".encode()
        for verb, body in [
            ("status", {}),
            ("prepare", {"checkpoint_id": "c", "directory": str(tmp_path)}),
            ("commit", {"checkpoint_id": "c", "directory": str(tmp_path), "episodes": []}),
            ("resume", {"checkpoint_id": "c"}),
        ]:
            for headers in ([], [own]):
                answer = await send(host, verb, body, headers=headers)
                assert answer.status == 200
                assert answer.value["instance_id"] == nodes[0].plane.instance_id

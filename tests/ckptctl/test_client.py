"""The HTTP transport: every failure of the HTTP library is a `ControlError`, in time, without the token."""

from __future__ import annotations

import asyncio
import socket
import traceback
from pathlib import Path
from typing import Any

import pytest

from ckptctl import Call
from ckptctl.transports import _exchange as exchange
from ckptctl.transports.http import ControlClient
from tests.ckptctl.servers import Host, Node, answering, http_reply, on_a_loop, send, serving
from tests.ckptctl.support import refused
from tests.polling import until

SECRET = "t0p-secret"
STATUS = Call("status", deadline_seconds=5.0)


async def call(url: str, request: Call = STATUS) -> dict[str, Any]:
    async with ControlClient(SECRET) as control:
        return await control.transport(url)(request)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@on_a_loop
async def test_a_call_and_its_error_are_carried(tmp_path: Path) -> None:
    node = Node()
    async with serving(node) as host, ControlClient("secret") as control:
        for url in (host.url, host.url + "/"):
            transport = control.transport(url)
            assert (await transport(STATUS))["phase"] == "idle"
            with refused("wrong_phase") as caught:
                await transport(Call("renew", b'{"checkpoint_id": "c"}'))
            error = caught.value
            assert (error.status, error.retryable) == (409, False)
            assert error.details == {"phase": "idle", "instance_id": node.plane.instance_id}
            with refused("wrong_instance"):
                await transport(Call("status", instance="another"))
            with refused("invalid_request"):
                await transport(Call("nonsense", b"{}"))
    async with serving(node) as host, ControlClient("wrong") as control:
        with refused("unauthorized"):
            await control.transport(host.url)(STATUS)


@pytest.mark.req("CP9", "CP12")
@on_a_loop
async def test_the_deadline_is_carried(tmp_path: Path) -> None:
    node = Node()
    async with serving(node) as host, ControlClient("secret") as control:
        transport = control.transport(host.url)
        hold = node.faults.hold("export")
        opening = f'{{"checkpoint_id": "c", "directory": "{tmp_path}"'.encode()
        await transport(Call("prepare", opening + b"}", deadline_seconds=None))
        with refused("deadline_exceeded"):
            await transport(Call("commit", opening + b', "episodes": []}', deadline_seconds=0.01))
        hold.release()
        # Past its deadline a call is still sent, with a deadline of 0.
        assert (await transport(Call("status", deadline_seconds=-5.0)))["checkpoint_id"] == "c"


@pytest.mark.parametrize(
    "data",
    [
        http_reply(200, b"<html>It works!</html>"),
        http_reply(200, b""),
        http_reply(200, ["phase"]),
        http_reply(200, b'"phase"'),
        http_reply(200, b"\xff"),
        http_reply(500, b"Internal Server Error"),
        http_reply(500, {}),
        http_reply(404, {"error": "not found"}),
        http_reply(404, {"error": ["not", "found"]}),
        http_reply(400, {"error": {"code": 5, "message": "m", "retryable": True, "details": {}}}),
        http_reply(400, {"error": {"code": ["x"], "message": "m", "retryable": True, "details": {}}}),
        http_reply(400, {"error": {"code": "x", "message": None, "retryable": True, "details": {}}}),
        http_reply(400, {"error": {"code": "x", "message": "m", "retryable": "yes", "details": {}}}),
        http_reply(400, {"error": {"code": "x", "message": "m", "retryable": True, "details": None}}),
        http_reply(400, {"error": {"code": "x", "message": "m", "retryable": True}}),
        http_reply(302, b"", "Location: http://127.0.0.1:1/elsewhere"),
        http_reply(401, b"Unauthorized"),
    ],
)
@on_a_loop
async def test_an_answer_that_is_not_a_control_reply_is_bad_reply(data: bytes) -> None:
    async with answering(data) as url:
        with refused("bad_reply") as caught:
            await call(url)
        assert not caught.value.retryable


@on_a_loop
async def test_an_error_with_an_unknown_code_is_kept_as_it_is() -> None:
    error = {"code": "a_code_of_later", "message": "m", "retryable": True, "details": {"a": 1}}
    async with answering(http_reply(418, {"error": error, "instance_id": "i"})) as url:
        with refused("a_code_of_later") as caught:
            await call(url)
    found = caught.value
    assert (found.status, found.retryable, found.details) == (418, True, {"a": 1, "instance_id": "i"})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x00" * 100,
    ],
)
@on_a_loop
async def test_a_broken_connection_is_no_reply(data: bytes) -> None:
    async with answering(data) as url:
        with refused("no_reply") as caught:
            await call(url)
    assert caught.value.retryable
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@on_a_loop
async def test_a_server_that_is_down_is_unreachable_at_once() -> None:
    for url in (f"http://127.0.0.1:{free_port()}", "http://no-such-host.invalid:1"):
        with refused("unreachable", url) as caught:
            await call(url, Call("renew", b"{}", deadline_seconds=60.0))
        assert caught.value.retryable
        assert SECRET not in "".join(traceback.format_exception(caught.value))


@on_a_loop
async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "REPLY_GRACE_SECONDS", 0.05)
    async with answering(None) as url:
        with refused("no_reply", "0.06"):
            await call(url, Call("prepare", b"{}", deadline_seconds=0.01))


@pytest.mark.parametrize("url", ["", "not a url", "ftp://127.0.0.1/", "http://", "http:///x", "127.0.0.1:80"])
def test_an_address_is_checked_when_it_is_given(url: str) -> None:
    with pytest.raises(ValueError, match="address of a server"):
        ControlClient(SECRET).transport(url)


@pytest.mark.parametrize("limits", [{"limit": -1}, {"limit_per_host": -1}])
def test_a_limit_is_not_negative(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="not negative"):
        ControlClient(SECRET, **limits)


@on_a_loop
async def test_a_client_is_used_while_it_is_open() -> None:
    control = ControlClient(SECRET)
    transport = control.transport("http://127.0.0.1:1")
    with pytest.raises(RuntimeError, match="not open"):
        await transport(STATUS)
    async with control:
        pass
    with pytest.raises(RuntimeError, match="not open"):
        await transport(STATUS)


async def parked(host: Host, key: str) -> None:
    await send(host, "run", method="POST", path=f"/ng-rollout/{key}/run", token=None)


@on_a_loop
async def test_control_calls_pass_beside_data_calls_that_wait(tmp_path: Path) -> None:
    node = Node()
    opening = f'{{"checkpoint_id": "c", "directory": "{tmp_path}"'.encode()
    async with serving(node) as host, ControlClient("secret", limit_per_host=1) as control:
        transport = control.transport(host.url)
        await transport(Call("prepare", opening + b"}", deadline_seconds=5.0))
        runs = [asyncio.create_task(parked(host, f"r{number}")) for number in range(50)]
        await until(lambda: len(host.waiting) == 50)
        await transport(Call("commit", opening + b', "episodes": []}', deadline_seconds=5.0))
        await transport(Call("resume", b'{"checkpoint_id": "c"}', deadline_seconds=5.0))
        await asyncio.gather(*runs)
        assert len(host.ran) == 50


@on_a_loop
async def test_cancelled_calls_give_their_connection_back(tmp_path: Path) -> None:
    node = Node()
    opening = f'{{"checkpoint_id": "c", "directory": "{tmp_path}"'.encode()
    async with serving(node) as host, ControlClient("secret", limit_per_host=1) as control:
        transport = control.transport(host.url)
        await transport(Call("prepare", opening + b"}", deadline_seconds=5.0))
        hold = node.faults.hold("export")
        commit = Call("commit", opening + b', "episodes": []}', deadline_seconds=5.0)
        calls = [asyncio.ensure_future(transport(commit)) for _ in range(4)]
        await hold.reached()
        for each in calls:
            each.cancel()
        await asyncio.wait(calls)
        assert (await transport(STATUS))["phase"] == "prepared"
        hold.release()
        assert (await transport(commit))["episode_ids"] == []

"""Bad bodies over HTTP: a client error on every route, and nothing changes."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptctl._protocol import MAX_BODY_BYTES, PREFIX, REQUESTS
from ckptctl.hosts import aiohttp as http
from tests.ckptctl.servers import Answer, Host, Node, exchange, on_a_loop, send, serving
from tests.ckptctl.test_http_auth import bodies, check_nothing_happened
from tests.polling import until

NO_KEYS = ["r-a1-a2", "-a1", "", "r-a1\n", "r/s", "é", "\ud800"]


def bad_bodies(verb: str, valid: dict[str, Any]) -> Iterator[bytes]:
    text = json.dumps(valid)
    yield from (b"", b"[]", b"null", b"{", text.encode() + b"x", b"\xef\xbb\xbf" + text.encode())
    yield json.dumps({**valid, "unknown": 1}).encode()
    yield json.dumps({**valid, "\ud800": 1}).encode()
    for name in valid:
        wrong_values: list[Any] = [None, 5, True, {}, [5], 1.5]
        for wrong in wrong_values:
            yield json.dumps({**valid, name: wrong}).encode()
        member = json.dumps({name: valid[name]})[1:-1]
        yield f"{{{member}, {text[1:]}".encode()
        yield json.dumps({each: valid[each] for each in valid if each != name}).encode()
        for odd in ("NaN", "-Infinity", "1e999", "9" * 5000, "[" * 100_000):
            yield f'{{"{name}": {odd}}}'.encode()
        yield b'{"' + name.encode() + b'": "\xff"}'
    for key in NO_KEYS:
        yield from (
            json.dumps({**valid, name: [key]}).encode()
            for name in valid.keys() & {"episodes", "rollouts", "restarts"}
        )


@pytest.mark.req("CP11", "CP12", "ID10")
@pytest.mark.parametrize("verb", REQUESTS)
@on_a_loop
async def test_a_bad_body_is_a_client_error_and_changes_nothing(verb: str, tmp_path: Path) -> None:
    node = Node()
    async with serving(node) as host:
        await node.add_inactive("r")
        await send(host, "retire", {"episodes": ["kept"]})
        before = host.state()
        for body in bad_bodies(verb, bodies(tmp_path)[verb]):
            answer = await send(host, verb, body)
            assert (answer.status, answer.code) == (400, "invalid_request"), body[:200]
            assert answer.value["instance_id"] == node.plane.instance_id
            assert host.state() == before
        await check_nothing_happened(host, before, tmp_path)


@pytest.mark.req("CP11", "CP12")
@pytest.mark.parametrize("verb", REQUESTS)
@on_a_loop
async def test_a_body_has_at_most_16_mib(verb: str, tmp_path: Path) -> None:
    valid = json.dumps(bodies(tmp_path)[verb]).encode()
    node = Node()
    async with serving(node) as host:
        before = host.state()
        answer = await send(host, verb, valid.ljust(MAX_BODY_BYTES + 1))
        assert (answer.status, answer.code) == (413, "invalid_request")
        assert str(MAX_BODY_BYTES) in answer.value["error"]["message"]
        answer = await send_chunked(host, verb, valid.ljust(MAX_BODY_BYTES + 1))
        assert (answer.status, answer.code) == (413, "invalid_request")
        await check_nothing_happened(host, before, tmp_path)
    async with serving(Node()) as host:
        assert (await send(host, verb, valid.ljust(MAX_BODY_BYTES))).code != "invalid_request"


async def send_chunked(host: Host, verb: str, body: bytes) -> Answer:
    """The same body without a Content-Length."""
    head = f"POST {PREFIX}{verb} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer secret\r\n"
    chunks = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    return await exchange(host, head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)


@pytest.mark.req("CP11")
@on_a_loop
async def test_a_body_is_cut_off_where_it_is_seen_to_be_too_large() -> None:
    head = f"POST {PREFIX}resume HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n".encode()
    megabyte = b"100000\r\n" + b" " * 2**20 + b"\r\n"
    async with serving(Node()) as host:
        # Neither is sent completely.
        announced = head + b"Content-Length: %d\r\n\r\n{" % (MAX_BODY_BYTES + 1)
        endless = head + b"Transfer-Encoding: chunked\r\n\r\n" + 17 * megabyte
        for request in (announced, endless):
            answer = await exchange(host, request)
            assert (answer.status, answer.code) == (413, "invalid_request")


@pytest.mark.req("CP11")
@pytest.mark.parametrize("verb", REQUESTS)
@on_a_loop
async def test_a_compressed_body_is_refused(verb: str, tmp_path: Path) -> None:
    valid = json.dumps(bodies(tmp_path)[verb]).encode()
    node = Node()
    async with serving(node) as host:
        before = host.state()
        for name, body in [("gzip", gzip.compress(valid)), ("identity", valid), ("", valid), ("x", valid)]:
            answer = await send(host, verb, body, headers=[f"Content-Encoding: {name}".encode()])
            assert (answer.status, answer.code) == (400, "invalid_request"), name
        await check_nothing_happened(host, before, tmp_path)


@pytest.mark.req("CP11")
@on_a_loop
async def test_a_chunked_body_is_a_body(tmp_path: Path) -> None:
    async with serving(Node()) as host:
        body = json.dumps(bodies(tmp_path)["prepare"]).encode()
        assert (await send_chunked(host, "prepare", body)).value["phase"] == "prepared"


@pytest.mark.req("CP11")
@on_a_loop
async def test_a_body_that_does_not_arrive_is_a_client_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "BODY_SECONDS", 0.05)
    node = Node()
    async with serving(node) as host:
        before = host.state()
        head = (
            b"POST /ng-control/v1/checkpoint/resume HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n"
        )
        answer = await exchange(host, head + b"Content-Length: 100\r\n\r\n{")
        assert (answer.status, answer.code) == (408, "invalid_request")
        await check_nothing_happened(host, before, tmp_path)


@pytest.mark.req("CP11")
@on_a_loop
async def test_a_client_that_disconnects_in_its_body_is_not_a_server_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    node = Node()
    async with serving(node) as host:
        before = host.state()
        reader, writer = await asyncio.open_connection("127.0.0.1", host.port)
        writer.write(b"POST /ng-control/v1/checkpoint/resume HTTP/1.1\r\nHost: x\r\n")
        writer.write(b"Authorization: Bearer secret\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
        await reader.readline()  # "100 Continue": the handler is reading the body now.
        writer.write(b"{")
        await writer.drain()
        writer.transport.abort()
        await until(lambda: '" 499 ' in caplog.text)
        await check_nothing_happened(host, before, tmp_path)
    assert "Traceback" not in caplog.text


BROKEN_CHUNKS = """
import asyncio, tests.ckptctl.servers as servers

async def main():
    async with servers.serving(servers.Node()) as host:
        reader, writer = await asyncio.open_connection("127.0.0.1", host.port)
        writer.write(b"POST /ng-control/v1/checkpoint/resume HTTP/1.1\\r\\nHost: x\\r\\n")
        writer.write(b"Authorization: Bearer secret\\r\\nTransfer-Encoding: chunked\\r\\n")
        writer.write(b"Expect: 100-continue\\r\\n\\r\\n")
        await reader.readline()
        writer.write(b"zz\\r\\n")
        await reader.readline()
        print((await reader.readline()).decode().split()[1])

asyncio.run(main())
"""


@pytest.mark.req("CP11")
def test_a_broken_chunk_is_a_client_error_where_aiohttp_has_no_c_parser() -> None:
    # With its C parser, aiohttp answers 400 itself, or nothing at all until BODY_SECONDS are over.
    environment = {**os.environ, "AIOHTTP_NO_EXTENSIONS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", BROKEN_CHUNKS],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert run.stdout.strip() == "400", run.stderr


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)
FIELDS = ["checkpoint_id", "directory", "episodes", "rollouts", "restarts", "marks", "cut_digest", "more"]
NEAR = st.dictionaries(st.sampled_from(FIELDS), JSON | st.sampled_from(["c", "/nowhere", ["r"], [], {}]))


@pytest.mark.req("CP11")
def test_no_json_body_causes_a_server_error() -> None:
    with asyncio.Runner() as runner:
        node = runner.run(_new_node())
        context = serving(node)
        host = runner.run(context.__aenter__())

        @given(verb=st.sampled_from(sorted(REQUESTS)), value=JSON | NEAR)
        def check(verb: str, value: Any) -> None:
            before = runner.run(_state(host))
            answer = runner.run(send(host, verb, json.dumps(value).encode()))
            if answer.status != 200:
                assert 400 <= answer.status < 500, answer.body
                assert answer.code
                if answer.code == "invalid_request":
                    assert runner.run(_state(host)) == before
            runner.run(send(host, "resume", {"checkpoint_id": "c"}))

        check()
        runner.run(context.__aexit__(None, None, None))


async def _new_node() -> Node:
    return Node()


async def _state(host: Host) -> Any:
    return host.state()

"""The routes, and the bearer token that protects all of them."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ckptctl._protocol import REQUESTS
from tests.ckptctl.servers import TOKEN, Host, Node, exchange, on_a_loop, send, serving

VERBS = ["status", *REQUESTS]
WRONG_TOKENS = [
    None,
    b"",
    b"Bearer",
    b"Bearer ",
    b"bearer secret",
    b"BEARER secret",
    b"Bearersecret",
    b"Bearer  secret",
    b"Bearer\tsecret",
    b"Basic secret",
    b"secret",
    b"Bearer secre",
    b"Bearer secrets",
    b"Bearer secret, Bearer secret",
    b"Bearer SECRET",
    b"Bearer \xe9",
    b"Bearer \xff\xfe",
    "Bearer sécret".encode(),
    b"bearer x",
    b"Bearer " + b"a" * 8000,
]


def bodies(directory: Path) -> dict[str, dict[str, Any]]:
    """A valid body of each verb, which must have no effect with a wrong token."""
    opening = {"checkpoint_id": "c", "directory": str(directory)}
    return {
        "status": {},
        "prepare": opening,
        "renew": {"checkpoint_id": "c"},
        "commit": {**opening, "episodes": []},
        "resume": {"checkpoint_id": "c"},
        "restore": {**opening, "episodes": ["r-a100"]},
        "retire": {"episodes": ["r"]},
        "forget": {"rollouts": ["kept"]},
    }


async def check_nothing_happened(host: Host, before: object, directory: Path) -> None:
    assert host.state() == before
    # A resume that had an effect would have ended this id.
    prepared = await send(host, "prepare", {"checkpoint_id": "c", "directory": str(directory)})
    assert prepared.status == 200, prepared.body


@pytest.mark.req("CP1")
@pytest.mark.parametrize("token", WRONG_TOKENS, ids=lambda each: repr(each)[:30])
@on_a_loop
async def test_without_the_token_every_route_is_401_and_nothing_changes(
    token: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node()
    async with serving(node) as host:
        await node.add_inactive("r")
        await send(host, "retire", {"episodes": ["kept"]})
        before = host.state()
        for verb, body in bodies(tmp_path).items():
            answer = await send(host, verb, body, token=token)
            assert (answer.status, answer.code) == (401, "unauthorized"), verb
            assert answer.value["instance_id"] == node.plane.instance_id
            assert TOKEN not in answer.body.decode()
        await check_nothing_happened(host, before, tmp_path)
    assert "Traceback" not in caplog.text


@pytest.mark.req("CP1")
@on_a_loop
async def test_two_authorization_headers_are_refused(tmp_path: Path) -> None:
    node = Node()
    async with serving(node) as host:
        before = host.state()
        for other in (b"Bearer secret", b"Bearer other", b""):
            for verb, body in bodies(tmp_path).items():
                answer = await send(host, verb, body, headers=[b"Authorization: " + other])
                assert (answer.status, answer.code) == (401, "unauthorized")
        await check_nothing_happened(host, before, tmp_path)


@pytest.mark.req("CP1")
@on_a_loop
async def test_a_token_of_a_megabyte_is_refused(tmp_path: Path) -> None:
    token = b"Bearer " + b"a" * 1_000_000
    node = Node()
    # A host may accept long headers; aiohttp's own limit ends such a request before any route.
    async with serving(node, max_field_size=2_000_000) as host:
        before = host.state()
        assert (await send(host, "resume", {"checkpoint_id": "c"}, token=token)).status == 401
        await check_nothing_happened(host, before, tmp_path)
    node = Node()
    async with serving(node) as host:
        before = host.state()
        with suppress(ConnectionError):  # The server stops reading, and closes the connection.
            assert (await send(host, "resume", {"checkpoint_id": "c"}, token=token)).status == 400
        await check_nothing_happened(host, before, tmp_path)


@pytest.mark.req("CP1")
@on_a_loop
async def test_with_the_token_every_route_is_served(tmp_path: Path) -> None:
    async with serving(Node()) as host:
        for verb, body in bodies(tmp_path).items():
            answer = await send(host, verb, body)
            assert answer.status not in (401, 404, 405), verb
            assert answer.headers["content-type"].startswith("application/json")


@pytest.mark.req("CP1")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("agent-0", "agent"),
        ("policy", "policy_model"),
        ("environment", "environment"),
        ("tools", "resources"),
        ("x/judge", "judge"),
    ],
)
@on_a_loop
async def test_one_route_set_and_one_request_shape_for_every_kind(
    name: str, kind: str, tmp_path: Path
) -> None:
    opening = {"checkpoint_id": "c", "directory": str(tmp_path)}
    node = Node(name, kind)
    async with serving(node) as host:
        await node.add_inactive("r")
        answer = await send(host, "status")
        assert answer.value["participant"] == {"name": name, "kind": kind}
        for verb, body, member in [
            ("prepare", opening, "blockers"),
            ("renew", {"checkpoint_id": "c"}, "lease_seconds_left"),
            ("commit", {**opening, "episodes": ["r"]}, "manifest"),
            ("resume", {"checkpoint_id": "c"}, "phase"),
            ("retire", {"episodes": ["r"]}, "retired_count"),
            ("forget", {"rollouts": ["r"]}, "forgotten_count"),
        ]:
            answer = await send(host, verb, body)
            assert answer.status == 200, (verb, answer.body)
            assert member in answer.value
    async with serving(Node(name, kind)) as host:
        restored = await send(host, "restore", {**opening, "checkpoint_id": "r", "episodes": ["r-a100"]})
        assert restored.value["restored"] == ["r-a100"]
        assert restored.value["source_checkpoint_id"] == "c"


@pytest.mark.req("CP1")
@on_a_loop
async def test_no_log_shows_a_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(Node()) as host:
        for token in (b"Bearer secret", b"Bearer another-secret"):
            await send(host, "status", token=token)
            await send(host, "resume", b"{", token=token)
            await send(host, "nonsense", token=token)
    assert "secret" not in caplog.text


@pytest.mark.req("CP1")
@on_a_loop
async def test_a_body_without_a_token_is_not_read(tmp_path: Path) -> None:
    node = Node()
    async with serving(node) as host:
        before = host.state()
        # 200 MB are announced; the reply comes after the first few bytes.
        head = (
            b"POST /ng-control/v1/checkpoint/resume HTTP/1.1\r\nHost: x\r\nContent-Length: 200000000\r\n\r\n{"
        )
        assert (await exchange(host, head)).status == 401
        await check_nothing_happened(host, before, tmp_path)

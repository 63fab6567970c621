"""The demo's policy model: generations are saved between tokens, finished ones wait for the resume."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

import ckptfmt
from ckptctl._demo import policy
from ckptctl._demo.live_log import count_live
from ckptctl._demo.model import ModelServer
from ckptctl._demo.server import ServerConfig
from ckptctl._demo.tasks import bundled_tasks_path, load_tasks
from ckptfmt import EpisodeId
from tests.polling import until

TASK = load_tasks(bundled_tasks_path())[0]
REQUEST = policy.Request(TASK, [policy.user_message(TASK)], seed=7)
TURN = policy.plan(TASK, REQUEST.messages, 7)


def config(directory: Path) -> ServerConfig:
    return ServerConfig(
        role="policy_model",
        name="policy",
        token="secret",
        directory=str(directory),
        seed=7,
        token_seconds=0.0,
        tool_seconds=0.0,
    )


class Paced(ModelServer):
    """Generates as many tokens as it is allowed to."""

    def __init__(self, config: ServerConfig, tokens: int) -> None:
        super().__init__(config)
        self.allowed = asyncio.Semaphore(tokens)

    async def compute(self) -> None:
        await self.allowed.acquire()


PACED = web.AppKey("PACED", Paced)


@asynccontextmanager
async def model(directory: Path, tokens: int = 1000) -> AsyncIterator[TestClient[Any, Any]]:
    server = Paced(config(directory), tokens)
    server.app[PACED] = server
    async with TestClient(TestServer(server.app)) as client:
        yield client
        await server.plane.close()


def allow(client: TestClient[Any, Any], tokens: int) -> None:
    server = client.app
    assert server is not None
    paced = server[PACED]
    for _ in range(tokens):
        paced.allowed.release()


async def _closed(client: TestClient[Any, Any]) -> None:
    """Wait until prepare has closed the model."""
    app = client.app
    assert app is not None
    await until(lambda: app[PACED].plane.admission.closed)


async def control(client: TestClient[Any, Any], verb: str, **body: Any) -> dict[str, Any]:
    authorized = {"Authorization": "Bearer secret"}
    method = "GET" if verb == "status" else "POST"
    url = f"/ng-control/v1/checkpoint/{verb}"
    response = await client.request(method, url, json=body or None, headers=authorized)
    reply: dict[str, Any] = await response.json()
    assert response.status == 200, reply
    return reply


async def generate(client: TestClient[Any, Any], key: str) -> AsyncIterator[dict[str, Any]]:
    body = json.dumps(REQUEST.to_json())
    async with client.post(f"/ng-rollout/{key}/v1/responses", data=body) as response:
        assert response.status == 200
        async for line in response.content:
            yield json.loads(line)


def live_tokens(directory: Path, life: int) -> int:
    return count_live(directory / "live", "token").get(life, Counter())["r"]


@pytest.mark.req("S1", "ST2", "ST4")
def test_a_generation_that_was_cut_continues_from_its_last_token(tmp_path: Path) -> None:
    async def cut() -> int:
        async with model(tmp_path, 5) as client:
            stream = generate(client, "r")
            for _ in range(5):
                assert "token" in await anext(stream)
            # The sixth token is being computed: prepare waits for it, and saves after it.
            prepare = asyncio.create_task(
                control(client, "prepare", checkpoint_id="one", directory=str(tmp_path / "cut"))
            )
            await _closed(client)
            allow(client, 1000)
            await prepare
            held = live_tokens(tmp_path, 0)
            await control(
                client, "commit", checkpoint_id="one", directory=str(tmp_path / "cut"), episodes=["r"]
            )
            assert live_tokens(tmp_path, 0) == held, "nothing is generated while a checkpoint is open"
            await control(client, "resume", checkpoint_id="one")
            last = [line async for line in stream][-1]
            assert last["response"]["text"] == "".join(TURN.tokens)
        return held

    async def go_on() -> dict[str, Any]:
        async with model(tmp_path) as client:
            await control(
                client, "restore", checkpoint_id="two", directory=str(tmp_path / "cut"), episodes=["r-a100"]
            )
            await control(client, "resume", checkpoint_id="two")
            lines = [line async for line in generate(client, "r-a100")]
        return dict(lines[-1]["response"])

    (tmp_path / "cut").mkdir()
    held = asyncio.run(cut())
    record = ckptfmt.open(str(tmp_path / "cut"))["policy"]["r"]
    assert record.boundary == held
    assert held == 6
    response = asyncio.run(go_on())
    assert response["text"] == "".join(TURN.tokens)
    assert live_tokens(tmp_path, 1) == len(TURN.tokens) - held


@pytest.mark.req("S1", "ST9")
def test_a_response_that_is_not_delivered_yet_is_held_until_resume(tmp_path: Path) -> None:
    async def use() -> None:
        (tmp_path / "cut").mkdir()
        async with model(tmp_path, len(TURN.tokens) - 1) as client:
            stream = generate(client, "r")
            for _ in TURN.tokens[1:]:
                await anext(stream)
            prepare = asyncio.create_task(
                control(client, "prepare", checkpoint_id="one", directory=str(tmp_path / "cut"))
            )
            await _closed(client)
            allow(client, 1)
            assert (await prepare)["episodes"] == ["r"]
            committed = await control(
                client, "commit", checkpoint_id="one", directory=str(tmp_path / "cut"), episodes=["r"]
            )
            assert committed["episode_ids"] == ["r"]
            rest = asyncio.create_task(_collect(stream))
            await control(client, "status")
            assert not rest.done(), "all tokens are generated, and the response waits"
            await control(client, "resume", checkpoint_id="one")
            assert "response" in (await rest)[-1]

    asyncio.run(use())


async def _collect(stream: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line async for line in stream]


@pytest.mark.req("S1")
def test_another_request_begins_a_generation_of_its_own(tmp_path: Path) -> None:
    other = policy.Request(TASK, [policy.user_message(TASK)], seed=8)

    async def use() -> list[str]:
        async with model(tmp_path) as client:
            await _collect(generate(client, "r"))
            body = json.dumps(other.to_json())
            async with client.post("/ng-rollout/r/v1/responses", data=body) as response:
                lines = [json.loads(line) async for line in response.content]
        return [line["token"] for line in lines if "token" in line]

    assert asyncio.run(use()) == list(policy.plan(TASK, other.messages, 8).tokens)


@pytest.mark.req("ID10")
@pytest.mark.parametrize("key", ["r-a1-a2", "-a1", "r%0A", "a%20b"])
def test_a_path_that_names_no_episode_is_a_client_error(key: str, tmp_path: Path) -> None:
    async def use() -> None:
        async with model(tmp_path) as client:
            response = await client.post(
                f"/ng-rollout/{key}/v1/responses", data=json.dumps(REQUEST.to_json())
            )
            assert response.status == 400
            assert (await response.json())["error"]["code"] == "invalid_request"

    asyncio.run(use())
    with pytest.raises(ckptfmt.InvalidId):
        EpisodeId.from_capture_key("r-a1-a2")

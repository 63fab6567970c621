"""The policy model: it streams the tokens of a generation, which can be saved between any two of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

from aiohttp import web

from ckptctl import EpisodeParticipant
from ckptctl._demo import policy
from ckptctl._demo.server import DemoServer, ServerConfig
from ckptfmt import EpisodeId


class ModelServer(DemoServer):
    """``v1/responses``: lines ``{"token": …}``, and at the end ``{"response": …}``.

    Each token is a step. The last generation of an episode is kept, finished or not: when the same request
    is repeated under the replacement attempt, its tokens are sent again and not generated again.
    """

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self.generations = EpisodeParticipant(config.name, "policy_model")
        self.install(self.generations)
        self._live = config.live_log()
        self.route("v1/responses", self.respond)

    async def compute(self) -> None:
        """The work for the next token."""
        await asyncio.sleep(self.config.token_seconds)

    async def respond(self, request: web.Request, episode_id: EpisodeId) -> web.StreamResponse:
        body = await request.read()
        asked = policy.Request.from_json(json.loads(body))
        digest = hashlib.sha256(body).hexdigest()
        stream = web.StreamResponse()
        await stream.prepare(request)
        async with self.generations.steps.episode(episode_id, keep=True) as generation:
            state: dict[str, Any] = generation.state or {}
            tokens: list[str] = state["tokens"] if state.get("request") == digest else []
            for token in tokens:
                await _send(stream, {"token": token})
            for token in policy.tokens(asked, len(tokens)):
                async with generation.step():
                    await self.compute()
                    self._live.add("token", episode_id)
                tokens = [*tokens, token]
                await generation.boundary({"request": digest, "tokens": tokens})
                await _send(stream, {"token": token})
        # The end of the block waits while a checkpoint is open, so the response is sent after it.
        await _send(stream, {"response": policy.respond(asked, tokens)})
        return stream


async def _send(stream: web.StreamResponse, line: dict[str, Any]) -> None:
    await stream.write(json.dumps(line).encode() + b"\n")

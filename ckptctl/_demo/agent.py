"""The agents: a loop of model call, tool call, model call, until the model answers."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from ckptctl import Episode, EpisodeParticipant
from ckptctl._demo import policy
from ckptctl._demo.server import DemoServer, ServerConfig, json_reply
from ckptctl._demo.tasks import Task, task_from_row
from ckptctl.hosts import RESTART_HEADER
from ckptfmt import EpisodeId

NO_HOOKS = "the agent has no session hooks"


class AgentServer(DemoServer):
    """An agent whose sessions are saved at their boundaries, or a plain one, whose rollouts start over."""

    def __init__(self, config: ServerConfig, *, plain: bool) -> None:
        super().__init__(config)
        self.sessions = EpisodeParticipant(config.name, "agent")
        self.install(self.sessions)
        self._plain = plain
        self.route("v1/agent_sessions", self.seed)
        self.route("v1/responses", self.respond)
        self.route("v1/agent_sessions/close", self.close, admitted=False)

    async def seed(self, request: web.Request, episode: EpisodeId) -> web.StreamResponse:
        return json_reply({}, headers={RESTART_HEADER: NO_HOOKS} if self._plain else None)

    async def respond(self, request: web.Request, episode_id: EpisodeId) -> web.StreamResponse:
        task = task_from_row((await request.json())["task"])
        restart = NO_HOOKS if self._plain else None
        # A finished session keeps its result: the environment's call is a replay step, so it may be repeated.
        async with self.sessions.steps.episode(episode_id, keep=True, restart=restart) as episode:
            messages = await self._loop(episode, task)
        return json_reply({"messages": messages, "steps": episode.number})

    async def close(self, request: web.Request, episode: EpisodeId) -> web.StreamResponse:
        self.sessions.steps.discard(episode)
        return json_reply({})

    async def _loop(self, episode: Episode, task: Task) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = (episode.state or {}).get("messages", [policy.user_message(task)])
        while True:
            last = messages[-1]
            if last["role"] != "assistant":
                # A model call is a replay step: the unfinished generation, or its result, is in the same cut.
                async with episode.step("replay"):
                    response = await self._generate(episode.id, task, messages)
                messages = [*messages, policy.assistant_message(response)]
            elif last["tool_call"] is not None:
                async with episode.step("wait"):
                    result, _ = await self.post(f"tools-{task.domain}", episode.id, "call", last["tool_call"])
                messages = [*messages, policy.tool_message(result)]
            else:
                return messages
            await episode.boundary({"messages": messages})

    async def _generate(
        self, episode: EpisodeId, task: Task, messages: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Read the model's stream to its end; the last line is the whole response."""
        body = policy.Request(task, messages, self.config.seed).to_json()
        url = self.url("policy", episode, "v1/responses")
        async with self.client.post(url, data=json.dumps(body)) as response:
            response.raise_for_status()
            async for line in response.content:
                message: dict[str, Any] = json.loads(line)
                if "response" in message:
                    return dict(message["response"])
        raise ConnectionError(f"{url}: the stream ended without a response")

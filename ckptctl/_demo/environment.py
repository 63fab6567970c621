"""The environment server: it runs an episode, which is a few calls of an agent and of a resources server."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from ckptctl import Episode, EpisodeParticipant
from ckptctl._demo.held_export import held_at
from ckptctl._demo.server import DemoServer, ServerConfig, bad_input_refused, json_reply
from ckptctl._demo.tasks import Task, task_from_row
from ckptctl.hosts import RESTART_HEADER, invalid_request
from ckptctl.hosts.aiohttp import admit
from ckptfmt import episode_from_run_body


class EnvironmentServer(DemoServer):
    """``POST /run`` with a task row and the rollout's identity; the reply is the rollout's result."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self.episodes = held_at(config, EpisodeParticipant)(config.name, "environment")
        self.install(self.episodes)
        self.app.router.add_post("/run", self.run)

    async def run(self, request: web.Request) -> web.StreamResponse:
        with bad_input_refused():
            body = await request.json()
            episode_id = episode_from_run_body(body)
            task = task_from_row(body["task"])
        if episode_id is None:
            raise invalid_request("a run of the demo needs the identity of its rollout")
        await admit(self.plane, request, episode_id)
        async with self.episodes.steps.episode(episode_id) as episode:
            result = await self._run(episode, task)
        return json_reply(result)

    async def _run(self, episode: Episode, task: Task) -> dict[str, Any]:
        """The calls of an episode, from its last boundary on."""
        tools, agent = f"tools-{task.domain}", f"agent-{task.agent}"
        row = {"task": task.row()}
        state: dict[str, Any] = episode.state or {}
        if "seeded" not in state:
            async with episode.step():
                await self.post(tools, episode.id, "seed_session", row)
            state = {"seeded": True}
            await episode.boundary(state)
        if "agent_session" not in state:
            async with episode.step():
                _, headers = await self.post(agent, episode.id, "v1/agent_sessions", row)
                if RESTART_HEADER in headers:
                    await episode.become_restart(headers[RESTART_HEADER])
            state = {**state, "agent_session": True}
            await episode.boundary(state)
        if "response" not in state:
            # The agent's session is part of the same cut, and the repeated call continues it.
            async with episode.step("replay"):
                response, _ = await self.post(agent, episode.id, "v1/responses", row)
            state = {**state, "response": response}
            await episode.boundary(state)
        if "verified" not in state:
            async with episode.step():
                verified, _ = await self.post(tools, episode.id, "verify", row)
            state = {**state, "verified": verified}
            await episode.boundary(state)
        await episode.complete()
        await self.post(agent, episode.id, "v1/agent_sessions/close", {})
        await self.post(tools, episode.id, "close_session", {})
        return {
            "transcript": state["response"]["messages"],
            "reward": state["verified"]["reward"],
            "final_state": state["verified"]["final_state"],
            "steps": {"environment": episode.number, "agent": state["response"]["steps"]},
        }

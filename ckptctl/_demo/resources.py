"""The resources servers: a SQLite database for each session, and the tools that change it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from aiohttp import web

from ckptctl import SessionParticipant
from ckptctl._demo.server import DemoServer, ServerConfig, json_reply
from ckptctl._demo.tasks import task_from_row
from ckptctl._demo.tools import ToolSession
from ckptctl.hosts import invalid_request
from ckptfmt import EpisodeId


class ToolSessions(SessionParticipant):
    """Database files in one directory, which stays after the process ends, as that of a real server."""

    def __init__(self, name: str, directory: Path) -> None:
        super().__init__(name, "resources")
        self._directory = directory
        self.open: dict[EpisodeId, ToolSession] = {}

    def path(self, episode: EpisodeId) -> Path:
        return self._directory / f"{episode.capture_key}.sqlite"

    def sessions(self) -> Iterable[EpisodeId]:
        return self.open

    def save(self, episode: EpisodeId) -> Any:
        return self.open[episode].export()

    def load(self, episode: EpisodeId, payload: Any) -> None:
        self.open[episode] = ToolSession.restore(self.path(episode), payload)

    def drop(self, episode: EpisodeId) -> None:
        self.open.pop(episode).close(delete=True)

    def cleared(self, episode: EpisodeId) -> None:
        for path in self._directory.glob(f"{episode.rollout_id}*.sqlite"):
            left = EpisodeId.from_capture_key(path.stem)
            if left.rollout_id == episode.rollout_id and left.attempt <= episode.attempt:
                path.unlink()

    def boundary(self, episode: EpisodeId) -> int | None:
        return self.open[episode].calls


class ToolServer(DemoServer):
    """Sessions of one set of tools: seed, call, verify, close."""

    def __init__(self, config: ServerConfig) -> None:
        super().__init__(config)
        self.tools = ToolSessions(config.name, config.own_directory())
        self.install(self.tools)
        self._live = config.live_log()
        self.route("seed_session", self.seed)
        self.route("call", self.call)
        self.route("verify", self.verify)
        self.route("close_session", self.close, admitted=False)

    async def seed(self, request: web.Request, episode: EpisodeId) -> web.StreamResponse:
        task = task_from_row((await request.json())["task"])
        async with self.tools.call(episode):
            if episode in self.tools.open:
                raise invalid_request(f"episode {episode} has a session already", status=409)
            self.tools.open[episode] = ToolSession.create(self.tools.path(episode), task)
        return json_reply({})

    async def call(self, request: web.Request, episode: EpisodeId) -> web.StreamResponse:
        call = await request.json()
        async with self.tools.call(episode):
            session = self._session(episode)
            await asyncio.sleep(self.config.tool_seconds)
            self._live.add("call", episode)
            result = session.call(call["tool"], call["arguments"])
        return json_reply(result)

    async def verify(self, request: web.Request, episode: EpisodeId) -> web.StreamResponse:
        task = task_from_row((await request.json())["task"])
        async with self.tools.call(episode):
            session = self._session(episode)
            await asyncio.sleep(self.config.tool_seconds)
            verified = {"reward": session.reward(task), "final_state": session.final_state()}
        return json_reply(verified)

    async def close(self, request: web.Request, episode: EpisodeId) -> web.StreamResponse:
        if episode in self.tools.open:
            self.tools.drop(episode)
        return json_reply({})

    def _session(self, episode: EpisodeId) -> ToolSession:
        if episode not in self.tools.open:
            raise invalid_request(f"episode {episode} has no session here", status=404)
        return self.tools.open[episode]

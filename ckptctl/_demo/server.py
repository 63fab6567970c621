"""What the four kinds of demo servers have in common: an aiohttp application with a control plane.

Their data plane uses JSON as Python's json module writes it: log-probabilities are NaN and -inf now and
then, and must arrive as such.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from ckptctl import ControlPlane, Participant, Settings
from ckptctl._demo.live_log import LiveLog
from ckptctl._demo.policy import BadRequest
from ckptctl._demo.tasks import BadTask
from ckptctl.hosts import ROLLOUT_PREFIX, invalid_request
from ckptctl.hosts.aiohttp import admit, install, rollout_of
from ckptfmt import EpisodeId, InvalidId

MAX_BODY_BYTES = 64 * 1024 * 1024

Handler = Callable[[web.Request, EpisodeId], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class ServerConfig:
    """What the supervisor tells a server process. Durations are seconds."""

    role: str
    name: str
    token: str
    directory: str
    """Of the whole run: this server's files are in ``servers/<name>``, its log of work in ``live``."""
    seed: int
    token_seconds: float
    tool_seconds: float
    hold: str | None = None
    """The crash point at which this server stops, of `SERVER_CRASH_POINTS`."""
    others: tuple[str, ...] = ()
    """Names of the other participants."""

    def own_directory(self) -> Path:
        path = Path(self.directory) / "servers" / self.name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def live_log(self) -> LiveLog:
        directory = Path(self.directory) / "live"
        directory.mkdir(parents=True, exist_ok=True)
        return LiveLog(directory / f"{self.name}.jsonl")


class DemoServer:
    """One server: routes of its kind, the participant behind them, and a client for the servers it calls."""

    participant: Participant

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.peers: Mapping[str, str] = {}
        """URL by participant name, known once all servers listen."""
        self.app = web.Application(client_max_size=MAX_BODY_BYTES)
        self.app.cleanup_ctx.append(self._lifetime)

    async def _lifetime(self, app: web.Application) -> Any:
        async with data_client() as self.client:
            yield

    def install(self, participant: Participant) -> None:
        """Put a control plane before this participant."""
        self.participant = participant
        self.plane = ControlPlane(participant, Settings(enabled=True, control_auth_token=self.config.token))
        install(self.app, self.plane)

    def route(self, path: str, handler: Handler, *, admitted: bool = True) -> None:
        """Serve ``/ng-rollout/<key>/<path>``; ``admitted``: wait for admission before the handler runs."""

        async def handle(request: web.Request) -> web.StreamResponse:
            episode = rollout_of(request)
            if admitted:
                await admit(self.plane, request, episode)
            with bad_input_refused():
                return await handler(request, episode)

        self.app.router.add_post(f"{ROLLOUT_PREFIX}{{key}}/{path}", handle)

    def url(self, peer: str, episode: EpisodeId, path: str) -> str:
        """The URL of a call on behalf of an episode: its identity is in the path (ID6)."""
        return f"{self.peers[peer]}{ROLLOUT_PREFIX}{episode.capture_key}/{path}"

    async def post(
        self, peer: str, episode: EpisodeId, path: str, value: Any
    ) -> tuple[Any, Mapping[str, str]]:
        """Call another server; returns its JSON reply and headers. Raises aiohttp's errors."""
        async with self.client.post(self.url(peer, episode, path), data=json.dumps(value)) as response:
            response.raise_for_status()
            return json.loads(await response.read()), response.headers


def data_client() -> aiohttp.ClientSession:
    """A client for calls between the servers. A parked call may wait for as long as a checkpoint takes."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
    )


@contextmanager
def bad_input_refused() -> Iterator[None]:
    """Make wrong content of a request a client error."""
    try:
        yield
    except (BadTask, BadRequest, InvalidId, json.JSONDecodeError) as error:
        raise invalid_request(str(error)) from None


def json_reply(value: Any, *, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=json.dumps(value).encode(), content_type="application/json", headers=headers)

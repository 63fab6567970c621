"""What the tests of HTTP and of the controller's side share: many servers, in this process or on loopback."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from aiohttp import web

from ckptctl import Call, ControlError, ControlPlane, Coordination, Server
from ckptctl._protocol import PREFIX
from ckptctl.hosts.aiohttp import admit, install, reply, rollout_of
from ckptctl.testing import FaultyParticipant, ScriptedParticipant, Step
from ckptfmt import EpisodeId
from tests.ckptctl.support import settings

P = ParamSpec("P")
T = TypeVar("T")

TOKEN = "secret"
KINDS: Mapping[str, str] = {
    "tools": "resources",
    "agent-b": "agent",
    "agent-a": "agent",
    "policy": "policy_model",
    "environment": "environment",
}
"""Participants of a run, in an order that no verb uses."""


def on_a_loop(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Decorator: an async test of real sockets becomes a plain one."""

    @wraps(test)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        return asyncio.run(test(*args, **kwargs))

    return wrapper


class Node:
    """One server: a control plane over a scripted participant, behind faults. A new one is a new process."""

    def __init__(self, name: str = "agent-0", kind: str = "agent", **changed: Any) -> None:
        self.faults = FaultyParticipant(ScriptedParticipant(name, kind))
        self.episodes = self.faults.inner
        self.plane = ControlPlane(self.faults, settings(**changed))
        self._busy: dict[str, asyncio.Task[Any]] = {}

    async def add_inactive(self, *keys: str) -> None:
        """Episodes that can be saved, at their first boundary, with no task."""
        for key in keys:
            await self.episodes.start(EpisodeId.from_capture_key(key), [Step(0.0)], keep=True)

    async def busy(self, key: str, *, restart: str | None = None) -> None:
        """An episode in a long wait step: it blocks a prepare, unless it is a restart."""
        script = [Step(5000.0, mode="wait")]
        self._busy[key] = self.episodes.start(EpisodeId.from_capture_key(key), script, restart=restart)
        await asyncio.sleep(0)

    async def end(self, key: str) -> None:
        """That episode ends."""
        self._busy[key].cancel()
        await asyncio.wait([self._busy.pop(key)])

    def held(self) -> list[str]:
        """The capture keys of what this server holds, sorted."""
        return sorted(map(str, self.episodes.steps))

    @property
    def phase(self) -> str:
        return str(self.plane.status()["phase"])

    @property
    def admits(self) -> bool:
        return not self.plane.admission.closed

    def runs(self) -> bool:
        """Whether it is idle and admits."""
        return self.phase == "idle" and self.admits

    @property
    def marks(self) -> dict[str, int]:
        return self.plane.marks.as_dict()


@dataclass
class Sent:
    """A call that was sent, and the time of the loop."""

    name: str
    verb: str
    call: Call
    at: float

    @property
    def body(self) -> Any:
        return json.loads(self.call.body) if self.call.body else None


Fault = Callable[[Call], Awaitable[Any]]


@dataclass
class Wire:
    """Between a coordination and its servers: records each call, and lets chosen ones fail."""

    sent: list[Sent] = field(default_factory=list)
    log: list[tuple[str, str, str]] = field(default_factory=list)
    """Verb, ``began`` or ``ended``, and name, in order."""
    faults: dict[tuple[str, str], Fault] = field(default_factory=dict)
    """What happens instead of a call, by name and verb."""

    async def carry(self, name: str, call: Call, to: Fault) -> Any:
        self.sent.append(Sent(name, call.verb, call, asyncio.get_running_loop().time()))
        self.log.append((call.verb, "began", name))
        try:
            await asyncio.sleep(0)  # So that calls that are sent at once have all begun before one ends.
            return await self.faults.get((name, call.verb), to)(call)
        finally:
            self.log.append((call.verb, "ended", name))

    def groups(self, verb: str) -> list[set[str]]:
        """The servers that were called at once: each group began when the one before it had ended."""
        found: list[set[str]] = []
        running = 0
        for each, event, name in self.log:
            if each == verb and event == "began":
                if not running:
                    found.append(set())
                found[-1].add(name)
                running += 1
            elif each == verb:
                running -= 1
        return found

    def named(self, verb: str) -> list[str]:
        """The servers that got this call, in order."""
        return [each.name for each in self.sent if each.verb == verb]

    def bodies(self, verb: str) -> list[bytes]:
        return [each.call.body for each in self.sent if each.verb == verb]

    def fail(self, name: str, verb: str, error: BaseException) -> None:
        async def raises(call: Call) -> Any:
            raise error

        self.faults[name, verb] = raises

    def answer(self, name: str, verb: str, value: Any) -> None:
        async def answers(call: Call) -> Any:
            return value

        self.faults[name, verb] = answers

    def lose_reply(self, name: str, verb: str, to: Fault) -> None:
        """The call arrives and is served, and its connection breaks before the reply."""

        async def loses(call: Call) -> Any:
            await to(call)
            raise ConnectionResetError("the reply is lost")

        self.faults[name, verb] = loses

    def hang(self, name: str, *verbs: str) -> None:
        async def hangs(call: Call) -> Any:
            await asyncio.Event().wait()

        self.faults |= {(name, verb): hangs for verb in verbs}

    def heal(self) -> None:
        self.faults.clear()


class Cluster:
    """Servers in this process, and a coordination over them."""

    def __init__(
        self,
        kinds: Mapping[str, str] = KINDS,
        *,
        ranks: Mapping[str, tuple[int, int]] | None = None,
        **changed: Any,
    ) -> None:
        """``ranks``: rank and retire rank by name, for kinds without a rank of their own."""
        self._changed = changed
        self._ranks = ranks or {}
        self.wire = Wire()
        self.nodes = {name: Node(name, kind, **changed) for name, kind in kinds.items()}
        self.coordination = self.controller()

    def controller(self) -> Coordination:
        """A controller of its own over the same servers: a new process of it."""
        return Coordination(self.server(name) for name in self.nodes)

    def server(self, name: str) -> Server:
        async def transport(call: Call) -> dict[str, Any]:
            found: dict[str, Any] = await self.wire.carry(name, call, self.nodes[name].plane.call)
            return found

        rank, retire_rank = self._ranks.get(name, (None, None))
        return Server(name, self.nodes[name].faults.kind, transport, rank, retire_rank)

    def restart(self, *names: str) -> None:
        """New processes under these names; all for none."""
        for name in names or tuple(self.nodes):
            self.nodes[name] = Node(name, self.nodes[name].faults.kind, **self._changed)

    async def add_inactive(self, *keys: str, on: Collection[str] = ()) -> None:
        """Episodes that can be saved, on these servers; on all for none."""
        for name in on or self.nodes:
            await self.nodes[name].add_inactive(*keys)

    def phases(self) -> dict[str, str]:
        return {name: node.phase for name, node in self.nodes.items()}

    def all_run(self) -> bool:
        return all(node.runs() for node in self.nodes.values())


@dataclass
class Host:
    """A control plane behind aiohttp on loopback, with one route of a data plane."""

    node: Node
    port: int
    ran: list[str] = field(default_factory=list)
    """The capture keys whose ``/run`` was admitted."""
    waiting: list[web.Request] = field(default_factory=list)
    """Every ``/run`` that came, in order."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def state(self) -> Any:
        """Everything that a refused call must leave as it is."""
        node = self.node
        status = {**node.plane.status(), "lease_seconds_left": None}
        return status, node.admits, node.marks, list(node.faults.calls), node.held()


@asynccontextmanager
async def serving(node: Node, **options: Any) -> AsyncIterator[Host]:
    """A real server for a node; ``options`` are those of `aiohttp.web.AppRunner`."""
    host = Host(node, 0)

    async def run(request: web.Request) -> web.Response:
        host.waiting.append(request)
        episode = rollout_of(request)
        await admit(node.plane, request, episode)
        host.ran.append(episode.capture_key)
        return reply({"ran": episode.capture_key})

    app = web.Application()
    install(app, node.plane)
    app.router.add_post("/ng-rollout/{key}/run", run)
    runner = web.AppRunner(app, shutdown_timeout=0.1, **options)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host.port = runner.addresses[0][1]
        yield host
    finally:
        await node.plane.close()
        await runner.cleanup()


@asynccontextmanager
async def answering(data: bytes | None) -> AsyncIterator[str]:
    """The URL of a server that answers every connection with these bytes; None: with nothing, ever."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            if data is None:
                await reader.read()
            else:
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def http_reply(status: int, body: bytes | Mapping[str, Any] | Collection[Any], *headers: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(data)}", "Connection: close", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


@dataclass(frozen=True)
class Answer:
    """An HTTP reply."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """The code of an error reply, whose shape is checked here; None of another reply."""
        if self.status == 200:
            return None
        error = self.value["error"]
        assert error.keys() == {"code", "message", "retryable", "details"}, error
        assert type(error["message"]) is str
        assert type(error["retryable"]) is bool
        assert type(error["details"]) is dict
        return str(error["code"])


async def send(
    host: Host,
    verb: str,
    body: Any = b"",
    *,
    method: str | None = None,
    token: bytes | None = b"Bearer secret",
    headers: Collection[bytes] = (),
    path: str | None = None,
) -> Answer:
    """One request, byte by byte as given: no library repairs it. A body that is not bytes becomes JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"{method or ('GET' if verb == 'status' else 'POST')} {path or PREFIX + verb} HTTP/1.1".encode(),
        b"Host: 127.0.0.1",
        b"Connection: close",
        b"Content-Length: %d" % len(data),
        *headers,
    ]
    if token is not None:
        lines.append(b"Authorization: " + token)
    return await exchange(host, b"\r\n".join(lines) + b"\r\n\r\n" + data)


async def exchange(host: Host, data: bytes) -> Answer:
    """Send these bytes and read the reply to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", host.port)
    sending = asyncio.ensure_future(_write(writer, data))
    try:
        status = int((await reader.readline()).split()[1])
        headers = {}
        while line := (await reader.readline()).strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return Answer(status, headers, await reader.readexactly(int(headers.get("content-length", 0))))
    finally:
        sending.cancel()
        writer.transport.abort()


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    try:
        await writer.drain()
    except ConnectionError:
        return  # The server has answered, and reads no further.


def control_error(code: str, **details: Any) -> ControlError:
    return ControlError(code, "scripted", details=details)

"""The main program of every process of the demo: ``python -m ckptctl._demo.process``.

Its first line of standard input is its configuration (the token in it shows in no process list), the
second one the URLs of all servers. It tells its own on standard output. When standard input closes, the
supervisor is gone or done: the process ends, so none is ever left behind.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from typing import Any

from aiohttp import web

from ckptctl._demo.agent import AgentServer
from ckptctl._demo.controller import Controller, ControllerConfig
from ckptctl._demo.environment import EnvironmentServer
from ckptctl._demo.events import announce
from ckptctl._demo.model import ModelServer
from ckptctl._demo.resources import ToolServer
from ckptctl._demo.server import DemoServer, ServerConfig
from ckptctl._threads import in_thread

EXIT_SECONDS = 2.0


def main() -> None:
    config = json.loads(sys.stdin.readline())
    asyncio.run(_controller(config) if config["role"] == "controller" else _server(config))


async def _server(values: dict[str, Any]) -> None:
    server = _build(ServerConfig(**{**values, "others": tuple(values["others"])}))
    runner = web.AppRunner(server.app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    announce({"event": "ready", "url": f"http://{host}:{port}"})
    server.peers = json.loads(await in_thread(sys.stdin.readline))
    await _stdin_closed()
    await server.plane.close()
    await runner.cleanup()


async def _controller(values: dict[str, Any]) -> None:
    announce({"event": "ready", "url": ""})
    peers = json.loads(await in_thread(sys.stdin.readline))
    work = asyncio.create_task(Controller(ControllerConfig(**values), peers).run())
    closed = asyncio.create_task(_stdin_closed())
    await asyncio.wait([work, closed], return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()
    work.cancel()


def _build(config: ServerConfig) -> DemoServer:
    match config.role:
        case "environment":
            return EnvironmentServer(config)
        case "policy_model":
            return ModelServer(config)
        case "agent":
            return AgentServer(config, plain=config.name == "agent-plain")
        case _:
            return ToolServer(config)


async def _stdin_closed() -> None:
    await in_thread(sys.stdin.read)
    # Nothing that hangs from here on may keep the process alive.
    timer = threading.Timer(EXIT_SECONDS, os._exit, [1])
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()

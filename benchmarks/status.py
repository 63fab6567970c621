"""The reply times of ``status`` while a server commits, over HTTP from another process.

``python -m benchmarks.status`` reads a JSON line with a load, starts a server process that exports these
records, lets it prepare and commit, and polls status meanwhile. It prints a JSON line with the seconds of the
commit, and the reply times of status in seconds (median, p99, max) while idle and during the commit.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

import ckptfmt
from benchmarks.lag import summary
from benchmarks.sessions import Load
from ckptctl import Call, ControlPlane, EpisodeParticipant, Settings, Transport
from ckptctl.hosts.aiohttp import install
from ckptctl.transports.http import ControlClient
from ckptfmt import EpisodeId, Record

TOKEN = "benchmark"
POLL_SECONDS = 0.005


class _Exporter(EpisodeParticipant):
    """A participant that exports given records."""

    def __init__(self, given: list[Record]) -> None:
        super().__init__("agent-0", "agent")
        self._given = given

    async def export(self, scope: Collection[EpisodeId]) -> Sequence[Record]:
        return self._given


async def serve(shape: str, count: int) -> None:
    """Run the server process: print its port, and end when standard input is closed."""
    app = web.Application()
    install(app, ControlPlane(_Exporter(list(Load(shape, count).records())), Settings(True, TOKEN)))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def measure(shape: str, count: int) -> dict[str, Any]:
    """The seconds of a commit, and the reply times of status."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.status", "--serve", shape, str(count)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        port = int(await process.stdout.readline())
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as directory:
            return await _poll(f"http://127.0.0.1:{port}", directory, [f"{each}-0" for each in range(count)])
    finally:
        process.stdin.close()
        await process.wait()


async def _poll(url: str, directory: str, keys: list[str]) -> dict[str, Any]:
    async with ControlClient(TOKEN) as client:
        call = client.transport(url)
        cut = ckptfmt.create_cut(f"{directory}/step-1", "step-1")
        named = {"checkpoint_id": "step-1", "directory": cut.url}
        await call(Call("prepare", json.dumps(named).encode(), 60))
        idle = await _times(call, asyncio.create_task(asyncio.sleep(1.0)))
        began = time.perf_counter()
        body = json.dumps({**named, "episodes": keys}).encode()
        commit = asyncio.ensure_future(call(Call("commit", body, 600)))
        during = await _times(call, commit)
        seconds = time.perf_counter() - began
        await commit
        await call(Call("resume", json.dumps({"checkpoint_id": "step-1"}).encode(), 60))
    return {"seconds": seconds, "idle": summary(idle), "during": summary(during)}


async def _times(call: Transport, until: asyncio.Future[Any]) -> list[float]:
    found = []
    while not until.done():
        began = time.perf_counter()
        await call(Call("status", deadline_seconds=30))
        found.append(time.perf_counter() - began)
        await asyncio.sleep(POLL_SECONDS)
    return found


if __name__ == "__main__":
    if "--serve" in sys.argv:
        asyncio.run(serve(sys.argv[2], int(sys.argv[3])))
    else:
        request = Load(**json.loads(sys.stdin.readline()))
        print(json.dumps(asyncio.run(measure(request.shape, request.count))))

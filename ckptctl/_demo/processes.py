"""The processes of one life of the demo: start them, read their events, and end all of them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ckptctl import CkptctlError
from ckptctl._demo.events import Event

START_SECONDS = 60.0
STOP_SECONDS = 5.0
LINE_BYTES = 16 * 1024 * 1024

_ERROR = re.compile(r"[\w.]+(Error|Exception|Damaged|Conflict|NotPrepared)\b.*:")
"""A line of a traceback that says what happened, also inside the frame of an exception group."""


class DemoError(CkptctlError):
    """The demo cannot go on. The message says what happened, and where the log is."""


class Processes:
    """An async context, which ends every process, whatever ends the block."""

    def __init__(self, logs: Path, life: int, on_event: Callable[[str, Event], None]) -> None:
        self._logs = logs
        self._life = life
        self._on_event = on_event
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._readers: list[asyncio.Task[None]] = []
        self._urls: dict[str, asyncio.Future[str]] = {}
        self._killing = False
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Gets a `DemoError` when a process ends unexpectedly."""

    async def __aenter__(self) -> Processes:
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.stop()
        await self.kill()
        if not self.failed.cancel():
            self.failed.exception()  # Marks it as retrieved.

    async def start(self, configs: Mapping[str, Mapping[str, Any]]) -> None:
        """Start one process for each configuration, then tell all of them the URLs of all.

        Raises `DemoError` when one does not come up.
        """
        loop = asyncio.get_running_loop()
        self._urls = {name: loop.create_future() for name in configs}
        await asyncio.gather(*(self._spawn(name, config) for name, config in configs.items()))
        try:
            async with asyncio.timeout(START_SECONDS):
                urls = await asyncio.gather(*self._urls.values())
        except TimeoutError:
            text = f"the servers did not start within {START_SECONDS:.0f} s; see {self._logs}"
            raise DemoError(text) from None
        peers = dict(zip(self._urls, urls, strict=True))
        for process in self._processes.values():
            _tell(process, peers)

    async def kill(self) -> None:
        """SIGKILL to every process at once, and wait until all are gone."""
        self._killing = True
        for process in self._processes.values():
            if process.returncode is None:
                process.kill()
        await self._gone()

    async def stop(self) -> None:
        """Close the standard input of every process, by which it ends; those that do not are killed."""
        self._killing = True
        for process in self._processes.values():
            if process.stdin is not None:
                process.stdin.close()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._gone()
        except TimeoutError:
            await self.kill()

    async def _spawn(self, name: str, config: Mapping[str, Any]) -> None:
        with (self._logs / f"{self._life}-{name}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "ckptctl._demo.process",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=LINE_BYTES,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,  # Ctrl-C reaches only the supervisor, which ends them.
            )
        self._processes[name] = process
        self._readers.append(asyncio.create_task(self._read(name, process)))
        _tell(process, config)

    async def _read(self, name: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        done = False
        async for line in process.stdout:
            event: Event = json.loads(line)
            if event["event"] == "ready":
                if not self._urls[name].done():
                    self._urls[name].set_result(event["url"])
            else:
                done = done or event["event"] == "done"
                self._on_event(name, event)
        await process.wait()
        if not self._killing and not done and not self.failed.done():
            error = DemoError(self._why(name, process.returncode))
            self.failed.set_exception(error)
            for url in self._urls.values():
                if not url.done():
                    url.set_exception(error)

    def _why(self, name: str, status: int | None) -> str:
        path = self._logs / f"{self._life}-{name}.log"
        lines = [line.strip(" |+-") for line in path.read_text(errors="replace").splitlines()]
        errors = [line for line in lines if _ERROR.match(line)]
        last = (errors or [line for line in lines if line] or ["nothing was logged"])[-1]
        return f"{name} ended with status {status}: {last}; see {path}"

    async def _gone(self) -> None:
        for process in self._processes.values():
            await process.wait()
        for reader in self._readers:
            await reader


def _tell(process: asyncio.subprocess.Process, value: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(value).encode() + b"\n")

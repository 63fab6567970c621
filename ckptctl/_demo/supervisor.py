"""The supervisor of the demo: start all processes, kill them, and start them again until the run ends."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ckptctl._demo.crash_points import SERVER_CRASH_POINTS
from ckptctl._demo.events import Event
from ckptctl._demo.fleet import KINDS, run_folder
from ckptctl._demo.processes import DemoError, Processes

CONTROLLER_SECONDS = 300.0
"""A life that takes longer than this makes no progress."""

Watch = Callable[[Event], None]


@dataclass(frozen=True)
class DemoOptions:
    """What to run. ``crash_after``: seconds, a crash point, or None for a random moment."""

    tasks: Path
    rollouts: int
    seed: int
    directory: Path
    crashes: int = 1
    crash_after: float | str | None = None
    token_seconds: float = 0.02
    tool_seconds: float = 0.02
    checkpointing: bool = True


@dataclass
class Outcome:
    """The results of a run, and the events of its lives."""

    directory: Path
    results: dict[str, Any] = field(default_factory=dict)
    checkpoints: list[Event] = field(default_factory=list)
    restores: list[Event] = field(default_factory=list)
    kills: list[str] = field(default_factory=list)
    """Where each SIGKILL came."""
    lives: int = 0
    seconds: float = 0.0


class Supervisor:
    """Runs the lives of one run. ``watch`` gets every event, for display."""

    def __init__(self, options: DemoOptions, watch: Watch) -> None:
        self._options = options
        self._watch = watch
        self._outcome = Outcome(options.directory)

    async def run(self) -> Outcome:
        """Run to the end, with the crashes that the options ask for. Raises `DemoError`."""
        began = time.monotonic()
        run_folder(self._options.directory).mkdir(parents=True, exist_ok=True)
        for crash in self._planned_crashes():
            if await self._life(crash):
                break
        results = self._options.directory / "results.json"
        self._outcome.results = json.loads(results.read_text(encoding="utf-8"))
        self._outcome.seconds = time.monotonic() - began
        return self._outcome

    def _planned_crashes(self) -> list[float | str | None]:
        """When each life is killed, or None for the last one, which runs to its end.

        A crash right after a restore needs one before it, which comes at a random moment.
        """
        options = self._options
        chosen: float | str = "random" if options.crash_after is None else options.crash_after
        crashes = [chosen] * options.crashes
        if chosen == "restored" and crashes:
            crashes = ["random", *crashes]
        return [*crashes, None]

    async def _life(self, crash: float | str | None) -> bool:
        """Run one life. Returns whether it ran to its end: the crash may come too late."""
        loop = asyncio.get_running_loop()
        reached: asyncio.Future[str] = loop.create_future()
        ended: asyncio.Future[None] = loop.create_future()

        def on_event(name: str, event: Event) -> None:
            self._note(event)
            if event["event"] == "done":
                ended.set_result(None)
            elif event["event"] == "crash-point" and not reached.done():
                reached.set_result(event["point"])
            elif event["event"] == "second-checkpoint" and crash == "random":
                self._set_later(reached, self._random_delay(), "a random moment")

        life = self._outcome.lives
        self._outcome.lives += 1
        self._watch({"event": "starting", "life": life})
        async with Processes(self._options.directory / "logs", life, on_event) as processes:
            await processes.start(self._configs(crash))
            if isinstance(crash, float):
                self._set_later(reached, crash, f"after {crash:g} s")
            any_end: list[asyncio.Future[Any]] = [reached, ended, processes.failed]
            await asyncio.wait(any_end, timeout=CONTROLLER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if processes.failed.done():
                processes.failed.result()
            if ended.done():
                return True
            if not reached.done():
                raise DemoError(f"the run did not end within {CONTROLLER_SECONDS:.0f} s")
            await processes.kill()
        self._outcome.kills.append(reached.result())
        self._watch({"event": "killed", "point": reached.result(), "processes": len(KINDS) + 1})
        return False

    def _note(self, event: Event) -> None:
        if event["event"] == "checkpoint":
            self._outcome.checkpoints.append(event)
        elif event["event"] == "restored":
            self._outcome.restores.append(event)
        self._watch(event)

    def _random_delay(self) -> float:
        """A random number of seconds, which does not depend on the seed of the run."""
        return random.SystemRandom().uniform(0, 40 * self._options.token_seconds)

    @staticmethod
    def _set_later(future: asyncio.Future[str], seconds: float, value: str) -> None:
        asyncio.get_running_loop().call_later(
            seconds, lambda: None if future.done() else future.set_result(value)
        )

    def _configs(self, crash: float | str | None) -> dict[str, dict[str, Any]]:
        options = self._options
        token = secrets.token_hex(32)
        common = {"token": token, "directory": str(options.directory)}
        configs: dict[str, dict[str, Any]] = {
            name: {
                **common,
                "role": kind,
                "name": name,
                "seed": options.seed,
                "token_seconds": options.token_seconds,
                "tool_seconds": options.tool_seconds,
                "hold": crash if name == "environment" and crash in SERVER_CRASH_POINTS else None,
                "others": [other for other in KINDS if other != name],
            }
            for name, kind in KINDS.items()
        }
        configs["controller"] = {
            **common,
            "role": "controller",
            "tasks": str(options.tasks),
            "rollouts": options.rollouts,
            "checkpointing": options.checkpointing,
            "crash_point": crash if isinstance(crash, str) else None,
        }
        return configs


def reference_options(options: DemoOptions) -> DemoOptions:
    """The same tasks without a crash, and without a checkpoint."""
    return replace(options, directory=options.directory / "reference", crashes=0, checkpointing=False)

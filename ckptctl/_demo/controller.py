"""The demo's training controller: it sends rollouts, checkpoints them while they run, and restores them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import ckptfmt
from ckptctl import Coordination, Ledger, Server, first_attempt
from ckptctl._demo.events import announce
from ckptctl._demo.fleet import KINDS, last_checkpoint, rollout_ids, run_folder
from ckptctl._demo.server import data_client
from ckptctl._demo.tasks import Task, load_tasks
from ckptctl._threads import in_thread
from ckptctl.transports.http import ControlClient
from ckptfmt import EpisodeId

CHECKPOINTS = (0.3, 0.6)
"""When the checkpoints of a life are saved: shares of the tokens that it has to generate."""
TOKENS_A_TURN = 35
"""The approximate number of tokens of a turn of the bundled tasks."""
REPLY_WAIT_SECONDS = 2.0
PROGRESS_SECONDS = 0.2


@dataclass(frozen=True)
class ControllerConfig:
    """What the supervisor tells the controller process."""

    role: str
    token: str
    directory: str
    tasks: str
    rollouts: int
    checkpointing: bool
    crash_point: str | None
    """Where to stop and wait for the SIGKILL, if at a point of the controller."""


@dataclass(frozen=True)
class CheckpointFigures:
    """What one checkpoint took. Times are seconds."""

    checkpoint: str
    episodes: int
    restarts: int
    bytes: int
    prepare: float
    commit: float
    publish: float
    stood_still: float


class Controller:
    """One life of the run."""

    def __init__(self, config: ControllerConfig, peers: Mapping[str, str]) -> None:
        self._config = config
        self._peers = peers
        self._run = run_folder(Path(config.directory))
        self._tasks: dict[str, Task] = dict(rollout_ids(load_tasks(config.tasks), config.rollouts))
        self._token_log = Path(config.directory) / "live" / "policy.jsonl"
        self._tokens_before = _lines(self._token_log)
        self._ledger = Ledger()
        self._runs: dict[EpisodeId, asyncio.Task[None]] = {}
        self._gate = asyncio.Event()
        """Set while requests may be sent: not from prepare until the ledger is captured (CO9)."""
        self._gate.set()

    async def run(self) -> None:
        """Start or restore the run, wait for all rollouts, and write the results to a file."""
        async with (
            ControlClient(self._config.token) as control,
            data_client() as self._client,
        ):
            self._coordination = Coordination(
                Server(name, kind, control.transport(self._peers[name])) for name, kind in KINDS.items()
            )
            progress = asyncio.create_task(self._report_progress())
            # A rollout that fails ends this life at once: the group cancels the rest.
            async with asyncio.TaskGroup() as self._group:
                found = await in_thread(lambda: last_checkpoint(self._run))
                if found is None:
                    await self._start()
                else:
                    await self._restore(found)
                if self._config.checkpointing:
                    await self._checkpoint_while_running(found)
            progress.cancel()
            await self._coordination.forget(self._coordination.marks.as_dict())
        results = Path(self._config.directory) / "results.json"
        results.write_text(json.dumps(self._ledger.settled), encoding="utf-8")
        announce({"event": "done"})

    async def _start(self) -> None:
        """Begin a life without a checkpoint: every rollout from its input."""
        life = await in_thread(lambda: ckptfmt.start_life(str(self._run)))
        announce({"event": "life", "life": life})
        for rollout_id in self._tasks:
            self._dispatch(EpisodeId(rollout_id, first_attempt(life)))

    async def _restore(self, checkpoint: ckptfmt.Checkpoint) -> None:
        """Continue the run from ``checkpoint.json`` alone."""
        began = time.monotonic()
        async with self._coordination.restored(checkpoint.url) as restored:
            self._ledger = Ledger.from_value(restored.state)
            settled = self._ledger.settled
            restarts = [each for each in restored.restarts if each.rollout_id not in settled]
            # What is left of them must not interfere with the new attempts (RS5).
            await self._coordination.retire(restarts)
            announce(
                {
                    "event": "restored",
                    "life": restored.life,
                    "checkpoint": checkpoint.url,
                    "source": restored.source_checkpoint_id,
                    "continued": sorted(each.rollout_id for each in restored.episodes),
                    "restarted": sorted(each.rollout_id for each in restarts),
                    "finished": sorted(settled),
                    "seconds": time.monotonic() - began,
                }
            )
            await self._reach("restored")
        for episode in restored.episodes.values():
            self._dispatch(episode)
        for restart in restarts:
            self._dispatch(EpisodeId(restart.rollout_id, first_attempt(restored.life)))

    def _dispatch(self, episode: EpisodeId) -> None:
        self._ledger.dispatch(episode)
        run = self._group.create_task(self._send(episode))
        self._runs[episode] = run
        run.add_done_callback(lambda _: self._runs.pop(episode))

    async def _send(self, episode: EpisodeId) -> None:
        """One ``/run``, never sent again after a dropped connection: it may be running (CO8)."""
        await self._gate.wait()
        body: dict[str, Any] = {"task": self._tasks[episode.rollout_id].row()}
        if episode.attempt:
            body["_ng_rollout_id"] = episode.capture_key
        else:
            task_index, rollout_index = episode.rollout_id.split("-")
            body |= {"_ng_task_index": int(task_index), "_ng_rollout_index": int(rollout_index)}
        url = self._peers["environment"] + "/run"
        async with self._client.post(url, data=json.dumps(body)) as response:
            text = await response.text()
            if response.status != 200:
                raise RuntimeError(f"rollout {episode} failed: HTTP {response.status} {text[:500]}")
        self._ledger.settle(episode, json.loads(text))

    async def _checkpoint_while_running(self, restored: ckptfmt.Checkpoint | None) -> None:
        sequence = 0 if restored is None else restored.sequence or 0
        left = TOKENS_A_TURN * sum(self._tasks[each.rollout_id].turns for each in self._ledger.in_flight())
        if restored is not None:
            left -= sum(record.boundary or 0 for record in restored["policy"])
        for share in CHECKPOINTS:
            if not await self._tokens_reached(share * left):
                return
            sequence += 1
            await self._checkpoint(sequence, last=share == CHECKPOINTS[-1])

    async def _checkpoint(self, sequence: int, *, last: bool) -> None:
        name = f"step-{sequence:04d}"
        if last:
            await self._reach("before-prepare")
        self._gate.clear()
        clock = _Clock()
        async with self._coordination.prepared(name, str(self._run / name)) as cut:
            prepare = clock.lap("prepared")
            if last:
                await self._reach("prepared")
            committed = await cut.commit(cut.continued(self._ledger.in_flight()))
            commit = clock.lap("committed")
            unstarted = await committed.wait_for_replies(self._runs, timeout=REPLY_WAIT_SECONDS)
            state = self._ledger.value()
        stood_still = clock.since_start("resumed")
        self._gate.set()
        if last:
            await self._reach("before-publish")
        clock.lap()
        await in_thread(lambda: committed.publish(sequence=sequence, state=state, unstarted=unstarted))
        figures = CheckpointFigures(
            checkpoint=name,
            episodes=len(committed.episodes),
            restarts=len(committed.restarts),
            bytes=committed.bytes,
            prepare=prepare,
            commit=commit,
            publish=clock.lap("published"),
            stood_still=stood_still,
        )
        announce({"event": "checkpoint", **asdict(figures)})
        if last:
            await self._reach("resumed")
            announce({"event": "second-checkpoint"})

    async def _tokens_reached(self, tokens: float) -> bool:
        """Wait until this life has generated so many tokens, or False when it ended before."""
        while self._runs:
            if self._live_tokens() >= tokens:
                return True
            await asyncio.wait(self._runs.values(), timeout=0.02)
        return False

    def _live_tokens(self) -> int:
        """Tokens that the policy model has generated in this life, from its log."""
        return _lines(self._token_log) - self._tokens_before

    async def _reach(self, point: str) -> None:
        """Stop here when this is where the SIGKILL is wanted."""
        announce({"event": "phase", "phase": point})
        if self._config.crash_point == point:
            announce({"event": "crash-point", "point": point})
            await asyncio.Event().wait()

    async def _report_progress(self) -> None:
        while True:
            announce(
                {
                    "event": "progress",
                    "finished": len(self._ledger.settled),
                    "running": len(self._runs),
                    "tokens": self._live_tokens(),
                }
            )
            await asyncio.sleep(PROGRESS_SECONDS)


class _Clock:
    """Laps in seconds, each announced as a phase of the checkpoint."""

    def __init__(self) -> None:
        self._start = self._last = time.monotonic()
        announce({"event": "phase", "phase": "preparing"})

    def lap(self, phase: str | None = None) -> float:
        now = time.monotonic()
        seconds, self._last = now - self._last, now
        if phase is not None:
            announce({"event": "phase", "phase": phase})
        return seconds

    def since_start(self, phase: str) -> float:
        self.lap(phase)
        return self._last - self._start


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0

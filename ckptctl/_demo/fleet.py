"""The demo's servers and folders, and which rollout runs which task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import ckptfmt
from ckptctl._demo.tasks import Task

KINDS: Mapping[str, str] = {
    "environment": "environment",
    "policy": "policy_model",
    "agent-stateful": "agent",
    "agent-plain": "agent",
    "tools-warehouse": "resources",
    "tools-ledger": "resources",
}
"""Participant name to kind. Each is a process of its own."""


def run_folder(directory: Path) -> Path:
    """The run's folder: lives and checkpoints."""
    return directory / "run"


def rollout_ids(tasks: Sequence[Task], rollouts: int) -> Iterator[tuple[str, Task]]:
    """The rollouts of a run: ``<task index>-<rollout index>`` and its task. The tasks alternate."""
    for number in range(rollouts):
        yield f"{number % len(tasks)}-{number // len(tasks)}", tasks[number % len(tasks)]


def last_checkpoint(run: Path) -> ckptfmt.Checkpoint | None:
    """The complete checkpoint of the highest sequence, if any. Raises the error of an unreadable one."""
    complete = [ckptfmt.open(str(path.parent)) for path in run.glob("*/checkpoint.json")]
    return max(complete, key=lambda checkpoint: checkpoint.sequence or 0, default=None)

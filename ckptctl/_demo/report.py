"""The report of the demo: whether the crash changed any result, and what the checkpoint saved.

``identical`` means two things: every result equals that of the run without a crash, field by field; and the
work that was done after the restore is exactly what the restored cut did not hold, token by token and call by
call. A run that silently starts over has the same results, but is not identical.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ckptfmt
from ckptctl._demo.live_log import count_live
from ckptctl._demo.supervisor import DemoOptions, Outcome
from ckptfmt.testing import differences

MOST_DIFFERENCES = 20
_UNITS = {"token": ("policy_model",), "call": ("resources",)}
"""The counted work, and the kinds of participants whose boundaries in a checkpoint count the same work."""


@dataclass(frozen=True)
class DemoReport:
    """The report. Times are seconds, sizes bytes; a checkpoint's path is None when none was completed."""

    identical: bool
    rollouts: int
    continued: int
    restarted: int
    finished_before_crash: int
    steps_total: int
    steps_saved: int
    tokens_total: int
    tokens_saved: int
    checkpoint: str | None
    seconds: float
    reference_seconds: float
    seed: int
    kills: list[str]
    checkpoints: list[dict[str, Any]]
    restores: list[dict[str, Any]]
    differences: list[str]

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def make_report(options: DemoOptions, outcome: Outcome, reference: Outcome) -> DemoReport:
    """Compare the run with crashes with the one without. Raises an error for a checkpoint that is damaged."""
    wanted = reference.results
    groups = _groups(outcome, list(wanted))
    saved = _saved(groups["checkpoint"])
    found = differences(
        {key: wanted[key] for key in sorted(wanted)},
        {key: outcome.results[key] for key in sorted(outcome.results)},
    )
    found += _miscounted(outcome, reference, groups, saved)
    continued = groups["continued"]
    return DemoReport(
        identical=not found,
        rollouts=options.rollouts,
        continued=len(continued),
        restarted=len(groups["restarted"]),
        finished_before_crash=len(groups["finished"]),
        steps_total=sum(sum(result["steps"].values()) for result in wanted.values()),
        steps_saved=sum(saved[kind][key] for kind in ("environment", "agent") for key in continued),
        tokens_total=sum(_live(reference, "token", 0).values()),
        tokens_saved=sum(saved["policy_model"][key] for key in continued),
        checkpoint=_last_checkpoint(outcome),
        seconds=round(outcome.seconds, 3),
        reference_seconds=round(reference.seconds, 3),
        seed=options.seed,
        kills=outcome.kills,
        checkpoints=[_figures(event) for event in outcome.checkpoints],
        restores=[
            {"checkpoint": event["checkpoint"], "life": event["life"], "seconds": round(event["seconds"], 4)}
            for event in outcome.restores
        ],
        differences=found[:MOST_DIFFERENCES],
    )


def _groups(outcome: Outcome, rollouts: list[str]) -> dict[str, Any]:
    """Which rollouts were continued, restarted, or finished at the restored cut."""
    if outcome.restores:
        return outcome.restores[-1]
    # No crash at all, or one before any checkpoint was complete: then everything started over.
    nothing: list[str] = []
    lost = bool(outcome.kills)
    return {
        "continued": nothing,
        "restarted": rollouts if lost else nothing,
        "finished": nothing if lost else rollouts,
        "checkpoint": None,
        "life": None,
    }


def _saved(checkpoint: str | None) -> Mapping[str, Counter[str]]:
    """The boundaries in a checkpoint: kind of participant -> rollout id -> number of steps done."""
    found: dict[str, Counter[str]] = {
        kind: Counter() for kind in ("environment", "agent", "policy_model", "resources")
    }
    if checkpoint is not None:
        for part in ckptfmt.open(checkpoint).values():
            for record in part:
                found[part.kind][record.episode.rollout_id] += record.boundary or 0
    return found


def _miscounted(
    outcome: Outcome, reference: Outcome, groups: Mapping[str, Any], saved: Mapping[str, Counter[str]]
) -> list[str]:
    """Rollouts of which more or less work was done in the last life than the restored cut had left."""
    problems = []
    for what, kinds in _UNITS.items():
        whole = _live(reference, what, 0)
        life = groups["life"]
        live = _live(outcome, what, life)
        for key in sorted(whole | live):
            held = sum(saved[kind][key] for kind in kinds) if key in groups["continued"] else 0
            left = 0 if life is not None and key in groups["finished"] else whole[key] - held
            if live[key] != left:
                problems.append(f"rollout {key}: {live[key]} {what}s ran live after the crash, not {left}")
    return problems


def _live(outcome: Outcome, what: str, life: int | None) -> Counter[str]:
    """The work that was done in one life, the last one by default: rollout id -> number."""
    lives = count_live(outcome.directory / "live", what)
    return lives.get(max(lives, default=0) if life is None else life, Counter())


def _last_checkpoint(outcome: Outcome) -> str | None:
    if outcome.restores:
        return str(outcome.restores[-1]["checkpoint"])
    if outcome.checkpoints:
        return str(outcome.directory / "run" / outcome.checkpoints[-1]["checkpoint"])
    return None


def _figures(event: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in event.items()
        if name != "event"
    }

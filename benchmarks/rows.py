"""The rows of a benchmark: medians of alternating runs, and their ratios."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.floor import STAGES_OF_CASE
from benchmarks.sessions import Load

OURS = {"commit-local": "ckptfmt", "restore-lazy": "ckptfmt-lazy", "restore-decoded": "ckptfmt"}
BASELINE = "source-method"


def run(module: str, request: dict[str, Any]) -> dict[str, Any]:
    """Run one measurement in a new process."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}"],
        input=json.dumps(request) + "\n",
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return dict(json.loads(done.stdout))


def compared(case: str, load: Load, rounds: int, peers: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One row for ckptfmt and one for each other method. The methods alternate; a row holds medians."""
    ours, stages = OURS[case], STAGES_OF_CASE[case]
    methods = [ours, BASELINE, *peers, *stages]
    found: dict[str, list[dict[str, Any]]] = {method: [] for method in methods}
    for _ in range(rounds):
        for method in methods:
            request = {"case": case, "method": method, "load": asdict(load)}
            found[method].append(run("worker", request))
    seconds = {method: statistics.median(each["seconds"] for each in found[method]) for method in methods}
    floor = max(seconds[stage] for stage in stages)
    return [
        {
            "case": case,
            "shape": load.shape,
            "method": "ckptfmt" if method == ours else method,
            "records": load.count,
            "bytes": found[method][0]["bytes"],
            "seconds": seconds[method],
            "ratio_vs_source_method": seconds[BASELINE] / seconds[method],
            "ratio_vs_floor": seconds[method] / floor,
            "peak_rss": max(each["peak_rss"] for each in found[method]),
            "peak_beyond_records": max(each["peak_rss"] - each["rss_before"] for each in found[method]),
            "nan": load.nan,
            "stages": {stage: seconds[stage] for stage in stages},
        }
        for method in (ours, BASELINE, *peers)
    ]


def single(case: str, load: Load) -> dict[str, Any]:
    """A row of one measurement without a comparison."""
    return _row(case, load, run("worker", {"case": case, "method": "ckptfmt", "load": asdict(load)}))


def lag(load: Load) -> dict[str, Any]:
    """A row of the event-loop lag during a commit."""
    return _row("lag", load, run("lag", asdict(load)))


def status(load: Load) -> dict[str, Any]:
    """A row of the reply times of status during a commit."""
    return _row("status-during-commit", load, run("status", asdict(load)))


def _row(case: str, load: Load, found: dict[str, Any]) -> dict[str, Any]:
    """A row with the members of every row. Values that were not measured are None."""
    named = {"case": case, "shape": load.shape, "records": load.count}
    unknown = dict.fromkeys(("ratio_vs_source_method", "ratio_vs_floor", "peak_rss"))
    return {**named, "bytes": load.count * load.size, **unknown, **found}

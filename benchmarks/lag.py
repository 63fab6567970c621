"""The lag of an event loop while a commit runs in another thread of the same process.

``python -m benchmarks.lag`` reads a JSON line with a load. It prints a JSON line with the seconds by which a
timer of 1 ms fires late: median, p99 and maximum.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.sessions import Load

TICK_SECONDS = 0.001


async def measure(load: Load) -> dict[str, Any]:
    """The seconds of a commit, and the lag of the event loop meanwhile."""
    given = list(load.records())
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as name:
        began = time.perf_counter()
        commit = asyncio.ensure_future(asyncio.to_thread(peers.ckptfmt_commit, Path(name), given))
        late = []
        while not commit.done():
            before = time.perf_counter()
            await asyncio.sleep(TICK_SECONDS)
            late.append(time.perf_counter() - before - TICK_SECONDS)
        await commit
    return {"seconds": time.perf_counter() - began, **summary(late)}


def summary(times: list[float]) -> dict[str, float]:
    """Median, p99 and maximum."""
    ordered = sorted(times)
    return {
        "count": len(ordered),
        "median": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
        "max": ordered[-1],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Load(**json.loads(sys.stdin.readline()))))))

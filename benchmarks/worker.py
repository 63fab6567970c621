"""One measurement in its own process: ``python -m benchmarks.worker`` reads a JSON line and prints one."""

from __future__ import annotations

import gc
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ckptfmt
from benchmarks import floor, peers
from benchmarks.sessions import Load


def measure(case: str, method: str, load: Load) -> dict[str, Any]:
    """The seconds, the bytes on disk, and the resident memory in bytes: its peak, and before the run."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as name:
        directory = Path(name)
        if case == "one-record":
            return _one_record(directory, load)
        if case == "stream":
            return _stream(directory, load)
        if method in floor.STAGES:
            run = floor.STAGES[method](directory, list(load.records()))
        elif case == "commit-local":
            given = list(load.records())
            commit = peers.peer(method).commit
            run = lambda: commit(directory, given)  # noqa: E731  # the two cases read side by side
        else:
            peers.peer(method).commit(directory, load.records())
            restore = peers.peer(method).restore
            run = lambda: restore(directory)  # noqa: E731
        return {**_timed(run), "bytes": _stored(directory)}


def _timed(run: Callable[[], object]) -> dict[str, Any]:
    gc.collect()
    with _PeakMemory() as memory:
        began = time.perf_counter()
        kept = run()
        seconds = time.perf_counter() - began
    del kept
    return {"seconds": seconds, "peak_rss": memory.peak, "rss_before": memory.before}


def _one_record(directory: Path, load: Load) -> dict[str, Any]:
    """The median seconds to open a checkpoint and decode one record."""
    peers.ckptfmt_commit(directory, load.records())
    chosen = random.Random(1).choices(range(load.count), k=21)
    times = []
    for number in chosen:
        began = time.perf_counter()
        payload = ckptfmt.open_participant(str(directory), "agent-0")[f"{number}-0"].payload
        times.append(time.perf_counter() - began)
        assert payload
    return {"seconds": statistics.median(times), "bytes": _stored(directory), "peak_rss": _resident()}


def _stream(directory: Path, load: Load) -> dict[str, Any]:
    """A commit of records that are built one by one: its total memory should not depend on their number."""
    found = _timed(lambda: peers.ckptfmt_commit(directory, load.records()))
    return {**found, "bytes": _stored(directory)}


def _stored(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


class _PeakMemory:
    """The peak resident memory in bytes during the block, sampled every 2 ms."""

    def __enter__(self) -> _PeakMemory:
        self.before = self.peak = _resident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.002):
            self.peak = max(self.peak, _resident())


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    request = json.loads(sys.stdin.readline())
    print(json.dumps(measure(request["case"], request["method"], Load(**request["load"]))))

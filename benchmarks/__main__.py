"""``python -m benchmarks`` prints tables; ``--json FILE`` writes the rows, ``--plot FILE`` a chart.

Every measurement runs in a process of its own, with freshly built records. The methods alternate, and their
medians are compared within one run.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import rows, tables
from benchmarks.sessions import SHAPES, Load
from ckptfmt._values.compiled import form

PEERS = ("pickle", "json", "msgpack", "langgraph")
CASES = ("commit-local", "restore-lazy", "restore-decoded")


def quick() -> Iterator[dict[str, Any]]:
    """The rows of a short run: fewer records, one round, under two minutes."""
    for shape in SHAPES:
        for case in CASES:
            yield from rows.compared(case, Load(shape, 100), 1)
    yield from rows.compared("commit-local", Load("text", 100), 1, PEERS)[2:]
    yield rows.single("one-record", Load("text", 10_000, 1000))
    yield rows.single("stream", Load("text", 300))
    yield rows.lag(Load("mixed", 200))
    yield rows.status(Load("mixed", 200))


def full() -> Iterator[dict[str, Any]]:
    """The rows of a full run, under ten minutes."""
    for shape in ("text", "tokens", "small"):
        for case in CASES:
            yield from rows.compared(case, Load(shape, 150), 3)
    for case in ("commit-local", "restore-decoded"):
        yield from rows.compared(case, Load("mixed", 60), 1, PEERS)
    for nan in (0.01, 1.0):
        for shape in ("text", "tokens", "small"):
            for case in ("commit-local", "restore-decoded"):
                yield rows.compared(case, Load(shape, 30, nan=nan), 1)[0]
    for shape in ("text", "tokens", "small"):
        yield rows.compared("commit-local", Load(shape, 1000), 1)[0]
    yield rows.compared("commit-local", Load("mixed", 100_000, 1000), 1)[0]
    yield rows.compared("commit-local", Load("mixed", 3, 50_000_000), 1)[0]
    yield rows.single("one-record", Load("text", 10_000, 1000))
    yield rows.single("one-record", Load("text", 1_000_000, 10))
    for count in (300, 3000, 12_000):
        yield rows.single("stream", Load("text", count))
    yield rows.lag(Load("mixed", 1000))
    yield rows.lag(Load("mixed", 10, 50_000_000))
    yield rows.status(Load("mixed", 1000))


def main() -> None:
    """Measure, and print or write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer records and rounds: under 2 minutes")
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the rows to this file")
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, help="also draw the comparison to this file (.svg or .png)"
    )
    options = parser.parse_args()
    console = Console()
    began = time.monotonic()
    found = []
    for row in quick() if options.quick else full():
        found.append(row)
        console.print(f"{time.monotonic() - began:5.0f} s  {row['case']} {row['shape']}", style="dim")
    machine = f"{platform.machine()}, Python {platform.python_version()}, {form()}"
    console.print(f"{machine}, {time.strftime('%Y-%m-%d')}")
    tables.show(found, console)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        from benchmarks.plot import draw

        draw(found, options.plot)


if __name__ == "__main__":
    main()

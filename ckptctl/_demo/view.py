"""The display of the demo on standard error: a live view in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ckptctl._demo.events import Event

RECENT_LINES = 14


class View:
    """A context that shows events until it ends."""

    def __init__(self, rollouts: int, *, quiet: bool = False) -> None:
        self._rollouts = rollouts
        self._quiet = quiet
        self._console = Console(stderr=True)
        self._began = time.monotonic()
        self._title = ""
        self._lines: list[str] = []
        self._phase = "starting"
        self._finished = self._running = self._tokens = 0
        self._live: Live | None = None

    def __enter__(self) -> View:
        if self._console.is_terminal and not self._quiet:
            self._live = Live(self._draw(), console=self._console, refresh_per_second=8, transient=True)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def begin(self, title: str) -> None:
        """A run begins."""
        self._title = title
        self._say(title)

    def watch(self, event: Event) -> None:
        """Show one event of the run."""
        match event:
            case {"event": "progress"}:
                self._finished, self._running = event["finished"], event["running"]
                self._tokens = event["tokens"]
            case {"event": "phase"}:
                self._phase = event["phase"]
            case {"event": "starting"}:
                self._phase = "starting servers"
                self._say(f"life {event['life']}: starting 6 servers and a controller")
            case {"event": "life"}:
                self._phase = "running"
                self._say("all rollouts begin from their input")
            case {"event": "checkpoint"}:
                self._phase = "running"
                self._say(
                    f"{event['checkpoint']}: {event['episodes']} episodes, {event['restarts']} restarts, "
                    f"{event['bytes'] / 1024:.0f} KiB, "
                    f"rollouts were paused for {event['stood_still'] * 1000:.0f} ms"
                )
            case {"event": "killed"}:
                self._say(f"SIGKILL to all {event['processes']} processes: {event['point']}")
            case {"event": "restored"}:
                self._phase = "running"
                self._say(
                    f"restored {event['source']} in {event['seconds'] * 1000:.0f} ms: "
                    f"{len(event['continued'])} continue, {len(event['restarted'])} start over, "
                    f"{len(event['finished'])} were finished"
                )
            case {"event": "done"}:
                self._phase = "done"
                self._say("every rollout has finished")
        if self._live is not None:
            self._live.update(self._draw())

    def _say(self, line: str) -> None:
        stamped = f"{time.monotonic() - self._began:6.1f} s  {line}"
        self._lines.append(stamped)
        if self._live is None and not self._quiet:
            print(stamped, file=sys.stderr, flush=True)

    def _draw(self) -> Table:
        table = Table.grid(padding=(0, 1))
        for line in self._lines[-RECENT_LINES:]:
            table.add_row(Text(line))
        done = round(40 * self._finished / max(1, self._rollouts))
        bar = Text("█" * done, style="green") + Text("░" * (40 - done), style="dim")
        counts = f" {self._finished}/{self._rollouts} done, {self._running} in flight, {self._tokens} tokens"
        table.add_row(bar + Text(counts))
        table.add_row(Text(f"{self._title}: {self._phase}", style="bold"))
        return table


def show_report(report: dict[str, object], console: Console) -> None:
    """The report for people, on standard output."""
    identical = bool(report["identical"])
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in _rows(report):
        table.add_row(Text(name, style="dim"), Text(value))
    verdict = (
        "identical to the run without a crash" if identical else "NOT identical to the run without a crash"
    )
    console.print(Text(verdict, style="bold green" if identical else "bold red"))
    console.print(table)
    differences = report["differences"]
    assert isinstance(differences, list)
    for each in differences:
        console.print(Text(f"  {each}", style="red"))
    if report["checkpoint"] is not None:
        url = str(report["checkpoint"])
        console.print(Text("To look at the checkpoint:"))
        for command in (f"ckptfmt show {url}", f"ckptfmt cat {url} agent-stateful", f"ckptfmt verify {url}"):
            console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)


def _rows(report: dict[str, object]) -> list[tuple[str, str]]:
    r: dict[str, object] = report
    checkpoints, restores = r["checkpoints"], r["restores"]
    assert isinstance(checkpoints, list)
    assert isinstance(restores, list)
    kills = r["kills"]
    assert isinstance(kills, list)
    rows = [
        (
            "rollouts",
            f"{r['rollouts']}: {r['continued']} continued, {r['restarted']} started over, "
            f"{r['finished_before_crash']} were finished at the restored cut",
        ),
        ("steps saved", f"{r['steps_saved']} of {r['steps_total']}"),
        ("tokens saved", f"{r['tokens_saved']} of {r['tokens_total']}"),
        ("killed", ", ".join(map(str, kills)) or "never"),
    ]
    rows += [
        (
            str(each["checkpoint"]),
            f"prepare {each['prepare'] * 1000:.0f} ms, commit {each['commit'] * 1000:.0f} ms "
            f"({each['bytes'] / 1024:.0f} KiB), publish {each['publish'] * 1000:.0f} ms; "
            f"rollouts were paused for {each['stood_still'] * 1000:.0f} ms",
        )
        for each in checkpoints
    ]
    rows += [("restore", f"{each['seconds'] * 1000:.0f} ms, life {each['life']}") for each in restores]
    rows.append(("time", f"{r['seconds']} s with the crash, {r['reference_seconds']} s without"))
    return rows

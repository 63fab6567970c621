"""The demo with real processes: killed at each crash point, it ends as without the crash."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptctl._demo.crash_points import CRASH_POINTS
from ckptctl._demo.main import run_demo, run_reference
from ckptctl._demo.report import DemoReport, make_report
from ckptctl._demo.supervisor import DemoOptions, Outcome
from ckptctl._demo.tasks import bundled_tasks_path
from tests.polling import block_until

ROLLOUTS = 8
SEEDS = (1, 2)
PLAIN = 1
"""Of the first eight bundled tasks, one is for the agent without session hooks."""

pytestmark = pytest.mark.timeout(180)


def options(directory: Path, seed: int, **more: Any) -> DemoOptions:
    return DemoOptions(
        tasks=bundled_tasks_path(),
        rollouts=ROLLOUTS,
        seed=seed,
        directory=directory,
        token_seconds=0.005,
        tool_seconds=0.005,
        **more,
    )


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Outcome]:
    """The run without a crash, once for each seed."""
    found: dict[int, Outcome] = {}

    def get(seed: int) -> Outcome:
        if seed not in found:
            found[seed] = run_reference(options(tmp_path_factory.mktemp(f"reference-{seed}"), seed))
        return found[seed]

    return get


def check_counts(report: DemoReport) -> None:
    assert report.continued + report.restarted + report.finished_before_crash == report.rollouts == ROLLOUTS
    assert 0 <= report.steps_saved <= report.steps_total
    assert 0 <= report.tokens_saved <= report.tokens_total


@pytest.mark.req("S7", "CM1", "CO11", "CO13", "CP4", "RE7", "ST10", "RS5")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("moment", CRASH_POINTS)
def test_killed_at_a_crash_point_it_ends_as_without_the_crash(
    moment: str, seed: int, tmp_path: Path, reference: Callable[[int], Outcome]
) -> None:
    expected = reference(seed)
    report = run_demo(options(tmp_path, seed, crash_after=moment), quiet=True, reference=expected)
    assert report.differences == []
    assert report.identical
    check_counts(report)
    assert moment in report.kills
    assert report.continued > 0
    assert report.restarted <= PLAIN
    assert report.steps_saved > 0
    assert report.tokens_saved > 0
    # Killed before the second checkpoint was complete, the first one is restored; else the second.
    complete = moment in ("resumed", "restored")
    assert report.checkpoint is not None
    assert Path(report.checkpoint).name == ("step-0002" if complete else "step-0001")
    assert ckptfmt.open(report.checkpoint).verify().ok
    assert len(report.restores) == (2 if moment == "restored" else 1)


@pytest.mark.req("S7")
def test_killed_before_any_checkpoint_everything_starts_over(
    tmp_path: Path, reference: Callable[[int], Outcome]
) -> None:
    expected = reference(1)
    report = run_demo(options(tmp_path, 1, crash_after=0.2), quiet=True, reference=expected)
    check_counts(report)
    assert report.identical
    assert (report.continued, report.restarted, report.steps_saved) == (0, ROLLOUTS, 0)
    assert report.restores == []


@pytest.mark.req("S7", "CO13")
def test_two_crashes_in_a_row(tmp_path: Path, reference: Callable[[int], Outcome]) -> None:
    expected = reference(2)
    report = run_demo(options(tmp_path, 2, crash_after="prepared", crashes=2), quiet=True, reference=expected)
    check_counts(report)
    assert report.identical
    assert report.kills == ["prepared", "prepared"]
    assert [each["life"] for each in report.restores] == [1, 2]
    lives = sorted(path.name for path in (tmp_path / "run" / "lives").iterdir())
    assert lives == ["0.json", "1.json", "2.json"]


@pytest.mark.req("ST10")
def test_without_a_crash_checkpoints_change_nothing(
    tmp_path: Path, reference: Callable[[int], Outcome]
) -> None:
    expected = reference(1)
    report = run_demo(options(tmp_path, 1, crashes=0), quiet=True, reference=expected)
    check_counts(report)
    assert report.identical
    assert report.finished_before_crash == ROLLOUTS
    assert len(report.checkpoints) == 2


def test_a_result_that_was_run_again_is_not_identical(
    tmp_path: Path, reference: Callable[[int], Outcome]
) -> None:
    """The report finds a rollout that silently started over, though its result is the same."""
    expected = reference(1)
    chosen = options(tmp_path, 1, crash_after="resumed")
    report = run_demo(chosen, keep=True, quiet=True, reference=expected)
    assert report.identical
    rollout = json.loads((tmp_path / "live" / "policy.jsonl").read_text().splitlines()[-1])
    with (tmp_path / "live" / "policy.jsonl").open("a") as log:
        log.write(json.dumps(rollout) + "\n")
    outcome = Outcome(
        tmp_path,
        results=expected.results,
        restores=[
            {
                "event": "restored",
                "checkpoint": report.checkpoint,
                "life": 1,
                "seconds": 0.0,
                "continued": sorted({key.partition("-a")[0] for key in _continued(report)}),
                "restarted": [],
                "finished": [],
            }
        ],
    )
    again = make_report(chosen, outcome, expected)
    assert not again.identical
    assert any("tokens ran live after the crash" in each for each in again.differences)


def _continued(report: DemoReport) -> tuple[str, ...]:
    assert report.checkpoint is not None
    return ckptfmt.open(report.checkpoint).episodes


def run_command(*arguments: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "ckptctl",
            "demo",
            "--rollouts",
            "4",
            "--token-seconds",
            "0.005",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def children_of(directory: Path) -> list[int]:
    """Processes of the demo whose log lies below this directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(directory) in os.readlink(process / "fd" / "2"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_the_command_prints_one_json_object_and_leaves_only_the_checkpoint(tmp_path: Path) -> None:
    process = run_command("--json", "--directory", str(tmp_path / "demo"), "--crash-after", "resumed")
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    report = json.loads(out.splitlines()[-1])
    assert report["identical"] is True
    assert report["rollouts"] == 4
    assert report["continued"] + report["restarted"] + report["finished_before_crash"] == 4
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == ["run"]
    assert ckptfmt.open(report["checkpoint"]).verify().ok


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left_behind(end: signal.Signals, tmp_path: Path) -> None:
    process = run_command("--directory", str(tmp_path / "demo"))
    block_until(lambda: len(children_of(tmp_path)) == 7)
    process.send_signal(end)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0
    assert "Traceback" not in errors
    block_until(lambda: not children_of(tmp_path))


def test_a_server_that_dies_ends_the_demo_with_its_reason(tmp_path: Path) -> None:
    process = run_command("--directory", str(tmp_path / "demo"))
    live = tmp_path / "demo" / "live" / "policy.jsonl"
    block_until(live.exists)
    model = next(pid for pid in children_of(tmp_path) if "0-policy" in os.readlink(f"/proc/{pid}/fd/2"))
    os.kill(model, signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    assert "ended with status" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    block_until(lambda: not children_of(tmp_path))


def test_the_version_is_that_of_the_distribution() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "ckptctl", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"ckptctl {importlib.metadata.version('ckptfmt')}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_crash_points(shell: str) -> None:
    asked = {
        "bash": {"COMP_WORDS": "ckptctl demo --crash-after mid", "COMP_CWORD": "3"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "ckptctl demo --crash-after mid"},
        "fish": {
            "_TYPER_COMPLETE_ARGS": "ckptctl demo --crash-after mid",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    }[shell]
    run = subprocess.run(
        [sys.executable, "-m", "ckptctl"],
        env={**os.environ, **asked, "_CKPTCTL_COMPLETE": f"complete_{shell}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "mid-commit" in run.stdout
    assert "before-prepare" not in run.stdout


def test_no_command_shows_the_help() -> None:
    run = subprocess.run([sys.executable, "-m", "ckptctl"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "--install-completion" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--crash-after", "never"], "neither seconds nor one of"),
        (["--tasks", "{tmp}/missing.jsonl"], "cannot be read"),
        (["--tasks", "{tmp}/bad.jsonl"], "line 2"),
        (["--directory", "{tmp}/file/below"], "cannot be written"),
        (["--directory", "{tmp}/full"], "is not empty"),
        (["--rollouts", "0"], "--rollouts"),
        (["--unknown"], "--unknown"),
    ],
)
def test_wrong_usage_is_one_clear_message(arguments: list[str], said: str, tmp_path: Path) -> None:
    row = bundled_tasks_path().read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "bad.jsonl").write_text(row + "\n{\n", encoding="utf-8")
    (tmp_path / "file").write_text("")
    (tmp_path / "full" / "something").mkdir(parents=True)
    process = run_command(*(each.format(tmp=tmp_path) for each in arguments))
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said in errors
    assert "Traceback" not in errors + out

"""The command ``ckptctl``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated, NoReturn

import orjson
import typer
from rich.console import Console

from ckptctl._demo.moments import MOMENTS

app = typer.Typer(
    name="ckptctl",
    help="Checkpoints of rollouts in flight: the control plane.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Checkpoints of rollouts in flight: the control plane."""


@app.command()
def demo(
    tasks: Annotated[
        Path | None, typer.Option(help="JSONL file of task rows; the bundled tasks by default.")
    ] = None,
    rollouts: Annotated[int, typer.Option(min=1, max=4096, help="How many rollouts run.")] = 64,
    seed: Annotated[int, typer.Option(help="Of the policy model.")] = 0,
    directory: Annotated[
        Path | None, typer.Option(help="New or empty folder for the run; the checkpoint stays there.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep logs, databases and results too.")] = False,
    crash_after: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS|MOMENT",
            help=f"When the SIGKILL falls: seconds, or {', '.join(MOMENTS)}. By default nobody chooses.",
        ),
    ] = None,
    crashes: Annotated[int, typer.Option(min=1, max=20, help="How often everything is killed.")] = 1,
    no_crash: Annotated[bool, typer.Option("--no-crash", help="Checkpoint, but kill nothing.")] = False,
    token_seconds: Annotated[
        float, typer.Option(min=0, max=10, help="Latency of the policy model for each token.")
    ] = 0.02,
    json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
) -> None:
    """Run rollouts, checkpoint them, kill every process, restore, and compare with no crash.

    Exit status 0 only when every rollout ended exactly as without the crash; 1 when not; 2 for wrong usage.
    """
    from ckptctl._demo.main import run_demo
    from ckptctl._demo.processes import DemoError
    from ckptctl._demo.supervisor import DemoOptions
    from ckptctl._demo.tasks import BadTask, bundled_tasks_path
    from ckptctl._demo.view import show_report

    options = DemoOptions(
        tasks=(tasks or bundled_tasks_path()).absolute(),
        rollouts=rollouts,
        seed=seed,
        directory=(directory or Path(tempfile.mkdtemp(prefix="ckptctl-demo-"))).absolute(),
        crashes=0 if no_crash else crashes,
        crash_after=_moment(crash_after),
        token_seconds=token_seconds,
    )
    try:
        report = run_demo(options, keep=keep).to_json()
    except (BadTask, DemoError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail(f"interrupted; every process is ended; what there is lies in {options.directory}", status=130)
    if json:
        print(orjson.dumps(report).decode())
    else:
        show_report(report, Console())
    raise typer.Exit(0 if report["identical"] else 1)


def _moment(text: str | None) -> float | str | None:
    """Seconds, or the name of a moment."""
    if text is None or text in MOMENTS:
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 3600:
        _fail(f"--crash-after {text!r} is neither seconds nor one of {', '.join(MOMENTS)}")
    return seconds


def _fail(message: str, *, status: int = 2) -> NoReturn:
    print(f"ckptctl: {message}", file=sys.stderr)
    raise typer.Exit(status)


def main() -> None:
    """Entry point of the command. Wrong usage is one line on standard error, and status 2."""
    try:
        status = app(standalone_mode=False)
    except typer.Exit as done:
        status = done.exit_code
    except typer.Abort:
        status = 130
    except Exception as error:
        text = getattr(error, "format_message", None)
        if text is None:
            raise
        if text():  # Nothing to add when no command was given: the help is shown.
            print(f"ckptctl: {text()}; see ckptctl --help", file=sys.stderr)
        status = 2
    sys.exit(status)

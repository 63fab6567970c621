"""The command ``ckptctl``, on typer."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn, cast

import orjson
import typer
from rich.console import Console

import ckptfmt
from ckptctl._demo.crash_points import CRASH_POINTS
from ckptctl._demo.main import run_demo
from ckptctl._demo.processes import DemoError
from ckptctl._demo.supervisor import DemoOptions
from ckptctl._demo.tasks import BadTask, bundled_tasks_path
from ckptctl._demo.view import show_report

PROGRAM = "ckptctl"
_EPILOG = (
    "Exit status: 0 when every rollout ended exactly as without the crash; 1 when not; 2 for wrong usage, or "
    "when the demo could not run; 130 when it was interrupted."
)
# What typer raises for wrong usage. The class itself has no public name.
_UsageError = cast(type[typer.BadParameter], typer.BadParameter.__base__)

app = typer.Typer(
    name=PROGRAM,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {ckptfmt.__version__}")
        raise typer.Exit


def _crash_points() -> Sequence[str]:
    return CRASH_POINTS


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """The control plane of checkpoints of rollouts in flight."""


@app.command(epilog=_EPILOG)
def demo(
    tasks: Annotated[
        Path | None, typer.Option(help="JSONL file of task rows. By default the bundled tasks.")
    ] = None,
    rollouts: Annotated[int, typer.Option(min=1, max=4096, help="How many rollouts run.")] = 64,
    seed: Annotated[int, typer.Option(help="The seed of the policy model.")] = 0,
    directory: Annotated[
        Path | None,
        typer.Option(
            help="New or empty folder for the run. The checkpoint stays there. By default a temporary one."
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep logs, databases and results, too.")] = False,
    crash_after: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS|POINT",
            help=f"When to kill: after seconds, or at {', '.join(CRASH_POINTS)}. By default at random.",
            autocompletion=_crash_points,
        ),
    ] = None,
    crashes: Annotated[int, typer.Option(min=1, max=20, help="How often to kill all processes.")] = 1,
    no_crash: Annotated[bool, typer.Option("--no-crash", help="Save checkpoints, but kill nothing.")] = False,
    token_seconds: Annotated[
        float, typer.Option(min=0, max=10, help="Latency of the policy model for each token.")
    ] = 0.02,
    json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
) -> None:
    """Run rollouts, save checkpoints, kill every process, restore, and compare with no crash."""
    options = DemoOptions(
        tasks=(tasks or bundled_tasks_path()).absolute(),
        rollouts=rollouts,
        seed=seed,
        directory=(directory or Path(tempfile.mkdtemp(prefix="ckptctl-demo-"))).absolute(),
        crashes=0 if no_crash else crashes,
        crash_after=_crash_moment(crash_after),
        token_seconds=token_seconds,
    )
    try:
        report = run_demo(options, keep=keep).to_json()
    except (BadTask, DemoError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        _fail(f"interrupted; every process has ended; the files are in {options.directory}", status=130)
    if json:
        print(orjson.dumps(report).decode())
    else:
        show_report(report, Console())
    raise typer.Exit(0 if report["identical"] else 1)


def _crash_moment(text: str | None) -> float | str | None:
    """Seconds, or the name of a crash point."""
    if text is None or text in CRASH_POINTS:
        return text
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 3600:
        _fail(f"--crash-after {text!r} is neither seconds nor one of {', '.join(CRASH_POINTS)}")
    return seconds


def _fail(message: str, *, status: int = 2) -> NoReturn:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    raise typer.Exit(status)


def main() -> None:
    """Run the command and exit.

    Wrong usage is one line on standard error, and status 2.
    """
    try:
        status = app(prog_name=PROGRAM, standalone_mode=False)
    except typer.Abort:
        status = 130
    except _UsageError as error:
        message = error.format_message().rstrip(".")
        if message:  # Empty when no command was given: typer has printed the help.
            print(f"{PROGRAM}: {message}; see {PROGRAM} --help", file=sys.stderr)
        status = 2
    sys.exit(status)

"""``ckptctl demo``, from its options to its report."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from ckptctl._demo.processes import DemoError
from ckptctl._demo.report import DemoReport, make_report
from ckptctl._demo.supervisor import DemoOptions, Outcome, Supervisor, reference_options
from ckptctl._demo.tasks import load_tasks
from ckptctl._demo.view import View


def run_demo(
    options: DemoOptions, *, keep: bool = False, quiet: bool = False, reference: Outcome | None = None
) -> DemoReport:
    """Run the demo and report. ``reference``: the outcome of the same rollouts without a crash, if known.

    The checkpoint stays in ``options.directory``; ``keep`` leaves logs, databases and results there too.
    Raises `BadTask` for a bad tasks file, `DemoError` when a process fails or the directory is in use.
    """
    load_tasks(options.tasks)
    _claim(options.directory)
    with View(options.rollouts, quiet=quiet) as view:
        view.begin("with crashes" if options.crashes else "without a crash")
        outcome = asyncio.run(Supervisor(options, view.watch).run())
        if reference is None:
            view.begin("the same rollouts without a crash, to compare")
            reference = asyncio.run(Supervisor(reference_options(options), view.watch).run())
        report = make_report(options, outcome, reference)
    if not keep and report.identical:
        for each in ("live", "logs", "servers", "reference"):
            shutil.rmtree(options.directory / each, ignore_errors=True)
        (options.directory / "results.json").unlink(missing_ok=True)
    return report


def run_reference(options: DemoOptions) -> Outcome:
    """The outcome of these rollouts without a crash, to compare several demos with."""
    options = replace(options, crashes=0, checkpointing=False)
    _claim(options.directory)
    return asyncio.run(Supervisor(options, lambda event: None).run())


def _claim(directory: Path) -> None:
    """Make the directory. One that is not empty is refused, so nothing is ever overwritten."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise DemoError(f"{directory} is not empty: name a new or empty directory")
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise DemoError(f"{directory} cannot be written ({error.strerror}): name another directory") from None

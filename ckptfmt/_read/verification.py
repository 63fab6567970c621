"""Verifying a checkpoint, including one that cannot be opened."""

from __future__ import annotations

from ckptfmt._errors import BadCheckpoint
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.names import CHECKPOINT_FILE
from ckptfmt._read.opening import find_checkpoint
from ckptfmt._read.report import Problem, Report
from ckptfmt.stores import Url, choose_store


def verify(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Report:
    """Read and check every byte that belongs to a checkpoint, and collect all problems.

    Args:
        url: The folder of a checkpoint or of a cut, or a folder that :func:`ckptfmt.create` wrote to.
        limits: Limits for reading files that others wrote.

    Returns:
        The report. It also describes a checkpoint that cannot be opened.

    Raises:
        NotFound: There is no checkpoint.
        StoreError: The store failed.

    Example:
        ::

            report = ckptfmt.verify("run/step-1200")
            for problem in report.problems:
                print(problem.file, problem.message)
    """
    try:
        checkpoint = find_checkpoint(choose_store(url), limits)
    except BadCheckpoint as error:
        return Report([Problem.of(error, CHECKPOINT_FILE)])
    return checkpoint.verify()

"""Verification of what a URL names, also where it cannot even be opened."""

from __future__ import annotations

from ckptfmt._errors import BadCheckpoint
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.names import CHECKPOINT_FILE
from ckptfmt._read.opening import find_checkpoint
from ckptfmt._read.report import Problem, Report
from ckptfmt.stores import Url, choose_store


def verify(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Report:
    """Read and check every byte that belongs to a checkpoint, and collect all that is wrong.

    Args:
        url: What :func:`ckptfmt.open` takes: a checkpoint, a cut, or a folder that :func:`ckptfmt.create`
            wrote.
        limits: The most that reading may cost.

    Returns:
        The report. A checkpoint that cannot be opened has one too.

    Raises:
        NotFound: There is nothing to verify.
        StoreError: The store failed.
    """
    try:
        checkpoint = find_checkpoint(choose_store(url), limits)
    except BadCheckpoint as error:
        return Report([Problem.of(error, CHECKPOINT_FILE)])
    return checkpoint.verify()

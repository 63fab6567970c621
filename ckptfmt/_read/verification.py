"""Verification: every byte of every file that a checkpoint names, and all that is wrong, not only the
first."""

from __future__ import annotations

from ckptfmt._errors import CheckpointError, Damaged, NotFound, StoreError
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.checkpoint_file import CHECKPOINT_FILE
from ckptfmt._model.cut_file import CUT_FILE
from ckptfmt._model.manifest import MANIFEST_FILE
from ckptfmt._read.checkpoint import Checkpoint, find_checkpoint
from ckptfmt._read.report import Problem, Report
from ckptfmt.stores import Url, choose_store


def verify(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Report:
    """Check everything that ``url`` (as for :func:`ckptfmt.open`) holds.

    Also a checkpoint that cannot even be opened has a report. Raises :class:`NotFound` and
        :class:`StoreError` only.
    """
    try:
        checkpoint = find_checkpoint(choose_store(url), limits)
    except (NotFound, StoreError):
        raise
    except CheckpointError as error:
        return Report([Problem.of(error, CHECKPOINT_FILE)])
    return verify_checkpoint(checkpoint)


def verify_checkpoint(checkpoint: Checkpoint) -> Report:
    """The report of an opened checkpoint."""
    report = Report(complete=checkpoint.body is not None)
    prefix = f"{checkpoint.cut}/" if checkpoint.body is not None and checkpoint.cut is not None else ""
    try:
        checkpoint.check_cut()
    except Damaged as error:
        report.problems.append(Problem.of(error, prefix + CUT_FILE))
    episodes: set[str] | None = set()
    for name in checkpoint:
        try:
            part = checkpoint[name]
        except StoreError:
            raise
        except CheckpointError as error:
            report.problems.append(Problem.of(error, f"{prefix}{name}/{MANIFEST_FILE}"))
            episodes = None
            continue
        problems = part.verify()
        report.problems += problems
        if episodes is not None:
            episodes = (
                None
                if any(problem.file.endswith(part.manifest.index) for problem in problems)
                else (episodes.union(part.episodes))
            )
    if checkpoint.body is not None and episodes is not None and sorted(episodes) != list(checkpoint.episodes):
        report.problems.append(
            Problem(
                CHECKPOINT_FILE,
                Damaged.code,
                f"{CHECKPOINT_FILE}: its episodes are not those of its participants",
            )
        )
    return report

"""The latest complete checkpoint of a run."""

from __future__ import annotations

import warnings

from ckptfmt._errors import BadCheckpoint, Damaged, Incomplete, NotFound
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.listed import Listed
from ckptfmt._read.opening import find_checkpoint
from ckptfmt._run.listing import Listing, list_store
from ckptfmt.stores import Url, choose_store


class LaterCheckpointUnusable(UserWarning):
    """There is a broken or incomplete checkpoint later than the one that :func:`ckptfmt.latest` returned."""


def latest(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Checkpoint:
    """Open the complete checkpoint with the highest sequence of a run.

    Of several with the same sequence it opens the last one by name. Broken or incomplete checkpoints that are
    later, or that may be, are never skipped silently: they are in ``passed_over`` of the result, and the
    warning :class:`ckptfmt.LaterCheckpointUnusable` names them.

    Args:
        url: The folder of the run.
        limits: Limits for reading files that others wrote.

    Returns:
        The checkpoint.

    Raises:
        NotFound: There is no run, or it has no checkpoint.
        Incomplete: No checkpoint was completed.
        Damaged: No checkpoint is complete, and at least one is broken.
        StoreError: The store failed.

    Example:
        ::

            checkpoint = ckptfmt.latest("run")
            state = checkpoint.state
    """
    store = choose_store(url)
    listing = list_store(store, limits, with_orphans=False)
    complete = listing.complete()
    if not complete:
        raise _no_complete_checkpoint(listing)
    best = complete[-1]
    checkpoint = find_checkpoint(store.at(best.name), limits)
    checkpoint.check_cut()
    checkpoint.passed_over = tuple(each for each in listing if _may_be_later(each, best))
    if checkpoint.passed_over:
        reasons = "; ".join(f"{each.name} is {each.state} ({each.reason})" for each in checkpoint.passed_over)
        warnings.warn(
            LaterCheckpointUnusable(f"{best.name} is the latest complete checkpoint, but {reasons}"),
            stacklevel=2,
        )
    return checkpoint


def _no_complete_checkpoint(listing: Listing) -> NotFound | BadCheckpoint:
    if not listing:
        return NotFound(f"{listing.url}: there is no checkpoint")
    reasons = "; ".join(f"{each.name} is {each.state}: {each.reason}" for each in listing)
    kind = Damaged if any(each.state == "broken" for each in listing) else Incomplete
    return kind(f"{listing.url}: no checkpoint is complete: {reasons}"[:2000])


def _may_be_later(listed: Listed, best: Listed) -> bool:
    if listed.state == "complete":
        return False
    if listed.sequence is not None and best.sequence is not None:
        return listed.sequence >= best.sequence
    if listed.state == "broken":
        return True  # its sequence is unknown, and its times prove nothing
    return listed.modified is None or best.modified is None or listed.modified >= best.modified

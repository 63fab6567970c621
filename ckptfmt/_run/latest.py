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
    """A checkpoint later than the one that :func:`ckptfmt.latest` returned is broken or incomplete."""


def latest(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Checkpoint:
    """Open the complete checkpoint of the highest sequence (of several, the last by name) of a run.

    It never passes over a later one silently: those that are broken or incomplete and later, or not known to
    be earlier, are the ``passed_over`` of the result, and the warning
    :class:`ckptfmt.LaterCheckpointUnusable` names them.

    Args:
        url: The run's folder.
        limits: The most that reading may cost.

    Returns:
        The checkpoint.

    Raises:
        NotFound: There is no checkpoint.
        Incomplete: None was ever completed.
        Damaged: None is complete, and some are broken.
        StoreError: The store failed.
    """
    store = choose_store(url)
    listing = list_store(store, limits, with_orphans=False)
    complete = listing.complete()
    if not complete:
        raise _none_complete(listing)
    best = complete[-1]
    checkpoint = find_checkpoint(store.at(best.name), limits)
    checkpoint.check_cut()
    checkpoint.passed_over = tuple(each for each in listing if _may_be_later(each, best))
    if checkpoint.passed_over:
        told = "; ".join(f"{each.name} is {each.state} ({each.reason})" for each in checkpoint.passed_over)
        warnings.warn(
            LaterCheckpointUnusable(f"{best.name} is the latest complete checkpoint, but {told}"),
            stacklevel=2,
        )
    return checkpoint


def _none_complete(listing: Listing) -> NotFound | BadCheckpoint:
    if not listing:
        return NotFound(f"{listing.url}: there is no checkpoint")
    told = "; ".join(f"{each.name} is {each.state}: {each.reason}" for each in listing)
    kind = Damaged if any(each.state == "broken" for each in listing) else Incomplete
    return kind(f"{listing.url}: no checkpoint there is complete: {told}"[:2000])


def _may_be_later(listed: Listed, best: Listed) -> bool:
    if listed.state == "complete":
        return False
    if listed.sequence is not None and best.sequence is not None:
        return listed.sequence >= best.sequence
    if listed.state == "broken":
        return True  # nothing trustworthy says when it was
    return listed.modified is None or best.modified is None or listed.modified >= best.modified

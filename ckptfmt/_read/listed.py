"""One checkpoint of a run, as a listing shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["complete", "incomplete", "broken", "unreadable"]


@dataclass(frozen=True, slots=True)
class Listed:
    """One checkpoint of a run. What is not known of an incomplete or broken one is None.

    Attributes:
        name: The name of its folder in the run.
        url: Its folder.
        state: ``complete``: ``checkpoint.json`` is there, and every file that it leads to has its right name
            and size (only :func:`ckptfmt.verify` reads them). ``incomplete``: it was never finished, or is
            being written now. ``broken``: something of it is damaged or missing. ``unreadable``: the store
            failed; only the command ``ckptfmt ls`` says that of one checkpoint among others, elsewhere the
            error is raised.
        checkpoint_id: Its id.
        sequence: Its place in the order of the run's checkpoints.
        participants: How many participants it has.
        episodes: How many episodes it holds.
        size: Bytes of its records as stored.
        reason: Why it is not complete.
        modified: When ``checkpoint.json`` was written, else the newest file of it: seconds since 1970 by the
            store's clock.
        is_link: Whether its folder is a link.
    """

    name: str
    url: str
    state: State
    checkpoint_id: str | None = None
    sequence: int | None = None
    participants: int | None = None
    episodes: int | None = None
    size: int | None = None
    reason: str | None = None
    modified: float | None = None
    is_link: bool = False

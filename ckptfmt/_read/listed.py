"""One checkpoint in the listing of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

State: TypeAlias = Literal["complete", "incomplete", "broken", "unreadable"]


@dataclass(frozen=True, slots=True)
class Listed:
    """One checkpoint in the listing of a run.

    Unknown values of an incomplete or broken one are None.

    Attributes:
        name: The name of its folder in the run.
        url: The URL of its folder.
        state: ``complete``: ``checkpoint.json`` exists, and every file that belongs to the checkpoint exists
            and has the stated size (only :func:`ckptfmt.verify` checks the bytes). ``incomplete``: it was
            never finished, or is being written now. ``broken``: a file is damaged or missing.
            ``unreadable``: the store failed. Only the command ``ckptfmt ls`` shows this state; functions
            raise the error instead.
        checkpoint_id: Its id.
        sequence: The number that orders the checkpoints of a run.
        participants: The number of participants.
        episodes: The number of saved episodes.
        size: Stored bytes of its records.
        reason: Why it is not complete; None when it is.
        modified: When ``checkpoint.json`` was written, or without one the newest file, in seconds since 1970
            by the store's clock.
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

"""The phases of one participant, and which checkpoint ids have ended. Pure state: no clock, no I/O.

The only transitions are::

    idle -> preparing -> prepared -> committed -> idle      a checkpoint
    idle -> restoring -> restored -> idle                   a restore
    any but idle -> idle                                    resume, lease expiry
    preparing, restoring -> idle                            its own failure

An id whose checkpoint ended by resume or expiry is remembered, so that a delayed request for it is refused:
the controller that sent it has gone on meanwhile.
"""

from __future__ import annotations

from collections import OrderedDict
from enum import StrEnum

from ckptctl._errors import ControlError

REMEMBERED_IDS = 64
"""How many ended checkpoint ids are remembered (CP3)."""


class Phase(StrEnum):
    """What a server does, as its status says: ``phase`` is one of these strings."""

    IDLE = "idle"
    PREPARING = "preparing"
    PREPARED = "prepared"
    COMMITTED = "committed"
    RESTORING = "restoring"
    RESTORED = "restored"


# The phases in which a call is accepted. Status and resume are accepted in all.
ACCEPTED: dict[str, frozenset[Phase]] = {
    "prepare": frozenset({Phase.IDLE, Phase.PREPARING, Phase.PREPARED}),
    "commit": frozenset({Phase.PREPARED, Phase.COMMITTED}),
    "renew": frozenset(Phase) - {Phase.IDLE},
    "restore": frozenset({Phase.IDLE, Phase.RESTORING, Phase.RESTORED}),
    "retire": frozenset({Phase.IDLE, Phase.RESTORED}),
    "forget": frozenset({Phase.IDLE, Phase.RESTORED}),
}


class PhaseMachine:
    """Which phase a participant is in, for which checkpoint id, and which ids have ended."""

    def __init__(self) -> None:
        self.phase = Phase.IDLE
        self.checkpoint_id: str | None = None
        self.ending = False
        """Whether a resume or expiry of the open id has begun: then only resume is accepted for it."""
        self._ended: OrderedDict[str, None] = OrderedDict()

    def check(self, verb: str, checkpoint_id: str | None) -> None:
        """Refuse a request by its id, then by its phase (CP3, CP5, CP17).

        Changes nothing.

        Raises `ControlError`: ``checkpoint_conflict``, ``wrong_phase``, or ``not_ready`` for a commit
        while preparing.
        """
        if checkpoint_id is not None:
            self._check_id(verb, checkpoint_id)
        if verb == "resume":
            return
        if verb == "commit" and self.phase is Phase.PREPARING:
            raise ControlError("not_ready", "prepare has not finished: wait for it, then commit")
        if self.phase not in ACCEPTED[verb]:
            raise ControlError(
                "wrong_phase", f"{verb} is not accepted while {self.phase}", details={"phase": self.phase}
            )

    def _check_id(self, verb: str, checkpoint_id: str) -> None:
        details = {"checkpoint_id": self.checkpoint_id}
        if self.checkpoint_id is not None and self.checkpoint_id != checkpoint_id:
            raise ControlError(
                "checkpoint_conflict", f"checkpoint {self.checkpoint_id!r} is open", details=details
            )
        if verb == "resume":
            return
        if checkpoint_id in self._ended or (self.ending and checkpoint_id == self.checkpoint_id):
            raise ControlError(
                "checkpoint_conflict",
                f"checkpoint {checkpoint_id!r} was resumed or its lease ran out: use a new id",
                details=details,
            )

    def begin_prepare(self, checkpoint_id: str) -> None:
        self._begin(Phase.PREPARING, checkpoint_id)

    def begin_restore(self, checkpoint_id: str) -> None:
        self._begin(Phase.RESTORING, checkpoint_id)

    def _begin(self, phase: Phase, checkpoint_id: str) -> None:
        self._expect(Phase.IDLE)
        self.phase, self.checkpoint_id, self.ending = phase, checkpoint_id, False

    def prepared(self) -> None:
        self._move(Phase.PREPARING, Phase.PREPARED)

    def committed(self) -> None:
        self._move(Phase.PREPARED, Phase.COMMITTED)

    def restored(self) -> None:
        self._move(Phase.RESTORING, Phase.RESTORED)

    def failed(self) -> None:
        """The open prepare or restore failed: idle, and its id may be used again."""
        self._expect(Phase.PREPARING, Phase.RESTORING)
        self._close()

    def begin_end(self) -> None:
        """A resume or expiry of the open checkpoint begins.

        It may take a while, or be retried.
        """
        self.ending = True

    def end(self) -> None:
        """The resume or expiry is done: idle, and the id is remembered."""
        if self.checkpoint_id is not None:
            self.remember(self.checkpoint_id)
        self._close()

    def remember(self, checkpoint_id: str) -> None:
        """Refuse this id from now on, until `REMEMBERED_IDS` later ones have ended."""
        self._ended[checkpoint_id] = None
        self._ended.move_to_end(checkpoint_id)
        while len(self._ended) > REMEMBERED_IDS:
            self._ended.popitem(last=False)

    def _close(self) -> None:
        self.phase, self.checkpoint_id, self.ending = Phase.IDLE, None, False

    def _move(self, before: Phase, after: Phase) -> None:
        self._expect(before)
        self.phase = after

    def _expect(self, *phases: Phase) -> None:
        if self.phase not in phases:
            raise AssertionError(f"the phase is {self.phase}, not {' or '.join(phases)}")

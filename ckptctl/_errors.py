"""Every error that ``ckptctl`` raises.

::

    CkptctlError
    ├── ControlError          one server's refusal or failure, as it stands on the wire
    ├── CoordinationError     a call over many servers failed: the error of each, by name
    │   └── NotPrepared       blockers at the deadline of prepare, by participant
    ├── SettingsError         a bad ``checkpoint:`` block
    └── StepOrderError        an episode used its steps in an order that cannot be saved

A `ControlError` has a stable ``code`` (the table `CODES`, append-only), which is also the code on the
wire, and ``retryable``: whether the same call may succeed later. All errors pickle: what crosses a
process boundary is code, message and details, never an object of an HTTP library.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ckptfmt import (
    BadInput,
    CheckpointError,
    Conflict,
    InvalidId,
    OutcomeUnknown,
    Stopped,
    StoreError,
)

_log = logging.getLogger("ckptctl")


class Code(NamedTuple):
    """HTTP status of a code, and whether the same call may succeed later."""

    status: int
    retryable: bool = False


CODES: Mapping[str, Code] = {
    "unauthorized": Code(401),
    "invalid_request": Code(400),
    "checkpoint_conflict": Code(409),
    "wrong_phase": Code(409),
    "not_ready": Code(409, retryable=True),
    "restart_in_scope": Code(409),
    "export_failed": Code(409),
    "stale_attempt": Code(409),
    "not_fresh": Code(409),
    "wrong_instance": Code(409),
    "invalid_checkpoint_state": Code(422),
    "internal_error": Code(500),
    "outcome_unknown": Code(503, retryable=True),
    "store_unusable": Code(503, retryable=True),
    "deadline_exceeded": Code(504, retryable=True),
    # Seen by the caller only: no reply of a server carries them.
    "unreachable": Code(503, retryable=True),
    "no_reply": Code(504, retryable=True),
    "bad_reply": Code(502),
}


class CkptctlError(Exception):
    """Base of all errors of this package."""

    def _notes(self) -> dict[str, Any]:
        """The part of a pickled error's state that no constructor takes: errors of the clean-up."""
        return {"__notes__": self.__notes__} if hasattr(self, "__notes__") else {}


class ControlError(CkptctlError):
    """A refusal or failure of one server: ``code``, ``message``, ``retryable``, ``details``, ``status``."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        status: int | None = None,
        retryable: bool | None = None,
    ) -> None:
        # A path that is not UTF-8 has surrogates in it, which no reply can carry.
        message = message.encode("utf-8", "backslashreplace").decode("utf-8")
        super().__init__(message)
        known = CODES.get(code, Code(500))
        self.code = code
        self.message = message
        self.details = dict(details or {})
        self.status = known.status if status is None else status
        self.retryable = known.retryable if retryable is None else retryable

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.code, self.message, self.details, self.status, self.retryable)
        return _control_error, arguments, self._notes()

    def to_wire(self) -> dict[str, Any]:
        """The JSON object of an error reply."""
        error = {
            "code": self.code,
            "message": self.message,
            "retryable": self.retryable,
            "details": self.details,
        }
        return {"error": error}


def _control_error(
    code: str, message: str, details: Mapping[str, Any], status: int, retryable: bool
) -> ControlError:
    return ControlError(code, message, details=details, status=status, retryable=retryable)


class CoordinationError(CkptctlError):
    """A call over many servers failed. ``failures`` holds the error of each, by server name.

    ``first`` is the one that failed first; errors of the clean-up after it are attached as notes.
    """

    def __init__(self, verb: str, failures: Mapping[str, Exception]) -> None:
        self.verb = verb
        self.failures = dict(failures)
        listed = "; ".join(f"{name}: {error}" for name, error in self.failures.items())
        super().__init__(f"{verb} failed on {len(self.failures)} server(s): {listed}")

    @property
    def first(self) -> Exception:
        return next(iter(self.failures.values()))

    def has(self, code: str) -> bool:
        """Whether a server failed with this code."""
        return any(getattr(error, "code", None) == code for error in self.failures.values())

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later: every server that failed says so."""
        return all(getattr(error, "retryable", False) for error in self.failures.values())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.verb, self.failures), self._notes()


class NotPrepared(CoordinationError):
    """Prepare reached its deadline with blockers: ``blockers`` lists them by participant.

    ``counts``: how many there are by participant, where not all are listed.
    """

    def __init__(
        self,
        blockers: Mapping[str, Sequence[Mapping[str, Any]]],
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.blockers = {name: [dict(blocker) for blocker in found] for name, found in blockers.items()}
        self.counts = {name: len(found) for name, found in self.blockers.items()} | dict(counts or {})
        super().__init__(
            "prepare",
            {
                name: ControlError(
                    "not_ready",
                    f"{self.counts[name]} execution(s) not at a boundary at the deadline: prepare again with "
                    "the same id, or resume",
                    details={"blockers": found, "blocker_count": self.counts[name]},
                )
                for name, found in self.blockers.items()
            },
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.blockers, self.counts), self._notes()


class SettingsError(CkptctlError):
    """A bad ``checkpoint:`` block. ``field`` names the setting; no message shows a secret."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"checkpoint.{field}: {message}" if field else f"checkpoint: {message}")
        self.field = field
        self.reason = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.field, self.reason), self._notes()


class StepOrderError(CkptctlError):
    """An episode used its steps in an order that cannot be saved (a step without a boundary before it)."""


def control_error(error: BaseException) -> ControlError:
    """The wire form of an error of the format package, or of anything unexpected (``internal_error``).

    Storing and reading map differently only where the caller knows more: see `reading_error`.
    """
    if isinstance(error, ControlError):
        return error
    if isinstance(error, InvalidId):
        return ControlError("invalid_request", str(error))
    if isinstance(error, BadInput):
        details = {"episode": getattr(error, "episode", None), "path": getattr(error, "path", None)}
        return ControlError("export_failed", str(error), details=details)
    if isinstance(error, Stopped):
        return ControlError("checkpoint_conflict", "the checkpoint was resumed while it committed")
    if isinstance(error, Conflict):
        return ControlError("checkpoint_conflict", str(error))
    if isinstance(error, OutcomeUnknown):
        return ControlError("outcome_unknown", str(error))
    if isinstance(error, StoreError) and error.retryable:
        return ControlError("store_unusable", str(error))
    if isinstance(error, CheckpointError):
        return ControlError("invalid_checkpoint_state", str(error), details={"reason": error.code})
    _log.error("an unexpected error became internal_error", exc_info=error)
    return ControlError("internal_error", f"{type(error).__name__}: {error}")


def reading_error(error: BaseException) -> ControlError:
    """The wire form of an error while a checkpoint is read: what stays wrong with it is its state."""
    if isinstance(error, CheckpointError):
        if error.retryable:
            return control_error(error)
        return ControlError("invalid_checkpoint_state", str(error), details={"reason": error.code})
    return control_error(error)

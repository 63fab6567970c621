"""Every error that ``ckptctl`` raises.

::

    CkptctlError
    ├── ControlError          one server refused a call, or failed in it: the error that the reply carries
    ├── CoordinationError     a call to many servers failed: the error of each server, by its name
    │   └── NotPrepared       executions were not at a boundary at the deadline of prepare
    ├── SettingsError         a wrong ``checkpoint:`` block of a configuration
    ├── StepOrderError        an episode used its steps in an order that cannot be saved
    └── ClientGone            the client of a request that waits for admission has disconnected

A `ControlError` has a stable ``code`` (the table `CODES`, to which codes are only added), which is also
the code in a reply, and ``retryable``: whether the same call may succeed later. All errors can be pickled:
they hold code, message and details, never an object of an HTTP library.
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
    """Base class of all errors of this package."""

    def _notes(self) -> dict[str, Any]:
        """The notes of a pickled error, which its constructor does not take: errors of the clean-up."""
        return {"__notes__": self.__notes__} if hasattr(self, "__notes__") else {}


class ControlError(CkptctlError):
    """One server refused a call, or failed in it.

    A participant may raise it, too: its code and message then reach the controller.

    Args:
        code: A code of the table in ``docs/protocol.md``.
        message: What happened, for people.
        details: JSON values by name, for programs.
        status: The HTTP status of the reply. By default that of the code.
        retryable: Whether the same call may succeed later. By default as the code says.

    Attributes:
        code: The stable code, which is also in the reply.
        message: What happened, for people.
        details: JSON values by name. An error that came from a server holds its ``instance_id``.
        status: The HTTP status of the reply.
        retryable: Whether the same call may succeed later.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        status: int | None = None,
        retryable: bool | None = None,
    ) -> None:
        # A path that is not UTF-8 contains surrogates, which JSON cannot carry.
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
        """Return the body of an error reply.

        Returns:
            The JSON object ``{"error": {"code", "message", "retryable", "details"}}``.
        """
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
    """A call to many servers failed on at least one of them.

    Errors of the clean-up after it are attached as notes.

    Args:
        verb: The call, such as ``commit``.
        failures: The error of each server that failed, by its name, in the order in which they failed.

    Attributes:
        verb: The call, such as ``commit``.
        failures: The error of each server that failed, by its name, in the order in which they failed.
    """

    def __init__(self, verb: str, failures: Mapping[str, Exception]) -> None:
        self.verb = verb
        self.failures = dict(failures)
        listed = "; ".join(f"{name}: {error}" for name, error in self.failures.items())
        super().__init__(f"{verb} failed on {len(self.failures)} server(s): {listed}")

    @property
    def first(self) -> Exception:
        """The error of the server that failed first."""
        return next(iter(self.failures.values()))

    def has(self, code: str) -> bool:
        """Tell whether a server failed with this code.

        Args:
            code: A code of the table in ``docs/protocol.md``.

        Returns:
            True when at least one of the failures has it.
        """
        return any(getattr(error, "code", None) == code for error in self.failures.values())

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later: every error of ``failures`` says so."""
        return all(getattr(error, "retryable", False) for error in self.failures.values())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.verb, self.failures), self._notes()


class NotPrepared(CoordinationError):
    """Executions were not at a boundary at the deadline of prepare.

    Prepare again with the same checkpoint id, or resume.

    Args:
        blockers: The executions that prepare waits for, by the name of their participant.
        counts: How many there are, by participant, where ``blockers`` does not list all.

    Attributes:
        blockers: The executions that prepare waits for, by the name of their participant: mappings with
            ``episode``, ``reason`` and ``since`` (seconds).
        counts: How many there are, by participant. A server lists at most 100 of them.
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
    """A wrong ``checkpoint:`` block of a configuration.

    The message never contains the token.

    Args:
        field: The name of the setting; empty for the block as a whole.
        message: What is wrong with it.

    Attributes:
        field: The name of the setting; empty for the block as a whole.
        reason: What is wrong with it.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"checkpoint.{field}: {message}" if field else f"checkpoint: {message}")
        self.field = field
        self.reason = message

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.field, self.reason), self._notes()


class StepOrderError(CkptctlError):
    """An episode used its steps in an order that cannot be saved, such as two steps without a boundary."""


class ClientGone(CkptctlError):
    """The client of a request that waits for admission has disconnected: the request must not run."""


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

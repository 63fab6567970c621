"""Every error of ckptfmt.

::

    CheckpointError
    ├── InexactValue       a value that cannot be stored exactly: .episode, .path
    ├── Damaged            stored bytes are not what was written: .file, .episode
    │   └── Incomplete     something that must be there was never finished, or is gone
    ├── Conflict           something else is published under this name
    ├── OutcomeUnknown     the store did not say whether a write happened
    ├── Unsupported        another format version, an unknown feature, a store that lacks an operation
    ├── NotFound           nothing is there (also a KeyError)
    ├── LimitExceeded      a stated limit of the format
    ├── StoreError         the store failed: .errno, .path, .written; worth another try
    │   └── UnusableDirectory   the place cannot hold state, however often it is tried
    ├── Stopped            the gate was stopped: nothing was or will be published
    ├── SnapshotChanged    a record written again was not the same as before
    └── InvalidId          a string that names no rollout and attempt (also a ValueError)

``code`` is stable and never reused for something else; ``retryable`` says whether the same call may succeed
later. Every error pickles with its attributes. A message names what, where and what to do, and never shows
a stored value. An argument of another type than a function takes is a TypeError, of another range a
ValueError, as everywhere in Python.
"""

from __future__ import annotations

from typing import ClassVar


class CheckpointError(Exception):
    """The root of every error that this package raises on purpose."""

    code: ClassVar[str] = "checkpoint_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str = "") -> None:
        super().__init__(message)

    @property
    def message(self) -> str:
        """The message for people."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        return self.message


class InexactValue(CheckpointError):
    """A value that would not read back as it was: ``path`` leads to it (``$.messages[3].score``), ``episode``
    is the capture key of its record, when there is one. :func:`ckptfmt.plain` makes a value exact on
    purpose."""

    code = "inexact_value"

    def __init__(self, message: str = "", *, path: str = "$", episode: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.episode = episode


class Damaged(CheckpointError):
    """Stored bytes that are not what was written: ``file`` is relative to what was opened where that is
    known, ``episode`` the capture key of the record."""

    code = "damaged"

    def __init__(self, message: str = "", *, file: str | None = None, episode: str | None = None) -> None:
        super().__init__(message)
        self.file = file
        self.episode = episode


class Incomplete(Damaged):
    """A part that completeness needs (a manifest, ``checkpoint.json``, a records file) is not there."""

    code = "incomplete"


class Conflict(CheckpointError):
    """Something else is already published under this name, or parts do not belong together."""

    code = "conflict"


class OutcomeUnknown(CheckpointError):
    """A write may or may not have happened and cannot be read back now. Nothing was deleted; try again."""

    code = "outcome_unknown"
    retryable = True


class Unsupported(CheckpointError):
    """This version of ckptfmt, or this store, cannot do what is asked. ``file`` is the file that needs more
    than this version, None when it is the store."""

    code = "unsupported"

    def __init__(self, message: str = "", *, file: str | None = None) -> None:
        super().__init__(message)
        self.file = file


class NotFound(CheckpointError, KeyError):
    """Nothing is stored under this name."""

    code = "not_found"


class LimitExceeded(CheckpointError):
    """A stated limit (see :class:`ckptfmt._limits.Limits`) does not admit this."""

    code = "limit_exceeded"


class StoreError(CheckpointError):
    """The store failed. ``errno`` is the system's number when it gave one, ``path`` the file or directory,
    ``written`` the bytes of that file that were written before (None when nothing was being written)."""

    code = "store_error"
    retryable = True

    def __init__(
        self,
        message: str = "",
        *,
        errno: int | None = None,
        path: str | None = None,
        written: int | None = None,
    ) -> None:
        super().__init__(message)
        self.errno = errno
        self.path = path
        self.written = written


class UnusableDirectory(StoreError):
    """The place is no directory, or may not be written: trying again does not help."""

    code = "unusable_directory"
    retryable = False


class Stopped(CheckpointError):
    """The gate was stopped before the manifest was created."""

    code = "stopped"


class SnapshotChanged(CheckpointError):
    """Records had to be written a second time and did not give the same bytes."""

    code = "snapshot_changed"


class InvalidId(CheckpointError, ValueError):
    """A string that decodes to no rollout and attempt. Nothing is guessed or repaired."""

    code = "invalid_id"


def wrong_type(argument: str, takes: str, value: object) -> TypeError:
    """The error for an argument of another type: which one, what it takes, and the type that it was."""
    return TypeError(f"{argument} takes {takes}, not a value of type {type(value).__name__}")

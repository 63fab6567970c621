"""Every error of ckptfmt, grouped by what a caller does about it.

::

    CheckpointError
    ├── StoreError               the store failed: retry, or check the store (.errno, .path, .written)
    │   ├── UnusableDirectory    the directory cannot hold a checkpoint; a retry does not help
    │   └── UnsupportedStore     the store lacks an operation that the format requires
    ├── BadCheckpoint            stored files cannot be used: take another checkpoint (.file, .episode)
    │   ├── Damaged              stored bytes differ from what was written
    │   ├── Incomplete           a required file was never finished, or is missing
    │   └── Unsupported          another format version, or an unknown feature
    ├── BadInput                 the caller's input cannot be stored: change it
    │   ├── InexactValue         a value would read back as something else (.episode, .path)
    │   ├── LimitExceeded        a limit is exceeded
    │   ├── SnapshotChanged      records gave different bytes when they were written a second time
    │   └── InvalidId            a string names no rollout, attempt or participant (also a ValueError)
    ├── Conflict                 something else is published under this name
    ├── OutcomeUnknown           the store did not report whether a write happened
    ├── NotFound                 nothing is stored under this name (also a KeyError)
    ├── Stopped                  the gate was stopped: nothing was or will be published
    └── MissingLibrary           an optional library is not installed (also an ImportError)

Each ``code`` is stable and is never reused for another kind of error; ``retryable`` tells whether the same
call may succeed later. Every error can be pickled with its attributes. A message names the object, the fault
and the remedy, and never contains a stored value. An argument of a wrong type is a TypeError, an argument out
of range a ValueError, as in Python itself.
"""

from __future__ import annotations

from typing import ClassVar


class CheckpointError(Exception):
    """The base class of every error that this package raises on purpose.

    Args:
        message: The message for people.

    Attributes:
        code: A stable identifier of the kind of error, such as ``damaged``.
        retryable: Whether the same call may succeed later.
    """

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


class StoreError(CheckpointError):
    """The store failed: retry the call, or check the store.

    Attributes:
        errno: The error number of the operating system; None when there is none.
        path: The file or directory that the error is about.
        written: The number of bytes that were written to the file before the error; None when it is not known
            or no file was being written.
    """

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
    """The path is not a directory, or is not writable.

    A retry does not help: use another place.
    """

    code = "unusable_directory"
    retryable = False


class UnsupportedStore(StoreError):
    """The store lacks an operation that the format requires, such as create-only, or the URL is not valid."""

    code = "unsupported_store"
    retryable = False


class BadCheckpoint(CheckpointError):
    """Stored files cannot be used: take another checkpoint, or another copy of this one.

    Attributes:
        file: The file that the error is about, relative to the folder that was opened; None when it is not
            known.
        episode: The capture key of the record that the error is about; None when there is none.
    """

    code = "bad_checkpoint"

    def __init__(self, message: str = "", *, file: str | None = None, episode: str | None = None) -> None:
        super().__init__(message)
        self.file = file
        self.episode = episode


class Damaged(BadCheckpoint):
    """Stored bytes differ from what was written."""

    code = "damaged"


class Incomplete(BadCheckpoint):
    """A required file (a manifest, ``checkpoint.json``, a records file) was never finished, or is missing."""

    code = "incomplete"


class Unsupported(BadCheckpoint):
    """A file has another format version, or requires a feature that this version of ckptfmt does not have."""

    code = "unsupported"


class BadInput(CheckpointError):
    """The caller's input cannot be stored; the same input fails each time."""

    code = "bad_input"


class InexactValue(BadInput):
    """A value would read back as something else.

    :func:`ckptfmt.plain` converts a value to an exact one.

    Attributes:
        path: The path of the value in its payload, such as ``$.messages[3].score``.
        episode: The capture key of the record; None when there is none.
    """

    code = "inexact_value"

    def __init__(self, message: str = "", *, path: str = "$", episode: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.episode = episode


class LimitExceeded(BadInput):
    """A limit (see :class:`ckptfmt.Limits`) is exceeded."""

    code = "limit_exceeded"


class SnapshotChanged(BadInput):
    """Records had to be written a second time and gave different bytes."""

    code = "snapshot_changed"


class InvalidId(BadInput, ValueError):
    """A string names no rollout, attempt, participant or checkpoint.

    Invalid names are neither guessed nor repaired.
    """

    code = "invalid_id"


class Conflict(CheckpointError):
    """Something else is published under this name, or parts do not belong together."""

    code = "conflict"


class OutcomeUnknown(CheckpointError):
    """A write may have happened or not, and cannot be read back now.

    Nothing was deleted. Retry the call.
    """

    code = "outcome_unknown"
    retryable = True


class NotFound(CheckpointError, KeyError):
    """Nothing is stored under this name."""

    code = "not_found"


class Stopped(CheckpointError):
    """The gate was stopped before the manifest was created: nothing was or will be published."""

    code = "stopped"


class MissingLibrary(CheckpointError, ImportError):
    """An optional library that this call requires is not installed.

    The message says how to install it.
    """

    code = "missing_library"


def wrong_type(argument: str, takes: str, value: object) -> TypeError:
    """The error for an argument of a wrong type: it names the argument, the accepted and the given type."""
    return TypeError(f"{argument} takes {takes}, not a value of type {type(value).__name__}")

"""Every error of ckptfmt, grouped by what a caller does about it.

::

    CheckpointError
    ├── StoreError               the place failed: try again, or look at the place (.errno, .path, .written)
    │   ├── UnusableDirectory    it can hold no checkpoint, however often the call is repeated
    │   └── UnsupportedStore     it lacks an operation that the format needs
    ├── BadCheckpoint            what is stored cannot be used: take another checkpoint (.file, .episode)
    │   ├── Damaged              stored bytes are not what was written
    │   ├── Incomplete           something that must be there was never finished, or is gone
    │   └── Unsupported          another format version, or an unknown feature
    ├── BadInput                 what the caller gave cannot be stored: change it
    │   ├── InexactValue         a value that would not read back as it was (.episode, .path)
    │   ├── LimitExceeded        more than a stated limit admits
    │   ├── SnapshotChanged      records written a second time were not the same
    │   └── InvalidId            a string that names no rollout, attempt or participant (also a ValueError)
    ├── Conflict                 something else is published under this name
    ├── OutcomeUnknown           the store did not say whether a write happened
    ├── NotFound                 nothing is stored under this name (also a KeyError)
    ├── Stopped                  the gate was stopped: nothing was or will be published
    └── MissingLibrary           an optional library is not installed (also an ImportError)

``code`` is stable and never reused for something else; ``retryable`` says whether the same call may succeed
later. Every error pickles with its attributes. A message names what, where and what to do, and never shows
a stored value. An argument of another type than a function takes is a TypeError, of another range a
ValueError, as everywhere in Python.
"""

from __future__ import annotations

from typing import ClassVar


class CheckpointError(Exception):
    """The root of every error that this package raises on purpose.

    Attributes:
        code: A stable name of the kind of error, such as ``damaged``.
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
    """The place where files are stored failed. Try again, or look at the place.

    Attributes:
        errno: The number of the operating system's error, when it gave one.
        path: The file or directory that the error is about.
        written: Bytes of that file that were written before; None when nothing was being written.
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
    """The place is no directory, or may not be written. Trying again does not help: use another place."""

    code = "unusable_directory"
    retryable = False


class UnsupportedStore(StoreError):
    """The place lacks an operation that the format needs, such as create-only, or its URL names no store."""

    code = "unsupported_store"
    retryable = False


class BadCheckpoint(CheckpointError):
    """What is stored cannot be used. Take another checkpoint, or another copy of this one.

    Attributes:
        file: The file that the error is about, relative to what was opened; None when that is not known.
        episode: The capture key of the record that the error is about, when there is one.
    """

    code = "bad_checkpoint"

    def __init__(self, message: str = "", *, file: str | None = None, episode: str | None = None) -> None:
        super().__init__(message)
        self.file = file
        self.episode = episode


class Damaged(BadCheckpoint):
    """Stored bytes are not what was written."""

    code = "damaged"


class Incomplete(BadCheckpoint):
    """Something that must be there (a manifest, ``checkpoint.json``, a records file) was never finished, or
    is gone.
    """

    code = "incomplete"


class Unsupported(BadCheckpoint):
    """A file has another format version, or needs a feature that this version of ckptfmt does not have."""

    code = "unsupported"


class BadInput(CheckpointError):
    """What the caller gave cannot be stored. The same input fails each time."""

    code = "bad_input"


class InexactValue(BadInput):
    """A value would not read back as it was. :func:`ckptfmt.plain` makes a value exact on purpose.

    Attributes:
        path: Where the value stands in its payload, such as ``$.messages[3].score``.
        episode: The capture key of the record, when there is one.
    """

    code = "inexact_value"

    def __init__(self, message: str = "", *, path: str = "$", episode: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.episode = episode


class LimitExceeded(BadInput):
    """A stated limit (see :class:`ckptfmt.Limits`) does not admit this."""

    code = "limit_exceeded"


class SnapshotChanged(BadInput):
    """Records had to be written a second time, and did not give the same bytes as the first time."""

    code = "snapshot_changed"


class InvalidId(BadInput, ValueError):
    """A string names no rollout, attempt, participant or checkpoint. Nothing is guessed or repaired."""

    code = "invalid_id"


class Conflict(CheckpointError):
    """Something else is already published under this name, or parts do not belong together."""

    code = "conflict"


class OutcomeUnknown(CheckpointError):
    """A write may or may not have happened and cannot be read back now. Nothing was deleted; try again."""

    code = "outcome_unknown"
    retryable = True


class NotFound(CheckpointError, KeyError):
    """Nothing is stored under this name."""

    code = "not_found"


class Stopped(CheckpointError):
    """The gate was stopped before the manifest was created: nothing was or will be published."""

    code = "stopped"


class MissingLibrary(CheckpointError, ImportError):
    """An optional library that this call needs is not installed. The message says how to install it."""

    code = "missing_library"


def wrong_type(argument: str, takes: str, value: object) -> TypeError:
    """The error for an argument of another type: which one, what it takes, and the type that it was."""
    return TypeError(f"{argument} takes {takes}, not a value of type {type(value).__name__}")

"""The few operations that the format needs of a store.

A name is ``/``-separated and relative to the place that the store was chosen for. Implementations raise
what the docstrings here name, and nothing else:

- :class:`ckptfmt.NotFound`: there is no such object;
- :class:`ckptfmt.Conflict`: there is one already (only from ``create``);
- :class:`ckptfmt.Damaged`: what lies there is no object of its own (a link, a directory, a FIFO);
- :class:`ckptfmt.StoreError`, :class:`ckptfmt.UnusableDirectory`: the store failed, or can hold no state;
- :class:`ckptfmt.Unsupported`: it lacks an operation;
- :class:`ckptfmt.OutcomeUnknown`: it did not say whether a ``create`` happened;
- :class:`ckptfmt.Stopped`: ``stopped()`` became true during a ``place``.

There is no append, and no listing that anything depends on: ``entries`` is for people and for looking around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeAlias

Buffer: TypeAlias = bytes | memoryview


class Entry(NamedTuple):
    """One name in a folder."""

    name: str
    is_folder: bool


class StoredFile(Protocol):
    """An object opened for one pass from its start."""

    @property
    def size(self) -> int:
        """Bytes of the whole object."""

    def read(self, length: int) -> bytes:
        """The next ``length`` bytes; fewer only at the end. Raises StoreError."""


class Staged(Protocol):
    """A file on its way to the store: it takes bytes, and has no name that anybody reads.

    One thread may append while another one settles; nothing else runs at once.
    """

    @property
    def lost(self) -> bool:
        """Whether the store lost some of the bytes: then nothing is left to do but to discard it."""

    @property
    def unsettled(self) -> int:
        """How many bytes ``settle`` would make durable."""

    def append(self, chunks: Iterable[Buffer], stopped: Callable[[], bool]) -> None:
        """Add bytes, all or none. Raises Stopped, StoreError, UnusableDirectory."""

    def settle(self) -> None:
        """Make durable what is there, so that ``place`` finds little to do. Raises StoreError."""

    def place(self, name: str, stopped: Callable[[], bool]) -> None:
        """Give the finished file its name, like ``Store.place``; can be tried again unless it is lost."""

    def discard(self) -> None:
        """Free what it holds; whatever has no name yet is gone. Harmless when repeated."""


class Store(Protocol):
    """One place (a folder of the local disk, later a bucket prefix)."""

    @property
    def url(self) -> str:
        """The place, for people."""

    def at(self, folder: str) -> Store:
        """The same store, at a folder below this place."""

    def create(self, name: str, data: bytes) -> None:
        """Put a small object, all or nothing, only if there is none. Durable bytes; its name is not, until
        ``make_durable``. Raises Conflict, Unsupported, OutcomeUnknown, StoreError, UnusableDirectory."""

    def place(self, name: str, chunks: Iterable[bytes], stopped: Callable[[], bool]) -> None:
        """Put a finished file whole, replacing one of the same name. Durable like ``create``.
        Raises Stopped, StoreError, UnusableDirectory; then nothing of the attempt is left."""

    def stage(self) -> Staged:
        """Begin a file whose name is known only when it is finished. Nothing is made before its first
        bytes."""

    def read(self, name: str, limit: int) -> bytes:
        """A whole object. Raises NotFound, Damaged, LimitExceeded (more than ``limit`` bytes), StoreError."""

    def open(self, name: str) -> AbstractContextManager[StoredFile]:
        """Open an object for one pass. Raises NotFound, Damaged, StoreError."""

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """``length`` bytes from ``start``; fewer only at the end. Raises NotFound, Damaged, StoreError."""

    def size(self, name: str) -> int:
        """Bytes of an object. Raises NotFound, Damaged, StoreError."""

    def entries(self, folder: str) -> list[Entry]:
        """What lies directly in a folder, sorted. Raises NotFound, StoreError."""

    def delete(self, name: str) -> None:
        """Remove an object; none is fine. Raises StoreError."""

    def make_durable(self, folder: str) -> None:
        """Make the names in ``folder`` survive a loss of power, then those of every folder above it, up to
        and including the parent of the store's place. Raises StoreError."""

    def make_durable_only(self, folder: str) -> None:
        """The same for the one folder. Raises StoreError."""

    def check_usable(self) -> None:
        """Try, and undo, what a writer does. Raises NotFound (no such place), Unsupported, StoreError,
        UnusableDirectory."""

    def forget_empty_folders(self) -> None:
        """Remove the folders that this object made and that are still empty."""

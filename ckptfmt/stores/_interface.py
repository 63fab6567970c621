"""The operations that the format needs of a place where files are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | memoryview
"""Bytes to be written."""


class Entry(NamedTuple):
    """What a store knows of one name without opening it.

    Attributes:
        path: The name, relative to the store's place, with ``/`` between folders.
        is_folder: Whether it is a folder, or a link that leads to one.
        is_file: Whether it is a regular file. A link to a file is none.
        is_link: Whether it is a link. Links are never followed when files are read.
        size: Bytes of a file.
        modified: When it was last written, in seconds since 1970 by the store's own clock.
    """

    path: str
    is_folder: bool
    is_file: bool
    is_link: bool
    size: int
    modified: float

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


class OpenFile(ABC):
    """A file opened for one pass from its start."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Bytes of the whole file."""

    @abstractmethod
    def read(self, length: int) -> bytes:
        """Read on.

        Args:
            length: How many bytes to read.

        Returns:
            The next ``length`` bytes; fewer only at the end of the file.

        Raises:
            StoreError: The store failed.
        """


class StagedFile(ABC):
    """A file that is being written and has no name yet: no reader can find it.

    One thread may call :meth:`append` while another one calls :meth:`sync`; no other calls may overlap.
    """

    @property
    @abstractmethod
    def lost(self) -> bool:
        """Whether the store lost some of the bytes. Then the file can only be discarded."""

    @property
    @abstractmethod
    def unsynced(self) -> int:
        """How many bytes :meth:`sync` would make durable."""

    @abstractmethod
    def append(self, chunks: Iterable[Buffer], stopped: Callable[[], bool]) -> None:
        """Add bytes at the end: all of them, or none when it raises.

        Args:
            chunks: The bytes.
            stopped: Asked between pieces; when it returns true, the call raises Stopped.

        Raises:
            Stopped: ``stopped()`` became true.
            StoreError: The store failed, or cannot be used (:class:`ckptfmt.UnusableDirectory`).
        """

    @abstractmethod
    def sync(self) -> None:
        """Make the bytes durable that are there, so that :meth:`place` finds little left to do.

        Raises:
            StoreError: The store failed; ``lost`` says whether bytes are gone.
        """

    @abstractmethod
    def place(self, name: str, stopped: Callable[[], bool]) -> None:
        """Give the finished file its name, replacing a file of the same name. May be repeated after an error.

        Args:
            name: The name, relative to the place of the store that staged the file.
            stopped: Asked before the name appears; when it returns true, the call raises Stopped.

        Raises:
            Stopped: ``stopped()`` became true.
            StoreError: The store failed.
        """

    @abstractmethod
    def discard(self) -> None:
        """Free what the file holds. A file without a name is gone. May be repeated."""


class Store(ABC):
    """One place where files are stored: a folder of the local disk, or a prefix of a bucket.

    Names are relative to the place, with ``/`` between folders. Each method raises what its documentation
    names and nothing else. There is no append, and nothing in the format depends on a listing:
    :meth:`entries` and :meth:`walk` only serve to look around. Where a function of ckptfmt takes a URL, it
    takes a store as well.

    A store can be pickled; the copy is the same place in any process that reaches it.
    """

    @property
    @abstractmethod
    def url(self) -> str:
        """The place, as :func:`ckptfmt.stores.choose_store` takes it."""

    @abstractmethod
    def at(self, folder: str) -> Store:
        """The same store at a folder below this place.

        Args:
            folder: The folder's path; it need not exist.

        Returns:
            A store for that place.
        """

    # Writing

    @abstractmethod
    def create(self, name: str, data: bytes) -> None:
        """Put a small file, whole or not at all, only if there is none of this name: the store itself
        enforces that.

        The bytes are durable when it returns; the name is after :meth:`make_durable`.

        Args:
            name: The file's name.
            data: Its bytes.

        Raises:
            Conflict: There is a file of this name already.
            OutcomeUnknown: The store did not say whether the file was created.
            UnsupportedStore: The store cannot enforce it.
            StoreError: The store failed, or cannot be used (:class:`ckptfmt.UnusableDirectory`).
        """

    @abstractmethod
    def place(self, name: str, chunks: Iterable[bytes], stopped: Callable[[], bool]) -> None:
        """Put a finished file, whole or not at all, replacing a file of the same name. Durable like
        :meth:`create`.

        Args:
            name: The file's name.
            chunks: Its bytes, in pieces.
            stopped: Asked between pieces; when it returns true, the call raises Stopped.

        Raises:
            Stopped: ``stopped()`` became true.
            StoreError: The store failed, or cannot be used (:class:`ckptfmt.UnusableDirectory`). Nothing of
                the attempt is left.
        """

    @abstractmethod
    def stage(self) -> StagedFile:
        """Begin a file whose name is known only when it is finished.

        Returns:
            A file that takes bytes. Nothing is made before the first of them.
        """

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file. No error when there is none.

        Args:
            name: The file's name.

        Raises:
            StoreError: The store failed.
        """

    # Durability

    @abstractmethod
    def make_durable(self, folder: str) -> None:
        """Make the names in a folder survive a loss of power, and those in every folder above it.

        Args:
            folder: The folder. It ends with the parent of the store's place, that one included.

        Raises:
            StoreError: The store failed.
        """

    @abstractmethod
    def make_folder_durable(self, folder: str) -> None:
        """Make the names in one folder survive a loss of power.

        Args:
            folder: The folder; the ones above it are left out.

        Raises:
            StoreError: The store failed.
        """

    @abstractmethod
    def check_usable(self) -> None:
        """Try what a writer does, and undo it.

        Raises:
            NotFound: There is no such place.
            UnsupportedStore: The store lacks an operation.
            StoreError: The store failed, or cannot be used (:class:`ckptfmt.UnusableDirectory`).
        """

    # Reading

    @abstractmethod
    def read(self, name: str, limit: int) -> bytes:
        """Read a whole file.

        Args:
            name: The file's name.
            limit: The most bytes that it may have.

        Returns:
            Its bytes.

        Raises:
            NotFound: There is no such file.
            Damaged: What has this name is no file of its own (a link, a folder, a FIFO).
            LimitExceeded: The file has more than ``limit`` bytes.
            StoreError: The store failed.
        """

    @abstractmethod
    def open(self, name: str) -> AbstractContextManager[OpenFile]:
        """Open a file for one pass.

        Args:
            name: The file's name.

        Returns:
            A context manager that gives the open file and closes it.

        Raises:
            NotFound: There is no such file.
            Damaged: What has this name is no file of its own.
            StoreError: The store failed.
        """

    @abstractmethod
    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Read a part of a file.

        Args:
            name: The file's name.
            start: The first byte, counted from 0.
            length: How many bytes to read.

        Returns:
            ``length`` bytes; fewer only at the end of the file.

        Raises:
            NotFound: There is no such file.
            Damaged: What has this name is no file of its own.
            StoreError: The store failed.
        """

    # Looking around

    @abstractmethod
    def stat(self, name: str) -> Entry:
        """What the store knows of one name.

        Args:
            name: The name of a file or folder.

        Returns:
            Its entry.

        Raises:
            NotFound: There is nothing of this name.
            StoreError: The store failed.
        """

    @abstractmethod
    def entries(self, folder: str) -> list[Entry]:
        """What lies directly in a folder.

        Args:
            folder: The folder; empty for the store's place itself.

        Returns:
            The entries, sorted by path.

        Raises:
            NotFound: There is no such folder.
            StoreError: The store failed.
        """

    @abstractmethod
    def walk(self, folder: str) -> Iterator[Entry]:
        """Everything below a folder. Links are named and not followed.

        Args:
            folder: The folder; empty for the store's place itself.

        Returns:
            The entries, each folder before what lies in it. Nothing when there is no such folder.

        Raises:
            StoreError: The store failed.
        """

    @abstractmethod
    def server_time(self) -> float:
        """The time by the clock that :attr:`Entry.modified` is measured with.

        Returns:
            Seconds since 1970.

        Raises:
            StoreError: The store failed.
        """

    @abstractmethod
    def contains(self, other: Store) -> bool:
        """Whether another store's place lies below this one. Links are followed.

        Args:
            other: The other store.

        Returns:
            True only when it lies below; a place does not contain itself.
        """

    # Folders

    @abstractmethod
    def remove_empty_folder(self, folder: str) -> bool:
        """Remove a folder that holds nothing.

        Args:
            folder: The folder.

        Returns:
            Whether it is gone.
        """

    @abstractmethod
    def remove_created_folders(self) -> None:
        """Remove the folders that this object made and that are still empty."""

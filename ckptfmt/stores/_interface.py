"""The operations that the format requires of a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | memoryview
"""Bytes that can be written."""


class Entry(NamedTuple):
    """The metadata of one name in a store.

    Attributes:
        path: The name, relative to the store's place, with ``/`` between folders.
        is_folder: Whether it is a folder, or a link that leads to one.
        is_file: Whether it is a regular file. False for a link to a file.
        is_link: Whether it is a link. Links are never followed when files are read.
        size: The bytes of a file.
        modified: The time of the last write, in seconds since 1970 by the store's own clock.
    """

    path: str
    is_folder: bool
    is_file: bool
    is_link: bool
    size: int
    modified: float

    @property
    def name(self) -> str:
        """The last component of the path."""
        return self.path.rpartition("/")[2]


class OpenFile(ABC):
    """A file that is opened for one pass from its start."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The bytes of the whole file."""

    @abstractmethod
    def read(self, length: int) -> bytes:
        """Read the next bytes.

        Args:
            length: The number of bytes to read.

        Returns:
            The next ``length`` bytes; fewer only at the end of the file.

        Raises:
            StoreError: The store failed.
        """


class StagedFile(ABC):
    """A file that is being written and has no name yet, so that no reader can find it.

    One thread may call :meth:`append` while another thread calls :meth:`sync`. No other calls may overlap.
    """

    @property
    @abstractmethod
    def lost(self) -> bool:
        """Whether the store lost some of the bytes, so that the file can only be discarded."""

    @property
    @abstractmethod
    def unsynced(self) -> int:
        """The number of bytes that :meth:`sync` would make durable."""

    @abstractmethod
    def append(self, chunks: Iterable[Buffer], stopped: Callable[[], bool]) -> None:
        """Append bytes: all of them, or none when the call raises.

        Args:
            chunks: The bytes.
            stopped: Called between pieces. If it returns true, the call raises Stopped.

        Raises:
            Stopped: ``stopped()`` returned true.
            StoreError: The store failed, or cannot be used (:class:`ckptfmt.UnusableDirectory`).
        """

    @abstractmethod
    def sync(self) -> None:
        """Make the appended bytes durable, so that :meth:`place` has little left to do.

        Raises:
            StoreError: The store failed; :attr:`lost` tells whether bytes were lost.
        """

    @abstractmethod
    def place(self, name: str, stopped: Callable[[], bool]) -> None:
        """Give the finished file its name, replacing a file of the same name.

        The call may be repeated after an error.

        Args:
            name: The name, relative to the place of the store that staged the file.
            stopped: Called before the name appears. If it returns true, the call raises Stopped.

        Raises:
            Stopped: ``stopped()`` returned true.
            StoreError: The store failed.
        """

    @abstractmethod
    def discard(self) -> None:
        """Release all resources, and delete the file if it has no name yet.

        The call may be repeated.
        """


class Store(ABC):
    """One place where files are stored: a directory of the local disk, or a prefix of a bucket.

    Names are relative to the place, with ``/`` between folders. Each method raises only the errors in its
    documentation. There is no append, and the format never depends on a listing: :meth:`entries` and
    :meth:`walk` serve only for inspection. Every function of ckptfmt that takes a URL takes a store as well.

    A store can be pickled; the copy refers to the same place in any process that can reach it.
    """

    @property
    @abstractmethod
    def url(self) -> str:
        """The place, in the form that :func:`ckptfmt.stores.choose_store` takes."""

    @abstractmethod
    def at(self, folder: str) -> Store:
        """A store for a folder below this place.

        Args:
            folder: The folder's path; it need not exist.

        Returns:
            A store for that place.
        """

    # Writing

    @abstractmethod
    def create(self, name: str, data: bytes) -> None:
        """Create a small file atomically, only if there is no file of this name.

        The store enforces the condition. The bytes are durable when the call returns; the name is durable
        after :meth:`make_durable`.

        Args:
            name: The file's name.
            data: Its bytes.

        Raises:
            Conflict: A file of this name exists already.
            OutcomeUnknown: The store did not report whether the file was created.
            UnsupportedStore: The store cannot enforce this.
            StoreError: The store failed, or cannot be used (:class:`ckptfmt.UnusableDirectory`).
        """

    @abstractmethod
    def place(self, name: str, chunks: Iterable[bytes], stopped: Callable[[], bool]) -> None:
        """Put a finished file atomically, replacing a file of the same name.

        The durability is that of :meth:`create`.

        Args:
            name: The file's name.
            chunks: Its bytes, in pieces.
            stopped: Called between pieces. If it returns true, the call raises Stopped.

        Raises:
            Stopped: ``stopped()`` returned true. Nothing of the attempt remains.
            StoreError: The store failed, or cannot be used (:class:`ckptfmt.UnusableDirectory`). Nothing of
                the attempt remains.
        """

    @abstractmethod
    def stage(self) -> StagedFile:
        """Start a file whose name is known only when it is finished.

        Returns:
            A file to append to. Nothing is created before the first append.
        """

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a file, if it exists.

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
            folder: The folder. The last folder above it is the parent of the store's place.

        Raises:
            StoreError: The store failed.
        """

    @abstractmethod
    def make_folder_durable(self, folder: str) -> None:
        """Make the names in one folder survive a loss of power.

        Args:
            folder: The folder; the folders above it are not included.

        Raises:
            StoreError: The store failed.
        """

    @abstractmethod
    def check_usable(self) -> None:
        """Try the operations of a writer, and undo them.

        Raises:
            NotFound: The place does not exist.
            UnsupportedStore: The store lacks an operation.
            StoreError: The store failed, or cannot be used (:class:`ckptfmt.UnusableDirectory`).
        """

    # Reading

    @abstractmethod
    def read(self, name: str, limit: int) -> bytes:
        """Read a whole file.

        Args:
            name: The file's name.
            limit: The most bytes that the file may have.

        Returns:
            The bytes.

        Raises:
            NotFound: The file does not exist.
            Damaged: It is not a regular file (but a link, a folder or a FIFO).
            LimitExceeded: The file has more than ``limit`` bytes.
            StoreError: The store failed.
        """

    @abstractmethod
    def open(self, name: str) -> AbstractContextManager[OpenFile]:
        """Open a file for one pass from its start.

        Args:
            name: The file's name.

        Returns:
            A context manager that returns the open file and closes it.

        Raises:
            NotFound: The file does not exist.
            Damaged: It is not a regular file.
            StoreError: The store failed.
        """

    @abstractmethod
    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Read a part of a file.

        Args:
            name: The file's name.
            start: The first byte, counted from 0.
            length: The number of bytes to read.

        Returns:
            ``length`` bytes; fewer only at the end of the file.

        Raises:
            NotFound: The file does not exist.
            Damaged: It is not a regular file.
            StoreError: The store failed.
        """

    # Inspection

    @abstractmethod
    def stat(self, name: str) -> Entry:
        """Get the metadata of one name.

        Args:
            name: The name of a file or folder.

        Returns:
            The entry.

        Raises:
            NotFound: Nothing has this name.
            StoreError: The store failed.
        """

    @abstractmethod
    def entries(self, folder: str) -> list[Entry]:
        """List what is directly in a folder.

        Args:
            folder: The folder; empty for the store's place.

        Returns:
            The entries, sorted by path.

        Raises:
            NotFound: The folder does not exist.
            StoreError: The store failed.
        """

    @abstractmethod
    def walk(self, folder: str) -> Iterator[Entry]:
        """List everything below a folder.

        Links are listed but not followed.

        Args:
            folder: The folder; empty for the store's place.

        Returns:
            The entries, each folder before its content. Nothing when the folder does not exist.

        Raises:
            StoreError: The store failed.
        """

    @abstractmethod
    def server_time(self) -> float:
        """Get the time of the clock that :attr:`Entry.modified` is measured with.

        Returns:
            Seconds since 1970.

        Raises:
            StoreError: The store failed.
        """

    @abstractmethod
    def contains(self, other: Store) -> bool:
        """Check whether another store's place is below this one, following links.

        Args:
            other: The other store.

        Returns:
            True when it is below this place; false for this place itself.
        """

    # Folders

    @abstractmethod
    def remove_empty_folder(self, folder: str) -> bool:
        """Remove a folder if it is empty.

        Args:
            folder: The folder.

        Returns:
            Whether the folder no longer exists.
        """

    @abstractmethod
    def remove_created_folders(self) -> None:
        """Remove the folders that this object created and that are still empty."""

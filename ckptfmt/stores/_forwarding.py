"""A store that forwards every call to another store: the base class of stores that count, measure or fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager

from ckptfmt.stores._interface import Entry, OpenFile, StagedFile, Store


class ForwardingStore(Store):
    """A store that forwards every call to another store.

    Subclasses override the operations that they change or observe.

    Args:
        inner: The store that does the work.

    Attributes:
        inner: The store that does the work.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def wrap(self, inner: Store) -> Store:
        """Wrap a store at another place; :meth:`at` calls this method.

        Args:
            inner: The store at that place.

        Returns:
            The wrapped store. A subclass whose constructor has more parameters overrides this method.
        """
        return type(self)(inner)

    @property
    def url(self) -> str:
        return self.inner.url

    def at(self, folder: str) -> Store:
        return self.wrap(self.inner.at(folder))

    def create(self, name: str, data: bytes) -> None:
        self.inner.create(name, data)

    def place(self, name: str, chunks: Iterable[bytes], stopped: Callable[[], bool]) -> None:
        self.inner.place(name, chunks, stopped)

    def stage(self) -> StagedFile:
        return self.inner.stage()

    def delete(self, name: str) -> None:
        self.inner.delete(name)

    def make_durable(self, folder: str) -> None:
        self.inner.make_durable(folder)

    def make_folder_durable(self, folder: str) -> None:
        self.inner.make_folder_durable(folder)

    def check_usable(self) -> None:
        self.inner.check_usable()

    def read(self, name: str, limit: int) -> bytes:
        return self.inner.read(name, limit)

    def open(self, name: str) -> AbstractContextManager[OpenFile]:
        return self.inner.open(name)

    def read_range(self, name: str, start: int, length: int) -> bytes:
        return self.inner.read_range(name, start, length)

    def stat(self, name: str) -> Entry:
        return self.inner.stat(name)

    def entries(self, folder: str) -> list[Entry]:
        return self.inner.entries(folder)

    def walk(self, folder: str) -> Iterator[Entry]:
        return self.inner.walk(folder)

    def server_time(self) -> float:
        return self.inner.server_time()

    def contains(self, other: Store) -> bool:
        return self.inner.contains(other.inner if isinstance(other, ForwardingStore) else other)

    def remove_empty_folder(self, folder: str) -> bool:
        return self.inner.remove_empty_folder(folder)

    def remove_created_folders(self) -> None:
        self.inner.remove_created_folders()

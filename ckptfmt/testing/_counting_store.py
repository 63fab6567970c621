"""A store that records every call, for tests that count the cost of an operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from ckptfmt.stores import Entry, ForwardingStore, OpenFile, StagedFile, Store


class StoreCall(NamedTuple):
    """One call of a store.

    Attributes:
        operation: The name of the method.
        url: The URL of the file or folder that the call was about.
    """

    operation: str
    url: str


class CountingStore(ForwardingStore):
    """A store that records every call that needs at least one request to a bucket.

    The stores that its ``at`` returns share the list of calls. A walk counts as one call.

    Args:
        inner: The store that does the work.

    Attributes:
        calls: Every call, in order.

    Example:
        ::

            store = CountingStore(choose_store("run/step-1"))
            ckptfmt.open(store)
            assert store.counts() == {"read": 2}
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.calls: list[StoreCall] = []

    def wrap(self, inner: Store) -> Store:
        store = CountingStore(inner)
        store.calls = self.calls
        return store

    def counts(self) -> dict[str, int]:
        """Count the calls of each operation.

        Returns:
            The number of calls by the name of the operation.
        """
        return dict(Counter(call.operation for call in self.calls))

    def _record(self, operation: str, name: str = "") -> None:
        self.calls.append(StoreCall(operation, f"{self.url}/{name}" if name else self.url))

    def create(self, name: str, data: bytes) -> None:
        self._record("create", name)
        super().create(name, data)

    def place(self, name: str, chunks: Iterable[bytes], stopped: Callable[[], bool]) -> None:
        self._record("place", name)
        super().place(name, chunks, stopped)

    def stage(self) -> StagedFile:
        self._record("stage")
        return super().stage()

    def delete(self, name: str) -> None:
        self._record("delete", name)
        super().delete(name)

    def read(self, name: str, limit: int) -> bytes:
        self._record("read", name)
        return super().read(name, limit)

    def open(self, name: str) -> AbstractContextManager[OpenFile]:
        self._record("open", name)
        return super().open(name)

    def read_range(self, name: str, start: int, length: int) -> bytes:
        self._record("read_range", name)
        return super().read_range(name, start, length)

    def stat(self, name: str) -> Entry:
        self._record("stat", name)
        return super().stat(name)

    def entries(self, folder: str) -> list[Entry]:
        self._record("entries", folder)
        return super().entries(folder)

    def walk(self, folder: str) -> Iterator[Entry]:
        self._record("walk", folder)
        return super().walk(folder)

    def server_time(self) -> float:
        self._record("server_time")
        return super().server_time()

    def remove_empty_folder(self, folder: str) -> bool:
        self._record("remove_empty_folder", folder)
        return super().remove_empty_folder(folder)

"""Progress of long work on standard error: bytes, rate, time left. Nothing when that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, cast

from ckptfmt._errors import CheckpointError, StoreError
from ckptfmt._limits import DEFAULT_LIMITS
from ckptfmt._read.checkpoint import Checkpoint, find_checkpoint
from ckptfmt.stores import choose_store
from ckptfmt.stores._interface import Store, StoredFile

if TYPE_CHECKING:
    from rich.progress import Progress


class Meter:
    """Counts bytes of work whose extent may become known later."""

    def __init__(self, bar: Progress | None, what: str) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task(what, total=None)
        self._expected = 0

    def expect(self, count: int) -> None:
        """There will be so many bytes, besides those that were expected before."""
        self._expected += count
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=self._expected)

    def add(self, count: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, count)


@contextmanager
def metered(what: str, *, hidden: bool = False) -> Iterator[Meter]:
    """Show a bar while the block runs; it is gone afterwards."""
    if hidden or sys.stderr is None or not sys.stderr.isatty():
        yield Meter(None, what)
        return
    from ckptfmt._cli.progress_bar import make_bar  # rich takes long to import, and most runs show no bar

    with make_bar() as bar:
        yield Meter(bar, what)


def opened(url: str, meter: Meter) -> Checkpoint:
    """As :func:`ckptfmt.open`; what is read of its records is told to ``meter``."""
    checkpoint = find_checkpoint(counted(choose_store(url), meter.add), DEFAULT_LIMITS)
    checkpoint.check_cut()
    return checkpoint


def bytes_to_read(checkpoint: Checkpoint) -> int:
    """Bytes of all records whose manifest can be read; what cannot be is said when it is read.
    Raises :class:`StoreError`."""
    total = 0
    for name in checkpoint:
        try:
            total += checkpoint[name].manifest.bytes
        except StoreError:
            raise
        except CheckpointError:
            continue
    return total


def counted(store: Store, count: Callable[[int], None]) -> Store:
    """The same store; what is read of files that are opened is told to ``count``."""
    # It hands on whatever it does not count, which the type checker cannot see.
    return cast(Store, _CountedStore(store, count))


class _CountedStore:
    def __init__(self, store: Store, count: Callable[[int], None]) -> None:
        self._store = store
        self._count = count

    def at(self, folder: str) -> Store:
        return counted(self._store.at(folder), self._count)

    def open(self, name: str) -> AbstractContextManager[StoredFile]:
        return self._opened(name)

    @contextmanager
    def _opened(self, name: str) -> Iterator[StoredFile]:
        with self._store.open(name) as file:
            yield _CountedFile(file, self._count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _CountedFile:
    def __init__(self, file: StoredFile, count: Callable[[int], None]) -> None:
        self.size = file.size
        self._file = file
        self._count = count

    def read(self, length: int) -> bytes:
        data = self._file.read(length)
        self._count(len(data))
        return data

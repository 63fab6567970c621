"""Progress of long work: bytes, rate and time left on standard error, if that is a terminal."""

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
    """Counts the bytes of work that is done; the total may become known later."""

    def __init__(self, bar: Progress | None, what: str) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task(what, total=None)
        self._expected = 0

    def expect(self, count: int) -> None:
        """Add ``count`` bytes to the total."""
        self._expected += count
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=self._expected)

    def add(self, count: int) -> None:
        """Count ``count`` bytes as done."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, count)


@contextmanager
def metered(what: str, *, hidden: bool = False) -> Iterator[Meter]:
    """Show a progress bar while the block runs, and remove it at the end."""
    if hidden or sys.stderr is None or not sys.stderr.isatty():
        yield Meter(None, what)
        return
    from ckptfmt._cli.progress_bar import make_bar  # rich takes long to import, and most runs show no bar

    with make_bar() as bar:
        yield Meter(bar, what)


def opened(url: str, meter: Meter) -> Checkpoint:
    """As :func:`ckptfmt.open`; ``meter`` counts what is read of the records."""
    checkpoint = find_checkpoint(counted(choose_store(url), meter.add), DEFAULT_LIMITS)
    checkpoint.check_cut()
    return checkpoint


def bytes_to_read(checkpoint: Checkpoint) -> int:
    """Bytes of all records whose manifest can be read. Raises :class:`StoreError`.

    A manifest that cannot be read is reported later, by what reads it.
    """
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
    """The same store; ``count`` is called with the number of bytes of each read of an opened file."""
    # It passes every other call to the store, which the type checker cannot see.
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

"""Progress of long work: bytes, rate and time left on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import Progress

from ckptfmt._cli.progress_bar import make_bar
from ckptfmt._errors import BadCheckpoint
from ckptfmt._limits import DEFAULT_LIMITS
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.opening import find_checkpoint
from ckptfmt.stores import ForwardingStore, OpenFile, Store, choose_store


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
        except BadCheckpoint:
            continue
    return total


def counted(store: Store, count: Callable[[int], None]) -> Store:
    """The same store; ``count`` is called with the number of bytes of each read of an opened file."""
    return _CountedStore(store, count)


class _CountedStore(ForwardingStore):
    def __init__(self, inner: Store, count: Callable[[int], None]) -> None:
        super().__init__(inner)
        self._count = count

    def wrap(self, inner: Store) -> Store:
        return _CountedStore(inner, self._count)

    @contextmanager
    def open(self, name: str) -> Iterator[OpenFile]:
        with self.inner.open(name) as file:
            yield _CountedFile(file, self._count)


class _CountedFile(OpenFile):
    def __init__(self, file: OpenFile, count: Callable[[int], None]) -> None:
        self._file = file
        self._count = count

    @property
    def size(self) -> int:
        return self._file.size

    def read(self, length: int) -> bytes:
        data = self._file.read(length)
        self._count(len(data))
        return data

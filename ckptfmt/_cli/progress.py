"""Progress of long work on standard error: bytes, rate, time left. Nothing when that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ckptfmt._errors import BadCheckpoint
from ckptfmt._limits import DEFAULT_LIMITS
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.opening import find_checkpoint
from ckptfmt._text import size_text
from ckptfmt.stores import ForwardingStore, OpenFile, Store, choose_store


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
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(binary_units=True),
        _SpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        yield Meter(bar, what)


class _SpeedColumn(ProgressColumn):
    """Bytes per second, in the units of the other columns."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{size_text(int(speed))}/s")


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
        except BadCheckpoint:
            continue
    return total


def counted(store: Store, count: Callable[[int], None]) -> Store:
    """The same store; what is read of files that are opened is told to ``count``."""
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

"""Spooling: segments are kept in a local folder of the caller's choice until they are placed.

For a store that is slow or that is not a disk.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final

from ckptfmt._errors import Stopped, StoreError
from ckptfmt.stores import Buffer, StagedFile, Store

_COPY_BYTES: Final = 1024 * 1024


class SpooledFile(StagedFile):
    """A staged file in a local file without a name, so that nothing is left of it even after SIGKILL."""

    lost = False
    unsynced = 0

    def __init__(self, store: Store, folder: str) -> None:
        self._store = store
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._size = 0

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(
            f"cannot spool into {self._folder} after {self._size} bytes: {error.strerror}; "
            "free some space, or choose another folder",
            errno=error.errno,
            path=self._folder,
            written=self._size,
        )

    def append(self, chunks: Iterable[Buffer], stopped: Callable[[], bool]) -> None:
        size = self._size
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115  # see discard
            self._file.seek(size)
            for chunk in chunks:
                rest = memoryview(chunk)
                while rest:
                    if stopped():
                        raise Stopped(f"{self._folder}: stopped while spooling; nothing was published")
                    count = self._file.write(rest[:_COPY_BYTES])
                    rest = rest[count:]
                    size += count
        except OSError as error:
            raise self._failed(error) from error  # the bytes beyond _size are overwritten later
        self._size = size

    def sync(self) -> None:
        """Does nothing: a spooled file need not be durable."""

    def place(self, name: str, stopped: Callable[[], bool]) -> None:
        self._store.place(name, self._chunks(), stopped)

    def _chunks(self) -> Iterator[bytes]:
        assert self._file is not None
        try:
            self._file.seek(0)
            left = self._size
            while left:
                data = self._file.read(min(left, _COPY_BYTES))
                if not data:
                    raise OSError(errno.EIO, f"{left} bytes are missing at its end")
                left -= len(data)
                yield data
        except OSError as error:
            raise self._failed(error) from error

    def discard(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

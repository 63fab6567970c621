"""A file of the local disk that is being written: beside its place, under a name that nobody reads."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from ckptfmt._errors import NotFound, Stopped, StoreError, UnusableDirectory
from ckptfmt.stores._disk import Disk
from ckptfmt.stores._interface import Buffer, StagedFile

TEMPORARY_PREFIX: Final = ".ckptfmt-"
"""Files that only a killed process can leave behind start with this."""

_PIECE: Final = 1024 * 1024
_UNUSABLE: Final = frozenset(
    {errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}
)
_READING: Final = frozenset({"open", "read", "list", "look at"})


def failed(doing: str, path: str, error: OSError, written: int | None = None) -> StoreError:
    """What the operating system says, as an error of the store."""
    kind = UnusableDirectory if error.errno in _UNUSABLE else StoreError
    reason = os.strerror(error.errno) if error.errno else str(error)
    progress = "" if written is None else f" after {written} bytes"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "free some space, then try again"
    elif doing in _READING:
        advice = "see who may read it, or try again"
    else:
        advice = "use a directory that can be written" if kind is UnusableDirectory else "try again"
    return kind(
        f"cannot {doing} {path}{progress}: {reason}; {advice}", errno=error.errno, path=path, written=written
    )


def no_directory(path: str, error: OSError) -> NotFound:
    """The error where a directory was to be listed and there is none."""
    if error.errno == errno.ENOTDIR:
        return NotFound(f"{path}: this is a file, or below one, and no directory")
    return NotFound(f"{path}: there is no such directory")


class LocalStagedFile(StagedFile):
    """A file for ``folder``. ``make`` opens a new file of a given path there; ``about`` is the path that
    errors name.
    """

    lost = False

    def __init__(self, folder: str, about: str, disk: Disk, make: Callable[[str], int]) -> None:
        self._folder = folder
        self._about = about
        self._disk = disk
        self._make = make
        self._descriptor: int | None = None
        self._temporary = ""
        self._size = 0
        self._end = 0  # of what an append that failed may have written beyond _size
        self._synced = 0
        self._process = os.getpid()

    def append(self, chunks: Iterable[Buffer], stopped: Callable[[], bool]) -> None:
        offset = self._size
        try:
            if self._descriptor is None:
                # The path is known before there is such a file: an interrupt between the two leaves nothing.
                self._temporary = os.path.join(self._folder, f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.tmp")
                self._descriptor = self._make(self._temporary)
            for chunk in chunks:
                rest = memoryview(chunk)
                while rest:
                    self._check(stopped)
                    count = self._disk.write(self._descriptor, rest[:_PIECE], offset)
                    offset += count
                    self._end = max(self._end, offset)
                    rest = rest[count:]
        except OSError as error:
            # What was written lies beyond _size; the next append writes over it.
            raise failed("write", self._about, error, offset) from error
        self._size = offset

    @property
    def unsynced(self) -> int:
        return self._size - self._synced

    def sync(self) -> None:
        size = self._size  # another thread may append meanwhile
        if self._descriptor is not None:
            self._sync_file(self._descriptor)
            self._synced = size

    def _sync_file(self, descriptor: int) -> None:
        if self.lost:
            raise StoreError(
                f"cannot write {self._about}: what it had taken is lost; write all records again",
                path=self._about,
            )
        try:
            self._disk.sync(descriptor, self._temporary)
        except OSError as error:
            # The kernel has dropped what it could not write, and the next sync would say that all is well.
            self.lost = True
            raise failed("write", self._about, error, self._size) from error

    def place(self, name: str, stopped: Callable[[], bool]) -> None:
        path = os.path.join(self._folder, name)

        def replace(temporary: str) -> None:
            try:
                self._disk.replace(temporary, path)
            except OSError as error:
                self.lost = isinstance(error, FileNotFoundError)  # somebody removed it: no use to try again
                raise failed("place", path, error) from error

        self.publish(replace, stopped)
        self._temporary = ""  # it has that name now

    def publish(self, name: Callable[[str], None], stopped: Callable[[], bool]) -> None:
        """Make the file durable, then call ``name`` with its path, which gives it its name."""
        assert self._descriptor is not None
        if self._end > self._size:
            self._cut_off(self._descriptor)
        self._sync_file(self._descriptor)
        self._check(stopped)  # a write that hung may end long after it was stopped
        name(self._temporary)

    def _cut_off(self, descriptor: int) -> None:
        try:
            self._disk.truncate(descriptor, self._size)
        except OSError as error:
            raise failed("write", self._about, error, self._size) from error
        self._end = self._size

    def _check(self, stopped: Callable[[], bool]) -> None:
        if stopped():
            raise Stopped(f"{self._about}: stopped while it was written; nothing was published")

    def discard(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):  # the bytes are synced, or nobody wants them
                self._disk.close(self._descriptor)
            self._descriptor = None
        if self._temporary and os.getpid() == self._process:  # a forked child has only a copy of this object
            with suppress(OSError):  # a clean-up that fails must not hide the error before it
                self._disk.unlink(self._temporary)
        self._temporary = ""

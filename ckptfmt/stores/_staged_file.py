"""A file of the local disk while it is written: it has a temporary name in its final directory."""

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
"""The prefix of temporary files. Only a killed process leaves such a file behind."""

_PIECE: Final = 1024 * 1024
_UNUSABLE: Final = frozenset(
    {errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP}
)
_READ_OPERATIONS: Final = frozenset({"open", "read", "list", "inspect"})


def store_error(operation: str, path: str, error: OSError, written: int | None = None) -> StoreError:
    """Convert an error of the operating system to an error of the store."""
    kind = UnusableDirectory if error.errno in _UNUSABLE else StoreError
    reason = os.strerror(error.errno) if error.errno else str(error)
    progress = "" if written is None else f" after {written} bytes"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "free some space, then try again"
    elif operation in _READ_OPERATIONS:
        advice = "check the permissions, or try again"
    else:
        advice = "use a writable directory" if kind is UnusableDirectory else "try again"
    return kind(
        f"cannot {operation} {path}{progress}: {reason}; {advice}",
        errno=error.errno,
        path=path,
        written=written,
    )


def no_such_directory(path: str, error: OSError) -> NotFound:
    """The error for a directory that cannot be listed because it does not exist."""
    if error.errno == errno.ENOTDIR:
        return NotFound(f"{path}: it is a file, or is below a file, and not a directory")
    return NotFound(f"{path}: there is no such directory")


class LocalStagedFile(StagedFile):
    """A file for ``folder``.

    ``create`` opens a new file at a given path in the folder; ``about`` is the path that errors name.
    """

    lost = False

    def __init__(self, folder: str, about: str, disk: Disk, create: Callable[[str], int]) -> None:
        self._folder = folder
        self._about = about
        self._disk = disk
        self._create = create
        self._descriptor: int | None = None
        self._temporary = ""
        self._size = 0
        self._end = 0  # the end of what a failed append may have written beyond _size
        self._synced = 0
        self._process = os.getpid()

    def append(self, chunks: Iterable[Buffer], stopped: Callable[[], bool]) -> None:
        offset = self._size
        try:
            if self._descriptor is None:
                # The path is stored before the file exists, so that an interrupt leaves no file behind.
                self._temporary = os.path.join(self._folder, f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.tmp")
                self._descriptor = self._create(self._temporary)
            for chunk in chunks:
                rest = memoryview(chunk)
                while rest:
                    self._check(stopped)
                    count = self._disk.write(self._descriptor, rest[:_PIECE], offset)
                    offset += count
                    self._end = max(self._end, offset)
                    rest = rest[count:]
        except OSError as error:
            # The bytes beyond _size are overwritten by the next append.
            raise store_error("write", self._about, error, offset) from error
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
                f"cannot write {self._about}: bytes that were written are lost; write all records again",
                path=self._about,
            )
        try:
            self._disk.sync(descriptor, self._temporary)
        except OSError as error:
            # The kernel has dropped the bytes that it could not write, and the next sync would succeed.
            self.lost = True
            raise store_error("write", self._about, error, self._size) from error

    def place(self, name: str, stopped: Callable[[], bool]) -> None:
        path = os.path.join(self._folder, name)

        def replace(temporary: str) -> None:
            try:
                self._disk.replace(temporary, path)
            except OSError as error:
                self.lost = isinstance(error, FileNotFoundError)  # the temporary file was removed
                raise store_error("place", path, error) from error

        self.publish(replace, stopped)
        self._temporary = ""  # the file has its final name now

    def publish(self, assign_name: Callable[[str], None], stopped: Callable[[], bool]) -> None:
        """Make the file durable, then call ``assign_name`` with its temporary path."""
        assert self._descriptor is not None
        if self._end > self._size:
            self._truncate(self._descriptor)
        self._sync_file(self._descriptor)
        self._check(stopped)  # a sync that hung may end long after the stop
        assign_name(self._temporary)

    def _truncate(self, descriptor: int) -> None:
        try:
            self._disk.truncate(descriptor, self._size)
        except OSError as error:
            raise store_error("write", self._about, error, self._size) from error
        self._end = self._size

    def _check(self, stopped: Callable[[], bool]) -> None:
        if stopped():
            raise Stopped(f"{self._about}: stopped while it was written; nothing was published")

    def discard(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):  # the bytes are synced, or they are not needed
                self._disk.close(self._descriptor)
            self._descriptor = None
        if self._temporary and os.getpid() == self._process:  # in a forked child the file is the parent's
            with suppress(OSError):  # a failed cleanup must not hide the original error
                self._disk.unlink(self._temporary)
        self._temporary = ""

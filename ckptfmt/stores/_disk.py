"""The calls to the operating system that the local store makes, in one class that a test can replace."""

from __future__ import annotations

import errno
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NO_DIRECTORY_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})


class Disk:
    """A thin wrapper: each method is one system call and raises its OSError."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._warned = False

    def create(self, path: str) -> int:
        """Open a new file for writing. The mode is 0666; the kernel applies the umask without a race."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)

    def write(self, descriptor: int, data: memoryview, offset: int) -> int:
        return os.pwrite(descriptor, data, offset)

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int, path: str) -> None:
        """Make a file's bytes durable. ``path`` is the file's path, for subclasses."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def link(self, source: str, target: str) -> None:
        os.link(source, target, follow_symlinks=False)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def make_directory(self, path: str) -> None:
        os.mkdir(path)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def status(self, path: str) -> os.stat_result:
        """What the system knows of a name, without following a link."""
        return os.lstat(path)

    def open_for_reading(self, path: str) -> int:
        """Open without following a link at the end of ``path`` and without waiting for a FIFO's writer."""
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable, where its file system can."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sync(descriptor, path)
        except OSError as error:
            if error.errno not in _NO_DIRECTORY_SYNC:
                raise
            self._warn(path)
        finally:
            os.close(descriptor)

    def _warn(self, path: str) -> None:
        with self._lock:
            if self._warned:
                return
            self._warned = True
        warnings.warn(
            f"{path}: this file system cannot sync a directory; a loss of power may take back "
            "what was published",
            RuntimeWarning,
            stacklevel=2,
        )


_current = Disk()


def current_disk() -> Disk:
    """The disk that a new local store uses."""
    return _current


@contextmanager
def disk_replaced(disk: Disk) -> Iterator[None]:
    """Within the block, every new local store uses ``disk``: for tests that make the disk fail."""
    global _current
    before, _current = _current, disk
    try:
        yield
    finally:
        _current = before

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
        """Open a new file for writing.

        The mode is 0666, from which the kernel removes the umask.

        Args:
            path: The path of the file.

        Returns:
            The descriptor.
        """
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)

    def write(self, descriptor: int, data: memoryview, offset: int) -> int:
        """Write bytes at a place of a file.

        Args:
            descriptor: The file.
            data: The bytes.
            offset: The place of the first byte.

        Returns:
            The number of bytes that were written.
        """
        return os.pwrite(descriptor, data, offset)

    def truncate(self, descriptor: int, size: int) -> None:
        """Shorten a file.

        Args:
            descriptor: The file.
            size: The new size, in bytes.
        """
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int, path: str) -> None:
        """Make the bytes of a file durable.

        Args:
            descriptor: The file.
            path: The path of the file, for subclasses.
        """
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """Close a file.

        Args:
            descriptor: The file.
        """
        os.close(descriptor)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; fail if the name exists.

        Args:
            source: The existing name.
            target: The new name.
        """
        os.link(source, target, follow_symlinks=False)

    def replace(self, source: str, target: str) -> None:
        """Rename a file, replacing a file of the new name.

        Args:
            source: The old name.
            target: The new name.
        """
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        """Remove the name of a file.

        Args:
            path: The name.
        """
        os.unlink(path)

    def make_directory(self, path: str) -> None:
        """Create a directory.

        Args:
            path: The path of the directory.
        """
        os.mkdir(path)

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory.

        Args:
            path: The path of the directory.
        """
        os.rmdir(path)

    def status(self, path: str) -> os.stat_result:
        """Get the metadata of a name without following a link.

        Args:
            path: The name.

        Returns:
            The metadata.
        """
        return os.lstat(path)

    def open_for_reading(self, path: str) -> int:
        """Open a file without following a link and without waiting for the writer of a FIFO.

        Args:
            path: The path of the file.

        Returns:
            The descriptor.
        """
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable, if its file system supports this.

        Args:
            path: The path of the directory.
        """
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
            f"{path}: this file system cannot sync a directory; a loss of power may undo what was published",
            RuntimeWarning,
            stacklevel=2,
        )


_current = Disk()


def current_disk() -> Disk:
    """The disk that new local stores use."""
    return _current


@contextmanager
def disk_replaced(disk: Disk) -> Iterator[None]:
    """Make new local stores use ``disk`` within the block, for tests that make the disk fail."""
    global _current
    before, _current = _current, disk
    try:
        yield
    finally:
        _current = before

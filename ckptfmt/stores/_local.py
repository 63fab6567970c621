"""The local disk as a store: atomic files, create-only by link(2), durable by fsync."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ckptfmt._errors import (
    CheckpointError,
    Conflict,
    Damaged,
    LimitExceeded,
    NotFound,
    Unsupported,
    UnusableDirectory,
)
from ckptfmt.stores._disk import Disk
from ckptfmt.stores._interface import Entry
from ckptfmt.stores._staged_file import TEMPORARY_PREFIX, StagedFile, failed, no_directory

_ATTEMPTS: Final = 10
_PIECE: Final = 1024 * 1024
_NO_LINKS: Final = frozenset(
    {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EMLINK, errno.EXDEV}
)
_KINDS: Final = {
    stat.S_IFDIR: "a directory",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class _OpenFile:
    """A regular file open for reading."""

    def __init__(self, descriptor: int, path: str, size: int) -> None:
        self.size = size
        self._descriptor = descriptor
        self._path = path

    def read(self, length: int) -> bytes:
        return self._read(length, None)

    def read_at(self, start: int, length: int) -> bytes:
        return self._read(length, start)

    def _read(self, length: int, start: int | None) -> bytes:
        pieces: list[bytes] = []
        left = length
        try:
            while left:
                # Never ask for more than the file can hold: a length is untrusted.
                want = min(left, max(self.size, _PIECE))
                if start is None:
                    piece = os.read(self._descriptor, want)
                else:
                    piece = os.pread(self._descriptor, want, start + length - left)
                if not piece:
                    break
                pieces.append(piece)
                left -= len(piece)
        except OSError as error:
            raise failed("read", self._path, error) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class LocalStore:
    """A :class:`ckptfmt.stores._interface.Store` for a directory. ``path`` is absolute."""

    def __init__(
        self, path: str, disk: Disk, *, root: str | None = None, made: list[str] | None = None
    ) -> None:
        self.url = path
        self._root = (
            path if root is None else root
        )  # the place that the caller named; self.url may be below it
        self._disk = disk
        self._made: list[str] = [] if made is None else made  # directories made, outermost first

    def at(self, folder: str) -> LocalStore:
        return LocalStore(self._path(folder), self._disk, root=self._root, made=self._made)

    def _path(self, name: str) -> str:
        return os.path.join(self.url, name) if name else self.url

    # Writing

    def create(self, name: str, data: bytes) -> None:
        path = self._path(name)

        def link(temporary: str) -> None:
            try:
                self._disk.link(temporary, path)
            except FileExistsError:
                raise Conflict(f"{path} exists already and is never replaced") from None
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise Unsupported(
                        f"{path}: this file system has no hard links ({os.strerror(error.errno)}), which a "
                        "manifest needs to be created only once; use another directory"
                    ) from error
                raise failed("create", path, error) from error

        staged = self._stage(os.path.dirname(path), path)
        try:
            staged.append((data,), lambda: False)
            staged.publish(link, lambda: False)
        finally:
            staged.discard()

    def place(self, name: str, chunks: Iterable[bytes], stopped: Callable[[], bool]) -> None:
        path = self._path(name)
        staged = self._stage(os.path.dirname(path), path)
        try:
            staged.append(chunks, stopped)
            staged.place(os.path.basename(path), stopped)
        finally:
            staged.discard()

    def stage(self) -> StagedFile:
        return self._stage(self.url, self.url)

    def _stage(self, folder: str, about: str) -> StagedFile:
        return StagedFile(folder, about, self._disk, self._new_file)

    def _new_file(self, path: str) -> int:
        """Make a new file, and the directories that are missing."""
        for attempt in range(_ATTEMPTS):
            try:
                self._make_directories(os.path.dirname(path))
                return self._disk.create(path)
            except FileNotFoundError:
                # A writer that gave up removed a directory, as it was still empty: make it again.
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError  # pragma: no cover

    def _make_directories(self, path: str) -> None:
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            parent = os.path.dirname(path)
            if parent == path:
                break
            path = parent
        for each in reversed(missing):
            try:
                self._disk.make_directory(each)
            except FileExistsError as error:
                if os.path.lexists(each) and not os.path.isdir(each):  # else another writer was faster
                    raise UnusableDirectory(
                        f"{each} is not a directory; use another place", errno=errno.ENOTDIR, path=each
                    ) from error
            except FileNotFoundError:
                raise  # its parent is gone again: the caller starts over
            except OSError as error:
                raise failed("make the directory", each, error) from error
            else:
                self._made.append(each)

    def delete(self, name: str) -> None:
        path = self._path(name)
        try:
            self._disk.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise failed("delete", path, error) from error

    def forget_empty_folders(self) -> None:
        while self._made:
            path = self._made.pop()
            with suppress(OSError):  # not empty, or somebody else removed it
                self._disk.remove_directory(path)

    # Durability

    def make_durable(self, folder: str) -> None:
        # A directory that we made above the given place has a parent whose names changed, too.
        top = os.path.dirname(min([self._root, *self._made], key=len))
        path = self._path(folder)
        while True:
            self._sync_directory(path)
            if path == top or path == os.path.dirname(path):
                return
            path = os.path.dirname(path)

    def make_durable_only(self, folder: str) -> None:
        self._sync_directory(self._path(folder))

    def _sync_directory(self, path: str) -> None:
        try:
            self._disk.sync_directory(path)
        except OSError as error:
            raise failed("sync the directory", path, error) from error

    def check_usable(self) -> None:
        if not os.path.isdir(self.url):
            if os.path.lexists(self.url):
                raise UnusableDirectory(
                    f"{self.url} is not a directory; use another place", errno=errno.ENOTDIR, path=self.url
                )
            self._raise_if_unreachable()
            raise NotFound(f"{self.url}: there is no such directory; is it the same one on every host?")
        probe = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.tmp"
        try:
            self.create(probe, b"{}\n")
            self._sync_directory(self.url)
        finally:
            with suppress(CheckpointError):
                self.delete(probe)

    def _raise_if_unreachable(self) -> None:
        try:
            os.stat(self.url)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise failed("use", self.url, error) from error

    # Reading

    @contextmanager
    def open(self, name: str) -> Iterator[_OpenFile]:
        path = self._path(name)
        try:
            descriptor = self._disk.open_for_reading(path)
        except FileNotFoundError:
            raise NotFound(f"{path}: there is no such file") from None
        except OSError as error:
            if error.errno == errno.ELOOP and os.path.islink(path):
                raise self._not_regular(path, stat.S_IFLNK) from None
            if error.errno == errno.ENXIO:
                raise self._not_regular(path, stat.S_IFSOCK) from None
            if error.errno == errno.ENOTDIR:
                raise NotFound(f"{path}: there is no such file") from None
            raise failed("open", path, error) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self._not_regular(path, stat.S_IFMT(status.st_mode))
            yield _OpenFile(descriptor, path, status.st_size)
        finally:
            os.close(descriptor)

    def _not_regular(self, path: str, kind: int) -> Damaged:
        return Damaged(
            f"{path} is {_KINDS.get(kind, 'something')}, not a regular file; it was put there later"
        )

    def read(self, name: str, limit: int) -> bytes:
        with self.open(name) as file:
            if file.size > limit:
                raise LimitExceeded(f"{self._path(name)} has {file.size} bytes; at most {limit} are read")
            return file.read(file.size + 1)  # one more: a file that grew meanwhile does not look whole

    def read_range(self, name: str, start: int, length: int) -> bytes:
        with self.open(name) as file:
            return file.read_at(start, length)

    def size(self, name: str) -> int:
        with self.open(name) as file:
            return file.size

    def entries(self, folder: str) -> list[Entry]:
        path = self._path(folder)
        try:
            with os.scandir(path) as found:
                return sorted(Entry(each.name, each.is_dir()) for each in found)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise no_directory(path, error) from None
        except OSError as error:
            raise failed("list", path, error) from error

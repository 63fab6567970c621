"""The local disk as a store: atomic writes, create-only by link(2), durability by fsync."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final

from ckptfmt._errors import (
    Conflict,
    Damaged,
    LimitExceeded,
    NotFound,
    StoreError,
    UnsupportedStore,
    UnusableDirectory,
)
from ckptfmt.stores._disk import current_disk
from ckptfmt.stores._interface import Entry, OpenFile, StagedFile, Store
from ckptfmt.stores._staged_file import TEMPORARY_PREFIX, LocalStagedFile, no_such_directory, store_error

_ATTEMPTS: Final = 10
_PIECE: Final = 1024 * 1024
_NO_HARD_LINKS: Final = frozenset(
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


class _LocalOpenFile(OpenFile):
    """A regular file open for reading."""

    size = 0

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
                # The length is untrusted: never request more than the file can have.
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
            raise store_error("read", self._path, error) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class LocalStore(Store):
    """A directory of the local disk.

    Files appear atomically, are created only once by link(2), and are made durable by fsync.

    Args:
        path: An absolute path. The directory need not exist.

    Example:
        ::

            checkpoint = ckptfmt.open(LocalStore("/data/run/step-1200"))
    """

    def __init__(self, path: str) -> None:
        self._place = path
        self._root = path  # the place that the caller named; _place may be a folder below it
        self._disk = current_disk()
        self._created_folders: list[str] = []  # outermost first

    @property
    def url(self) -> str:
        return self._place

    def at(self, folder: str) -> LocalStore:
        store = LocalStore(self._path(folder))
        store._root, store._disk, store._created_folders = self._root, self._disk, self._created_folders
        return store

    def _path(self, name: str) -> str:
        return os.path.join(self._place, name) if name else self._place

    def __reduce__(self) -> tuple[object, ...]:
        return LocalStore, (self._place,)

    def __repr__(self) -> str:
        return f"LocalStore({self._place!r})"

    # Writing

    def create(self, name: str, data: bytes) -> None:
        path = self._path(name)

        def link(temporary: str) -> None:
            try:
                self._disk.link(temporary, path)
            except FileExistsError:
                raise Conflict(f"{path} exists already and is never replaced") from None
            except OSError as error:
                if error.errno in _NO_HARD_LINKS:
                    raise UnsupportedStore(
                        f"{path}: this file system has no hard links ({os.strerror(error.errno)}), which are "
                        "required to create a manifest only once; use another directory"
                    ) from error
                raise store_error("create", path, error) from error

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
        return self._stage(self._place, self._place)

    def _stage(self, folder: str, about: str) -> LocalStagedFile:
        return LocalStagedFile(folder, about, self._disk, self._new_file)

    def _new_file(self, path: str) -> int:
        """Create a new file and its missing parent directories."""
        for attempt in range(_ATTEMPTS):
            try:
                self._make_directories(os.path.dirname(path))
                return self._disk.create(path)
            except FileNotFoundError:
                # Another writer's cleanup removed a directory while it was empty. Create it again.
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
                if os.path.lexists(each) and not os.path.isdir(each):  # otherwise another writer was faster
                    raise UnusableDirectory(
                        f"{each} is not a directory; use another place", errno=errno.ENOTDIR, path=each
                    ) from error
            except FileNotFoundError:
                raise  # its parent was removed meanwhile: the caller retries
            except OSError as error:
                raise store_error("make the directory", each, error) from error
            else:
                self._created_folders.append(each)

    def delete(self, name: str) -> None:
        path = self._path(name)
        try:
            self._disk.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise store_error("delete", path, error) from error

    # Durability

    def make_durable(self, folder: str) -> None:
        # If directories above the given place were created, the names in their parent changed as well.
        top = os.path.dirname(min([self._root, *self._created_folders], key=len))
        path = self._path(folder)
        while True:
            self._sync_directory(path)
            if path == top or path == os.path.dirname(path):
                return
            path = os.path.dirname(path)

    def make_folder_durable(self, folder: str) -> None:
        self._sync_directory(self._path(folder))

    def _sync_directory(self, path: str) -> None:
        try:
            self._disk.sync_directory(path)
        except OSError as error:
            raise store_error("sync the directory", path, error) from error

    def check_usable(self) -> None:
        if not os.path.isdir(self._place):
            if os.path.lexists(self._place):
                raise UnusableDirectory(
                    f"{self._place} is not a directory; use another place",
                    errno=errno.ENOTDIR,
                    path=self._place,
                )
            self._raise_if_unreachable()
            raise NotFound(
                f"{self._place}: there is no such directory; check that it is the same on every host"
            )
        probe = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.tmp"
        try:
            self.create(probe, b"{}\n")
            self._sync_directory(self._place)
        finally:
            with suppress(StoreError):
                self.delete(probe)

    def _raise_if_unreachable(self) -> None:
        try:
            os.stat(self._place)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise store_error("use", self._place, error) from error

    # Reading

    def open(self, name: str) -> AbstractContextManager[OpenFile]:
        return self._open(name)

    @contextmanager
    def _open(self, name: str) -> Iterator[_LocalOpenFile]:
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
            raise store_error("open", path, error) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self._not_regular(path, stat.S_IFMT(status.st_mode))
            yield _LocalOpenFile(descriptor, path, status.st_size)
        finally:
            os.close(descriptor)

    def _not_regular(self, path: str, kind: int) -> Damaged:
        return Damaged(
            f"{path} is {_KINDS.get(kind, 'something')}, not a regular file; no writer of ckptfmt made it"
        )

    def read(self, name: str, limit: int) -> bytes:
        with self._open(name) as file:
            if file.size > limit:
                raise LimitExceeded(f"{self._path(name)} has {file.size} bytes; at most {limit} are read")
            return file.read(file.size + 1)  # one byte more, so that a file that grew is not taken as whole

    def read_range(self, name: str, start: int, length: int) -> bytes:
        with self._open(name) as file:
            return file.read_at(start, length)

    # Inspection

    def stat(self, name: str) -> Entry:
        path = self._path(name)
        try:
            return _entry(name, path, self._disk.status(path))
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound(f"{path}: nothing has this name") from None
        except OSError as error:
            raise store_error("inspect", path, error) from error

    def entries(self, folder: str) -> list[Entry]:
        path = self._path(folder)
        prefix = f"{folder}/" if folder else ""
        found = []
        try:
            with os.scandir(path) as entries:
                for each in entries:
                    with suppress(FileNotFoundError):  # removed meanwhile
                        status = each.stat(follow_symlinks=False)
                        found.append(_entry(prefix + each.name, each.path, status))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise no_such_directory(path, error) from None
        except OSError as error:
            raise store_error("list", path, error) from error
        return sorted(found)

    def walk(self, folder: str) -> Iterator[Entry]:
        pending = [folder]
        while pending:
            try:
                found = self.entries(pending.pop())
            except NotFound:  # removed meanwhile
                continue
            yield from found
            pending += [each.path for each in reversed(found) if each.is_folder and not each.is_link]

    def server_time(self) -> float:
        # On a network file system the server dates the files: create one and read its time.
        probe = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.tmp"
        try:
            self.place(probe, (b"{}\n",), lambda: False)
            return self.stat(probe).modified
        except UnusableDirectory:
            return time.time()
        except NotFound as error:
            raise store_error("inspect", self._path(probe), FileNotFoundError(errno.ENOENT, "")) from error
        finally:
            with suppress(StoreError):
                self.delete(probe)

    def contains(self, other: Store) -> bool:
        place = os.path.realpath(self._place)
        return isinstance(other, LocalStore) and os.path.realpath(other._place).startswith(f"{place}/")

    # Folders

    def remove_empty_folder(self, folder: str) -> bool:
        path = self._path(folder)
        with suppress(OSError):  # it is not empty, or there is no permission
            os.rmdir(path)
        return not os.path.lexists(path)

    def remove_created_folders(self) -> None:
        while self._created_folders:
            path = self._created_folders.pop()
            with suppress(OSError):  # it is not empty, or another process removed it
                self._disk.remove_directory(path)


def _entry(name: str, path: str, status: os.stat_result) -> Entry:
    is_link = stat.S_ISLNK(status.st_mode)
    return Entry(
        path=name,
        is_folder=os.path.isdir(path) if is_link else stat.S_ISDIR(status.st_mode),
        is_file=stat.S_ISREG(status.st_mode),
        is_link=is_link,
        size=status.st_size,
        modified=status.st_mtime,
    )

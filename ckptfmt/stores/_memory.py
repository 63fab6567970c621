"""Files in the memory of this process, for tests and for data that need not outlive the process."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from ckptfmt._errors import Conflict, LimitExceeded, NotFound, Stopped, UnsupportedStore
from ckptfmt.stores._interface import Buffer, Entry, OpenFile, StagedFile, Store

_URL: Final = re.compile(r"memory://(/*[^/\0]+(?:/+[^/\0]+)*)/*")


class _Object(NamedTuple):
    data: bytes
    modified: float


class _Objects:
    """All objects of this process by path, protected by one lock."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.by_path: dict[str, _Object] = {}


_OBJECTS: Final = _Objects()


class MemoryStore(Store):
    """A place in the memory of this process.

    All stores with the same URL share their files. The store behaves like a bucket: a folder exists while
    there is a file below it.

    Args:
        url: ``memory://`` and a path.

    Raises:
        UnsupportedStore: The URL has another form.

    Example:
        ::

            ckptfmt.copy("run/step-1200", "memory://run/step-1200")
    """

    def __init__(self, url: str) -> None:
        match = _URL.fullmatch(url)
        if match is None or ".." in match[1].split("/") or "." in match[1].split("/"):
            raise UnsupportedStore(f"{url[:200]}: write memory:// and a path, such as memory://run/step-1")
        self._path = "/".join(filter(None, match[1].split("/")))

    @property
    def url(self) -> str:
        return f"memory://{self._path}"

    def at(self, folder: str) -> MemoryStore:
        return MemoryStore(f"memory://{self._full(folder)}")

    def _full(self, name: str) -> str:
        return f"{self._path}/{name}" if name else self._path

    # Writing

    def create(self, name: str, data: bytes) -> None:
        path = self._full(name)
        with _OBJECTS.lock:
            if path in _OBJECTS.by_path:
                raise Conflict(f"memory://{path} exists already and is never replaced")
            _OBJECTS.by_path[path] = _Object(bytes(data), time.time())

    def place(self, name: str, chunks: Iterable[bytes], stopped: Callable[[], bool]) -> None:
        staged = self.stage()
        staged.append(chunks, stopped)
        staged.place(name, stopped)

    def stage(self) -> StagedFile:
        return _MemoryStagedFile(self)

    def put(self, name: str, data: bytes) -> None:
        """Put a file, replacing a file of the same name.

        Tests use this method to damage a file.

        Args:
            name: The file's name.
            data: The bytes.
        """
        with _OBJECTS.lock:
            _OBJECTS.by_path[self._full(name)] = _Object(data, time.time())

    def delete(self, name: str) -> None:
        with _OBJECTS.lock:
            _OBJECTS.by_path.pop(self._full(name), None)

    def clear(self) -> None:
        """Delete every file below this place."""
        prefix = f"{self._path}/"
        with _OBJECTS.lock:
            for path in [each for each in _OBJECTS.by_path if each.startswith(prefix)]:
                del _OBJECTS.by_path[path]

    # Durability: nothing in memory outlives the process.

    def make_durable(self, folder: str) -> None:
        pass

    def make_folder_durable(self, folder: str) -> None:
        pass

    def check_usable(self) -> None:
        self.entries("")

    # Reading

    def _object(self, name: str) -> _Object:
        path = self._full(name)
        try:
            return _OBJECTS.by_path[path]
        except KeyError:
            raise NotFound(f"memory://{path}: there is no such file") from None

    def read(self, name: str, limit: int) -> bytes:
        data = self._object(name).data
        if len(data) > limit:
            raise LimitExceeded(f"{self.url}/{name} has {len(data)} bytes; at most {limit} are read")
        return data

    @contextmanager
    def open(self, name: str) -> Iterator[OpenFile]:
        yield _MemoryOpenFile(self._object(name).data)

    def read_range(self, name: str, start: int, length: int) -> bytes:
        return self._object(name).data[start : start + length]

    # Inspection

    def stat(self, name: str) -> Entry:
        path = self._full(name)
        found = _OBJECTS.by_path.get(path)
        if found is not None:
            return _file(name, found)
        newest = max((each.modified for _, each in self._below(name)), default=None)
        if newest is None:
            raise NotFound(f"memory://{path}: nothing has this name")
        return _folder(name, newest)

    def _below(self, folder: str) -> list[tuple[str, _Object]]:
        """The objects below a folder, sorted, with their paths relative to this place."""
        prefix, start = f"{self._full(folder)}/", len(self._path) + 1
        with _OBJECTS.lock:
            found = [
                (path[start:], each) for path, each in _OBJECTS.by_path.items() if path.startswith(prefix)
            ]
        return sorted(found)

    def entries(self, folder: str) -> list[Entry]:
        found: dict[str, Entry] = {}
        start = len(folder) + 1 if folder else 0
        for path, each in self._below(folder):
            name, slash, _ = path[start:].partition("/")
            inside = path[:start] + name
            before = found.get(inside)
            if not slash:
                found[inside] = _file(path, each)
            elif before is None or before.modified < each.modified:
                found[inside] = _folder(inside, each.modified)
        if not found:
            raise NotFound(f"memory://{self._full(folder)}: there is no such directory")
        return sorted(found.values())

    def walk(self, folder: str) -> Iterator[Entry]:
        seen: set[str] = set()
        start = len(folder) + 1 if folder else 0
        for path, each in self._below(folder):
            end = path.find("/", start)
            while end >= 0:
                if path[:end] not in seen:
                    seen.add(path[:end])
                    yield self.stat(path[:end])
                end = path.find("/", end + 1)
            yield _file(path, each)

    def server_time(self) -> float:
        return time.time()

    def contains(self, other: Store) -> bool:
        return other.url.startswith(f"{self.url}/")

    # Folders

    def remove_empty_folder(self, folder: str) -> bool:
        return not self._below(folder)

    def remove_created_folders(self) -> None:
        pass

    def __reduce__(self) -> tuple[object, ...]:
        return MemoryStore, (self.url,)

    def __repr__(self) -> str:
        return f"MemoryStore({self.url!r})"


def _file(path: str, found: _Object) -> Entry:
    return Entry(path, False, True, False, len(found.data), found.modified)


def _folder(path: str, modified: float) -> Entry:
    return Entry(path, True, False, False, 0, modified)


class _MemoryOpenFile(OpenFile):
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def size(self) -> int:
        return len(self._data)

    def read(self, length: int) -> bytes:
        start, self._at = self._at, min(self._at + length, len(self._data))
        return self._data[start : self._at]


class _MemoryStagedFile(StagedFile):
    lost = False
    unsynced = 0

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._data = bytearray()

    def append(self, chunks: Iterable[Buffer], stopped: Callable[[], bool]) -> None:
        size = len(self._data)
        try:
            for chunk in chunks:
                self._check(stopped)
                self._data += chunk
        except BaseException:
            del self._data[size:]
            raise

    def sync(self) -> None:
        pass

    def place(self, name: str, stopped: Callable[[], bool]) -> None:
        self._check(stopped)
        self._store.put(name, bytes(self._data))

    def _check(self, stopped: Callable[[], bool]) -> None:
        if stopped():
            raise Stopped(f"{self._store.url}: stopped while a file was written; nothing was published")

    def discard(self) -> None:
        self._data = bytearray()

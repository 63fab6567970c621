"""What looking after a run needs of its store besides reading and writing: sizes, ages, and empty folders.

Only listing and pruning use it. Links are named as links and never followed, so that nothing outside of the
run is taken for a part of it.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from ckptfmt._errors import CheckpointError, NotFound, Unsupported, UnusableDirectory
from ckptfmt.stores._interface import Store
from ckptfmt.stores._local import LocalStore
from ckptfmt.stores._staged_file import TEMPORARY_PREFIX, failed, no_directory


class Found(NamedTuple):
    """One name in a folder. ``path`` is relative to the store's place, ``size`` in bytes, ``modified`` in
    seconds since 1970 by the store's clock."""

    path: str
    is_folder: bool
    is_regular: bool
    size: int
    modified: float

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def look(store: Store, folder: str = "") -> list[Found]:
    """What lies directly in a folder, sorted. Raises NotFound, StoreError, Unsupported."""
    path = os.path.join(_local(store).url, folder) if folder else store.url
    prefix = f"{folder}/" if folder else ""
    found = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # gone while we look
                    status = entry.stat(follow_symlinks=False)
                    found.append(
                        Found(
                            prefix + entry.name,
                            stat.S_ISDIR(status.st_mode),
                            stat.S_ISREG(status.st_mode),
                            status.st_size,
                            status.st_mtime,
                        )
                    )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise no_directory(path, error) from None
    except OSError as error:
        raise failed("list", path, error) from error
    return sorted(found)


def walk(store: Store, folder: str = "") -> Iterator[Found]:
    """Everything below a folder, each folder before what lies in it. Raises like :func:`look`."""
    waiting = [folder]
    while waiting:
        try:
            found = look(store, waiting.pop())
        except NotFound:  # gone while we look
            continue
        yield from found
        waiting += [each.path for each in reversed(found) if each.is_folder]


def now(store: Store) -> float:
    """The store's own time, in seconds since 1970: that of a file made for it. Where none can be made,
    that of this machine. Raises StoreError, Unsupported."""
    probe = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.tmp"
    path = os.path.join(_local(store).url, probe)
    try:
        store.place(probe, (b"{}\n",), lambda: False)
        return os.stat(path).st_mtime
    except UnusableDirectory:
        return time.time()
    except OSError as error:
        raise failed("look at", path, error) from error
    finally:
        with suppress(CheckpointError):
            store.delete(probe)


def remove_if_empty(store: Store, folder: str) -> bool:
    """Remove a folder that holds nothing; whether it is gone. Raises StoreError, Unsupported."""
    path = os.path.join(_local(store).url, folder)
    with suppress(OSError):  # not empty: it holds what is not ours
        os.rmdir(path)
    return not os.path.lexists(path)


def _local(store: Store) -> LocalStore:
    if not isinstance(store, LocalStore):
        raise Unsupported(f"{store.url}: only runs on a local disk can be listed yet")
    return store

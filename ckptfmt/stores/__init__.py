"""Choosing a store by its URL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ckptfmt._errors import Unsupported, UnusableDirectory
from ckptfmt.stores._disk import Disk
from ckptfmt.stores._interface import Store
from ckptfmt.stores._local import LocalStore

Url = str | os.PathLike[str]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_MISTYPED: Final = re.compile(r"(file|s3|s3a|gs|gcs|az|abfs|abfss|http|https|memory):/?(?!/)")

_disk = Disk()


def choose_store(url: Url) -> Store:
    """The store of ``url``: a local path, or ``file://`` and a literal absolute path.

    Raises :class:`Unsupported` for another scheme and :class:`UnusableDirectory` for what can be no path.
    """
    return LocalStore(local_path(url), _disk)


def local_path(url: Url) -> str:
    """``url`` as an absolute path. Nothing in it is special: no percent codes, no ``~``, no wildcards."""
    path = os.fspath(url)
    if not isinstance(path, str):
        raise UnusableDirectory("a URL is a str or a path of str, not bytes")
    scheme = _SCHEME.match(path)
    if scheme is not None:
        if scheme[1].lower() != "file":
            raise Unsupported(
                f"{path[:200]}: buckets and other stores are not there yet; use a local path or file://"
            )
        path = path[scheme.end() :]
        if not path.startswith("/"):
            raise Unsupported(
                f"file://{path[:200]}: a host is not supported; write file:/// and an absolute path"
            )
    elif _MISTYPED.match(path):
        raise Unsupported(
            f"{path[:200]}: this looks like a mistyped URL; write ./ before a local path of this name"
        )
    if not path or "\0" in path:
        raise UnusableDirectory("an empty path, or one with a zero character, names no directory")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise UnusableDirectory(f"{path[:200]!a}: the file system cannot encode this name") from None
    # abspath resolves ".." by text, which is wrong behind a link: there, ask the file system.
    return os.path.realpath(path) if ".." in path.split("/") else os.path.abspath(path)


@contextmanager
def disk_replaced(disk: Disk) -> Iterator[None]:
    """Within the block, every store that is chosen uses ``disk``: for tests that make the disk fail."""
    global _disk
    before, _disk = _disk, disk
    try:
        yield
    finally:
        _disk = before

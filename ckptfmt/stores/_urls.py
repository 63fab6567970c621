"""The choice of a store by its URL."""

from __future__ import annotations

import os
import re
from typing import Final, TypeAlias

from ckptfmt._errors import UnsupportedStore, UnusableDirectory
from ckptfmt.stores._interface import Store
from ckptfmt.stores._local import LocalStore
from ckptfmt.stores._memory import MemoryStore

LocalPath: TypeAlias = str | os.PathLike[str]
"""A local path, or ``file://`` and an absolute path."""

Url: TypeAlias = LocalPath | Store
"""A place: a local path, ``file://`` and an absolute path, ``memory://`` and a path, or a store."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_MISTYPED: Final = re.compile(r"(file|s3|s3a|gs|gcs|az|abfs|abfss|http|https|memory):/?(?!/)")


def choose_store(url: Url) -> Store:
    """Choose the store for a place.

    Args:
        url: A local path, ``file://`` and a literal absolute path, ``memory://`` and a path, or a store,
            which is returned as it is. Paths are literal: percent codes, ``~`` and wildcards have no special
            meaning.

    Returns:
        The store. The call neither reads nor creates anything.

    Raises:
        UnsupportedStore: The URL has another scheme.
        UnusableDirectory: The argument cannot be a path.

    Example:
        ::

            store = choose_store("file:///data/run")
            [entry.name for entry in store.entries("")]
    """
    if isinstance(url, Store):
        return url
    if isinstance(url, str) and url.startswith("memory://"):
        return MemoryStore(url)
    return LocalStore(local_path(url))


def local_path(url: LocalPath) -> str:
    """Get the absolute path of a local place.

    Args:
        url: As for :func:`choose_store`.

    Returns:
        The path.

    Raises:
        UnsupportedStore: The place is not local.
        UnusableDirectory: The argument cannot be a path.
    """
    path = os.fspath(url)
    if not isinstance(path, str):
        raise UnusableDirectory("a URL is a str or a path of str, not bytes")
    scheme = _SCHEME.match(path)
    if scheme is not None:
        if scheme[1].lower() != "file":
            raise UnsupportedStore(
                f"{path[:200]}: buckets and other stores are not supported yet; use a local path or file://"
            )
        path = path[scheme.end() :]
        if not path.startswith("/"):
            raise UnsupportedStore(
                f"file://{path[:200]}: a host is not supported; write file:/// and an absolute path"
            )
    elif _MISTYPED.match(path):
        raise UnsupportedStore(
            f"{path[:200]}: this looks like a mistyped URL; write ./ before a local path of this name"
        )
    if not path or "\0" in path:
        raise UnusableDirectory("an empty path, or a path with a zero character, names no directory")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise UnusableDirectory(f"{path[:200]!a}: the file system cannot encode this name") from None
    # abspath resolves ".." textually, which is wrong behind a link: then the file system resolves the path.
    return os.path.realpath(path) if ".." in path.split("/") else os.path.abspath(path)

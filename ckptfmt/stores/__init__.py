"""The places where checkpoints can be stored, and the interface for other kinds of stores.

Wherever ckptfmt takes a URL, it takes a :class:`Store` as well. :class:`ckptfmt.testing.StoreConformance` is
the test suite for implementations.
"""

from __future__ import annotations

from ckptfmt._public_names import set_public_module
from ckptfmt.stores._forwarding import ForwardingStore
from ckptfmt.stores._interface import Buffer, Entry, OpenFile, StagedFile, Store
from ckptfmt.stores._local import LocalStore
from ckptfmt.stores._memory import MemoryStore
from ckptfmt.stores._urls import LocalPath, Url, choose_store

__all__ = [
    "Buffer",
    "Entry",
    "ForwardingStore",
    "LocalPath",
    "LocalStore",
    "MemoryStore",
    "OpenFile",
    "StagedFile",
    "Store",
    "Url",
    "choose_store",
]

set_public_module(globals())

"""Tools for tests of code that uses ckptfmt, and for tests of stores.

The module has a disk that fails on purpose, a store that counts its calls, the test suite that every store
must pass, and exact comparison. :mod:`ckptfmt.testing.strategies` requires hypothesis and is imported
separately.
"""

from __future__ import annotations

from ckptfmt._public_names import set_public_module
from ckptfmt._values.comparison import differences
from ckptfmt.testing._counting_store import CountingStore, StoreCall
from ckptfmt.testing._equality import same_exact
from ckptfmt.testing._faulty_disk import DiskCall, Fault, FaultyDisk, Operation, failing_disk
from ckptfmt.testing._store_conformance import StoreConformance

__all__ = [
    "CountingStore",
    "DiskCall",
    "Fault",
    "FaultyDisk",
    "Operation",
    "StoreCall",
    "StoreConformance",
    "differences",
    "failing_disk",
    "same_exact",
]

set_public_module(globals())

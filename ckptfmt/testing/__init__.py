"""For tests of what is built on ckptfmt: a disk that fails on purpose, and strategies for hypothesis.

``ckptfmt.testing.strategies`` needs hypothesis and is imported on its own.
"""

from __future__ import annotations

from ckptfmt.testing._equality import same_exact
from ckptfmt.testing._faulty_disk import Fault, FaultyDisk, failing_disk

__all__ = ["Fault", "FaultyDisk", "failing_disk", "same_exact"]

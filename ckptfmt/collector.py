"""Pausing Python's cyclic garbage collector while one record is encoded or decoded.

Both make many containers and no cycle, so every collection that they trigger is wasted: it costs two to three
times the work itself when the heap is large.
"""

from __future__ import annotations

import gc
import threading
from typing import Final

_lock = threading.Lock()
_pauses = 0
_was_enabled = False


class _Paused:
    """Without state of its own: entering costs little, as every record does it."""

    __slots__ = ()

    def __enter__(self) -> None:
        global _pauses, _was_enabled
        with _lock:
            if _pauses == 0:
                _was_enabled = gc.isenabled()
                gc.disable()
            _pauses += 1

    def __exit__(self, *error: object) -> None:
        global _pauses
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()


_PAUSED: Final = _Paused()


def paused() -> _Paused:
    """No automatic collection inside, in any thread. Nests and overlaps; what was set before comes back."""
    return _PAUSED

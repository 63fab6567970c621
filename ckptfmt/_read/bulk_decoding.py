"""Decoding many records without the cost of Python's garbage collector."""

from __future__ import annotations

import gc
import operator
from collections.abc import Iterable

from ckptfmt._read.stored_record import StoredRecord
from ckptfmt._values.patches import Exact


def payloads(records: Iterable[StoredRecord]) -> list[Exact]:
    """Decode the payloads of many records.

    Automatic garbage collection is paused in all threads meanwhile, and afterwards it does not scan the
    decoded objects again: with many small objects, collection would take most of the time. The state of the
    collector is restored when the call returns or raises.

    Args:
        records: The records, such as a participant, ``part.read(scope)`` or the result of ``part.restore()``.

    Returns:
        The payloads, in the order of ``records``.

    Raises:
        BadCheckpoint: A record is damaged or missing.
        StoreError: The store failed.

    Example:
        ::

            values = ckptfmt.payloads(ckptfmt.open("run/step-1200")["agent-0"])
    """
    was_enabled = gc.isenabled()
    try:
        if was_enabled:  # otherwise other code has paused it, and enables it again
            gc.disable()
        values = [record.payload for record in records]
        if was_enabled and gc.get_freeze_count() == 0:
            # Moves young objects to the oldest generation without scanning them: otherwise the next
            # allocation would scan all of them. Both calls run within one C call, so that no interrupt can
            # come between them.
            list(map(operator.call, (gc.freeze, gc.unfreeze)))
        return values
    finally:
        if was_enabled:
            gc.enable()

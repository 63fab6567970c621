"""Decoding many records, without what Python's garbage collector would cost."""

from __future__ import annotations

import gc
import operator
from collections.abc import Iterable

from ckptfmt._read.stored_record import StoredRecord
from ckptfmt._values.patches import Exact


def payloads(records: Iterable[StoredRecord]) -> list[Exact]:
    """The payloads of ``records``, decoded, in their order: of a participant (``payloads(part)``), of
    ``part.read(scope)``, or of the handles of a restore.

    Meanwhile no automatic collection runs, in any thread, and afterwards none has to look at what was
    decoded: for many small objects that is most of the time. Raises what reading and ``.payload`` raise; the
    collector is then as it was before.
    """
    was_enabled = gc.isenabled()
    try:
        if was_enabled:  # else somebody else pauses it, and will end that
            gc.disable()
        values = [record.payload for record in records]
        if was_enabled and gc.get_freeze_count() == 0:
            # Young objects become old ones without being looked at: else the next allocation anywhere would
            # look at all of them at once. In one step of C, so that no interrupt can come between the two.
            list(map(operator.call, (gc.freeze, gc.unfreeze)))
        return values
    finally:
        if was_enabled:
            gc.enable()

"""The twin of a checkpoint: its content as JSON that programs in any language can compare.

A value is ``null``, ``true``, ``false``, ``{"int": decimal}``, ``{"float": "nan", "inf", "-inf", or the 16
hex digits of its bits}``, a string, ``{"str": [code points]}`` for one with surrogates, ``{"list": [value,
…]}`` or ``{"dict": [[key, value], …]}`` in order.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from ckptfmt import Record


def tagged(value: Any) -> Any:
    """The encoding of an exact value, as described above."""
    if value is None or type(value) is bool:
        return value
    if type(value) is int:
        return {"int": str(value)}
    if type(value) is float:
        return {"float": struct.pack(">d", value).hex() if math.isfinite(value) else str(value)}
    if type(value) is str:
        return (
            {"str": list(map(ord, value))} if any("\ud800" <= each <= "\udfff" for each in value) else value
        )
    if type(value) is list:
        return {"list": list(map(tagged, value))}
    return {"dict": [[tagged(key), tagged(each)] for key, each in value.items()]}


def record_twin(record: Record) -> Any:
    """The encoding of a record."""
    return {
        "episode": record.episode.capture_key,
        "rollout": record.episode.rollout_id,
        "attempt": record.episode.attempt,
        "boundary": record.boundary,
        "schema": record.schema,
        "references": list(record.references),
        "payload": tagged(record.payload),
    }

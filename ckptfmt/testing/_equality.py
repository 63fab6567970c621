"""Comparing exact values exactly."""

from __future__ import annotations

import struct
from typing import Any


def same_exact(left: Any, right: Any) -> bool:
    """Whether two exact values are the same: in value, in type, in the order of keys, in the sign of
    zero; any NaN is the same as any other."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if type(one) is dict:
            if list(one) != list(other) or list(map(type, one)) != list(map(type, other)):
                return False
            pairs += zip(one.values(), other.values(), strict=True)
        elif type(one) is list:
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif type(one) is float:
            if struct.pack("<d", one) != struct.pack("<d", other) and (one == one or other == other):
                return False
        elif one != other:
            return False
    return True

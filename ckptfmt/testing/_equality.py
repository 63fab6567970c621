"""The exact comparison of exact values."""

from __future__ import annotations

import struct
from typing import Any


def same_exact(left: Any, right: Any) -> bool:
    """Check whether two exact values are the same.

    Values are the same when their types, their values, the order of their keys and the signs of their zeros
    are the same. Every NaN is the same as any other NaN.

    Args:
        left: An exact value.
        right: Another exact value.

    Returns:
        Whether they are the same. :func:`ckptfmt.testing.differences` tells where they differ.
    """
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

"""About how large the text of a value will be."""

from __future__ import annotations

import math
from typing import Any, Final

from ckptfmt._values.patches import Exact

_VISITS: Final = 300
_SAMPLE: Final = 8
_NUMBER_BYTES: Final = 8
_KEY_BYTES: Final = 8


def estimate(value: Exact, enough: float = math.inf) -> float:
    """About how many bytes the text will have, in some microseconds; stops where it is ``enough``.

    Of long containers a sample is looked at, so one large value among many small ones can be missed.
    """
    if type(value) is str:
        return len(value) * (1 if value.isascii() else 2)
    total, visits = 0.0, 0
    level: list[tuple[Any, float]] = [(value, 1.0)] if type(value) is dict or type(value) is list else []
    while level and total < enough and visits < _VISITS:
        below: list[tuple[Any, float]] = []
        for container, weight in level:
            children = container
            if type(container) is dict:
                children = list(container.values())
                total += _KEY_BYTES * weight * len(children)
            if len(children) > _SAMPLE:
                step = len(children) // _SAMPLE
                weight *= step
                children = children[step // 2 :: step]
            visits += len(children)
            for child in children:
                kind = type(child)
                if kind is str:
                    total += len(child) * weight * (1 if child.isascii() else 2)
                elif kind is dict or kind is list:
                    below.append((child, weight))
                else:
                    total += _NUMBER_BYTES * weight
        level = below
    return total + sum(weight for _, weight in level) * _NUMBER_BYTES if level else total

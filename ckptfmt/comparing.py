"""The exact comparison of two values: whatever could be told apart is a difference.

Equal means of the same type, of the same value, NaN equal to NaN, -0.0 not equal to 0.0, True not equal to 1,
the keys of a dict in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from ckptfmt.patches import Exact
from ckptfmt.paths import path_text

Kind = Literal["type", "value", "length", "removed", "added", "order"]

_SHOWN_CHARACTERS: Final = 60
_BITS_SHOWN_AS_DECIMAL: Final = 64

_Steps = tuple[Any, ...]
"""A path as a linked list from its end: ``()`` or ``(steps before, last step)``."""


class Difference(NamedTuple):
    """One place where two values differ. ``left`` and ``right`` are for people: a scalar as Python writes it
    (ASCII, cut at 60 characters), of a container its number of elements. They are None where there is no
    value: ``added`` has only a ``right``, ``removed`` only a ``left``.

    ``kind``: ``type``, ``value``, ``length`` (of lists), ``added`` and ``removed`` (keys), ``order`` (of
    keys, when they are the same; the first that differ are shown).
    """

    path: str
    kind: Kind
    left: str | None
    right: str | None


def compare(left: Exact, right: Exact) -> Iterator[Difference]:
    """Where two exact values differ, in their order; nothing when they are equal."""
    # A stack instead of recursion: a value may be nested deeper than the caller's stack allows.
    waiting: list[tuple[_Steps, Exact, Exact]] = [((), left, right)]
    while waiting:
        steps, one, other = waiting.pop()
        inside: list[tuple[_Steps, Exact, Exact]] = []
        if type(one) is not type(other):
            yield _difference(
                steps,
                "type",
                f"{_shown(one)} of type {type(one).__name__}",
                f"{_shown(other)} of type {type(other).__name__}",
            )
        elif isinstance(one, dict):
            yield from _keys(steps, one, other)
            inside = [((steps, key), one[key], other[key]) for key in one if key in other]
        elif isinstance(one, list):
            if len(one) != len(other):
                yield _difference(steps, "length", f"{len(one)} elements", str(len(other)))
            pairs = enumerate(zip(one, other, strict=False))
            inside = [((steps, place), first, second) for place, (first, second) in pairs]
        elif not _same(one, other):
            yield _difference(steps, "value", _shown(one), _shown(other))
        waiting += reversed(inside)


def differences(expected: Exact, actual: Exact) -> list[str]:
    """The same for a test or a report: one line each, a JSON path and a short why.

    ``$.messages[3].logprobs[2]: expected nan, got -0.5``
    """
    return [_line(each) for each in compare(expected, actual)]


def _line(found: Difference) -> str:
    if found.kind == "removed":
        return f"{found.path}: missing"
    if found.kind == "added":
        return f"{found.path}: not expected"
    if found.kind == "order":
        return f"{found.path}: keys in another order, expected {found.left} where {found.right} stands"
    return f"{found.path}: expected {found.left}, got {found.right}"


def _keys(steps: _Steps, one: dict[str, Exact], other: dict[str, Exact]) -> Iterator[Difference]:
    """What differs in the keys of two dicts and, when they are the same, in their order."""
    same = True
    for key, value in one.items():
        if key not in other:
            same = False
            yield _difference((steps, key), "removed", _shown(value), None)
    for key, value in other.items():
        if key not in one:
            same = False
            yield _difference((steps, key), "added", None, _shown(value))
    if same and list(one) != list(other):
        first, second = next(pair for pair in zip(one, other, strict=True) if pair[0] != pair[1])
        yield _difference(steps, "order", _shown(first), _shown(second))


def _same(one: Exact, other: Exact) -> bool:
    if isinstance(one, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return bool(one == other) and math.copysign(1.0, one) == math.copysign(1.0, other)
    return bool(one == other)


def _difference(steps: _Steps, kind: Kind, left: str | None, right: str | None) -> Difference:
    listed: list[str | int] = []
    while steps:
        steps, step = steps
        listed.append(step)
    return Difference(path_text(reversed(listed)), kind, left, right)


def _shown(value: Exact) -> str:
    if isinstance(value, dict | list):
        return f"{len(value)} elements"
    # Python refuses to write integers of more than 4,300 digits as decimals.
    is_large = type(value) is int and value.bit_length() > _BITS_SHOWN_AS_DECIMAL
    text = hex(value) if is_large else ascii(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}..."

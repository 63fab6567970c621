"""The exact comparison of two values: whatever could be told apart is a difference.

Equal means of the same type, of the same value, NaN equal to NaN, -0.0 not equal to 0.0, True not equal to 1,
the keys of a dict in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from ckptfmt._values.patches import Exact
from ckptfmt._values.paths import path_text
from ckptfmt._values.value_text import apart, beginning, shown

Kind = Literal["type", "value", "length", "removed", "added", "order"]

_MOST_ELEMENTS: Final = 3
"""Elements that are shown of those that only one of two lists has: its length says how many there are."""

_Steps = tuple[Any, ...]
"""A path as a linked list from its end: ``()`` or ``(steps before, last step)``."""


class Difference(NamedTuple):
    """One place where two values differ. ``left`` and ``right`` are for people: as Python writes it, in
    ASCII, cut at 60 characters; of a container on both sides, or of another type on the other one, its number
    of elements. They are None where there is no value: ``added`` has only a ``right``, ``removed`` only a
    ``left``.

    ``kind``: ``type``, ``value``, ``length`` (of lists), ``added`` and ``removed`` (keys, and the first 3
    elements that only the longer list has), ``order`` (of keys, when they are the same; the first that differ
    are shown).

    ``position``: two long texts are shown from shortly before they begin to differ, which is at this
    character, counted from 0 (of an integer beyond 64 bits: of its hex form); None when they are shown from
    the beginning.
    """

    path: str
    kind: Kind
    left: str | None
    right: str | None
    position: int | None = None


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
                f"{shown(one)} of type {type(one).__name__}",
                f"{shown(other)} of type {type(other).__name__}",
            )
        elif isinstance(one, dict):
            yield from _keys(steps, one, other)
            inside = [((steps, key), one[key], other[key]) for key in one if key in other]
        elif isinstance(one, list):
            if len(one) != len(other):
                yield _difference(steps, "length", shown(one), str(len(other)))
                yield from _elements(steps, one, other)
            pairs = enumerate(zip(one, other, strict=False))
            inside = [((steps, place), first, second) for place, (first, second) in pairs]
        elif not _same(one, other):
            yield _difference(steps, "value", *apart(one, other))
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
    return f"{found.path}: expected {found.left}, got {found.right}{place_text(found)}"


def place_text(found: Difference) -> str:
    """Where two texts begin to differ, when they are not shown from their beginning."""
    return "" if found.position is None else f" (from character {found.position} on)"


def _keys(steps: _Steps, one: dict[str, Exact], other: dict[str, Exact]) -> Iterator[Difference]:
    """What differs in the keys of two dicts and, when they are the same, in their order."""
    same = True
    for key, value in one.items():
        if key not in other:
            same = False
            yield _difference((steps, key), "removed", beginning(value), None)
    for key, value in other.items():
        if key not in one:
            same = False
            yield _difference((steps, key), "added", None, beginning(value))
    if same and list(one) != list(other):
        first, second = next(pair for pair in zip(one, other, strict=True) if pair[0] != pair[1])
        yield _difference(steps, "order", *apart(first, second))


def _elements(steps: _Steps, one: list[Exact], other: list[Exact]) -> Iterator[Difference]:
    """The first elements that only the longer of two lists has."""
    common = min(len(one), len(other))
    for place in range(common, min(len(one), common + _MOST_ELEMENTS)):
        yield _difference((steps, place), "removed", beginning(one[place]), None)
    for place in range(common, min(len(other), common + _MOST_ELEMENTS)):
        yield _difference((steps, place), "added", None, beginning(other[place]))


def _same(one: Exact, other: Exact) -> bool:
    if isinstance(one, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return bool(one == other) and math.copysign(1.0, one) == math.copysign(1.0, other)
    return bool(one == other)


def _difference(
    steps: _Steps, kind: Kind, left: str | None, right: str | None, position: int | None = None
) -> Difference:
    listed: list[str | int] = []
    while steps:
        steps, step = steps
        listed.append(step)
    return Difference(path_text(reversed(listed)), kind, left, right, position)

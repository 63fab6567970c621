"""The exact comparison of two values.

Two values are equal when they have the same type and the same value. NaN equals NaN, -0.0 does not equal 0.0,
True does not equal 1, and two dicts are equal only when their keys are in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from ckptfmt._values.patches import Exact
from ckptfmt._values.paths import path_text
from ckptfmt._values.value_text import beginning_text, difference_texts, summary_text

Kind = Literal["type", "value", "length", "removed", "added", "order"]

_MAX_EXTRA_ELEMENTS: Final = 3
"""How many of the elements that only the longer of two lists has are reported."""

_Steps = tuple[Any, ...]
"""A path as a linked list from its last step: ``()`` or ``(earlier steps, last step)``."""


class Difference(NamedTuple):
    """One place where two values differ.

    ``left`` and ``right`` are texts for people: the value as Python writes it, in ASCII, cut at 60
    characters. A container that is compared with a container or with another type is shown as its number of
    elements.

    Attributes:
        path: The place, as a path such as ``$.messages[3].score``.
        kind: ``type``, ``value``, ``length`` (of two lists), ``added`` or ``removed`` (a key, or one of the
            first 3 elements that only the longer list has), or ``order`` (two dicts have the same keys in
            another order; the first two keys that differ are shown).
        left: The value on the left side; None for ``added``.
        right: The value on the right side; None for ``removed``.
        position: The character, counted from 0, at which two long texts begin to differ, when they are shown
            from shortly before it (of an integer beyond 64 bits: a character of its hex form). None when they
            are shown from their beginning.
    """

    path: str
    kind: Kind
    left: str | None
    right: str | None
    position: int | None = None


def compare(left: Exact, right: Exact) -> Iterator[Difference]:
    """Yield the differences of two exact values in document order; none when they are equal."""
    # A stack replaces recursion: a value may be nested deeper than the caller's stack allows.
    pending: list[tuple[_Steps, Exact, Exact]] = [((), left, right)]
    while pending:
        steps, one, other = pending.pop()
        children: list[tuple[_Steps, Exact, Exact]] = []
        if type(one) is not type(other):
            yield _difference(
                steps,
                "type",
                f"{summary_text(one)} of type {type(one).__name__}",
                f"{summary_text(other)} of type {type(other).__name__}",
            )
        elif isinstance(one, dict):
            yield from _key_differences(steps, one, other)
            children = [((steps, key), one[key], other[key]) for key in one if key in other]
        elif isinstance(one, list):
            if len(one) != len(other):
                yield _difference(steps, "length", summary_text(one), str(len(other)))
                yield from _extra_elements(steps, one, other)
            pairs = enumerate(zip(one, other, strict=False))
            children = [((steps, place), first, second) for place, (first, second) in pairs]
        elif not _equal_scalars(one, other):
            yield _difference(steps, "value", *difference_texts(one, other))
        pending += reversed(children)


def differences(expected: Exact, actual: Exact) -> list[str]:
    """Compare two exact values and describe each difference in one line.

    Args:
        expected: The value that is expected.
        actual: The value that is compared with it.

    Returns:
        One line for each difference: the path, and what differs. Empty when the values are equal.

    Example:
        ::

            >>> differences({"scores": [float("nan")]}, {"scores": [-0.5]})
            ['$.scores[0]: expected nan, got -0.5']
    """
    return [_difference_text(each) for each in compare(expected, actual)]


def _difference_text(found: Difference) -> str:
    if found.kind == "removed":
        return f"{found.path}: missing"
    if found.kind == "added":
        return f"{found.path}: not expected"
    if found.kind == "order":
        return f"{found.path}: keys in another order, expected {found.left} in the place of {found.right}"
    return f"{found.path}: expected {found.left}, got {found.right}{position_text(found)}"


def position_text(found: Difference) -> str:
    """Where two texts begin to differ, when they are not shown from their beginning."""
    return "" if found.position is None else f" (from character {found.position} on)"


def _key_differences(steps: _Steps, one: dict[str, Exact], other: dict[str, Exact]) -> Iterator[Difference]:
    """Compare the keys of two dicts and, when the keys are the same, their order."""
    same = True
    for key, value in one.items():
        if key not in other:
            same = False
            yield _difference((steps, key), "removed", beginning_text(value), None)
    for key, value in other.items():
        if key not in one:
            same = False
            yield _difference((steps, key), "added", None, beginning_text(value))
    if same and list(one) != list(other):
        first, second = next(pair for pair in zip(one, other, strict=True) if pair[0] != pair[1])
        yield _difference(steps, "order", *difference_texts(first, second))


def _extra_elements(steps: _Steps, one: list[Exact], other: list[Exact]) -> Iterator[Difference]:
    """Report the first elements that only the longer of two lists has."""
    common = min(len(one), len(other))
    for place in range(common, min(len(one), common + _MAX_EXTRA_ELEMENTS)):
        yield _difference((steps, place), "removed", beginning_text(one[place]), None)
    for place in range(common, min(len(other), common + _MAX_EXTRA_ELEMENTS)):
        yield _difference((steps, place), "added", None, beginning_text(other[place]))


def _equal_scalars(one: Exact, other: Exact) -> bool:
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

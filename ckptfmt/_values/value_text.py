"""Values as short text for people: ASCII, never longer than some words, whatever a value holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ckptfmt._text import count_text
from ckptfmt._values.patches import Exact

SHOWN_CHARACTERS: Final = 60
_BEFORE_A_DIFFERENCE: Final = 20
_COMPARED_SINGLY: Final = 64
_LEVELS_SHOWN: Final = 4
_BITS_SHOWN_AS_DECIMAL: Final = 64


def shown(value: Exact) -> str:
    """A scalar as Python writes it, cut at 60 characters; of a container its number of elements."""
    if isinstance(value, dict | list):
        return count_text(len(value), "element")
    return _cut(_text(value))


def beginning(value: Exact) -> str:
    """A value as Python writes it, containers too, cut at 60 characters."""
    text = ""
    for token in _tokens(value, _LEVELS_SHOWN):
        text += token
        if len(text) > SHOWN_CHARACTERS:
            break
    return _cut(text)


def apart(one: Exact, other: Exact) -> tuple[str, str, int | None]:
    """Two scalars of one type that differ, as :func:`shown`.

    Where that would cut both before they differ, they are shown from shortly before that place, and the place
    is returned too: a number of characters, of integers beyond 64 bits in their hex form.
    """
    left, right = (each if isinstance(each, str) else _text(each) for each in (one, other))
    place = _first_difference(left, right)
    is_text = isinstance(one, str)

    def written(text: str) -> str:
        return ascii(text) if is_text else text

    whole = shown(one), shown(other)
    seen = max(len(written(each[max(0, place - SHOWN_CHARACTERS) : place + 1])) for each in (left, right))
    if seen <= SHOWN_CHARACTERS - 2 or not any(each.endswith("...") for each in whole):
        return *whole, None
    start = place
    while place - start < _BEFORE_A_DIFFERENCE and len(written(left[start:place])) < _BEFORE_A_DIFFERENCE:
        start -= 1
    before, after = (
        f"...{_cut(written(each[start : start + SHOWN_CHARACTERS + 1]))}" for each in (left, right)
    )
    return before, after, place


def kind_text(value: Exact) -> str:
    """What kind of value it is, and how large, without showing it."""
    kind = type(value).__name__
    if isinstance(value, dict | list):
        return f"{kind} of {count_text(len(value), 'element')}"
    return f"{kind} of {count_text(len(value), 'character')}" if isinstance(value, str) else kind


def _tokens(value: Exact, levels: int) -> Iterator[str]:
    if isinstance(value, dict) and levels:
        yield "{"
        for number, (key, each) in enumerate(value.items()):
            yield f"{', ' if number else ''}{_text(key)}: "
            yield from _tokens(each, levels - 1)
        yield "}"
    elif isinstance(value, list) and levels:
        yield "["
        for number, each in enumerate(value):
            yield ", " if number else ""
            yield from _tokens(each, levels - 1)
        yield "]"
    else:
        yield shown(value)


def _text(value: Exact) -> str:
    if isinstance(value, str):
        # What is cut anyway need not be escaped first: a value may have a gigabyte.
        return ascii(value[: SHOWN_CHARACTERS + 1])
    return _integer(value) if type(value) is int else ascii(value)


def _integer(value: int) -> str:
    # Python refuses to write integers of more than 4,300 digits as decimals.
    return hex(value) if value.bit_length() > _BITS_SHOWN_AS_DECIMAL else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."


def _first_difference(one: str, other: str) -> int:
    """The first place where two strings differ: the end of one, when the other goes on."""
    start, end = 0, min(len(one), len(other))
    while end - start > _COMPARED_SINGLY:  # halves: comparing slices is far faster than comparing characters
        middle = (start + end) // 2
        if one[start:middle] == other[start:middle]:
            start = middle
        else:
            end = middle
    return next((place for place in range(start, end) if one[place] != other[place]), end)

"""Values as short ASCII text for people, of bounded length for any value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ckptfmt._text import count_text
from ckptfmt._values.patches import Exact

MAX_CHARACTERS: Final = 60
_CONTEXT_CHARACTERS: Final = 20
_LINEAR_SEARCH_CHARACTERS: Final = 64
_MAX_LEVELS: Final = 4
_MAX_DECIMAL_BITS: Final = 64


def summary_text(value: Exact) -> str:
    """A scalar as Python writes it, cut at 60 characters; for a container its number of elements."""
    if isinstance(value, dict | list):
        return count_text(len(value), "element")
    return _cut(_scalar_text(value))


def beginning_text(value: Exact) -> str:
    """Any value, also a container, as Python writes it, cut at 60 characters."""
    text = ""
    for token in _tokens(value, _MAX_LEVELS):
        text += token
        if len(text) > MAX_CHARACTERS:
            break
    return _cut(text)


def difference_texts(one: Exact, other: Exact) -> tuple[str, str, int | None]:
    """Two different scalars of one type, as :func:`summary_text`.

    When both texts would be cut before they differ, they are shown from shortly before that place, and the
    place is the third item: a character (of an integer beyond 64 bits: a character of its hex form).
    Otherwise the third item is None.
    """
    left, right = (each if isinstance(each, str) else _scalar_text(each) for each in (one, other))
    place = _first_difference(left, right)
    is_text = isinstance(one, str)

    def written(text: str) -> str:
        return ascii(text) if is_text else text

    whole = summary_text(one), summary_text(other)
    seen = max(len(written(each[max(0, place - MAX_CHARACTERS) : place + 1])) for each in (left, right))
    if seen <= MAX_CHARACTERS - 2 or not any(each.endswith("...") for each in whole):
        return *whole, None
    start = place
    while place - start < _CONTEXT_CHARACTERS and len(written(left[start:place])) < _CONTEXT_CHARACTERS:
        start -= 1
    before, after = (
        f"...{_cut(written(each[start : start + MAX_CHARACTERS + 1]))}" for each in (left, right)
    )
    return before, after, place


def kind_text(value: Exact) -> str:
    """The type of a value and its size, without the value itself."""
    kind = type(value).__name__
    if isinstance(value, dict | list):
        return f"{kind} of {count_text(len(value), 'element')}"
    return f"{kind} of {count_text(len(value), 'character')}" if isinstance(value, str) else kind


def _tokens(value: Exact, levels: int) -> Iterator[str]:
    if isinstance(value, dict) and levels:
        yield "{"
        for number, (key, each) in enumerate(value.items()):
            yield f"{', ' if number else ''}{_scalar_text(key)}: "
            yield from _tokens(each, levels - 1)
        yield "}"
    elif isinstance(value, list) and levels:
        yield "["
        for number, each in enumerate(value):
            yield ", " if number else ""
            yield from _tokens(each, levels - 1)
        yield "]"
    else:
        yield summary_text(value)


def _scalar_text(value: Exact) -> str:
    if isinstance(value, str):
        # The text is cut before it is escaped, because a string may have a gigabyte.
        return ascii(value[: MAX_CHARACTERS + 1])
    return _integer_text(value) if type(value) is int else ascii(value)


def _integer_text(value: int) -> str:
    # Python refuses to convert integers of more than 4,300 digits to decimal text.
    return hex(value) if value.bit_length() > _MAX_DECIMAL_BITS else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 3]}..."


def _first_difference(one: str, other: str) -> int:
    """The first place where two strings differ; the end of the shorter one when it is a prefix."""
    start, end = 0, min(len(one), len(other))
    # Binary search: comparing slices is far faster than comparing characters.
    while end - start > _LINEAR_SEARCH_CHARACTERS:
        middle = (start + end) // 2
        if one[start:middle] == other[start:middle]:
            start = middle
        else:
            end = middle
    return next((place for place in range(start, end) if one[place] != other[place]), end)

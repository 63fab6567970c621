"""Hypothesis strategies for exact values, values that are not exact, ids and records."""

from __future__ import annotations

import datetime
import uuid
from collections import Counter, OrderedDict, defaultdict
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import orjson
from hypothesis import strategies as st

from ckptfmt import EpisodeId, Record

__all__ = [
    "any_integer",
    "any_text",
    "episode_ids",
    "exact_scalars",
    "exact_values",
    "inexact_leaves",
    "inexact_values",
    "records",
]


def any_text(max_size: int = 20) -> st.SearchStrategy[str]:
    """Strings of any characters, including surrogates alone and in any order.

    Args:
        max_size: The most characters of a string.

    Returns:
        The strategy.
    """
    character = st.characters(exclude_categories=()) | st.sampled_from(
        '\ud800\udbff\udc00\udfff\ud83d\ude00\n\u2028\x00"\\'
    )
    return st.text(character, max_size=max_size)


def any_integer() -> st.SearchStrategy[int]:
    """Integers of any size, often near a power of two such as 2**63 and 2**64.

    Returns:
        The strategy.
    """
    edges = [
        sign * (2**power + near) for sign in (-1, 1) for power in (31, 53, 63, 64, 200) for near in (-1, 0, 1)
    ]
    return st.integers() | st.sampled_from(edges) | st.integers(-(2**4000), 2**4000)


def exact_scalars() -> st.SearchStrategy[Any]:
    """None, bool, int, float (including NaN, the infinities and both zeros) and str.

    Returns:
        The strategy.
    """
    return st.none() | st.booleans() | any_integer() | st.floats() | any_text()


def exact_values(max_leaves: int = 30) -> st.SearchStrategy[Any]:
    """Payloads of every kind, including unusual keys, long runs of one type, and nested containers.

    Args:
        max_leaves: About how many scalars and runs a value has at most.

    Returns:
        The strategy.

    Example:
        ::

            @given(exact_values())
            def test_payloads_are_read_back(value):
                assert same_exact(JsonPayload.of(value).value(), value)
    """
    runs = st.lists(st.floats(), max_size=150) | st.lists(st.integers(), max_size=150)
    return st.recursive(
        exact_scalars() | runs,
        lambda inner: st.lists(inner, max_size=6) | st.dictionaries(any_text(8), inner, max_size=6),
        max_leaves=max_leaves,
    )


class _Text(str):
    __slots__ = ()


class _Integer(int):
    pass


class _Float(float):
    pass


class _List(list[int]):
    pass


class _Dict(dict[str, int]):
    pass


class _Colour(Enum):
    RED = "red"


class _Level(IntEnum):
    LOW = 1


class _Pair(NamedTuple):
    left: int
    right: int


class _Scalar:
    """An object like a numpy scalar. It is not a number, neither for orjson nor for this package."""

    def item(self) -> float:
        return 1.0

    def tolist(self) -> float:
        return 1.0


_OTHER_TYPES: list[Any] = [
    *((1, 2), (), {1}, frozenset({1}), range(3)),
    *(b"x", bytearray(b"x"), memoryview(b"x")),
    *(1j, Decimal(1), _Scalar(), uuid.UUID(int=1)),
    *(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), datetime.date(2026, 1, 1), datetime.time(1)),
    *(_Colour.RED, orjson.Fragment(b"not json"), object(), print, ..., NotImplemented, type),
]
_SUBCLASSES: list[Any] = [
    *(_Text("a"), _Integer(1), _Float(1.0), _List([1]), _Dict(a=1), _Level.LOW, _Pair(1, 2)),
    *(OrderedDict(a=1), defaultdict(list), Counter("a")),
]
_OTHER_KEYS: list[Any] = [
    *({1: "a"}, {True: "a"}, {None: "a"}, {1.5: "a"}, {(1, 2): "a"}, {b"a": 1}),
    *({_Text("a"): 2}, {_Level.LOW: 2}, {1: "int", "1": "str"}),
]


def inexact_leaves() -> st.SearchStrategy[Any]:
    """Values of types that are not exact.

    Returns:
        The strategy.
    """
    return st.sampled_from([*_OTHER_TYPES, *_SUBCLASSES, *_OTHER_KEYS])


@st.composite
def inexact_values(draw: st.DrawFn) -> tuple[Any, list[str | int]]:
    """A value with one place that is not exact, and the path of that place.

    Returns:
        The strategy. Its values are pairs of a value and the list of keys and indices that lead to the place.
    """
    value = draw(inexact_leaves())
    path: list[str | int] = []
    for _ in range(draw(st.integers(0, 4))):
        siblings = draw(st.lists(exact_values(4), max_size=3))
        if draw(st.booleans()):
            path.insert(0, len(siblings))
            value = [*siblings, value]
        else:
            key = draw(any_text(5))
            path.insert(0, key)
            value = {**{f"sibling {number}": each for number, each in enumerate(siblings)}, key: value}
    return value, path


def episode_ids() -> st.SearchStrategy[EpisodeId]:
    """Episode ids with valid rollout ids and attempts.

    Returns:
        The strategy.
    """
    rollouts = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True).filter(_is_rollout_id)
    return st.builds(EpisodeId, rollouts, st.integers(0, 999_999_999))


def _is_rollout_id(text: str) -> bool:
    try:
        EpisodeId(text)
    except ValueError:
        return False
    return True


def records() -> st.SearchStrategy[Record]:
    """Records with all members of the envelope.

    Returns:
        The strategy.
    """
    references = st.text(max_size=10)
    return st.builds(
        Record,
        episode=episode_ids(),
        payload=exact_values(),
        boundary=st.none() | st.integers(0, 2**63 - 1),
        schema=st.integers(0, 2**63 - 1),
        references=st.lists(references, max_size=3).map(tuple),
    )

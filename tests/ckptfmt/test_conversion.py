"""``ckptfmt.plain``: the explicit conversion of values to exact values."""

from __future__ import annotations

import enum
import math
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pydantic
import pytest
from hypothesis import given

import ckptfmt
from ckptfmt import InexactValue, JsonPayload, LimitExceeded, Limits
from ckptfmt.testing import same_exact
from ckptfmt.testing.strategies import exact_values, inexact_values


class Colour(enum.Enum):
    RED = "red"
    BOX = frozenset({3, 1})


class Level(enum.IntEnum):
    LOW = 1


class Mode(enum.StrEnum):
    FAST = "fast"


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "another"


class Number(int):
    def __int__(self) -> int:
        return 7


class Point(NamedTuple):
    x: int
    y: tuple[int, ...]


@dataclass
class Session:
    name: str
    turns: list[Point] = field(default_factory=list)


@dataclass
class Unfinished:
    name: str = field(init=False)


class Model(pydantic.BaseModel):
    when: date
    inner: list[Session]


class Failing:
    dtype = "x"

    def tolist(self) -> list[int]:
        raise RuntimeError("secret")


class Endless:
    dtype = "x"

    def tolist(self) -> Endless:
        return self


MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
RULES: list[tuple[Any, Any]] = [
    ((1, (2,)), [1, [2]]),
    ([], []),
    (deque([1]), [1]),
    ({3, 1, 2}, [1, 2, 3]),
    (
        frozenset({"b", 2.5, None, True, 2, "a", (1,), math.inf}),
        [None, True, 2, 2.5, math.inf, "a", "b", [1]],
    ),
    ({frozenset({2, 1}), frozenset({0})}, [[0], [1, 2]]),
    ({Point(1, ()), Point(0, (5,))}, [{"x": 0, "y": [5]}, {"x": 1, "y": []}]),
    (Point(1, (2,)), {"x": 1, "y": [2]}),
    (Session("s", [Point(1, ())]), {"name": "s", "turns": [{"x": 1, "y": []}]}),
    (Colour.RED, "red"),
    (Colour.BOX, [1, 3]),
    (Level.LOW, 1),
    (Mode.FAST, "fast"),
    (MOMENT, "2026-01-02T03:04:05.000006+00:00"),
    (date(2026, 1, 2), "2026-01-02"),
    (time(3, 4), "03:04:00"),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (PurePosixPath("a/b"), "a/b"),
    (Decimal("1.50"), "1.50"),
    (b"\xff\x00", "/wA="),
    (bytearray(b"a"), "YQ=="),
    (memoryview(b"a"), "YQ=="),
    (Text("as it is"), "as it is"),
    (Number(3), 3),
    (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    (defaultdict(list, a=[1]), {"a": [1]}),
    (Counter("aab"), {"a": 2, "b": 1}),
    (MappingProxyType({"a": (1,)}), {"a": [1]}),
    (
        Model(when=date(2026, 1, 2), inner=[Session("s")]),
        {"when": "2026-01-02", "inner": [{"name": "s", "turns": []}]},
    ),
    (np.float32(0.1), 0.10000000149011612),
    (np.float64(-0.0), -0.0),
    (np.int64(7), 7),
    (np.bool_(True), True),
    (np.array([[1, 2], [3, 4]], dtype=np.uint8), [[1, 2], [3, 4]]),
    (np.array(2.5), 2.5),
    (np.array(["a", (1,)], dtype=object), ["a", [1]]),
    (
        {2: "a", True: "b", None: "c", 2.5: "d", Mode.FAST: "e", date(2026, 1, 2): "f", Text("t"): "g"},
        {"2": "a", "true": "b", "null": "c", "2.5": "d", "fast": "e", "2026-01-02": "f", "t": "g"},
    ),
    ({np.int64(4): 1, Path("p"): 2, UUID(int=0): 3}, {"4": 1, "p": 2, f"{UUID(int=0)}": 3}),
]


@pytest.mark.parametrize(("value", "expected"), RULES, ids=lambda value: type(value).__name__)
def test_each_rule(value: Any, expected: Any) -> None:
    converted = ckptfmt.plain(value)
    assert same_exact(converted, expected)
    JsonPayload.of(converted)
    within = ckptfmt.plain({"deep": [value]})
    assert same_exact(within, {"deep": [expected]})


@given(exact_values())
def test_an_exact_value_is_returned_unchanged(value: Any) -> None:
    assert same_exact(ckptfmt.plain(value), value)


@given(inexact_values())
@pytest.mark.req("FS2")
def test_the_result_can_be_written(valued: tuple[Any, list[str | int]]) -> None:
    """Any value is refused or becomes one that can be stored exactly."""
    with suppress(InexactValue):
        converted = ckptfmt.plain(valued[0])
        assert same_exact(JsonPayload.of(converted).value(), converted)


def test_the_result_shares_no_mutable_object_with_the_value() -> None:
    value: dict[str, Any] = {"a": [1, {"b": 2}]}
    converted = ckptfmt.plain(value)
    value["a"][1]["b"] = 3
    value["a"].append(4)
    assert converted == {"a": [1, {"b": 2}]}


def test_a_change_during_the_conversion_is_not_seen() -> None:
    """A session may continue while its state is converted."""
    messages: list[Any] = [1]
    state: dict[str, Any] = {"messages": messages}

    class Growing:
        dtype = "x"

        def tolist(self) -> int:
            messages.append(self)
            state[f"key {len(state)}"] = self
            return 7

    messages.append(Growing())
    state["other"] = Growing()
    assert ckptfmt.plain(state) == {"messages": [1, 7], "other": 7}


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        (object(), "$", "object"),
        ({"a": [1, 1j]}, "$.a[1]", "complex"),
        ({"a b": (timedelta(1),)}, '$["a b"][0]', "timedelta"),
        ([threading.Lock()], "$[0]", "lock"),
        ([Fraction(1, 2)], "$[0]", "Fraction"),
        (iter([1]), "$", "list_iterator"),
        (Session, "$", "type"),
        (np.ndarray, "$", "type"),
        ({"a": {(1, 2): 3}}, "$.a", "a key of type tuple"),
        ([{b"x": 3}], "$[0]", "a key of type bytes"),
        ({10**5000: 1}, "$", "a key of type int"),
        ({"a": {1: 2, "1": 3}}, '$.a["1"]', "become the same"),
        ({None: 2, "null": 3}, "$.null", "become the same"),
        ({Mode.FAST: 2, "nested": {"x": {1.0: 1, "1.0": 2}}}, '$.nested.x["1.0"]', "become the same"),
        ([Failing()], "$[0]", "could not be converted (RuntimeError)"),
        ([Unfinished()], "$[0]", "could not be converted (AttributeError)"),
        ([Endless()], "$[0]", "Endless"),
    ],
)
def test_a_value_that_no_rule_covers_is_refused(value: Any, path: str, expected: str) -> None:
    with pytest.raises(InexactValue) as refused:
        ckptfmt.plain(value)
    assert refused.value.path == path
    assert expected in str(refused.value)
    assert "secret" not in str(refused.value)


def test_depth_and_size_are_limited() -> None:
    value: Any = 1
    for _ in range(250):
        value = (value,)
    ckptfmt.plain(value)
    with pytest.raises(InexactValue, match="deeper than 250") as refused:
        ckptfmt.plain([value])
    assert refused.value.path.startswith("$[0][0]")
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(InexactValue, match="contain itself"):
        ckptfmt.plain(itself)
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InexactValue, match="deeper than 250"):
        ckptfmt.plain(value)
    while (
        type(value) is list
    ):  # the interpreter frees nested tuples and lists without recursion, step by step
        value = value[0]
    shared: Any = ["x"] * 100
    for _ in range(10):
        shared = [shared] * 100
    with pytest.raises(LimitExceeded, match="same object many times"):
        ckptfmt.plain(shared, limits=Limits(record_values=10_000))


def test_all_values_count_for_the_limit() -> None:
    limits = Limits(record_values=100)
    values: list[Any] = [(1,) * 99, [1] * 99, {"a": (1,) * 98}, {n: (n,) for n in range(49)} | {99: 1}]
    for value in values:
        ckptfmt.plain(value, limits=limits)
        with pytest.raises(LimitExceeded):
            ckptfmt.plain([value, 1], limits=limits)


def test_the_order_of_a_set_does_not_depend_on_hashes() -> None:
    values = [None, True, 7, -1.5, math.nan, 2**70, "b", "a", "\ud800", (2,), (1, 2), Point(1, ()), b"x"]
    expected = [
        None,
        True,
        -1.5,
        7,
        2**70,
        math.nan,
        "a",
        "b",
        "eA==",
        "\ud800",
        [1, 2],
        [2],
        {"x": 1, "y": []},
    ]
    for turn in range(len(values)):
        assert same_exact(ckptfmt.plain(set(values[turn:] + values[:turn])), expected)

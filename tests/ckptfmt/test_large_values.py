"""Large payloads are encoded in pieces, with the same text, patches and errors, and without long steps."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ckptfmt
from ckptfmt import InexactValue, LimitExceeded, Limits, Tuning
from ckptfmt._values import exact
from ckptfmt._values import large_values as pieces
from ckptfmt._values.patches import Exact
from ckptfmt.testing import same_exact
from ckptfmt.testing.strategies import exact_values
from tests.ckptfmt.building import record, write

_MB = 1_000_000


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    _use_small_pieces(monkeypatch)


def _use_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_LARGE", 20)
    monkeypatch.setattr(pieces, "_PIECE", 10)
    monkeypatch.setattr(pieces, "_ITEMS", 3)


def _assert_same_as_in_one_step(value: Exact) -> int:
    data, patches = pieces.encode(value, episode="r")
    assert (b"".join(data), patches) == tuple(exact.encode(value, episode="r"))
    return len(data)


@given(st.lists(exact_values(), max_size=4) | exact_values())
@settings(max_examples=300)
@pytest.mark.req("FS2")
def test_the_joined_pieces_equal_the_text_of_a_single_step(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patched:
        _use_small_pieces(patched)
        _assert_same_as_in_one_step(value)
        _assert_same_as_in_one_step({"a": [value, {"b": value, "c": "x" * 50}], "d": [[value] * 3] * 3})


@pytest.mark.req("FS2")
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "value",
    [
        "a string\n\u2028é😀\x00" * 9,
        "with a surrogate \ud800" * 9,
        [math.nan] * 40,
        [[1.5, math.inf], *[list(range(9))] * 9, {"a": [-math.inf] * 9, "b": {"c": 2**80}}, math.nan],
        {"a": list(range(99)), "b": [{"x": number, "y": math.nan} for number in range(30)], "c": math.nan},
        {f"key {number}": {"text": "x" * 30, "\ud800": math.nan} for number in range(9)},
        {"\ud800": "x" * 99, "b": ["y" * 99]},
        {"a": {"\ud800": ["x" * 99], "b": [math.nan] * 9}, "b": [math.nan] * 9},
        [[], {}, "", None, True] * 20,
        {"": ["" for _ in range(99)]},
    ],
)
def test_the_patches_equal_those_of_a_single_step(value: Any) -> None:
    assert _assert_same_as_in_one_step(value) >= 1


@pytest.mark.req("FS2", "FS11")
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [["x" * 30] * 9, [1, (2,)]]}, "$.a[1][1]"),
        ({"a": ["x" * 30] * 9, 1: 2}, "$"),
        ({1: ["x" * 99]}, "$"),
        ([*["x" * 30] * 99, {"k": {3}}], "$[99].k"),
    ],
)
def test_errors_name_the_path_from_the_root(value: Any, path: str) -> None:
    with pytest.raises(InexactValue) as inexact:
        pieces.encode(value, episode="r")
    assert (inexact.value.path, inexact.value.episode) == (path, "r")


@pytest.mark.req("FS11")
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("key", [None, "k"])
def test_the_depth_is_counted_from_the_root(key: str | None) -> None:
    def nested(depth: int) -> Any:
        value: Any = ["x" * 99]
        for _ in range(depth - 1):
            value = [value, "y" * 20] if key is None else {key: value, "z": "y" * 20}
        return value

    assert _assert_same_as_in_one_step(nested(250)) > 10
    with pytest.raises(InexactValue, match="nested deeper than 250"):
        pieces.encode(nested(251), episode="r")


@pytest.mark.req("FS2")
@pytest.mark.usefixtures("small_pieces")
def test_the_limits_apply_to_the_whole_value() -> None:
    values = list(range(1000))
    size = len(exact.encode(values).data)
    assert _assert_same_as_in_one_step(values) > 100
    assert pieces.encode(values, episode="r", limits=Limits(record_bytes=size, record_values=1000))
    with pytest.raises(LimitExceeded, match="episode r: "):
        pieces.encode(values, episode="r", limits=Limits(record_bytes=size - 1))
    with pytest.raises(LimitExceeded, match="episode r: "):
        pieces.encode(values, episode="r", limits=Limits(record_values=999))
    commas = [",,,,,[{" * 20] * 20
    assert pieces.encode(commas, episode="r", limits=Limits(record_values=20))


@pytest.mark.req("FS2")
@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("shrinks", [False, True])
@pytest.mark.parametrize("kind", [list, dict])
def test_a_concurrent_change_gives_exact_text(
    monkeypatch: pytest.MonkeyPatch, kind: type, shrinks: bool
) -> None:
    """Whenever another thread changes the value, the text is JSON of values that it held."""
    encode = exact.encode
    for moment in range(12):
        items = [f"value {number}" for number in range(20)]
        value: Any = list(items) if kind is list else dict(_keyed(items))
        calls = 0

        def changing(*args: Any, moment: int = moment, value: Any = value, **options: Any) -> exact.Encoded:
            nonlocal calls
            calls += 1
            if calls == moment:
                if shrinks:
                    for key in list(value)[:5] if kind is dict else range(5):
                        value.pop(key if kind is dict else -1)
                elif kind is dict:
                    value["more"] = "more"
                else:
                    value.append("more")
            return encode(*args, **options)

        monkeypatch.setattr(exact, "encode", changing)
        data, patches = pieces.encode({"x": value}, episode="r")
        read = orjson.loads(b"".join(data))["x"]
        assert patches == b""
        assert set(read.values() if kind is dict else read) <= {*items, "more"}


def _keyed(items: list[str]) -> list[tuple[str, str]]:
    return [(f"k{number}", item) for number, item in enumerate(items)]


def _texts(size: int) -> Any:
    return {"messages": [{"role": "tool", "content": "naïve ✓ " * 900, "id": n} for n in range(size // 9000)]}


def _numbers(size: int) -> Any:
    draw = random.Random(1)
    return {"ids": list(range(size // 30)), "logprobs": [-draw.random() for _ in range(size // 30)]}


def _small(size: int) -> Any:
    return {"items": [{"id": n, "name": f"item-{n}", "x": n / 7, "tags": ["a"]} for n in range(size // 60)]}


_SHAPES: dict[str, Callable[[int], Any]] = {
    "texts": _texts,
    "numbers": _numbers,
    "small": _small,
    "one string": lambda size: {"content": "x" * size},
    "a few large": lambda size: [{"content": "é" * (size // 10), "parts": [1, 2]} for _ in range(5)],
    "one large among small": lambda size: {"m": [*["x"] * 40, *(_texts(size)["messages"]), *["y"] * 4000]},
    "large after small": lambda size: (
        ["x"] * 400 + [message["content"] for message in _texts(size)["messages"]]
    ),
    "deep": lambda size: {"a": {"b": {"c": [{"d": _small(size)}, _numbers(size // 2)]}}},
    "keys": lambda size: {f"key-{n}": n for n in range(size // 20)},
    "lists": lambda size: [[n, n + 1, [n]] for n in range(size // 25)],
}


@pytest.mark.req("FS1", "FS2")
@pytest.mark.parametrize("shape", _SHAPES)
def test_the_size_of_each_step_is_bounded(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    """The size of a step bounds the time that other threads wait for the GIL."""
    value = _SHAPES[shape](8 * _MB)
    steps: list[int] = []

    def recorded(*args: Any, **options: Any) -> exact.Encoded:
        encoded = encode(*args, **options)
        steps.append(len(encoded.data))
        return encoded

    encode = exact.encode
    monkeypatch.setattr(exact, "encode", recorded)
    data, patches = pieces.encode(value, episode="r")
    assert max(steps) <= 2 * _MB
    assert sum(steps) >= 4 * _MB
    assert len(steps) < 200
    assert (b"".join(data), patches) == tuple(encode(value))


@pytest.mark.req("FS2")
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("spool", [False, True])
def test_large_records_are_read_back_exactly(tmp_path: Path, compression: Any, spool: bool) -> None:
    payload = {"texts": _texts(2 * _MB), "nan": [1.0] * 99 + [math.nan], "numbers": _numbers(_MB)}
    options: dict[str, Any] = {"participant": "a", "kind": "agent", "checkpoint_id": "c"}
    with ckptfmt.create(
        tmp_path, compression=compression, spool=tmp_path if spool else None, **options
    ) as writer:
        for each in (record("small", 1), record("large", payload), record("last", {"x": math.nan})):
            writer.write(each)
    part = ckptfmt.open(tmp_path)["a"]
    assert same_exact(part["large"].payload, payload)
    assert [str(each.episode) for each in part] == ["small", "large", "last"]
    assert part.verify() == []


@pytest.mark.req("FS4")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_large_records_give_the_same_bytes_each_time(tmp_path: Path, compression: Any) -> None:
    manifests = [
        write(tmp_path / name, [record("r", _texts(3 * _MB))], compression=compression, tuning=Tuning())
        for name in ("one", "two")
    ]
    assert manifests[0] == manifests[1]

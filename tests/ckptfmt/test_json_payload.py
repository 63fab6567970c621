"""Payloads: exact values, refused values, the encoded text and patches, and decoding."""

from __future__ import annotations

import copy
import math
import struct
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

import ckptfmt
from ckptfmt import Damaged, InexactValue, JsonPayload, LimitExceeded, Limits
from ckptfmt.testing import same_exact
from tests.ckptfmt.building import record, write


def _nested(depth: int, leaf: Any, key: str | None = None) -> Any:
    value = leaf
    for _ in range(depth):
        value = [value] if key is None else {key: value}
    return value


_EXACT: dict[str, Any] = {
    "C01": {"lp": [-0.5, math.nan, -math.inf, math.inf, None], "nested": {"x": [[math.nan]]}},
    "C01 last": [0.5] * 100_000 + [math.nan],
    "C04": {"seed": 2**64, "neg": -(2**63) - 1, "ok": 2**64 - 1, "id": "18446744073709551616"},
    "C06": [5e-324, 1.7976931348623157e308, 0.1 + 0.2, 1e16, 1e22, 1e-7, 123456789012345.67],
    "C06 overflowing sum": [1.7976931348623157e308] * 3,
    "C07": ["ok\ud83d", "\udc80tail", {"\ud800": 1}, "\ud83d" + "\ude00", "\U0001f600", "\udcff"],
    "C19": [-0.0, 0.0, 1.0, 1, True, "1", -0],
    "C20": "\u2028 \u2029 \u0085 \x0b \x0c \x1c \r \r\n \n \x00",
    "keys": {"b": 1, "a": 2, "": 3, "\ud800": 4, "payload": 5, ',"payload":': 6},
    "numbers": [10**5000, -(10**5000), 2**63, -(2**63)],
    "deepest list": _nested(250, None),
    "deepest dict": _nested(250, 1, "k"),
    "deepest unusual key": _nested(250, 1, "\ud800"),
    "deepest unusual leaf": _nested(249, ["\ud800"], "\udc00"),
    "nested unusual keys": {"\ud800": {"\udc00": [math.nan, {"x": 2**64, "\udfff": {}}]}, "z": [math.inf]},
    "empty": [{}, [], "", {"": {}}],
}


@pytest.mark.req("FS2")
@pytest.mark.parametrize("name", _EXACT)
def test_exact_values_read_back_as_they_were(tmp_path: Path, name: str) -> None:
    value = _EXACT[name]
    before = copy.deepcopy(value)
    write(tmp_path, [record("r", value), record("neighbour", {"plain": 1})])
    part = ckptfmt.open(tmp_path)["agent-0"]
    assert same_exact(part["r"].payload, before)
    assert same_exact(next(iter(part)).payload, before)
    assert same_exact(value, before)  # the caller's own object is untouched
    assert part["r"].payload is not part["r"].payload


@pytest.mark.req("FS2")
def test_floats_are_identical_bit_by_bit() -> None:
    values = [
        struct.unpack("<d", struct.pack("<Q", bits * 0x9E3779B97F4A7C15 % 2**64))[0] for bits in range(2000)
    ]
    back = JsonPayload.of(values).value()
    assert all(
        struct.pack("<d", one) == struct.pack("<d", other) or (math.isnan(one) and math.isnan(other))
        for one, other in zip(values, back, strict=True)
    )


@pytest.mark.req("FS2")
def test_patches_list_the_values_that_json_cannot_hold() -> None:
    payload = JsonPayload.of(
        {"a": [1, math.nan], "b": 2**64, "c": "\ud83d\ude00", "d": {"\ud800": -math.inf}}
    )
    assert payload.data == b'{"a":[1,null],"b":null,"c":null,"d":null}'
    assert payload.size == len(payload.data)
    assert payload.patches == [
        [
            [],
            [
                ["b", {"int": "10000000000000000"}],
                ["c", {"str": [0xD83D, 0xDE00]}],
                ["d", {"pairs": [[{"str": [0xD800]}, None]]}],
            ],
        ],
        [["a"], [[1, "nan"]]],
        [["d"], [[{"str": [0xD800]}, "-inf"]]],
    ]
    assert JsonPayload.of(math.inf) == JsonPayload(b"null", b'[[null,[[null,"inf"]]]]')
    assert JsonPayload.of({"plain": 1}).patches == []


@pytest.mark.req("FS2")
def test_the_error_names_the_path_but_not_the_value(tmp_path: Path) -> None:
    secret = "do not show this"
    writer = ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c")
    for number in range(100):
        memory: dict[str, Any] = {"tool": {"cb": print if number == 37 else None, "unusual": secret}}
        each = record(f"r{number}-a1", {"state": {"agents": [secret, 1, {"memory": memory}]}})
        if number != 37:
            writer.write(each)
            continue
        with pytest.raises(InexactValue) as refused:
            writer.write(each)
        assert refused.value.path == "$.state.agents[2].memory.tool.cb"
        assert refused.value.episode == "r37-a1"
        assert "r37-a1" in str(refused.value)
        assert "builtin_function_or_method" in str(refused.value)
        assert secret not in str(refused.value)
    writer.publish()
    # The refused record left nothing in the file.
    assert [each.episode.rollout_id for each in ckptfmt.open(tmp_path)["a"]] == [
        f"r{number}" for number in range(100) if number != 37
    ]


@pytest.mark.req("FS2", "FS11")
@pytest.mark.parametrize("neighbour", [0, math.nan, 2**80, "\ud800"])
@pytest.mark.parametrize("depth", [251, 1_000, 100_000])
@pytest.mark.parametrize("key", [None, "k", "\ud800"])
def test_the_depth_limit_is_the_same_for_all_values(neighbour: Any, depth: int, key: str | None) -> None:
    with pytest.raises(InexactValue, match="nested deeper than 250"):
        JsonPayload.of([neighbour, _nested(depth - 1, None, key)])
    JsonPayload.of([neighbour, _nested(249, None, key)])


@pytest.mark.req("FS2", "FS11")
def test_a_cyclic_value_is_refused() -> None:
    ring: list[Any] = []
    ring.append({"again": ring})
    with pytest.raises(InexactValue, match="nested deeper"):
        JsonPayload.of(ring)


@pytest.mark.req("FS11")
def test_depth_does_not_depend_on_the_callers_stack() -> None:
    value = _nested(249, [math.nan], "\ud800")

    def deep(left: int) -> Any:
        return deep(left - 1) if left else JsonPayload.of(value).value()

    assert same_exact(deep(sys.getrecursionlimit() - 100), value)


@pytest.mark.req("FS11")
@pytest.mark.parametrize("depth", [251, 1024, 1025, 200_000])
def test_the_depth_limit_of_a_reader_is_that_of_a_writer(depth: int) -> None:
    with pytest.raises(Damaged):
        JsonPayload(b"[" * depth + b"]" * depth).value()
    assert JsonPayload(b"[" * 250 + b"]" * 250).value() == _nested(249, [])
    flat = b"[" + b",".join([b"{}"] * 5000) + b"]"
    assert JsonPayload(flat).value() == [{}] * 5000


@pytest.mark.req("FS11")
def test_patches_cannot_exceed_the_depth_limit() -> None:
    depth = 200
    text = b"[" * depth + b"null" + b"]" * depth
    path = orjson.dumps([0] * (depth - 1))
    patches = b'[[%b,[[0,{"pairs":[["k",%b]]}]]]]' % (path, b"[" * 50 + b"]" * 50)
    with pytest.raises(Damaged, match="nested deeper"):
        JsonPayload(text, patches).value()
    assert JsonPayload(text, patches.replace(b"[" * 50 + b"]" * 50, b"[" * 49 + b"]" * 49)).value()


@pytest.mark.req("FS2")
def test_an_object_that_is_shared_too_often_is_refused() -> None:
    value: Any = ["x"] * 10
    for _ in range(30):
        value = [value] * 10
    with pytest.raises(LimitExceeded, match="values"):
        JsonPayload.of(value, episode="r", limits=Limits(record_values=10**6))
    assert JsonPayload.of([value[0][0][0]][:0]).value() == []


@pytest.mark.req("FS2")
def test_a_shared_object_is_written_at_each_place() -> None:
    shared = {"n": math.nan}
    assert same_exact(JsonPayload.of([shared, shared]).value(), [{"n": math.nan}, {"n": math.nan}])


_SHAPES: dict[str, tuple[Any, list[list[Any]]]] = {
    "dicts in a dict": ({"y": {"v": 1.0}}, [["y", "v"]]),
    "lists in a dict": ({"x": [1.0] * 3}, [["x", 1]]),
    "dicts in a list": ([{"v": 1.0}, {"v": 1.0}], [[0, "v"], [1, "v"]]),
    "lists in a list": ([[1.0], [1.0]], [[0, 0], [1, 0]]),
    "dicts and text in a list": (["s", {"v": 1.0}], [[1, "v"]]),
    "lists and text in a list": (["s", [1.0]], [[1, 0]]),
    "all of them": (
        {"x": [1.0], "z": [{"v": 1.0, "w": [["s", {"v": 1.0}]]}], "l": [[1.0], ["s"]]},
        [["x", 0], ["z", 0, "v"], ["z", 0, "w", 0, 1, "v"], ["l", 0, 0]],
    ),
}


def _value_at(value: Any, path: list[Any]) -> Any:
    for step in path:
        value = value[step]
    return value


@pytest.mark.req("FS2")
@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("intruder", [math.nan, (1.0,), {1: 1.0}, _nested(251, 1.0)])
def test_a_concurrent_change_is_seen_completely_or_not_at_all(shape: str, intruder: Any) -> None:
    """The value that was checked is the value that is encoded, whenever another thread changes it.

    The test makes the change at each point at which another thread could run: at each call of the profiler.
    """
    is_nan = intruder != intruder
    outcomes = set()
    for moment in range(130):
        value, paths = copy.deepcopy(_SHAPES[shape])
        places = [(_value_at(value, path[:-1]), path[-1]) for path in paths]
        calls = 0

        def change(frame: Any, event: str, argument: Any, moment: int = moment, places: Any = places) -> None:
            nonlocal calls
            calls += 1
            if calls == moment:
                for container, key in places:
                    container[key] = intruder

        sys.setprofile(change)
        try:
            payload = JsonPayload.of(value)
        except InexactValue:
            outcomes.add("refused")
            continue
        finally:
            sys.setprofile(None)
        back = payload.value()
        for path in paths:
            found = _value_at(back, path)
            assert found == 1.0 or (found != found and is_nan)
            outcomes.add("before" if found == 1.0 else "after")
    assert outcomes == ({"before", "after"} if is_nan else {"before", "refused"})


@pytest.mark.req("FS2")
@pytest.mark.parametrize(
    ("data", "patches"),
    [
        (b'{"a":1}', b'[[[],[["a","nan"]]]]'),
        (b'{"a":null}', b'[[[],[["b","nan"]]]]'),
        (b'{"a":null}', b'[[[],[["a","NaN"]]]]'),
        (b'{"a":null}', b'[[[],[["a","nan"],["a","nan"]]]]'),
        (b'{"a":null}', b'[[null,[["a","nan"]]]]'),
        (b'{"a":null}', b'[[["x"],[["a","nan"]]]]'),
        (b'{"a":null}', b'[[[],[["a",{"int":"0x10"}]]]]'),
        (b'{"a":null}', b'[[[],[["a",{"int":"F"}]]]]'),
        (b'{"a":null}', b'[[[],[["a",{"str":[1114112]}]]]]'),
        (b'{"a":null}', b'[[[],[["a",{"str":[true]}]]]]'),
        (b'{"a":null}', b'[[[],[["a",{"str":"x"}]]]]'),
        (b'{"a":null}', b'[[[],[["a",{"pairs":[["k",1],["k",2]]}]]]]'),
        (b'{"a":null}', b'[[[],[["a",{"pairs":[[0,1]]}]]]]'),
        (b'{"a":null}', b'[[[],[["a",{"int":"1","str":[]}]]]]'),
        (b'{"a":null}', b'[[[],[["a",null]]]]'),
        (b'{"a":null}', b"[[[]]]"),
        (b'{"a":null}', b"{}"),
        (b"[null]", b'[[[],[[-1,"nan"]]]]'),
        (b"[null]", b'[[[],[[1,"nan"]]]]'),
        (b"[null]", b'[[[],[[true,"nan"]]]]'),
        (b"[null]", b'[[[],[["0","nan"]]]]'),
        (b'{"0":null}', b'[[[],[[0,"nan"]]]]'),
        (b"1", b'[[null,[[null,"nan"]]]]'),
        (b"NaN", b""),
        (b"1e400", b""),
        (b'"\\ud800"', b""),
        (b'{"a":1} ,"x":2', b""),
        (b"", b""),
    ],
)
def test_a_payload_that_no_writer_wrote_is_damaged(data: bytes, patches: bytes) -> None:
    with pytest.raises(Damaged):
        JsonPayload(data, patches).value()

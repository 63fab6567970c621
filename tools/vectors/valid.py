"""Checkpoints that the package writes, with every feature and combinations that readers may get wrong."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from ckptfmt import Record
from tools.vectors.good import CODECS, Good, Part, record

_LONE, _MERGING = "ok\ud83d", "\ud83d\ude00"


def _session(number: int) -> Any:
    texts = [hashlib.sha256(b"%d %d" % (number, turn)).hexdigest() for turn in range(number % 3 + 1)]
    return {"messages": [{"role": "user", "content": text} for text in texts], "reward": number / 7}


def _many(count: int) -> list[Record]:
    """Records in another order than their keys."""
    order = sorted(range(count), key=lambda number: (number * 7) % count)
    return [record(f"{n}-0-a{n % 3}" if n % 3 else f"{n}-0", _session(n), n or None) for n in order]


def _nested(depth: int, objects: bool = False) -> Any:
    value: Any = {} if objects else []
    for _ in range(depth - 1):
        value = {"k": value} if objects else [value]
    return value


_VALUES: Final[dict[str, dict[str, Any]]] = {
    "scalars": {
        "null": None,
        "true": True,
        "false": False,
        "empty-string": "",
        "empty-array": [],
        "empty-object": {},
        "types-that-look-alike": [-0.0, 0.0, 0, 1.0, 1, True, "1", "1.0", None, "null"],
    },
    "integers": {
        "small": [0, -1, 1, 42],
        "beyond-2-53": [2**53, 2**53 + 1, -(2**53) - 1],
        "64-bits": [2**63 - 1, 2**63, 2**64 - 1, -(2**63)],
    },
    "floats": {
        "extremes": [5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308],
        "shortest-forms": [0.1, 0.1 + 0.2, 1e16, 1e22, 1e-7, 123456789012345.67, 1e21, 1e-5, 100.0, -0.5],
        "whole": [1e15, 1e100, 2.0**64, -(2.0**63)],
    },
    "strings": {
        "escapes": '"\\/\b\t\n\f\r\x00\x1f\x7f',
        "unicode": "é😀\uffff\U0010ffff",
        "line-separators": "a\u2028b\u2029c\u0085d\x0b\x0c\x1c\r\r\n",
        "looks-like-json": '"},"payload":{"x":null}}',
        "bom": "\ufeffa",
        "normal-forms": ["é", "e\u0301"],
    },
    "objects": {
        "order": {"b": 1, "a": 2, "c": 3, "": 4},
        "keys": {
            '"': 1,
            "\\": 2,
            "\n": 3,
            "é": 4,
            "😀": 5,
            "__proto__": 6,
            "constructor": 7,
            "0": 8,
            "-0": 9,
        },
        "members-of-the-envelope": {
            "episode": "x",
            "boundary": 1,
            "patches": [],
            "payload": {"payload": None},
        },
    },
    "patched-floats": {
        "nan": {"lp": [-0.5, math.nan, -math.inf, math.inf, None], "n": {"x": [[math.nan]]}},
        "every-one": [math.nan] * 5,
        "null-stays": [None, math.nan, None],
        "root-nan": math.nan,
        "root-inf": math.inf,
        "root-minus-inf": -math.inf,
    },
    "patched-integers": {
        "beyond-64-bits": {"seed": 2**64, "neg": -(2**63) - 1, "ok": 2**64 - 1, "id": "18446744073709551616"},
        "large": [10**100, -(10**100), 2**521 - 1],
        "root": -(2**70),
    },
    "patched-strings": {
        "lone": [_LONE, "\udc80tail", "\udcff"],
        "pair-that-is-two": [_MERGING, "\U0001f600", "a" + _MERGING + "😀"],
        "root": "\ud800",
        "root-pair": _MERGING,
    },
    "patched-keys": {
        "key": {"\ud800": 1, "a": 2},
        "pair-that-is-two": {_MERGING: 1, "\U0001f600": 2},
        "patched-values": {"a": math.nan, "\ud800": math.nan, "c": {"d": 2**64}},
        "within": [{"a": {"\udfff": [1, {"b": math.inf}]}}],
        "in-each-other": {"\ud800": {"\ud801": {"\ud802": [math.nan, {"\ud803": None}]}}},
        "root-in-order": {"z": 1, "\ud800": 2, "a": 3},
        "looks-like-json": {'\ud800,"payload":': ',"payload":{', "k": ['"]],"payload":', math.nan]},
    },
    "nesting": {
        "arrays-250": _nested(250),
        "objects-250": _nested(250, True),
        "nan-at-250": [_nested(248), [math.nan]],
    },
}


def cases() -> Iterator[tuple[str, Good]]:
    """Yield the name and the content of each case."""
    for (group, values), codec in product(_VALUES.items(), CODECS):
        records = [record(name, value) for name, value in values.items()]
        yield f"values-{group}-{codec}", Good(f"payloads: {group}", {"agent-0": Part(records, codec)})
    yield from _of_files()
    yield from _of_checkpoints()


def _of_files() -> Iterator[tuple[str, Good]]:
    for codec in CODECS:
        yield f"no-records-{codec}", Good("a participant without records", {"agent-0": Part((), codec)})
        yield f"one-record-{codec}", Good("one record", {"agent-0": Part(_many(1), codec)})
        yield (
            f"segments-frames-blocks-{codec}",
            Good(
                "several of each, in another order than the keys",
                {"agent-0": Part(_many(12), codec, small=True)},
            ),
        )
        yield f"one-segment-{codec}", Good("several records in a segment", {"agent-0": Part(_many(5), codec)})
        yield (
            f"patches-in-segments-{codec}",
            Good(
                "NaN in some of the records of several segments",
                {
                    "agent-0": Part(
                        [record(f"r{n}", {"t": "x" * 90, "v": math.nan if n % 2 else n}) for n in range(9)],
                        codec,
                        small=True,
                    )
                },
            ),
        )
        yield (
            f"envelopes-{codec}",
            Good("the members beside the payload, at their limits", {"agent-0": Part(_ENVELOPES, codec)}),
        )


_ENVELOPES: Final = (
    record("boundary-null", 1, None),
    record("boundary-0", 1, 0),
    record("boundary-max", 1, 2**63 - 1),
    record("schema-0", 1, 1, schema=0),
    record("schema-max", 1, 1, schema=2**63 - 1),
    record("attempt-1-a1", 1, 1),
    record("attempt-max-a999999999", 1, 1),
    record("looks-like-attempts-a0", 1, 1),
    record("looks-like-attempts-a01", 1, 1),
    record("looks-like-attempts-ax1", 1, 1),
    record("A.b_c-d", 1, 1),
    record("a", 1, 1),
    record("0", 1, 1),
    record("x" * 256 + "-a7", 1, 1),
    record("references", 1, 1, references=("batch/17", "", "batch/17")),
    record(
        "references-odd",
        math.nan,
        1,
        references=('"\\/', "\b\t\n\f\r\x00\x1f\x7f", "é\u2028😀", '"],"payload":['),
    ),
)


def _of_checkpoints() -> Iterator[tuple[str, Good]]:
    part = Part(_many(3))
    for cut, patched in product((False, True), repeat=2):
        state = (
            {"seed": 2**70, "loss": math.nan, "\ud800": [1.5]} if patched else {"step": 7, "rng": [1, 2, 3]}
        )
        yield (
            f"checkpoint{'-cut' if cut else ''}{'-patched-state' if patched else '-state'}-restarts-marks",
            Good(
                "all members of checkpoint.json",
                {"agent-0": part, "tools/0": Part(_many(3), "zstd", kind="resources")},
                sequence=1200,
                cut=cut,
                restarts=("40-0", "41-0-a100", "40-1"),
                marks={"0-0": 0, "1-0": 199, "zz": 999999999},
                state=state,
                lives=(None, "step-0", "step-1") if cut else (),
            ),
        )
    yield "checkpoint-cut-no-participants", Good("a cut in which nobody saved", {}, cut=True, restarts=("r",))
    yield (
        "checkpoint-cut-no-records",
        Good("a cut with participants without records", {"a": Part(()), "b": Part(())}, cut=True),
    )
    yield (
        "checkpoint-names",
        Good(
            "names of participants in folders, labels at their limits",
            {
                "a": part,
                "a/b": part,
                "a/b/c.d_e-f": Part(_many(2), "zstd", kind="環境 😀"),
                "x" * 100: Part(()),
            },
            checkpoint_id="ö" * 256,
            sequence=2**63 - 1,
            cut=True,
        ),
    )
    yield (
        "checkpoint-participants-hold-different-episodes",
        Good(
            "none of them holds all",
            {"a": Part([record("r1"), record("r2-a3")]), "b": Part([record("r3")])},
            cut=True,
        ),
    )
    states: tuple[tuple[str, Any], ...] = (
        ("nan", math.nan),
        ("null", None),
        ("250-deep", _nested(250)),
        ("string", _LONE),
        ("pairs", {"\ud800": {"a": [math.nan]}, "b": None}),
    )
    for name, state in states:
        yield f"checkpoint-state-{name}", Good(f"the state is {name}", {"a": Part(())}, state=state)

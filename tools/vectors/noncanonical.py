"""Valid checkpoints that the package does not write: other spellings, frames and blocks of the index."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import zstandard

from tools.vectors.good import CODECS, NonCanonical, record
from tools.vectors.raw import Draft, Files, block, frame, sealed, set_in, to_json

_SAME: Final = [
    record("17-0-a1", {"m": ["hi"]}, 4, references=("batch/17",)),
    record("17-1", [1, 2.5, "x"]),
    record("18-0", None, 2),
]
"""The content of the default lines of a draft."""


def _pretty(body: Any) -> bytes:
    """A body with spaces, line feeds, additional escapes and unknown members."""
    changed = {"more": {"a": [None, 1.5, {}]}, **body, "x": "\u2028"}
    return (
        b" "
        + to_json(changed).replace(b'":', b'" :\r\n\t').replace(b'"records"', b'"\\u0072ecords"')
        + b"\n "
    )


def cases() -> Iterator[tuple[str, NonCanonical]]:
    """Yield the name and the content of each case."""
    for codec in CODECS:
        yield f"spelled-as-the-page-{codec}", NonCanonical("built byte by byte", Draft(codec=codec), _SAME)
        yield (
            f"spelled-bodies-{codec}",
            NonCanonical(
                "unknown members, spaces and escapes in every self-checked body",
                Draft(
                    codec=codec,
                    with_cut=True,
                    manifest=_pretty,
                    checkpoint=_pretty,
                    cut=_pretty,
                    head=_head_pretty,
                ),
                _SAME,
            ),
        )
    yield (
        "spelled-blocks",
        NonCanonical("a block of one row each, with an unknown column", Draft(blocks=_blocks_of_one), _SAME),
    )
    yield (
        "spelled-payloads",
        NonCanonical("payloads in every spelling of JSON", Draft(lines=_PAYLOAD_LINES), _PAYLOADS),
    )
    yield (
        "spelled-patches-that-are-not-needed",
        NonCanonical("patches that no writer makes", Draft(lines=_MORE_PATCH_LINES), _MORE_PATCHED),
    )
    yield (
        "spelled-patches",
        NonCanonical("patches with spaces and escapes", Draft(lines=_PATCH_LINES), _PATCHED),
    )
    yield (
        "spelled-frame-of-stored-blocks",
        NonCanonical(
            "a frame of level -5", Draft(codec="zstd", pack=lambda plain: _packed(plain, -5)), _SAME
        ),
    )
    yield (
        "spelled-frame-of-level-19",
        NonCanonical(
            "a frame of level 19", Draft(codec="zstd", pack=lambda plain: _packed(plain, 19)), _SAME
        ),
    )
    yield (
        "spelled-frame-of-several-blocks",
        NonCanonical("a block of the frame for each 20 bytes", Draft(codec="zstd", pack=_in_blocks), _SAME),
    )
    yield (
        "spelled-frame-of-dictionary-0",
        NonCanonical(
            "a frame with a dictionary id of 0, which is none", Draft(codec="zstd", pack=_dictionary_0), _SAME
        ),
    )
    yield (
        "spelled-head-of-66-kb",
        NonCanonical("a head beyond the first 64 KiB of the index", Draft(head=_head_of_66_kb), _SAME),
    )
    yield from _deep()
    yield (
        "restart-of-another-attempt",
        NonCanonical(
            "a restart of a rollout that was saved, as another attempt",
            Draft(checkpoint=set_in("restarts", to=["17-1-a1"])),
            _SAME,
            restarts=["17-1-a1"],
        ),
    )
    yield (
        "lives-beside-other-files",
        NonCanonical(
            "other names in the folder of the lives, and a gap",
            Draft(),
            _SAME,
            lives=[
                {"life": 0, "source_checkpoint_id": None},
                {"life": 12, "source_checkpoint_id": "step-1"},
                {"life": 999999999, "source_checkpoint_id": None},
            ],
            lives_files=_LIVES,
        ),
    )


_LIVES: Final[Files] = {
    "0.json": sealed({"life": 0, "source_checkpoint_id": None}),
    "12.json": sealed(b' { "more" : [ ] , "source_checkpoint_id" : "step\\u002d1" , "life" : 12 }\n'),
    "999999999.json": sealed({"source_checkpoint_id": None, "life": 999999999}),
    **dict.fromkeys(("00.json", "01.json", "1000000000.json", "-1.json", "x.json", "1", "1.json.tmp"), b"x"),
}

_DEEPEST: Final = 257
"""The nesting that a body, a block or patches may require."""


def _deep() -> Iterator[tuple[str, NonCanonical]]:
    """Yield cases whose JSON is nested deeper than its value, and cases with unknown members as deep."""
    root = _pairs(_nested(249))
    lines = (
        _line("in-the-root", b"null", b"[[null,[[null,%b]]]]" % root),
        _line("further-down", b"[[null]]", b"[[[0],[[0,%b]]]]" % _pairs(_nested(247))),
    )
    values = {"in-the-root": {"\ud800": _arrays(249)}, "further-down": [[{"\ud800": _arrays(247)}]]}
    records = [record(key, value, 1) for key, value in values.items()]
    yield (
        "deep-patches",
        NonCanonical("values 250 deep, whose patches are 256 deep", Draft(lines=lines), records),
    )
    listed = b'"state":null,"patches":[[null,[[null,%b]]]]' % root
    yield (
        "deep-state",
        NonCanonical(
            "a state 250 deep in a body 257 deep",
            Draft(checkpoint=lambda body: to_json(body).replace(b'"state":{"step":1}', listed)),
            _SAME,
            state=values["in-the-root"],
        ),
    )
    yield (
        "deep-members",
        NonCanonical(
            "unknown members and columns, all 257 deep with what they are in",
            Draft(
                with_cut=True,
                manifest=_deeper,
                checkpoint=_deeper,
                cut=_deeper,
                head=_deeper,
                blocks=_deep_block,
            ),
            _SAME,
        ),
    )


def _arrays(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def _nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def _pairs(value: bytes) -> bytes:
    return b'{"pairs":[[{"str":[55296]},%b]]}' % value


def _with_deep_member(text: bytes) -> bytes:
    return text[:-1] + b',"more":%b}' % _nested(_DEEPEST - 1)


def _deeper(body: Any) -> bytes:
    return _with_deep_member(to_json(body))


def _deep_block(rows: list[Any]) -> list[bytes]:
    return [_with_deep_member(block(rows)[:-1]) + b"\n"]


def _head_of_66_kb(body: Any) -> None:
    body["more"] = "x" * 66_000


def _head_pretty(body: Any) -> bytes:
    return b" " + to_json({"more": [], **body}).replace(b'":', b'" : ') + b" "


def _blocks_of_one(rows: list[Any]) -> list[bytes]:
    return [block([row])[:-2] + b', "more" : [ {} ] } \r\n' for row in rows]


def _packed(plain: bytes, level: int) -> bytes:
    return zstandard.ZstdCompressor(level=level, write_checksum=True).compress(plain)


def _dictionary_0(plain: bytes) -> bytes:
    """A frame whose descriptor states a dictionary id of one byte, which precedes the content size."""
    packed = frame(plain)
    at = 5 if packed[4] & 0x20 else 6
    return b"".join((packed[:4], bytes([packed[4] | 1]), packed[5:at], b"\0", packed[at:]))


def _in_blocks(plain: bytes) -> bytes:
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj(size=len(plain))
    pieces = []
    for start in range(0, len(plain), 20):
        pieces += [
            packer.compress(plain[start : start + 20]),
            packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK),
        ]
    return b"".join((*pieces, packer.flush()))


def _line(key: str, payload: bytes, patches: bytes = b"") -> bytes:
    listed = b',"patches":' + patches if patches else b""
    return b'{"episode":"%b","boundary":1,"schema":1%b,"payload":%b}\n' % (key.encode(), listed, payload)


_PAYLOAD_SPELLINGS: Final[dict[str, tuple[bytes, Any]]] = {
    "spaces": (b' { "a" :\t[ 1 , 2 ]\r} ', {"a": [1, 2]}),
    "escapes": (b'"\\u0041\\/\\u00e9\\ud83d\\ude00\\u000A"', "A/é😀\n"),
    "escaped-keys": (b'{"\\u0061":1,"b\\n":2}', {"a": 1, "b\n": 2}),
    "exponents": (b"[1E5,1e+5,1.0e5,10E-1,-1e0,0e0,-0e0]", [1e5, 1e5, 1e5, 1.0, -1.0, 0.0, -0.0]),
    "long-decimals": (
        b"[0.1000000000000000055511151231257827,9007199254740993.0]",
        [0.1, 9007199254740992.0],
    ),
    "underflow": (b"[1e-400,-1e-400]", [0.0, -0.0]),
    "minus-zero-is-an-integer": (b"-0", 0),
}
_PAYLOAD_LINES: Final = tuple(_line(key, text) for key, (text, _) in _PAYLOAD_SPELLINGS.items())
_PAYLOADS: Final = [record(key, value, 1) for key, (_, value) in _PAYLOAD_SPELLINGS.items()]

_PATCH_SPELLINGS: Final[dict[str, tuple[bytes, bytes, Any]]] = {
    "spaces": (b'[ [ [ "a" ] , [ [ 0 , "nan" ] ] ] ]', b'{ "a" : [ null ] }', {"a": [math.nan]}),
    "escapes": (b'[[["\\u0061"],[[0,"\\u006ean"]]]]', b'{"a":[null]}', {"a": [math.nan]}),
    "in-many": (b'[[[],[[0,"nan"]]],[[],[[1,"inf"]]]]', b"[null,null]", [math.nan, math.inf]),
    "without-entries": (b"[[[],[]]]", b"[1]", [1]),
    "text-of-a-member": (
        b'[[[],[["a",{"pairs":[[{"str":[55296]},",\\"payload\\":"],["k",",\\"payload\\":{"]]}]]]]',
        b'{"a":null}',
        {"a": {"\ud800": ',"payload":', "k": ',"payload":{'}},
    ),
    "bare-text-of-a-member": (
        b'[[[],[["a",{"pairs":[[{"str":[55296]},{"x":1,"payload":2}]]}]]]]',
        b'{"a":null}',
        {"a": {"\ud800": {"x": 1, "payload": 2}}},
    ),
    "through-a-key-that-is-no-unicode": (
        b'[[[],[["a",{"pairs":[[{"str":[55296]},[null]]]}]]],[["a",{"str":[55296]}],[[0,"-inf"]]]]',
        b'{"a":null}',
        {"a": {"\ud800": [-math.inf]}},
    ),
}
_MORE_PATCHES: Final[dict[str, tuple[bytes, bytes, Any]]] = {
    "what-json-could-hold": (
        b'[[[{"str":[97]}],[[0,{"int":"1f"}],[1,{"int":"-1"}],[2,{"str":[98]}],[3,{"str":[]}],'
        b'[4,{"pairs":[["k",1],[{"str":[108]},2]]}],[5,{"pairs":[]}]]]]',
        b'{"a":[null,null,null,null,null,null]}',
        {"a": [31, -1, "b", "", {"k": 1, "l": 2}, {}]},
    ),
    "inner-before-outer": (b'[[[1],[[0,"nan"]]],[[],[[0,"inf"]]]]', b"[null,[null]]", [math.inf, [math.nan]]),
    "root-without-entries": (b"[[null,[]]]", b"[1]", [1]),
    "root-then-within": (
        b'[[null,[[null,{"pairs":[["a",null]]}]]],[[],[["a","nan"]]]]',
        b"null",
        {"a": math.nan},
    ),
    "plain-json-in-pairs": (
        b'[[[],[[0,{"pairs":[["k",{"int":"1f"}],["l","nan"]]}]]]]',
        b"[null]",
        [{"k": {"int": "1f"}, "l": "nan"}],
    ),
    "spaces-and-escapes": (
        b'[\t[\r[ ] ,[ [0 , { "\\u0069nt" : "\\u0031f" } ] ] ] ]',
        b" [ null ]\t",
        [31],
    ),
}
_MORE_PATCH_LINES: Final = tuple(_line(key, text, each) for key, (each, text, _) in _MORE_PATCHES.items())
_MORE_PATCHED: Final = [record(key, value, 1) for key, (_, _, value) in _MORE_PATCHES.items()]

_PATCH_LINES: Final = tuple(_line(key, text, patches) for key, (patches, text, _) in _PATCH_SPELLINGS.items())
_PATCHED: Final = [record(key, value, 1) for key, (_, _, value) in _PATCH_SPELLINGS.items()]

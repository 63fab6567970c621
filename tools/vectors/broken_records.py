"""Invalid records in files whose digests are correct."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tools.vectors.broken import Broken
from tools.vectors.raw import Draft, set_in

_LINE: Final = (
    b'{"episode":"r","boundary":1,"schema":1,"references":["a\\n"],'
    b'"patches":[[[],[["x","nan"]]]],"payload":{"x":null}}\n'
)

# The bytes that are replaced in the line above, and their replacement.
_ENVELOPES: Final[dict[str, tuple[bytes, bytes]]] = {
    "space-in-envelope": (b'"schema":1', b'"schema": 1'),
    "space-before-record": (b'{"episode"', b' {"episode"'),
    "space-before-end": (b"}\n", b"} \n"),
    "crlf": (b"}\n", b"}\r\n"),
    "bom": (b'{"episode"', b'\xef\xbb\xbf{"episode"'),
    "no-line-feed": (b"}\n", b"}"),
    "blank-line-after": (b"}\n", b"}\n\n"),
    "blank-line-before": (b'{"episode"', b'\n{"episode"'),
    "two-lines-in-a-row": (b"}\n", b'}\n{"episode":"r","boundary":1,"schema":1,"payload":1}\n'),
    "line-feed-within": (b'{"x":null}', b'{"x":\nnull}'),
    "order": (b'"episode":"r","boundary":1', b'"boundary":1,"episode":"r"'),
    "member-twice": (b'"schema":1', b'"schema":1,"schema":1'),
    "unknown-member": (b'"schema":1', b'"schema":1,"more":1'),
    "unknown-member-before-payload": (b',"payload"', b',"more":1,"payload"'),
    "episode-escaped": (b'"episode":"r"', b'"episode":"\\u0072"'),
    "episode-number": (b'"episode":"r"', b'"episode":1'),
    "boundary-01": (b'"boundary":1', b'"boundary":01'),
    "boundary-negative": (b'"boundary":1', b'"boundary":-1'),
    "boundary-float": (b'"boundary":1', b'"boundary":1.0'),
    "boundary-exponent": (b'"boundary":1', b'"boundary":1e0'),
    "boundary-true": (b'"boundary":1', b'"boundary":true'),
    "boundary-missing": (b'"boundary":1,', b""),
    "boundary-other-than-index": (b'"boundary":1', b'"boundary":2'),
    "episode-other-than-index": (b'"episode":"r"', b'"episode":"q"'),
    "schema-null": (b'"schema":1', b'"schema":null'),
    "schema-2-63": (b'"schema":1', b'"schema":9223372036854775808'),
    "schema-missing": (b',"schema":1', b""),
    "patches-space-after": (b'"nan"]]]],', b'"nan"]]]] ,'),
    "references-empty": (b'["a\\n"]', b"[]"),
    "references-number": (b'["a\\n"]', b"[1]"),
    "references-string": (b'["a\\n"]', b'"a"'),
    "references-space": (b'["a\\n"]', b'["a", "b"]'),
    "references-escaped-letter": (b'"a\\n"', b'"\\u0061"'),
    "references-escaped-slash": (b'"a\\n"', b'"\\/"'),
    "references-long-escape": (b'"a\\n"', b'"\\u000a"'),
    "references-upper-case-escape": (b'"a\\n"', b'"\\u001F"'),
    "references-raw-control": (b'"a\\n"', b'"\x1f"'),
    "references-surrogate": (b'"a\\n"', b'"\\ud800"'),
    "references-surrogate-pair-escaped": (b'"a\\n"', b'"\\ud83d\\ude00"'),
    "references-not-utf-8": (b'"a\\n"', b'"\xff"'),
    "patches-empty": (b'[[[],[["x","nan"]]]],"payload":{"x":null}', b'[],"payload":{"x":1}'),
    "patches-object": (b"[[[],", b"{[[],"),
    "patches-space-before": (b'"patches":[', b'"patches": ['),
    "patches-unclosed": (b'"nan"]]]],', b'"nan"]]],'),
    "patches-closed-twice": (b'"nan"]]]],', b'"nan"]]]]],'),
    "patches-after-payload": (
        b'"patches":[[[],[["x","nan"]]]],"payload":{"x":null}',
        b'"payload":{"x":null},"patches":[[[],[["x","nan"]]]]',
    ),
    "payload-missing": (b',"payload":{"x":null}', b""),
    "payload-empty": (b':{"x":null}', b":"),
    "member-after-payload": (b'{"x":null}', b'{"x":null},"more":1'),
}

_PATCHES: Final[dict[str, tuple[bytes, bytes]]] = {
    "nowhere": (b'{"x":null}', b'[[["y"],[["x","nan"]]]]'),
    "absent-key": (b'{"x":null}', b'[[[],[["y","nan"]]]]'),
    "to-a-number": (b'{"x":1}', b'[[[],[["x","nan"]]]]'),
    "to-false": (b'{"x":false}', b'[[[],[["x","nan"]]]]'),
    "twice-to-a-place": (b'{"x":null}', b'[[[],[["x","nan"],["x","nan"]]]]'),
    "index-beyond": (b"[null]", b'[[[],[[1,"nan"]]]]'),
    "index-negative": (b"[null]", b'[[[],[[-1,"nan"]]]]'),
    "index-true": (b"[null,null]", b'[[[],[[true,"nan"]]]]'),
    "index-float": (b"[null,null]", b'[[[],[[1.0,"nan"]]]]'),
    "index-2-64": (b"[null]", b'[[[],[[18446744073709551616,"nan"]]]]'),
    "index-string": (b"[null]", b'[[[],[["0","nan"]]]]'),
    "key-number": (b'{"0":null}', b'[[[],[[0,"nan"]]]]'),
    "step-through-a-number": (b"[1]", b'[[[0],[[0,"nan"]]]]'),
    "root-of-a-container": (b"{}", b'[[null,[[null,"nan"]]]]'),
    "root-with-a-key": (b"null", b'[[null,[[0,"nan"]]]]'),
    "null-key-in-a-container": (b"[null]", b'[[[],[[null,"nan"]]]]'),
    "path-string": (b'{"x":{"y":null}}', b'[["x",[["y","nan"]]]]'),
    "three-parts": (b'{"x":null}', b'[[[],[["x","nan"]],1]]'),
    "one-part": (b'{"x":null}', b"[[[]]]"),
    "entry-of-three": (b'{"x":null}', b'[[[],[["x","nan",1]]]]'),
    "entry-object": (b'{"x":null}', b'[[[],[{"x":1,"nan":2}]]]'),
    "patch-object": (b"null", b'[{"a":1,"b":2}]'),
    "entries-object": (b'{"x":null}', b'[[[],{"x":"nan"}]]'),
    "entries-null": (b'{"x":null}', b"[[[],null]]"),
    "path-object": (b'{"x":null}', b'[[{},[["x","nan"]]]]'),
    "step-of-another-kind": (b"[[null]]", b'[[[{"int":"0"}],[[0,"nan"]]]]'),
    "pairs-key-of-another-kind": (b'{"x":null}', b'[[[],[["x",{"pairs":[[{"int":"1"},2]]}]]]]'),
    "pairs-key-null": (b'{"x":null}', b'[[[],[["x",{"pairs":[[null,2]]}]]]]'),
    "value-null": (b'{"x":null}', b'[[[],[["x",null]]]]'),
    "value-number": (b'{"x":null}', b'[[[],[["x",1]]]]'),
    "value-array": (b'{"x":null}', b'[[[],[["x",[]]]]]'),
    "value-unknown": (b'{"x":null}', b'[[[],[["x","NaN"]]]]'),
    "value-plus-inf": (b'{"x":null}', b'[[[],[["x","+inf"]]]]'),
    "value-of-unknown-kind": (b'{"x":null}', b'[[[],[["x",{"bytes":"00"}]]]]'),
    "value-of-two-kinds": (b'{"x":null}', b'[[[],[["x",{"int":"1","str":[]}]]]]'),
    "value-of-no-kind": (b'{"x":null}', b'[[[],[["x",{}]]]]'),
    "int-number": (b'{"x":null}', b'[[[],[["x",{"int":1}]]]]'),
    "int-zero": (b'{"x":null}', b'[[[],[["x",{"int":"0"}]]]]'),
    "int-minus-zero": (b'{"x":null}', b'[[[],[["x",{"int":"-0"}]]]]'),
    "int-empty": (b'{"x":null}', b'[[[],[["x",{"int":""}]]]]'),
    "int-upper-case": (b'{"x":null}', b'[[[],[["x",{"int":"FFFFFFFFFFFFFFFFF"}]]]]'),
    "int-prefix": (b'{"x":null}', b'[[[],[["x",{"int":"0x1ffffffffffffffff"}]]]]'),
    "int-leading-zero": (b'{"x":null}', b'[[[],[["x",{"int":"01ffffffffffffffff"}]]]]'),
    "int-plus": (b'{"x":null}', b'[[[],[["x",{"int":"+1ffffffffffffffff"}]]]]'),
    "int-space": (b'{"x":null}', b'[[[],[["x",{"int":"1ffffffffffffffff\\n"}]]]]'),
    "int-underscore": (b'{"x":null}', b'[[[],[["x",{"int":"1_ffffffffffffffff"}]]]]'),
    "str-string": (b'{"x":null}', b'[[[],[["x",{"str":"x"}]]]]'),
    "str-beyond-unicode": (b'{"x":null}', b'[[[],[["x",{"str":[1114112]}]]]]'),
    "str-negative": (b'{"x":null}', b'[[[],[["x",{"str":[-1]}]]]]'),
    "str-true": (b'{"x":null}', b'[[[],[["x",{"str":[true]}]]]]'),
    "str-float": (b'{"x":null}', b'[[[],[["x",{"str":[97.0]}]]]]'),
    "pairs-key-number": (b'{"x":null}', b'[[[],[["x",{"pairs":[[0,1]]}]]]]'),
    "pairs-key-twice": (b'{"x":null}', b'[[[],[["x",{"pairs":[["k",1],["k",2]]}]]]]'),
    "pairs-key-twice-in-two-forms": (b'{"x":null}', b'[[[],[["x",{"pairs":[["k",1],[{"str":[107]},2]]}]]]]'),
    "pairs-of-three": (b'{"x":null}', b'[[[],[["x",{"pairs":[["k",1,2]]}]]]]'),
    "pairs-object-of-two-letters": (b'{"x":null}', b'[[[],[["x",{"pairs":{"kl":1}}]]]]'),
    "pairs-of-strings": (b'{"x":null}', b'[[[],[["x",{"pairs":["kl"]}]]]]'),
    "pairs-of-objects": (b'{"x":null}', b'[[[],[["x",{"pairs":[{"k":1,"l":2}]}]]]]'),
    "pairs-object": (b'{"x":null}', b'[[[],[["x",{"pairs":{"k":1}}]]]]'),
    "pairs-integer-2-64": (b'{"x":null}', b'[[[],[["x",{"pairs":[["k",18446744073709551616]]}]]]]'),
    "pairs-member-twice-within": (b'{"x":null}', b'[[[],[["x",{"pairs":[["k",{"a":1,"a":2}]]}]]]]'),
    "member-twice": (b'{"x":null}', b'[[[],[["x",{"int":"1ffffffffffffffff","int":"2ffffffffffffffff"}]]]]'),
    "deeper-than-250": (
        b"[" * 249 + b"null" + b"]" * 249,
        b'[[[%b],[[0,{"pairs":[[{"str":[55296]},[]]]}]]]]' % b",".join([b"0"] * 248),
    ),
}

_PAYLOADS: Final = {
    "nan": b"NaN",
    "infinity": b"[-Infinity]",
    "overflow": b"1e400",
    "integer-2-64": b'{"seed":18446744073709551616}',
    "integer-below-64-bits": b"[-9223372036854775809]",
    "leading-zero": b"01",
    "leading-plus": b"+1",
    "no-digit-before-point": b".5",
    "no-digit-after-point": b"[1.]",
    "hex": b"0x10",
    "trailing-comma": b"[1,]",
    "comment": b"[1/**/]",
    "single-quotes": b"['a']",
    "upper-case-true": b"True",
    "member-without-quotes": b"{a:1}",
    "member-twice": b'{"a":1,"b":2,"a":1}',
    "member-twice-by-escape": b'{"a":1,"\\u0061":2}',
    "member-twice-within": b'[[{"k":[{"a":1,"a":2}]}]]',
    "lone-surrogate": b'"\\ud800"',
    "surrogates-in-the-wrong-order": b'"\\ude00\\ud83d"',
    "surrogate-in-key": b'{"\\ud800":1}',
    "surrogate-raw": b'"\xed\xa0\x80"',
    "not-utf-8": b'"\xff"',
    "overlong": b'"\xc0\xaf"',
    "control-in-string": b'"\t"',
    "unknown-escape": b'"\\x41"',
    "unclosed": b'{"a":[1',
    "unclosed-string": b'"a',
    "closed-twice": b"[1]]",
    "two-values": b"1 2",
    "depth-251": b"[" * 251 + b"]" * 251,
    "depth-251-of-objects": b'{"k":' * 250 + b"{}" + b"}" * 250,
    "brackets": b"[" * 3000,
}


_SEEN_BY_VERIFY: Final = {
    *("integer-2-64", "integer-below-64-bits"),
    *("member-twice", "member-twice-by-escape", "member-twice-within"),
    *("pairs-integer-2-64", "pairs-member-twice-within"),
}
"""Faults that the decoder does not report, so that only a verification finds them."""


def _one(line: bytes) -> Draft:
    """One record, which the index names ``r`` at boundary 1."""

    def rename(rows: list[dict[str, object]]) -> None:
        rows[0].update(episode="r", boundary=1)

    return Draft(lines=(line,), rows=rename, checkpoint=set_in("episodes", to=["r"]))


def cases() -> Iterator[tuple[str, Broken]]:
    """Yield the name and the fault of each case."""
    for name, (old, new) in _ENVELOPES.items():
        line = _LINE.replace(old, new, 1)
        assert line != _LINE, name
        yield f"record-{name}", Broken(_one(line), f"the line of a record: {name}")
    for name, (payload, patches) in _PATCHES.items():
        line = b'{"episode":"r","boundary":1,"schema":1,"patches":%b,"payload":%b}\n' % (patches, payload)
        yield f"patch-{name}", Broken(_one(line), f"a patch: {name}", only_verify=name in _SEEN_BY_VERIFY)
    for name, payload in _PAYLOADS.items():
        line = b'{"episode":"r","boundary":1,"schema":1,"payload":%b}\n' % payload
        yield f"payload-{name}", Broken(_one(line), f"a payload: {name}", only_verify=name in _SEEN_BY_VERIFY)
    for name, key in {
        "two-suffixes": "r-a1-a2",
        "only-suffix": "-a1",
        "empty": "",
        "dot-first": ".r",
        "slash": "a/b",
        "not-ascii": "é",
        "line-feed": "r\n",
        "257-bytes": "r" * 257,
        "attempt-ten-digits": "r-a1000000000",
    }.items():
        line = _LINE.replace(b'"r"', b'"%b"' % key.encode().replace(b"\n", b"\\n"))
        yield f"key-{name}", Broken(Draft(lines=(line,)), f"a capture key: {name}")

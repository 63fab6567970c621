"""A search for faults that a JSON decoder does not report: a duplicate member, an integer read as a float."""

from __future__ import annotations

import re
from typing import Final

import orjson

from ckptfmt._values.patches import Json

_TOKEN: Final = re.compile(
    rb'("[^"\\]*(?:\\.[^"\\]*)*")([ \t\r\n]*:)?|[\[\]{}]|(-?[0-9]+)(\.?[0-9]*(?:[eE][+-]?[0-9]+)?)'
)
_OPENING: Final = (b"[", b"{")
_CLOSING: Final = (b"]", b"}")
_SAFE_DIGITS: Final = 18
"""Every integer of at most this many digits fits in 64 bits."""


def strict_json_problem(text: bytes, parsed: Json) -> str | None:
    """Describe what is wrong with the well-formed JSON ``text``, which was decoded to ``parsed``.

    The description names no value; None means that nothing is wrong. If encoding ``parsed`` gives the same
    bytes, there is no fault: a quick check for files that this package wrote. Other texts are scanned.
    """
    try:
        if orjson.dumps(parsed) == text:
            return None
    except TypeError:  # nested deeper than orjson encodes
        pass
    return _scan(text)


def _scan(text: bytes) -> str | None:
    """Scan the tokens. There is no recursion, so any nesting is possible."""
    members: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        string, colon, integer, rest = token.groups()
        if integer is not None:
            if not rest and len(integer) > _SAFE_DIGITS and not -(2**63) <= int(integer[:21]) < 2**64:
                return "holds an integer outside -2^63 to 2^64-1"
        elif string is None:
            if token[0] in _OPENING:
                members.append(set())
            elif token[0] in _CLOSING:
                members.pop()
        elif colon is not None:
            member = orjson.loads(string)
            if member in members[-1]:
                return "has an object that names a member twice"
            members[-1].add(member)
    return None

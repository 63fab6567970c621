"""What a decoder of JSON passes over in silence: a member named twice, an integer that becomes a float."""

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
_SHORT: Final = 18
"""Digits that every integer of 64 bits can have."""


def problem_of(text: bytes, parsed: Json) -> str | None:
    """What is wrong with well-formed JSON ``text``, decoded to ``parsed``: words for an error, no value.

    Encoding gives the same bytes where nothing was passed over: a quick answer for our own files. Other
    spellings are scanned.
    """
    try:
        if orjson.dumps(parsed) == text:
            return None
    except TypeError:  # nested deeper than orjson writes
        pass
    return _scan(text)


def _scan(text: bytes) -> str | None:
    """A scan of tokens, so that nesting costs no stack."""
    members: list[set[str]] = []
    for token in _TOKEN.finditer(text):
        string, colon, integer, rest = token.groups()
        if integer is not None:
            if not rest and len(integer) > _SHORT and not -(2**63) <= int(integer[:21]) < 2**64:
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

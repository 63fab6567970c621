"""Patches: the values that JSON cannot hold, listed beside a payload that has ``null`` in their places.

The patches are a list of ``[container path, [[key or index, value], …]]``, outermost first. A path leads from
the root container (``[]``) by keys and indices; for the payload itself both path and key are ``null``. A
value is one of ``"nan"``, ``"inf"``, ``"-inf"``, ``{"int": hex}``, ``{"str": [code points]}`` and
``{"pairs": [[key, value], …]}``: a dict with a key that JSON cannot hold, in order, whose values may hold
``null`` for later patches to replace. A key that JSON cannot hold, in ``pairs`` or in a path, is written as
``{"str": [code points]}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

from ckptfmt._errors import Damaged

# Exact values and JSON are nested containers of unknown shape. The two names tell them apart for readers.
Exact = Any
Json = Any

_HEX: Final = re.compile(r"-?[1-9a-f][0-9a-f]*")
_FLOATS: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def is_unicode(text: str) -> bool:
    """Whether JSON in UTF-8 can hold ``text``: it has no surrogate, alone or in a pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def key_to_json(key: str | int) -> Json:
    """A key or index as it is written in a path and in ``pairs``."""
    if type(key) is int or is_unicode(str(key)):
        return key
    return string_to_json(str(key))


def string_to_json(text: str) -> Json:
    return {"str": list(map(ord, text))}


def float_to_json(number: float) -> str:
    return "nan" if number != number else "inf" if number > 0 else "-inf"


def integer_to_json(number: int) -> Json:
    return {"int": format(number, "x")}


def pairs_to_json(pairs: dict[str, Exact]) -> orjson.Fragment:
    """The patch of a dict, already encoded: its values may be nested as deep as a payload."""
    return orjson.Fragment(
        b'{"pairs":' + orjson.dumps([[key_to_json(k), v] for k, v in pairs.items()]) + b"}"
    )


def apply(value: Exact, patches: Json) -> Exact:
    """Apply ``patches`` to ``value`` in place.

    Raises:
        Damaged: A patch is malformed, or the place that it names does not hold ``null``.
    """
    try:
        return _apply(value, patches)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError):
        # Every malformed list of patches gives the same error.
        raise _malformed() from None


def _malformed() -> Damaged:
    return Damaged("a record's patches do not fit its payload: it was not written by a correct writer")


def _apply(value: Exact, patches: Iterable[Json]) -> Exact:
    holder = [value]
    for path, entries in map(_two_items, patches):
        container: Exact = holder
        if path is not None:
            if type(path) is not list:
                raise _malformed()
            container = holder[0]
            for step in path:
                container = _lookup(container, step)
        if type(entries) is not list:
            raise _malformed()
        for key, patched in map(_two_items, entries):
            if path is None:
                if key is not None:
                    raise _malformed()
                key = 0
            if _lookup(container, key) is not None:
                raise _malformed()
            _assign(container, _key_from_json(key), _value_from_json(patched))
    return holder[0]


def _two_items(pair: Json) -> tuple[Json, Json]:
    """The two items of an array; a string or an object of two is refused, though Python could unpack it."""
    if type(pair) is not list:
        raise _malformed()
    first, second = pair
    return first, second


def _lookup(container: Exact, step: Json) -> Exact:
    key = _key_from_json(step)
    if type(container) is not (list if type(key) is int else dict) or (type(key) is int and key < 0):
        raise _malformed()
    found: Exact = container[key]  # type: ignore[index]  # an int for a list, a str for a dict, as just checked
    return found


def _assign(container: Exact, key: str | int, value: Exact) -> None:
    container[key] = value


def _key_from_json(key: Json) -> str | int:
    if type(key) is str or type(key) is int:
        return key
    kind, points = _only_member(key)
    if kind != "str":
        raise _malformed()
    return _string_from_json(points)


def _only_member(tagged: Json) -> tuple[str, Json]:
    if type(tagged) is not dict or len(tagged) != 1:
        raise _malformed()
    return next(iter(tagged.items()))


def _string_from_json(points: Json) -> str:
    if type(points) is not list or not set(map(type, points)) <= {int}:
        raise _malformed()
    return "".join(map(chr, points))


def _value_from_json(patched: Json) -> Exact:
    if type(patched) is str:
        return _FLOATS[patched]
    kind, body = _only_member(patched)
    if kind == "int" and _HEX.fullmatch(body):
        return int(body, 16)
    if kind == "str":
        return _string_from_json(body)
    if kind == "pairs":
        if type(body) is not list:
            raise _malformed()
        pairs = {_key_from_json(key): value for key, value in map(_two_items, body)}
        if len(pairs) == len(body) and set(map(type, pairs)) <= {str}:
            return pairs
    raise _malformed()

"""Patches: what JSON cannot hold, listed beside a payload that has ``null`` in its place.

A list of ``[container path, [[key or index, value], …]]``, outermost first. A path leads from the root
container (``[]``) by keys and indices; the payload itself has the container ``null`` and the key ``null``.
A value is one of ``"nan"``, ``"inf"``, ``"-inf"``, ``{"int": hex}``, ``{"str": [code points]}`` and
``{"pairs": [[key, value], …]}``: a dict with a key that JSON cannot hold, in order, whose values may hold
``null`` for later patches to replace. A key that JSON cannot hold, in ``pairs`` or in a path, stands as
``{"str": [code points]}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

from ckptfmt._errors import Damaged

# Exact values are nested containers of unknown shape: these names say which kind of unknown is meant.
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


def key_form(key: str | int) -> Json:
    """A key or index as it stands in a path and in ``pairs``."""
    if type(key) is int or is_unicode(str(key)):
        return key
    return string_form(str(key))


def string_form(text: str) -> Json:
    return {"str": list(map(ord, text))}


def float_form(number: float) -> str:
    return "nan" if number != number else "inf" if number > 0 else "-inf"


def integer_form(number: int) -> Json:
    return {"int": format(number, "x")}


def pairs_form(pairs: dict[str, Exact]) -> orjson.Fragment:
    """The form of a dict, already encoded: its values may be nested as deep as a payload of their own."""
    return orjson.Fragment(b'{"pairs":' + orjson.dumps([[key_form(k), v] for k, v in pairs.items()]) + b"}")


def apply(value: Exact, patches: Json) -> Exact:
    """``value`` with its ``patches`` put in place (in the same containers).

    Raises :class:`Damaged` when a patch is malformed or does not lead to a ``null``.
    """
    try:
        return _apply(value, patches)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError):
        # One answer for every way in which a list of patches can be malformed.
        raise _damage() from None


def _damage() -> Damaged:
    return Damaged("a record's patches do not fit its payload: it was not written by a correct writer")


def _apply(value: Exact, patches: Iterable[Json]) -> Exact:
    holder = [value]
    for path, entries in map(_pair, patches):
        container: Exact = holder
        if path is not None:
            if type(path) is not list:
                raise _damage()
            container = holder[0]
            for step in path:
                container = _at(container, step)
        if type(entries) is not list:
            raise _damage()
        for key, form in map(_pair, entries):
            if path is None:
                if key is not None:
                    raise _damage()
                key = 0
            if _at(container, key) is not None:
                raise _damage()
            _put(container, _key(key), _value(form))
    return holder[0]


def _pair(form: Json) -> tuple[Json, Json]:
    """An array of two; a string or an object of two would unpack as well."""
    if type(form) is not list:
        raise _damage()
    first, second = form
    return first, second


def _at(container: Exact, step: Json) -> Exact:
    key = _key(step)
    if type(container) is not (list if type(key) is int else dict) or (type(key) is int and key < 0):
        raise _damage()
    found: Exact = container[key]  # type: ignore[index]  # an int for a list, a str for a dict, as just checked
    return found


def _put(container: Exact, key: str | int, value: Exact) -> None:
    container[key] = value


def _key(form: Json) -> str | int:
    if type(form) is str or type(form) is int:
        return form
    kind, points = _only_member(form)
    if kind != "str":
        raise _damage()
    return _string(points)


def _only_member(form: Json) -> tuple[str, Json]:
    if type(form) is not dict or len(form) != 1:
        raise _damage()
    return next(iter(form.items()))


def _string(points: Json) -> str:
    if type(points) is not list or not set(map(type, points)) <= {int}:
        raise _damage()
    return "".join(map(chr, points))


def _value(form: Json) -> Exact:
    if type(form) is str:
        return _FLOATS[form]
    kind, body = _only_member(form)
    if kind == "int" and _HEX.fullmatch(body):
        return int(body, 16)
    if kind == "str":
        return _string(body)
    if kind == "pairs":
        if type(body) is not list:
            raise _damage()
        pairs = {_key(key): value for key, value in map(_pair, body)}
        if len(pairs) == len(body) and set(map(type, pairs)) <= {str}:
            return pairs
    raise _damage()

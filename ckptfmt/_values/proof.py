"""The proof of exactness as one step with the encoding. Compiled by Cython where there is a C compiler.

The same source runs as plain Python; ``proof.pxd`` gives the compiled form its C types. Compiled, a function
of this module runs from its first check to the end of ``orjson.dumps`` without giving up the GIL, so the
value itself is checked and encoded. In plain Python another thread could change it in between, so there a
copy is checked and encoded (`plaincopy`).

Two passes over the same rules. The quick one (`scan`, or `plaincopy`) leaves keys, integers and strings to
orjson, which refuses what it cannot hold. Anything that it does not like goes to `Walk`, which knows the path
of every container, collects the patches and names what is not exact.
"""

from __future__ import annotations

import gc
from enum import Enum
from math import isfinite
from sys import maxsize
from types import NoneType
from typing import Any, Final, NamedTuple

import orjson

from ckptfmt._errors import InexactValue, LimitExceeded
from ckptfmt._limits import Limits
from ckptfmt._values.patches import (
    Exact,
    Json,
    float_form,
    integer_form,
    is_unicode,
    key_form,
    pairs_form,
    string_form,
)
from ckptfmt._values.paths import path_text
from ckptfmt._values.plain_copy import NOT_PLAIN, plain_copy
from ckptfmt._values.size_estimate import estimate

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is the compiled form."""

if COMPILED:
    from ckptfmt._values.scan import LARGE, MANY, PLAIN, count_sound, judge

_CONTAINERS: Final = frozenset({list, dict})
_LEFT_TO_ORJSON: Final = frozenset({str, int, bool, NoneType})
_MAY_BE_ODD: Final = frozenset({str, int})
_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**64 - 1
_dumps: Final = orjson.dumps


def encode(
    value: Exact, episode: str | None, limits: Limits, depth: int, size: int | None
) -> tuple[bytes, bytes] | None:
    """The JSON of an exact value, and of its patches (empty when it needs none); None when it would have more
    than about ``size`` bytes.

    Raises `InexactValue` or `LimitExceeded`.
    """
    was_enabled = gc.isenabled()
    try:
        # Compiled, nothing comes between this and the end but a finalizer, which could give up the GIL.
        if was_enabled:  # else somebody else pauses it, and will end that
            gc.disable()
        if COMPILED:
            found = judge(value, depth, limits.record_values, maxsize if size is None else size)
            if found == PLAIN:
                return _dumps(value), b""
            if found == LARGE:
                return None
            if found == MANY:
                raise too_many(episode, limits)
        else:
            if size is not None and estimate(value, size) >= size:
                return None
            proved = plain_copy(value, limits, depth)
            if proved is not NOT_PLAIN:
                return _dumps(proved), b""
        walk = Walk(episode, limits, depth, False)
        return _dumps(walk.run(value)), walk.encoded_patches()
    except TypeError:  # a key, an integer or a string that orjson cannot hold
        walk = Walk(episode, limits, depth, True)
        return _dumps(walk.run(value)), walk.encoded_patches()
    finally:
        if was_enabled:
            gc.enable()


def _sort(value: Any) -> int:
    """0 for a value that orjson writes exactly or refuses, 1 for a container, -1 for anything else."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return 0
    if kind is float:
        number = value
        return 0 if number - number == 0.0 else -1  # NaN and the infinities differ from themselves so
    return 1 if kind is dict or kind is list else -1


class _Pairs(NamedTuple):
    """The patch of a dict with a key that JSON cannot hold: its copy, whose values may still become null."""

    pairs: dict[str, Exact]


class _Node:
    """One container, and how it is reached."""

    def __init__(self, container: Any, parent: _Node | None, key: Any, depth: int) -> None:
        self.container = container
        self.parent = parent
        self.key: str | int | None = key
        self.depth = depth

    def path(self) -> list[str | int]:
        steps: list[str | int] = []
        node: _Node | None = self
        while node is not None and node.key is not None:
            steps.append(node.key)
            node = node.parent
        return steps[::-1]


class Walk:
    """The careful pass: breadth first, so that patches come outermost first and in the order of the document.

    ``strings_and_integers``: also look for strings and integers that orjson cannot hold (it refused once).
    They are replaced by null, in copies of the containers round them.
    """

    def __init__(self, episode: str | None, limits: Limits, depth: int, strings_and_integers: bool) -> None:
        self._episode = episode
        self._limits = limits
        self._depth = depth
        self._thorough = strings_and_integers
        self._total = 0
        self._scans_left = limits.record_values if COMPILED else 0
        self._copying = strings_and_integers or not COMPILED
        self._nodes: list[_Node] = []
        self._entries: list[tuple[str | int | None, Json]] = []  # of the container that is being checked
        self._patches: list[tuple[_Node | None, list[tuple[str | int | None, Json]]]] = []

    def run(self, value: Exact) -> Exact:
        holder = [value]
        entries: list[tuple[str | int | None, Json]] = []
        self._visit(holder, 0, None, value, entries)
        if entries:
            self._patches.append((None, [(None, form) for _, form in entries]))
        for node in self._nodes:  # grows while it is walked
            self._add_to_total(len(node.container))
            self._check(node)
        return holder[0]

    def _add_to_total(self, count: int) -> None:
        self._total += count
        if self._total > self._limits.record_values:
            raise too_many(self._episode, self._limits)

    def _check(self, node: _Node) -> None:
        container = node.container
        entries = self._entries
        # Two loops, not one over (key, value) pairs: the compiled form runs them without making pairs.
        if type(container) is dict:
            pairs: dict[Any, Exact] = container
            for key, value in pairs.items():
                if not self._passes(value, node.depth):
                    self._visit(container, key, node, value, entries)
        elif COMPILED or self._thorough or not _LEFT_TO_ORJSON.issuperset(map(type, container)):
            values: list[Exact] = container
            for place in range(len(values)):
                value = values[place]
                if not self._passes(value, node.depth):
                    self._visit(container, place, node, value, entries)
        if entries:
            self._patches.append((node, entries))
            self._entries = []

    def _passes(self, value: Exact, depth: int) -> bool:
        """Whether a value in a container at this depth needs no further look: the common case."""
        sort = _sort(value)
        if sort == 0 and not (self._thorough and type(value) in _MAY_BE_ODD):
            return True
        if sort < 0 or self._scans_left <= 0:
            return False
        # A whole container in one step, as nearly all are sound where one value is odd. What is looked at
        # again further down is bounded: an object shared many times must not explode.
        count = count_sound(value, self._depth - depth, self._scans_left)
        if count < 0:
            self._scans_left += count
            return False
        self._add_to_total(count)
        return True

    def _visit(
        self,
        container: Any,
        key: Any,
        parent: _Node | None,
        value: Exact,
        entries: list[tuple[str | int | None, Json]],
    ) -> None:
        """Check one value; queue a container, and put null for what needs a patch."""
        kind = type(value)
        if kind in _CONTAINERS:
            copied = value
            if self._copying:
                copied = container[key] = kind(value)
            depth = 1 if parent is None else parent.depth + 1
            node = _Node(copied, parent, None if parent is None else key, depth)
            self._nodes.append(node)
            if depth > self._depth:
                raise self._inexact(node.path(), f"it is nested deeper than {self._depth} containers")
            if self._thorough and kind is dict and not self._keys_fit(copied, node):
                container[key] = None
                entries.append((key, _Pairs(copied)))
            return
        if kind is float:
            form: Json = None if isfinite(value) else float_form(value)
        elif kind is str:
            form = None if not self._thorough or is_unicode(value) else string_form(value)
        elif kind is int:
            form = None if _INT_MIN <= value <= _INT_MAX else integer_form(value)
        elif kind is bool or value is None:
            return
        else:
            steps = [] if parent is None else [*parent.path(), key]
            raise self._inexact(steps, f"a {_type_name(kind)} would not read back as one{_hint(kind)}")
        if form is not None:
            if self._copying:  # orjson writes null for a float that it cannot hold, so an original may stay
                container[key] = None
            entries.append((key, form))

    def _keys_fit(self, copied: dict[Any, Exact], node: _Node) -> bool:
        kinds = set(map(type, copied))
        if not kinds <= {str}:
            names = ", ".join(sorted(_type_name(kind) for kind in kinds - {str}))
            raise self._inexact(
                node.path(), f"a dict key is of type {names}; keys are str (ckptfmt.plain makes them so)"
            )
        return is_unicode("".join(copied))

    def _inexact(self, steps: list[str | int], reason: str) -> InexactValue:
        path = path_text(steps)
        return InexactValue(f"{where(self._episode)}{path}: {reason}", path=path, episode=self._episode)

    def encoded_patches(self) -> bytes:
        if not self._patches:
            return b""
        return orjson.dumps(
            [
                [
                    None if node is None else list(map(key_form, node.path())),
                    [
                        [
                            key if key is None else key_form(key),
                            pairs_form(form.pairs) if isinstance(form, _Pairs) else form,
                        ]
                        for key, form in entries
                    ],
                ]
                for node, entries in self._patches
            ]
        )


def where(episode: str | None) -> str:
    return "" if episode is None else f"episode {episode}: "


def too_many(episode: str | None, limits: Limits) -> LimitExceeded:
    return LimitExceeded(
        f"{where(episode)}the payload has more than {limits.record_values} values; "
        "does it hold the same object many times?"
    )


def _type_name(kind: type) -> str:
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return name[:80]


def _hint(kind: type) -> str:
    if kind in _HINTS:
        return f"; {_HINTS[kind]}"
    if issubclass(kind, Enum):
        return "; save its .value"
    if hasattr(kind, "item") and hasattr(kind, "tolist"):
        return "; save .item() or .tolist()"
    return "; save None, bool, int, float, str, list or dict, of exactly these types, or ckptfmt.plain(value)"


_HINTS: Final[dict[type, str]] = {
    tuple: "save a list",
    set: "save a sorted list",
    frozenset: "save a sorted list",
    bytes: "save text, for example base64",
    bytearray: "save text, for example base64",
}

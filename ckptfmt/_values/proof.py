"""The check that a value is exact, and its encoding, in one step.

Cython compiles this module where there is a C compiler; ``proof.pxd`` gives the compiled form its C types.
Otherwise the same source runs as plain Python. In the compiled form a function of this module runs from its
first check to the end of ``orjson.dumps`` without releasing the GIL, so the value itself is checked and
encoded. In plain Python another thread could change the value between the two, so a copy is checked and
encoded (`plain_copy`).

There are two passes over the same rules. The quick pass (`scan`, or `plain_copy`) leaves keys, integers and
strings to orjson, which refuses those that it cannot encode exactly. A value that the quick pass does not
accept goes to `PatchCollector`, which keeps the path of every container, collects the patches, and reports
what is not exact.
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
    float_to_json,
    integer_to_json,
    is_unicode,
    key_to_json,
    pairs_to_json,
    string_to_json,
)
from ckptfmt._values.paths import path_text
from ckptfmt._values.plain_copy import NOT_PLAIN, plain_copy
from ckptfmt._values.size_estimate import estimate

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is the compiled form."""

if COMPILED:
    from ckptfmt._values.scan import LARGE, PLAIN, TOO_MANY, count_plain, quick_check

_CONTAINERS: Final = frozenset({list, dict})
_LEFT_TO_ORJSON: Final = frozenset({str, int, bool, NoneType})
_MAY_NEED_PATCH: Final = frozenset({str, int})
_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**64 - 1
_dumps: Final = orjson.dumps


def encode(
    value: Exact, episode: str | None, limits: Limits, depth: int, size: int | None
) -> tuple[bytes, bytes] | None:
    """Encode an exact value.

    Returns the JSON of the value and the JSON of its patches (empty when there are none), or None when the
    text would exceed about ``size`` bytes. Raises `InexactValue` or `LimitExceeded`.
    """
    was_enabled = gc.isenabled()
    try:
        # In the compiled form only a finalizer could release the GIL between this line and the end.
        if was_enabled:  # otherwise other code has paused the collector and will enable it
            gc.disable()
        if COMPILED:
            found = quick_check(value, depth, limits.record_values, maxsize if size is None else size)
            if found == PLAIN:
                return _dumps(value), b""
            if found == LARGE:
                return None
            if found == TOO_MANY:
                raise too_many_values(episode, limits)
        else:
            if size is not None and estimate(value, size) >= size:
                return None
            proved = plain_copy(value, limits, depth)
            if proved is not NOT_PLAIN:
                return _dumps(proved), b""
        collector = PatchCollector(episode, limits, depth, False)
        return _dumps(collector.run(value)), collector.encoded_patches()
    except TypeError:  # a key, an integer or a string that orjson cannot hold
        collector = PatchCollector(episode, limits, depth, True)
        return _dumps(collector.run(value)), collector.encoded_patches()
    finally:
        if was_enabled:
            gc.enable()


def _classify(value: Any) -> int:
    """0 for a value that orjson encodes exactly or refuses, 1 for a container, -1 for anything else."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return 0
    if kind is float:
        number = value
        return 0 if number - number == 0.0 else -1  # for NaN and the infinities the difference is NaN
    return 1 if kind is dict or kind is list else -1


class _PairsPatch(NamedTuple):
    """The patch of a dict with a key that JSON cannot hold: a copy in which later patches may put null."""

    pairs: dict[str, Exact]


class _ContainerNode:
    """One container, and its place in the container that holds it."""

    def __init__(self, container: Any, parent: _ContainerNode | None, key: Any, depth: int) -> None:
        self.container = container
        self.parent = parent
        self.key: str | int | None = key
        self.depth = depth

    def path(self) -> list[str | int]:
        steps: list[str | int] = []
        node: _ContainerNode | None = self
        while node is not None and node.key is not None:
            steps.append(node.key)
            node = node.parent
        return steps[::-1]


class PatchCollector:
    """The pass that collects the patches of a value.

    It runs breadth first, so that the patches are listed outermost first and in document order.

    If ``thorough`` is set, orjson has refused the value once: keys, strings and integers that it cannot
    encode are searched as well. They are replaced by null, in copies of the containers around them.
    """

    def __init__(self, episode: str | None, limits: Limits, depth: int, thorough: bool) -> None:
        self._episode = episode
        self._limits = limits
        self._depth = depth
        self._thorough = thorough
        self._total = 0
        self._scan_budget = limits.record_values if COMPILED else 0
        self._copying = thorough or not COMPILED
        self._nodes: list[_ContainerNode] = []
        self._entries: list[tuple[str | int | None, Json]] = []  # of the container that is being checked
        self._patches: list[tuple[_ContainerNode | None, list[tuple[str | int | None, Json]]]] = []

    def run(self, value: Exact) -> Exact:
        holder = [value]
        entries: list[tuple[str | int | None, Json]] = []
        self._check_value(holder, 0, None, value, entries)
        if entries:
            self._patches.append((None, [(None, patch) for _, patch in entries]))
        for node in self._nodes:  # the list grows during the loop
            self._count_values(len(node.container))
            self._check_container(node)
        return holder[0]

    def _count_values(self, count: int) -> None:
        self._total += count
        if self._total > self._limits.record_values:
            raise too_many_values(self._episode, self._limits)

    def _check_container(self, node: _ContainerNode) -> None:
        container = node.container
        entries = self._entries
        # Two loops instead of one over (key, value) pairs: the compiled form then creates no tuples.
        if type(container) is dict:
            pairs: dict[Any, Exact] = container
            for key, value in pairs.items():
                if not self._is_plain(value, node.depth):
                    self._check_value(container, key, node, value, entries)
        elif COMPILED or self._thorough or not _LEFT_TO_ORJSON.issuperset(map(type, container)):
            values: list[Exact] = container
            for place in range(len(values)):
                value = values[place]
                if not self._is_plain(value, node.depth):
                    self._check_value(container, place, node, value, entries)
        if entries:
            self._patches.append((node, entries))
            self._entries = []

    def _is_plain(self, value: Exact, depth: int) -> bool:
        """Whether a value in a container at this depth needs no detailed check: the common case."""
        category = _classify(value)
        if category == 0 and not (self._thorough and type(value) in _MAY_NEED_PATCH):
            return True
        if category < 0 or self._scan_budget <= 0:
            return False
        # A whole container is checked in one step, as most containers around an unusual value are plain. The
        # budget bounds how often values are checked again further down: an object may be shared many times.
        count = count_plain(value, self._depth - depth, self._scan_budget)
        if count < 0:
            self._scan_budget += count
            return False
        self._count_values(count)
        return True

    def _check_value(
        self,
        container: Any,
        key: Any,
        parent: _ContainerNode | None,
        value: Exact,
        entries: list[tuple[str | int | None, Json]],
    ) -> None:
        """Check one value: queue a container, and replace a value that needs a patch by null."""
        kind = type(value)
        if kind in _CONTAINERS:
            copied = value
            if self._copying:
                copied = container[key] = kind(value)
            depth = 1 if parent is None else parent.depth + 1
            node = _ContainerNode(copied, parent, None if parent is None else key, depth)
            self._nodes.append(node)
            if depth > self._depth:
                raise self._inexact(node.path(), f"it is nested deeper than {self._depth} containers")
            if self._thorough and kind is dict and not self._json_can_hold_keys(copied, node):
                container[key] = None
                entries.append((key, _PairsPatch(copied)))
            return
        if kind is float:
            patch: Json = None if isfinite(value) else float_to_json(value)
        elif kind is str:
            patch = None if not self._thorough or is_unicode(value) else string_to_json(value)
        elif kind is int:
            patch = None if _INT_MIN <= value <= _INT_MAX else integer_to_json(value)
        elif kind is bool or value is None:
            return
        else:
            steps = [] if parent is None else [*parent.path(), key]
            raise self._inexact(steps, f"a {_type_name(kind)} would not read back as one{_hint(kind)}")
        if patch is not None:
            if self._copying:  # otherwise it is a float that is not finite, and orjson writes null for it
                container[key] = None
            entries.append((key, patch))

    def _json_can_hold_keys(self, copied: dict[Any, Exact], node: _ContainerNode) -> bool:
        """Whether JSON can hold all keys of a dict. Raises `InexactValue` for a key that is not a str."""
        kinds = set(map(type, copied))
        if not kinds <= {str}:
            names = ", ".join(sorted(_type_name(kind) for kind in kinds - {str}))
            raise self._inexact(
                node.path(), f"a dict key is of type {names}; keys must be str (ckptfmt.plain converts them)"
            )
        return is_unicode("".join(copied))

    def _inexact(self, steps: list[str | int], reason: str) -> InexactValue:
        path = path_text(steps)
        prefix = episode_prefix(self._episode)
        return InexactValue(f"{prefix}{path}: {reason}", path=path, episode=self._episode)

    def encoded_patches(self) -> bytes:
        """The JSON of the collected patches; empty when there are none."""
        if not self._patches:
            return b""
        return orjson.dumps(
            [
                [
                    None if node is None else list(map(key_to_json, node.path())),
                    [
                        [
                            key if key is None else key_to_json(key),
                            pairs_to_json(patch.pairs) if isinstance(patch, _PairsPatch) else patch,
                        ]
                        for key, patch in entries
                    ],
                ]
                for node, entries in self._patches
            ]
        )


def episode_prefix(episode: str | None) -> str:
    """The beginning of an error message about an episode; empty when there is none."""
    return "" if episode is None else f"episode {episode}: "


def too_many_values(episode: str | None, limits: Limits) -> LimitExceeded:
    """The error for a payload with more values than the limit allows."""
    return LimitExceeded(
        f"{episode_prefix(episode)}the payload has more than {limits.record_values} values; "
        "it may hold the same object many times"
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

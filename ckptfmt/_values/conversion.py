"""Making a value exact on purpose, by stated rules.

A writer refuses what would not read back as it was. Whoever knows that a tuple may come back as a list says
so with :func:`plain`; nothing in this package calls it.
"""

from __future__ import annotations

import base64
import dataclasses
import sys
from collections import deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from types import NoneType
from typing import Any, Final, NamedTuple
from uuid import UUID

from ckptfmt._errors import InexactValue, LimitExceeded
from ckptfmt._limits import DEFAULT_LIMITS, FormatLimits, Limits
from ckptfmt._values.json_payload import JsonPayload
from ckptfmt._values.patches import Exact
from ckptfmt._values.paths import path_text

_SCALARS: Final = frozenset({NoneType, bool, int, float, str})
_MOST_UNWRAPPINGS: Final = 20
"""An Enum may hold a dataclass that holds …; a value that never becomes plain must not go on for ever."""


def plain(value: object, *, limits: Limits = DEFAULT_LIMITS) -> Exact:
    """``value`` made of None, bool, int, float, str, list and dict only, of exactly these types.

    What is exact already stays as it is; lists and dicts are new ones, so the result shares nothing with
    ``value`` that can change. The first rule that fits is taken:

    ===================================================  ==================================================
    value                                                becomes
    ===================================================  ==================================================
    None, bool, int, float, str (NaN, any integer, …)    itself
    Enum (IntEnum, StrEnum, Flag too)                    its ``.value``, by these rules
    subclass of str, int, float                          the str, int or float
    bytes, bytearray, memoryview                         base64 text (standard alphabet, padded)
    datetime, date, time                                 ``isoformat()``
    UUID, Path, Decimal                                  ``str()``
    pydantic model                                       ``model_dump()``, by these rules
    dataclass instance, namedtuple                       dict, field name → value, in the order of the fields
    Mapping (and subclass of dict)                       dict, in its order
    tuple, list and subclasses, deque                    list
    set, frozenset                                       list, sorted as below
    numpy scalar or array, and what has the same face    ``tolist()`` (of a scalar: ``item()``), by these
    (``dtype`` and ``tolist``: torch, jax, pandas)       rules
    ===================================================  ==================================================

    Sets are sorted after their members were made plain: null, booleans, numbers by value (NaN last), strings
    by code points, then lists and dicts by their JSON text.

    Keys: a str stays; an Enum is its value's key; None, True and False are ``"null"``, ``"true"`` and
    ``"false"``; an int or float (of numpy too) is its ``repr``; datetime, date, time, UUID, Path and Decimal
    are as above.

    Raises :class:`InexactValue` with the path of what no rule covers (a function, a complex number, a
    timedelta, a tuple as a key …), of two keys that become the same, and of what is nested deeper than 250
    containers (also a value that contains itself); :class:`LimitExceeded` for more than
    ``limits.record_values`` values.
    """
    return _Pass(limits).run(value)


class _Node(NamedTuple):
    """One container of the result: what it was made of is still to be put into it."""

    made: Any
    items: Any
    depth: int
    parent: _Node | None
    step: str | int


class _Pass:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._nodes: deque[_Node] = deque()
        self._to_sort: list[list[Exact]] = []
        self._values = 0

    def run(self, value: object) -> Exact:
        result = self._make(value, None, 0)
        while self._nodes:
            node = self._nodes.popleft()
            if type(node.made) is dict:
                self._fill_dict(node)
            elif _SCALARS.issuperset(map(type, node.items)):  # nothing to convert: token ids, log-probs
                self._count(len(node.items))
                node.made.extend(node.items)
            else:
                node.made.extend(self._make(each, node, place) for place, each in enumerate(node.items))
        for made in reversed(self._to_sort):  # innermost first
            made.sort(key=_order)
        return result

    def _fill_dict(self, node: _Node) -> None:
        for key, each in node.items:
            text = key if type(key) is str else self._key(key, node)
            if text in node.made:
                raise _inexact(node, text, "two keys of this dict become the same; rename one")
            node.made[text] = self._make(each, node, text)

    def _make(self, value: Any, parent: _Node | None, step: str | int) -> Exact:
        """The plain form of ``value``; a container is empty yet, and queued."""
        self._count(1)
        unwrapped, is_set = value, False
        for _ in range(_MOST_UNWRAPPINGS):
            kind = type(unwrapped)
            if kind in _SCALARS:
                return unwrapped
            if kind is dict:
                return self._queue({}, list(unwrapped.items()), parent, step)
            if kind is list:
                made: list[Exact] = []
                if is_set:
                    self._to_sort.append(made)
                return self._queue(made, unwrapped.copy(), parent, step)
            rule = _rule_for(unwrapped)
            if rule is None:
                break
            is_set = isinstance(unwrapped, set | frozenset)
            try:
                unwrapped = rule(unwrapped)
            except Exception as error:  # of a model's own code, or a field that was never set
                reason = f"a {_type_name(unwrapped)} failed to become plain ({type(error).__name__})"
                raise _inexact(parent, step, reason) from error
        raise _inexact(parent, step, f"no rule makes a {_type_name(value)} exact; convert it yourself")

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > self._limits.record_values:
            raise LimitExceeded(
                f"the value has more than {self._limits.record_values} values; "
                "does it hold the same object many times?"
            )

    def _queue(self, made: Exact, items: Any, parent: _Node | None, step: str | int) -> Exact:
        depth = 1 if parent is None else parent.depth + 1
        if depth > FormatLimits.DEPTH:
            raise _inexact(
                parent,
                step,
                f"it is nested deeper than {FormatLimits.DEPTH} containers; does it contain itself?",
            )
        self._nodes.append(_Node(made, items, depth, parent, step))
        return made

    def _key(self, key: object, node: _Node) -> str:
        name = _type_name(key)
        while isinstance(key, Enum):
            key = key.value
        if _is_numpy_like(key):
            key = _to_list(key)
        if key is None or isinstance(key, bool):
            return {None: "null", True: "true", False: "false"}[key]
        if isinstance(key, str):
            return str.__str__(key)
        if isinstance(key, datetime | date | time):
            return key.isoformat()
        if isinstance(key, UUID | PurePath | Decimal):
            return str(key)
        try:
            if isinstance(key, int):
                return int.__repr__(key)
            if isinstance(key, float):
                return float.__repr__(key)
        except ValueError:  # more digits than Python writes
            pass
        raise _inexact(node.parent, node.step, f"no rule makes a str of a key of type {name}")


def _rule_for(value: object) -> Callable[[Any], object] | None:
    for kinds, rule in _RULES:
        if isinstance(value, kinds):
            return rule
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return _dump_model
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields
    if isinstance(value, tuple):
        return _fields_of_tuple if hasattr(type(value), "_fields") else list
    if isinstance(value, Mapping):
        return dict
    if isinstance(value, list | deque | set | frozenset):
        return list
    return _to_list if _is_numpy_like(value) else None


def _is_numpy_like(value: object) -> bool:
    return (
        hasattr(value, "dtype") and callable(getattr(value, "tolist", None)) and not isinstance(value, type)
    )


def _dump_model(value: Any) -> object:
    return value.model_dump()


def _fields(value: Any) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _fields_of_tuple(value: Any) -> dict[str, object]:
    return dict(zip(value._fields, value, strict=True))


def _to_list(value: Any) -> object:
    return value.tolist()


def _to_text(value: object) -> str:
    return str(value)


def _isoformat(value: datetime | date | time) -> str:
    return value.isoformat()


def _base64(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(bytes(value)).decode("ascii")


def _value_of(value: Enum) -> object:
    return value.value


# The methods of the type itself: a subclass may say something else of itself.
_RULES: Final[tuple[tuple[Any, Callable[[Any], object]], ...]] = (
    (Enum, _value_of),
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    ((bytes, bytearray, memoryview), _base64),
    ((datetime, date, time), _isoformat),
    ((UUID, PurePath, Decimal), _to_text),
)


def _order(value: Exact) -> tuple[Any, ...]:
    """The place of a plain value in a sorted set."""
    kind = type(value)
    if kind is bool:
        return (1, value)
    if kind is int or kind is float:
        return (3,) if value != value else (2, value, kind.__name__)
    if kind is str:
        return (4, value)
    if value is None:
        return (0,)
    encoded = JsonPayload.of(value)
    return (5 if kind is list else 6, encoded.data, encoded.patch_data)


def _inexact(parent: _Node | None, step: str | int, reason: str) -> InexactValue:
    steps: list[str | int] = [] if parent is None else [step]
    node = parent
    while node is not None and node.parent is not None:
        steps.append(node.step)
        node = node.parent
    path = path_text(reversed(steps))
    return InexactValue(f"{path}: {reason}", path=path)


def _type_name(value: object) -> str:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return name[:80]

"""The explicit conversion of a value to an exact value, by documented rules.

A writer refuses a value that would read back as something else. A caller for whom a list is as good as a
tuple calls :func:`plain` first. Nothing in this package calls it.
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
_MAX_UNWRAPPINGS: Final = 20
"""The most rules that are applied to one value in turn (an Enum may hold a dataclass, for example). The bound
stops a conversion that never ends."""


def plain(value: object, *, limits: Limits = DEFAULT_LIMITS) -> Exact:
    """Convert ``value`` to None, bool, int, float, str, list and dict, of exactly these types.

    Exact scalars stay as they are. Lists and dicts are copied, so the result shares no mutable object with
    ``value``. The first rule that matches is applied:

    ===================================================  ==================================================
    value                                                becomes
    ===================================================  ==================================================
    None, bool, int, float, str (NaN, any integer, …)    itself
    Enum (also IntEnum, StrEnum, Flag)                   its ``.value``, by these rules
    subclass of str, int, float                          the str, int or float
    bytes, bytearray, memoryview                         base64 text (standard alphabet, padded)
    datetime, date, time                                 ``isoformat()``
    UUID, Path, Decimal                                  ``str()``
    pydantic model                                       ``model_dump()``, by these rules
    dataclass instance, namedtuple                       dict, field name → value, in the order of the fields
    Mapping (and subclass of dict)                       dict, in its order
    tuple, list and subclasses, deque                    list
    set, frozenset                                       list, sorted as below
    numpy scalar or array, and objects with the same     ``tolist()``, by these rules
    attributes (``dtype``, ``tolist``: torch, jax, …)
    ===================================================  ==================================================

    The members of a set are converted and then sorted: null, booleans, numbers by value (NaN last), strings
    by code points, then lists and dicts by their JSON text.

    Keys are converted to str: a str stays; an Enum is converted like its value; None, True and False become
    ``"null"``, ``"true"`` and ``"false"``; an int or float (also of numpy) becomes its ``repr``; datetime,
    date, time, UUID, Path and Decimal are converted as above.

    Args:
        value: Any object.
        limits: ``limits.record_values`` bounds the number of values.

    Returns:
        The exact value.

    Raises:
        InexactValue: No rule matches a value or a key (a function, a complex number, a timedelta, a tuple as
            a key), two keys of a dict become equal, or the value is nested deeper than 250 containers (a
            value that contains itself, for example). The error names the path.
        LimitExceeded: There are more than ``limits.record_values`` values.

    Example:
        ::

            >>> ckptfmt.plain({"step": (1, 2), "at": datetime.date(2026, 1, 2)})
            {'step': [1, 2], 'at': '2026-01-02'}
    """
    return _Conversion(limits).run(value)


class _PendingContainer(NamedTuple):
    """A container of the result that is not filled yet, and the items that are converted into it."""

    result: Any
    items: Any
    depth: int
    parent: _PendingContainer | None
    step: str | int


class _Conversion:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pending: deque[_PendingContainer] = deque()
        self._to_sort: list[list[Exact]] = []
        self._values = 0

    def run(self, value: object) -> Exact:
        result = self._convert(value, None, 0)
        while self._pending:
            node = self._pending.popleft()
            if type(node.result) is dict:
                self._fill_dict(node)
            elif _SCALARS.issuperset(map(type, node.items)):  # nothing to convert: token ids, log-probs
                self._count_values(len(node.items))
                node.result.extend(node.items)
            else:
                node.result.extend(self._convert(each, node, place) for place, each in enumerate(node.items))
        for members in reversed(self._to_sort):  # innermost first
            members.sort(key=_sort_key)
        return result

    def _fill_dict(self, node: _PendingContainer) -> None:
        for key, each in node.items:
            text = key if type(key) is str else self._key_text(key, node)
            if text in node.result:
                raise _inexact(node, text, "two keys of this dict become the same; rename one")
            node.result[text] = self._convert(each, node, text)

    def _convert(self, value: Any, parent: _PendingContainer | None, step: str | int) -> Exact:
        """The plain form of ``value``; a container is returned empty and queued to be filled."""
        self._count_values(1)
        unwrapped, is_set = value, False
        for _ in range(_MAX_UNWRAPPINGS):
            kind = type(unwrapped)
            if kind in _SCALARS:
                return unwrapped
            if kind is dict:
                return self._add_pending({}, list(unwrapped.items()), parent, step)
            if kind is list:
                result: list[Exact] = []
                if is_set:
                    self._to_sort.append(result)
                return self._add_pending(result, unwrapped.copy(), parent, step)
            rule = _rule_for(unwrapped)
            if rule is None:
                break
            is_set = isinstance(unwrapped, set | frozenset)
            try:
                unwrapped = rule(unwrapped)
            except Exception as error:  # raised by a model's own code, or by a field that was never set
                reason = f"a {_type_name(unwrapped)} could not be converted ({type(error).__name__})"
                raise _inexact(parent, step, reason) from error
        raise _inexact(parent, step, f"no rule converts a {_type_name(value)}; convert it yourself")

    def _count_values(self, values: int) -> None:
        self._values += values
        if self._values > self._limits.record_values:
            raise LimitExceeded(
                f"the value has more than {self._limits.record_values} values; "
                "it may hold the same object many times"
            )

    def _add_pending(
        self, result: Exact, items: Any, parent: _PendingContainer | None, step: str | int
    ) -> Exact:
        depth = 1 if parent is None else parent.depth + 1
        if depth > FormatLimits.DEPTH:
            raise _inexact(
                parent,
                step,
                f"it is nested deeper than {FormatLimits.DEPTH} containers; it may contain itself",
            )
        self._pending.append(_PendingContainer(result, items, depth, parent, step))
        return result

    def _key_text(self, key: object, node: _PendingContainer) -> str:
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
        except ValueError:  # the integer has more digits than Python converts to text
            pass
        raise _inexact(node.parent, node.step, f"no rule converts a key of type {name} to str")


def _rule_for(value: object) -> Callable[[Any], object] | None:
    for kinds, rule in _RULES:
        if isinstance(value, kinds):
            return rule
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return _pydantic_fields
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass_fields
    if isinstance(value, tuple):
        return _namedtuple_fields if hasattr(type(value), "_fields") else list
    if isinstance(value, Mapping):
        return dict
    if isinstance(value, list | deque | set | frozenset):
        return list
    return _to_list if _is_numpy_like(value) else None


def _is_numpy_like(value: object) -> bool:
    return (
        hasattr(value, "dtype") and callable(getattr(value, "tolist", None)) and not isinstance(value, type)
    )


def _pydantic_fields(value: Any) -> object:
    return value.model_dump()


def _dataclass_fields(value: Any) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _namedtuple_fields(value: Any) -> dict[str, object]:
    return dict(zip(value._fields, value, strict=True))


def _to_list(value: Any) -> object:
    return value.tolist()


def _to_text(value: object) -> str:
    return str(value)


def _isoformat(value: datetime | date | time) -> str:
    return value.isoformat()


def _base64(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(bytes(value)).decode("ascii")


def _enum_value(value: Enum) -> object:
    return value.value


# These are the methods of the base type: a subclass may override them.
_RULES: Final[tuple[tuple[Any, Callable[[Any], object]], ...]] = (
    (Enum, _enum_value),
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    ((bytes, bytearray, memoryview), _base64),
    ((datetime, date, time), _isoformat),
    ((UUID, PurePath, Decimal), _to_text),
)


def _sort_key(value: Exact) -> tuple[Any, ...]:
    """The key by which the members of a set are sorted."""
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


def _inexact(parent: _PendingContainer | None, step: str | int, reason: str) -> InexactValue:
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

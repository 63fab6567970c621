"""The check of exactness in plain Python: copy each container, check the copy, let orjson encode the copy.

Each container is copied by one C call, which is atomic under the GIL. Containers are copied level by level,
so that in the common case no Python code runs for a single value. The checked copy is what is encoded, so
another thread cannot change a value between the two. Keys, integers and strings are left to orjson, which
refuses those that it cannot encode exactly.
"""

from __future__ import annotations

from itertools import chain
from math import isfinite
from types import NoneType
from typing import Final

from ckptfmt._limits import Limits
from ckptfmt._values.patches import Exact

_SCALARS: Final = frozenset({str, int, bool, NoneType, float})
_CONTAINERS: Final = frozenset({list, dict})
_EXACT: Final = _SCALARS | _CONTAINERS
_LEFT_TO_ORJSON: Final = frozenset({str, int, bool, NoneType})
_DICT_ONLY: Final = frozenset({dict})
_LIST_ONLY: Final = frozenset({list})
_LONG_LIST: Final = 100

NOT_PLAIN: Final = object()


def plain_copy(value: Exact, limits: Limits, max_depth: int) -> Exact:
    """A private copy of ``value``, or ``NOT_PLAIN`` when it needs a patch or breaks a rule.

    Rules that orjson checks are not checked here.
    """
    kind = type(value)
    if kind not in _CONTAINERS:
        return value if kind in _LEFT_TO_ORJSON or (kind is float and isfinite(value)) else NOT_PLAIN
    root = kind(value)
    dicts: list[dict[str, Exact]] = [root] if kind is dict else []
    lists: list[list[Exact]] = [root] if kind is list else []
    depth = total = 0
    while dicts or lists:
        depth += 1
        total += sum(map(len, dicts)) + sum(map(len, lists))
        if depth > max_depth or total > limits.record_values:
            return NOT_PLAIN
        in_dicts = _types_of([list(chain.from_iterable(map(dict.values, dicts)))])
        in_lists = _types_of(_groups(lists))
        if not in_dicts | in_lists <= _EXACT:
            return NOT_PLAIN
        new_dicts: list[dict[str, Exact]] = []
        new_lists: list[list[Exact]] = []
        if not in_dicts.isdisjoint(_CONTAINERS):
            _copy_in_dicts(dicts, new_dicts, new_lists)
        if in_lists == _DICT_ONLY:
            new_dicts += _copy_dicts_in_lists(lists)
        elif not in_lists.isdisjoint(_CONTAINERS):
            _copy_in_lists(lists, new_dicts, new_lists)
        dicts, lists = new_dicts, new_lists
    return root


def _groups(lists: list[list[Exact]]) -> list[list[Exact]]:
    """The values of these lists in a few groups. Each long list is a group, so all-float lists stay alone."""
    long = [values for values in lists if len(values) >= _LONG_LIST]
    short = [values for values in lists if len(values) < _LONG_LIST] if long else lists
    return [*long, list(chain.from_iterable(short))]


def _types_of(groups: list[list[Exact]]) -> set[type]:
    """The types of these values; ``_NotFinite`` is among them when a float is NaN or infinite."""
    kinds: set[type] = set()
    for values in groups:
        found = set(map(type, values))
        if float in found:
            # A finite sum has only finite terms; a sum that is not finite may have overflowed.
            floats = values if len(found) == 1 else [value for value in values if type(value) is float]
            if not isfinite(sum(floats)) and not all(map(isfinite, floats)):
                kinds.add(_NotFinite)
        kinds |= found
    return kinds


class _NotFinite:
    """Represents NaN and the infinities in a set of types."""


def _copy_in_dicts(
    dicts: list[dict[str, Exact]], new_dicts: list[dict[str, Exact]], new_lists: list[list[Exact]]
) -> None:
    """Replace each container in these private dicts by a copy, and add the copy to the new ones."""
    for parent in dicts:
        for key, value in parent.items():
            kind = type(value)
            if kind is dict:
                parent[key] = copied = value.copy()
                new_dicts.append(copied)
            elif kind is list:
                parent[key] = copied = value.copy()
                new_lists.append(copied)


def _copy_dicts_in_lists(lists: list[list[Exact]]) -> list[dict[str, Exact]]:
    """Like ``_copy_in_dicts``, for lists that hold dicts only: the common case of many small dicts."""
    copies = list(map(dict.copy, chain.from_iterable(lists)))
    start = 0
    for parent in lists:
        end = start + len(parent)
        parent[:] = copies[start:end]
        start = end
    return copies


def _copy_in_lists(
    lists: list[list[Exact]], new_dicts: list[dict[str, Exact]], new_lists: list[list[Exact]]
) -> None:
    for parent in lists:
        kinds = set(map(type, parent))
        if kinds == _LIST_ONLY:
            parent[:] = map(list.copy, parent)
            new_lists += parent
        elif not kinds.isdisjoint(_CONTAINERS):
            _copy_in_mixed_list(parent, new_dicts, new_lists)


def _copy_in_mixed_list(
    parent: list[Exact], new_dicts: list[dict[str, Exact]], new_lists: list[list[Exact]]
) -> None:
    for index, value in enumerate(parent):
        kind = type(value)
        if kind is dict:
            parent[index] = copied = value.copy()
            new_dicts.append(copied)
        elif kind is list:
            parent[index] = copied = value.copy()
            new_lists.append(copied)

"""What users touch is importable from few places, under the names that reprs and pickles show."""

from __future__ import annotations

import builtins
import importlib
import inspect
import pickle
import pkgutil
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import pytest

from tests.public_surface import public_modules, public_names

PUBLIC: Final = {
    "ckptfmt",
    "ckptfmt.stores",
    "ckptfmt.testing",
    "ckptfmt.testing.strategies",
    "ckptctl",
    "ckptctl.hosts",
    "ckptctl.hosts.aiohttp",
    "ckptctl.transports",
    "ckptctl.transports.http",
    "ckptctl.testing",
}


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def objects() -> Iterator[tuple[str, str, Any]]:
    for place, name in public_names():
        yield place, name, getattr(module(place), name)


def test_no_module_is_public_but_these() -> None:
    assert {each.__name__ for each in public_modules()} == PUBLIC


@pytest.mark.parametrize("place", sorted(PUBLIC))
def test_each_list_is_true(place: str) -> None:
    listed = module(place).__all__
    assert len(listed) == len(set(listed))
    assert not set(listed) & vars(builtins).keys()
    star: dict[str, object] = {}
    exec(f"from {place} import *", star)
    assert star.keys() - {"__builtins__"} == set(listed)


@pytest.mark.parametrize("place", sorted(PUBLIC))
def test_no_name_hides_a_module(place: str) -> None:
    path = getattr(module(place), "__path__", None)
    inside = {each.name for each in pkgutil.iter_modules(path)} if path else set()
    assert not inside & {name for home, name in public_names() if home == place}


def test_reprs_tracebacks_and_pickles_name_a_public_place() -> None:
    wrong = {}
    for place, name, value in objects():
        if inspect.isclass(value) or inspect.isfunction(value):
            home = value.__module__
            if home not in PUBLIC or getattr(module(home), value.__name__, value) is not value:
                wrong[f"{place}.{name}"] = home
            if inspect.isclass(value):
                assert pickle.loads(pickle.dumps(value)) is value
    assert not wrong


def _types_in(hint: Any) -> Iterator[type]:
    if inspect.isclass(hint) and typing.get_origin(hint) is None:
        yield hint
    for inner in typing.get_args(hint):
        for each in inner if isinstance(inner, list) else [inner]:
            yield from _types_in(each)


MADE_BY_FUNCTIONS: Final = {"Checkpoint", "Episode", "ParticipantCheckpoint", "StoredRecord"}
"""Classes whose constructors are not for users."""


def _signatures(value: Any) -> Iterator[Any]:
    """A function, or what a class offers: its constructor, its public methods and properties."""
    if inspect.isfunction(value):
        yield value
    elif inspect.isclass(value):
        for name, member in inspect.getmembers(value):
            if name.startswith("_") and (name != "__init__" or value.__name__ in MADE_BY_FUNCTIONS):
                continue
            if isinstance(member, property):
                yield member.fget
            elif inspect.isfunction(member) or inspect.ismethod(member):
                yield member


def _names_in_scope() -> dict[str, Any]:
    """What annotations name that only a type checker understands: optional libraries, and ``array[int]``."""
    return {"array": list, **{name: module(name) for name in ("pandas", "polars", "pyarrow")}}


def test_annotations_of_public_classes_can_be_evaluated() -> None:
    """Their module is not the one that they were defined in."""
    failed = {}
    for place, name, value in objects():
        if inspect.isclass(value):
            try:
                typing.get_type_hints(value)
            except (NameError, TypeError) as error:
                failed[f"{place}.{name}"] = str(error)
    assert failed.keys() <= {"ckptfmt.Rows"}, failed  # array[int] is for type checkers


def test_every_type_in_a_public_signature_is_public() -> None:
    public = {id(value) for _, _, value in objects()}
    hidden = set()
    for place, name, value in objects():
        for signature in map(inspect.unwrap, _signatures(value)):
            if not getattr(signature, "__module__", "").startswith(("ckptfmt", "ckptctl")):
                continue
            scope = {**signature.__globals__, **_names_in_scope()}
            for hint in typing.get_type_hints(signature, scope).values():
                hidden |= {
                    f"{place}.{name}.{signature.__name__}: {each.__module__}.{each.__qualname__}"
                    for each in _types_in(hint)
                    if each.__module__.startswith(("ckptfmt", "ckptctl")) and id(each) not in public
                }
    assert not hidden, "\n".join(sorted(hidden))

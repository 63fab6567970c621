"""Everything public says what it does, in sections that the reference can show.

Checked are the public functions and classes, and the public methods, properties and fields that the classes
define or inherit from a class of ours.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from tests.public_surface import public_modules, public_names

_OURS: Final = ("ckptfmt", "ckptctl")
_SECTION: Final = re.compile(
    r"^(Args|Returns|Yields|Raises|Attributes|Example|Examples|Note):$", re.MULTILINE
)
_NO_RESULT: Final = {"", "None", "NoReturn"}


@dataclass(frozen=True)
class Documented:
    """A public object, and the path that names it."""

    path: str
    value: Any

    @property
    def text(self) -> str:
        return inspect.cleandoc(_own_doc(self.value) or "")

    @property
    def function(self) -> Callable[..., Any] | None:
        """What is called, when this is a function or method."""
        value = self.value
        if isinstance(value, classmethod | staticmethod):
            value = value.__func__
        return value if inspect.isfunction(inspect.unwrap(value)) else None

    def sections(self) -> dict[str, str]:
        """The text of each section, and under "" what stands before them."""
        first, *rest = _SECTION.split(self.text)
        return {"": first, **dict(zip(rest[::2], rest[1::2], strict=True))}


def _own_doc(value: Any) -> str | None:
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    doc: str | None = getattr(value, "__doc__", None)
    if (
        isinstance(value, type)
        and dataclasses.is_dataclass(value)
        and doc
        and doc.startswith(f"{value.__name__}(")
    ):
        return None  # made by dataclass from the signature
    return doc


def _documented() -> list[Documented]:
    found: dict[int, Documented] = {}
    for module, name in public_names():
        value = getattr(importlib.import_module(module), name)
        if isinstance(value, type):
            found.setdefault(id(value), Documented(f"{module}.{name}", value))
            for member in _members(value):
                path = f"{module}.{name}.{member.path}"
                found.setdefault(id(member.value), dataclasses.replace(member, path=path))
        elif callable(value) and getattr(value, "__module__", "").startswith(_OURS):
            found.setdefault(id(value), Documented(f"{module}.{name}", value))
    return list(found.values())


def _members(cls: type) -> Iterator[Documented]:
    """The public functions and properties of a class, from itself and its bases of ours."""
    seen: set[str] = set()
    for owner in cls.__mro__:
        if not owner.__module__.startswith(_OURS):
            continue
        for name, value in vars(owner).items():
            if name.startswith(("_", "test_")) or name in seen:
                continue
            seen.add(name)
            is_function = inspect.isfunction(value) or isinstance(
                value, property | cached_property | classmethod | staticmethod
            )
            if is_function and not _is_default(value) and _says_itself(owner, name, value):
                yield Documented(name, value)


def _is_default(value: Any) -> bool:
    """Whether this is the value of a field that holds a function, and no method."""
    return isinstance(value, staticmethod) and value.__func__.__name__ == "<lambda>"


def _says_itself(owner: type, name: str, value: Any) -> bool:
    """A method that overrides one of ours, or of the standard library, may leave the text to that one."""
    if _own_doc(value):
        return True
    others = [base for base in owner.__mro__[1:] if name in vars(base)]
    return not any(_own_doc(vars(base)[name]) for base in others)


EVERYTHING: Final = _documented()
FUNCTIONS: Final = [each for each in EVERYTHING if each.function is not None]
RECORDS: Final = [
    each for each in EVERYTHING if isinstance(each.value, type) and dataclasses.is_dataclass(each.value)
]


def _each(documented: list[Documented]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("it", [pytest.param(it, id=it.path) for it in documented])


@_each(EVERYTHING)
def test_the_first_line_ends_with_a_period(it: Documented) -> None:
    assert it.text, "there is no docstring"
    first, *rest = it.text.splitlines()
    assert first.endswith("."), f"the first line ends without a period: {first}"
    assert not rest or not rest[0], "no empty line below the first line"


@_each(EVERYTHING)
def test_the_first_line_is_one_sentence(it: Documented) -> None:
    first = it.text.partition("\n")[0]
    assert not re.search(r"(?<!e\.g)(?<!i\.e)[.?!] [A-Z]", first), f"more than one sentence: {first}"


def _needs_args(it: Documented) -> list[str]:
    assert it.function is not None
    parameters = inspect.signature(it.function).parameters
    return [name for name in parameters if name not in ("self", "cls") and not name.startswith("_")]


@_each(FUNCTIONS)
def test_every_parameter_is_under_args(it: Documented) -> None:
    named = set(re.findall(r"^ {4}\*{0,2}(\w+)(?: \(.*?\))?:", it.sections().get("Args", ""), re.MULTILINE))
    needed = _needs_args(it)
    assert not [name for name in needed if name not in named], "not under Args"
    assert not sorted(named.difference(needed)), "under Args, and no parameter"


@_each(FUNCTIONS)
def test_a_result_is_under_returns_or_yields(it: Documented) -> None:
    assert it.function is not None
    result = str(inspect.unwrap(it.function).__annotations__.get("return", ""))
    if result not in _NO_RESULT:
        assert it.sections().keys() & {"Returns", "Yields"}, f"it returns {result}"


@_each(EVERYTHING)
def test_what_is_under_raises_exists(it: Documented) -> None:
    section = it.sections().get("Raises", "")
    for named in re.findall(r"^ {4}(\S.*?):(?: |$)", section, re.MULTILINE):
        name = re.sub(r"^:\w+:`~?(.*)`$", r"\1", named)
        assert _exception(name) is not None, f"there is no exception {name}"


def _exception(name: str) -> type[BaseException] | None:
    """The exception class of this name: a built-in one, or a public one with or without its module."""
    module, _, last = name.rpartition(".")
    found: Any = getattr(builtins, name, None)
    for each in public_modules():
        if found is None and module in ("", each.__name__):
            found = getattr(each, last, None)
    if found is None and module == "asyncio":
        found = getattr(importlib.import_module(module), last, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


@_each(RECORDS)
def test_every_field_is_documented(it: Documented) -> None:
    named = re.findall(r"^ {4}(\w+)(?: \(.*?\))?:", it.sections().get("Attributes", ""), re.MULTILINE)
    fields = [field.name for field in dataclasses.fields(it.value) if not field.name.startswith("_")]
    missing = [name for name in fields if name not in named and name not in _with_a_string_below(it.value)]
    assert not missing, "neither under Attributes nor with a string below"


@cache
def _with_a_string_below(cls: type) -> frozenset[str]:
    """The fields of a class and its bases that a string stands under."""
    found: set[str] = set()
    for each in cls.__mro__:
        body = _definition(each).body if each.__module__.startswith(_OURS) else []
        for field, below in itertools.pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            ):
                found.add(field.target.id)
    return frozenset(found)


def _definition(cls: type) -> ast.ClassDef:
    """The statement that defines a class of ours: not always in the module that it names."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_OURS) and vars(module).get(cls.__name__) is cls:
            for node in _module_tree(str(module.__file__)).body:
                if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                    return node
    raise AssertionError(f"no module defines {cls}")


@cache
def _module_tree(file: str) -> ast.Module:
    path = Path(file)
    return ast.parse(path.read_text(encoding="utf-8") if path.suffix == ".py" else "")

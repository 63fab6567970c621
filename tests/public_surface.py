"""What users may import: every public module of both packages, and the names that each of them offers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import ckptctl
import ckptfmt

NOT_IN_ITS_LIST: Final = {"ckptfmt": ("list", "open")}
"""Public, but left out of ``__all__``: a star import leaves Python's own names alone."""


def public_modules() -> list[ModuleType]:
    """Both packages, and every module below them without an underscore in its path."""
    found: list[ModuleType] = []
    for package in (ckptfmt, ckptctl):
        found.append(package)
        found += _below(package)
    return found


def _below(package: ModuleType) -> Iterator[ModuleType]:
    for each in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not each.name.rpartition(".")[2].startswith("_"):
            module = importlib.import_module(each.name)
            yield module
            if each.ispkg:
                yield from _below(module)


def public_names() -> list[tuple[str, str]]:
    """Each public module with each name that it offers."""
    return [(module.__name__, name) for module in public_modules() for name in _offered(module)]


def _offered(module: ModuleType) -> Iterator[str]:
    yield from module.__all__
    yield from NOT_IN_ITS_LIST.get(module.__name__, ())

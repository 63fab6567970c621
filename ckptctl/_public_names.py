"""The public path of a name as its ``__module__``, so that reprs, tracebacks and pickles show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def set_public_module(namespace: Mapping[str, Any], module: str) -> None:
    """Name ``module`` as the home of every class and function that its ``__all__`` lists."""
    for name in namespace["__all__"]:
        value = namespace[name]
        if isinstance(value, type) or hasattr(value, "__code__"):  # Not constants, which have no home.
            value.__module__ = module

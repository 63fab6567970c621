"""The public path of a name as its ``__module__``, so that reprs, tracebacks and pickles show it."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from contextlib import suppress
from types import FunctionType
from typing import Any


def set_public_module(namespace: Mapping[str, Any], *, also: tuple[str, ...] = ()) -> None:
    """Name a public module as the home of every class and function that its ``__all__`` lists.

    Args:
        namespace: The globals of the module.
        also: Public names that ``__all__`` leaves out.
    """
    for name in (*namespace["__all__"], *also):
        value = namespace[name]
        if isinstance(value, type):
            _evaluate_annotations(value)
        if isinstance(value, type | FunctionType):  # not constants and aliases, which have no home
            value.__module__ = namespace["__name__"]


def _evaluate_annotations(cls: type) -> None:
    """Evaluate the text of annotations while the module that holds their names is still known."""
    annotations = inspect.get_annotations(cls)
    if annotations:
        # What only a type checker understands, such as array[int], stays text.
        with suppress(NameError, TypeError):
            hints = typing.get_type_hints(cls, include_extras=True)
            cls.__annotations__ = {name: hints[name] for name in annotations}

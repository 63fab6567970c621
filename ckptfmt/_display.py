"""How an object shows itself in an interpreter and in a notebook, without knowing how that is done.

`ckptfmt._show` stands above the objects that it displays, and registers a function for each of their classes
here.
"""

from __future__ import annotations

from functools import singledispatch


@singledispatch
def html_of(value: object) -> str:
    """``value`` as HTML for a notebook. Each class registers its own function."""
    raise NotImplementedError(f"no display is registered for {type(value).__name__}")


@singledispatch
def text_of(value: object) -> str:
    """``value`` as text of several lines for an interpreter. Each class registers its own function."""
    raise NotImplementedError(f"no display is registered for {type(value).__name__}")


class NotebookDisplay:
    """A class whose objects a notebook shows as HTML."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_of(self)

"""The hooks by which an object is displayed in an interpreter and in a notebook.

`ckptfmt._show` imports the modules of the objects that it displays. It registers a function for each of their
classes here, so that those modules need not import it.
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
    """A base class whose objects are displayed as HTML in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_of(self)

"""Pieces of HTML. Names come from files: everything is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

from ckptfmt._show.tables import right_columns
from ckptfmt._text import printable

_LONGEST_NAME: Final = 28
_WRAPPED: Final = "min-width:14em;overflow-wrap:anywhere"


def escaped(value: object) -> str:
    """A value as text of an HTML page: no markup, nothing that changes the direction of the text."""
    return html.escape("" if value is None else printable(str(value)))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table; columns of numbers stand to the right."""
    listed = list(rows)
    right = right_columns(columns, listed)
    body = "".join(
        f"<tr>{''.join(cell('td', value, at) for value, at in zip(row, right, strict=True))}</tr>"
        for row in listed
    )
    return f"<table>{table_head(columns, right)}<tbody>{body}</tbody></table>"


def facts_table(rows: Iterable[tuple[str, object]]) -> str:
    """An HTML table of names and values; what is None is left out."""
    body = "".join(
        f"<tr>{cell('th', name, False)}{cell('td', value, False)}</tr>"
        for name, value in rows
        if value is not None
    )
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def table_head(columns: Sequence[str], right: Sequence[bool]) -> str:
    """The head of a table; ``right`` says which columns stand to the right."""
    cells = "".join(cell("th", name, at) for name, at in zip(columns, right, strict=True))
    return f"<thead><tr>{cells}</tr></thead>"


def cell(tag: str, value: object, right: bool) -> str:
    """One cell. A notebook has styles of its own for tables, so each says where it stands, and where it may
    break: a name or a number nowhere, a long text anywhere, since a digest fits no column."""
    text = escaped(value)
    wraps = _WRAPPED if len(text) > _LONGEST_NAME else "white-space:nowrap"
    return f'<{tag} style="text-align:{"right" if right else "left"};{wraps}">{text}</{tag}>'


def preformatted(text: str) -> str:
    """Text as it is."""
    return f"<pre>{html.escape(text)}</pre>"

"""Parts of HTML pages. Names come from untrusted files, so everything is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Final

from ckptfmt._show.tables import right_columns
from ckptfmt._text import printable

_MAX_UNWRAPPED: Final = 28
_WRAPPED_STYLE: Final = "min-width:14em;overflow-wrap:anywhere"


def escaped(value: object) -> str:
    """A value as text of an HTML page, without markup and without characters that change its direction."""
    return html.escape("" if value is None else printable(str(value)))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """An HTML table. Columns of numbers are right-aligned."""
    listed = list(rows)
    right = right_columns(columns, listed)
    body = "".join(
        f"<tr>{''.join(cell('td', value, at) for value, at in zip(row, right, strict=True))}</tr>"
        for row in listed
    )
    return f"<table>{table_head(columns, right)}<tbody>{body}</tbody></table>"


def facts_table(rows: Iterable[tuple[str, object]]) -> str:
    """An HTML table of names and values. Values of None are omitted."""
    body = "".join(
        f"<tr>{cell('th', name, False)}{cell('td', value, False)}</tr>"
        for name, value in rows
        if value is not None
    )
    return f'<table class="facts"><tbody>{body}</tbody></table>'


def table_head(columns: Sequence[str], right: Sequence[bool]) -> str:
    """The head of a table. ``right`` states which columns are right-aligned."""
    cells = "".join(cell("th", name, at) for name, at in zip(columns, right, strict=True))
    return f"<thead><tr>{cells}</tr></thead>"


def cell(tag: str, value: object, right: bool) -> str:
    """One cell, with its own style, because notebooks have styles for tables.

    Short names and numbers do not wrap; long texts may wrap anywhere, because a digest is wider than any
    column.
    """
    text = escaped(value)
    wraps = _WRAPPED_STYLE if len(text) > _MAX_UNWRAPPED else "white-space:nowrap"
    return f'<{tag} style="text-align:{"right" if right else "left"};{wraps}">{text}</{tag}>'


def preformatted(text: str) -> str:
    """Preformatted text."""
    return f"<pre>{html.escape(text)}</pre>"

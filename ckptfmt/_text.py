"""Numbers and names as text for people. Names come from files, so their control characters are escaped."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")
_NAME_CHARACTERS: Final = 80


def printable(text: str) -> str:
    """``text`` with all characters escaped that are not printable, such as control characters."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def quoted(text: str) -> str:
    """``text`` in quotes as ASCII, cut at 80 characters, for names in error messages."""
    return ascii(text if len(text) <= _NAME_CHARACTERS else text[: _NAME_CHARACTERS - 3] + "...")


def size_text(size: int) -> str:
    """A number of bytes with its unit: ``512 bytes``, ``3.4 MiB``."""
    if size < 1024:
        return f"{size} bytes"
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}"


def count_text(count: int, one: str, many: str = "") -> str:
    """A count with its noun: ``1 record``, ``2 records``, ``3 lives``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def fraction_text(part: float, whole: float) -> str:
    """``part`` as a percentage of ``whole``."""
    return f"{100 * part / whole:.0f} %" if whole else "-"


def names_text(names: list[str] | tuple[str, ...], most: int = 10) -> str:
    """The first names of a list and the number of the others: ``a, b and 3 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"

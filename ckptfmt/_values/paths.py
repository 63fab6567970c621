"""Paths into a payload as text for people: ``$.messages[3].score``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

_KEY_CHARACTERS: Final = 80
_PATH_CHARACTERS: Final = 1000


def path_text(steps: Iterable[str | int]) -> str:
    """The path as ASCII text. A key is cut at 80 characters; a path over 1,000 is cut in its middle."""
    text = "$" + "".join(map(_step, steps))
    if len(text) <= _PATH_CHARACTERS:
        return text
    half = _PATH_CHARACTERS // 2
    return f"{text[:half]} ... {text[-half:]}"


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if len(step) > _KEY_CHARACTERS:
        step = step[:_KEY_CHARACTERS] + "..."
    if step.isascii() and step.isidentifier():
        return f".{step}"
    return f"[{json.dumps(step)}]"

"""The arguments of the commands, and how their text is read."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import typer

from ckptfmt._cli.output_file import STDOUT

_AGE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])")
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class WrongUsage(Exception):
    """A command line that cannot be carried out, whatever the data.

    Attributes:
        program: The program and the command, as far as it is known.
    """

    def __init__(self, program: str, message: str) -> None:
        super().__init__(f"{message.rstrip('.')}; see {program} --help")
        self.program = program


class Format(StrEnum):
    """The formats of an exported table."""

    JSONL = "jsonl"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one command. An argument that the command does not have is empty, None or False.

    Attributes:
        command: Name of the command.
        url: First path or URL.
        participant: Name of the only participant to read; None for all.
        episode: Capture key of the only record to read; None for all.
        other: Second path or URL, of ``diff`` and ``copy``.
        output: Path of the file to write; ``-`` or None for standard output.
        format: Format of the table; None for the one that the name of the file implies.
        keep: Number of complete checkpoints to keep.
        keep_age: Keep checkpoints that were completed less than this many seconds ago.
        min_age: Leave alone what was written less than this many seconds ago.
        dry_run: Remove nothing.
        verify: Read every byte of what is kept.
        incomplete_ok: A missing ``checkpoint.json`` is not an error.
    """

    command: str
    url: str = ""
    participant: str | None = None
    episode: str | None = None
    other: str = ""
    output: str | None = None
    format: str | None = None
    keep: int | None = None
    keep_age: float | None = None
    min_age: float = 0.0
    dry_run: bool = False
    verify: bool = False
    incomplete_ok: bool = False


def age(text: str) -> float:
    """Read ``90s``, ``30m``, ``12h`` or ``7d`` as seconds. Raises :class:`typer.BadParameter`."""
    match = _AGE.fullmatch(text)
    if match is None:
        raise typer.BadParameter(f"{text!a} is not an age; write 90s, 30m, 12h or 7d")
    seconds = float(match[1]) * _UNIT_SECONDS[match[2]]
    if not math.isfinite(seconds):
        raise typer.BadParameter("the age is too long")
    return seconds


def count(text: str) -> int:
    """Read a whole number from 1. Raises :class:`typer.BadParameter`."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise typer.BadParameter(f"{text!a} is not a whole number from 1")
    return int(text)


def output_path(text: str) -> str:
    """Read the path of a file to write. Raises :class:`typer.BadParameter` for what looks like an option."""
    if text.startswith("-") and text != STDOUT:
        raise typer.BadParameter(
            f"{text!a} is an option; write ./{ascii(text)[1:-1]} for a file of this name"
        )
    return text

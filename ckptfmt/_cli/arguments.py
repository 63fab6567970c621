"""The command line."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NoReturn

import ckptfmt
from ckptfmt._run.pruning import DAY_SECONDS
from ckptfmt._values.compiled import form

_EPILOG: Final = (
    "exit status: 0 good, 1 a problem in the data (damaged or incomplete; of diff: they differ), "
    "2 wrong usage, not found, store error, or an error of the program (CKPTFMT_DEBUG=1 shows where)"
)
_JSON_HELP: Final = "print one line of JSON, the last on stdout"
_AGE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd])")
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
SHELLS: Final = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True)
class Arguments:
    """What was asked for. What a command does not have is None or False."""

    command: str
    url: str = ""
    participant: str | None = None
    episode: str | None = None
    other: str = ""
    """The second URL: of diff and copy."""
    output: str | None = None
    format: str | None = None
    keep: int | None = None
    keep_age: float | None = None
    min_age: float = 0.0
    dry_run: bool = False
    verify: bool = False
    incomplete_ok: bool = False
    shell: str = ""


class WrongUsage(Exception):
    """A command line that cannot be read; ``program`` is the command as far as it is known."""

    def __init__(self, program: str, message: str) -> None:
        super().__init__(message)
        self.program = program


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, as for every other error."""
        raise WrongUsage(self.prog, f"{message}; see {self.prog} --help")


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = _Parser(
        prog="ckptfmt",
        description="Look into checkpoints of rollouts, verify, compare, copy and prune them.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=_version())
    parser.add_argument("--json", action="store_true", help=_JSON_HELP)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for name, (purpose, add_arguments) in _COMMANDS.items():
        command = commands.add_parser(
            name, help=purpose, description=purpose, epilog=_EPILOG, allow_abbrev=False
        )
        add_arguments(command)
        command.add_argument("--json", action="store_true", help=_JSON_HELP)
    return parser


def parse(argv: Sequence[str]) -> Arguments | None:
    """Read the command line; None after --help and --version, which were printed. Raises WrongUsage."""
    try:
        parsed = vars(make_parser().parse_args(argv))
    except SystemExit:
        return None
    known = {each.name for each in fields(Arguments)}
    return Arguments(**{name: value for name, value in parsed.items() if name in known})


def age(text: str) -> float:
    """``90s``, ``30m``, ``12h`` or ``7d`` in seconds. Raises ArgumentTypeError."""
    match = _AGE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!a} is no age; write 90s, 30m, 12h or 7d")
    seconds = float(match[1]) * _UNIT_SECONDS[match[2]]
    if not math.isfinite(seconds):
        raise argparse.ArgumentTypeError("an age of so many digits is too long")
    return seconds


def count(text: str) -> int:
    """A number from 1. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!a} is no number from 1")
    return int(text)


def _version() -> str:
    return f"ckptfmt {ckptfmt.__version__} ({form()})"


_Command = argparse.ArgumentParser


def _url(command: _Command, metavar: str = "URL", name: str = "url") -> None:
    command.add_argument(name, metavar=metavar, help="a local path, or file:// and an absolute path")


def _participant(command: _Command) -> None:
    _url(command)
    command.add_argument("participant", metavar="PARTICIPANT", nargs="?", help="only this participant")


def _cat(command: _Command) -> None:
    _participant(command)
    command.add_argument(
        "episode", metavar="EPISODE", nargs="?", help="only this capture key, such as 17-0-a1"
    )


def _verify(command: _Command) -> None:
    _url(command)
    command.add_argument(
        "--incomplete-ok",
        action="store_true",
        help="exit 0 too when there is no checkpoint.json, as in a cut, and all that is there is good",
    )


def _two(command: _Command) -> None:
    _url(command, "FROM")
    _url(command, "TO", "other")


def _export(command: _Command) -> None:
    _participant(command)
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write to this file, replacing it (default, and -: standard output)",
    )
    command.add_argument("--format", choices=("jsonl", "parquet"), help="default: by the name of the file")


def _prune(command: _Command) -> None:
    _url(command, "RUN")
    command.add_argument(
        "--keep", metavar="N", type=count, help="of the complete checkpoints, keep the N of highest sequence"
    )
    command.add_argument(
        "--keep-age",
        metavar="AGE",
        type=age,
        help="keep those that were completed less than this ago (7d, 12h)",
    )
    command.add_argument(
        "--min-age",
        metavar="AGE",
        type=age,
        default=DAY_SECONDS,
        help="leave a cut or file alone that was written less than this ago, by the store's clock: "
        "it may be in the making (default: 1d)",
    )
    command.add_argument(
        "--verify", action="store_true", help="read every byte of what is kept: damaged ones do not count"
    )
    command.add_argument("--dry-run", action="store_true", help="say what would be removed, remove nothing")


def _report(command: _Command) -> None:
    _url(command)
    command.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the HTML file to write (-: stdout)"
    )


def _completion(command: _Command) -> None:
    command.add_argument("shell", choices=SHELLS, help="the shell to complete for")


_COMMANDS: Final[dict[str, tuple[str, Callable[[Any], None]]]] = {
    "ls": (
        "name the checkpoints of a run, the participants of a checkpoint, or the records of a participant",
        _participant,
    ),
    "show": ("say what a checkpoint, or one participant of it, consists of", _participant),
    "cat": ("print stored records, one JSON line each", _cat),
    "verify": ("read and check every byte", _verify),
    "diff": ("say which records changed from one checkpoint to another, and where", _two),
    "export": ("write records as a table: JSON Lines or parquet, one row a record", _export),
    "copy": ("copy a complete checkpoint to another folder, checked on both sides", _two),
    "prune": ("remove old checkpoints of a run, and what belongs to none", _prune),
    "report": ("write an HTML page about a checkpoint", _report),
    "completion": ("print the completions of a shell: source <(ckptfmt completion bash)", _completion),
}

"""The code on the pages of the documentation runs and has right types, and what they name exists.

The Python blocks of a page run in order in one module, in an empty folder. A ``text`` block right below one
is what it prints. mypy checks all pages in one run, as strictly as the packages, but that a function of an
example may leave its types out.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from tests.public_surface import public_names

PROJECT: Final = Path(__file__).parents[1]
PAGES: Final = sorted(
    path.relative_to(PROJECT).as_posix()
    for path in [PROJECT / "README.md", *PROJECT.glob("docs/**/*.md")]
    if path.parent.name != "decisions"
)
RUN_ELSEWHERE: Final = ("README.md", "docs/tools.md")
"""Pages that tests/test_readme.py and tests/ckptfmt/test_other_tools.py run."""

_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``line`` is the number of its first line."""

    language: str
    text: str
    line: int
    prints: str | None = None

    @property
    def in_place(self) -> str:
        """The code, on the lines where it stands in the page: so an error names the line of the page."""
        return "\n" * (self.line - 1) + self.text


def blocks(page: str, language: str) -> list[Block]:
    text = (PROJECT / page).read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    result = []
    for number, match in enumerate(found):
        following = found[number + 1] if number + 1 < len(found) else None
        below = following is not None and text[match.end() : following.start()].strip() == ""
        prints = following[2] if following is not None and below and following[1] == "text" else None
        if match[1] == language:
            result.append(Block(language, match[2], text.count("\n", 0, match.start()) + 2, prints))
    return result


@pytest.mark.parametrize(
    "page", [each for each in PAGES if blocks(each, "python") and each not in RUN_ELSEWHERE]
)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType(module_name(page))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks(page, "python"):
        exec(compile(block.in_place, str(PROJECT / page), "exec", dont_inherit=True), vars(module))
        printed = capsys.readouterr().out
        if block.prints is not None:
            assert printed == block.prints, f"{page}, line {block.line}"


def module_name(page: str) -> str:
    return "page_" + re.sub(r"\W", "_", page.removesuffix(".md"))


@pytest.mark.timeout(300)
def test_the_code_of_all_pages_has_right_types(tmp_path: Path) -> None:
    files = []
    for page in PAGES:
        lines: list[str] = []
        for block in blocks(page, "python"):
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
        if lines:
            files.append(tmp_path / f"{module_name(page)}.py")
            files[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = tmp_path / "pyproject.toml"
    modules = [file.stem for file in files]
    settings.write_text(
        (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
        + f"\n[[tool.mypy.overrides]]\nmodule = {modules}\n"
        + "disallow_untyped_defs = false\ndisallow_incomplete_defs = false\ndisallow_untyped_calls = false\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", settings, *files],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


_COMMAND: Final = re.compile(r"(?:^|[|;&(`])[ ]*(ckptfmt|ckptctl|make) +([^|;&#`\n)]*)", re.MULTILINE)
_SHELL: Final = re.compile(r"^```sh\n.*?^```$|^    [^\n]*$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def commands(page: str) -> set[tuple[str, ...]]:
    """Every call of a program of ours in a shell block, an indented block or a code span of the page."""
    text = (PROJECT / page).read_text(encoding="utf-8")
    without_python = _FENCE.sub(lambda match: match[0] if match[1] == "sh" else "", text)
    pieces = (match[0].removeprefix("```sh\n") for match in _SHELL.finditer(without_python))
    return {
        (program, *words.split())
        for piece in pieces
        for program, words in _COMMAND.findall("\n".join(line.strip() for line in piece.splitlines()))
    }


CALLS: Final = sorted({(page, call) for page in PAGES for call in commands(page)})


@cache
def help_of(program: str, command: str) -> str:
    """What the program prints for ``COMMAND --help``; empty when it has no such command."""
    done = subprocess.run(
        [Path(sys.executable).parent / program, *filter(None, [command]), "--help"],
        env={**os.environ, "TYPER_USE_RICH": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode else done.stdout


def test_calls_of_our_programs_are_found() -> None:
    assert ("README.md", ("make", "demo")) in CALLS
    assert ("README.md", ("ckptctl", "demo", "--help")) in CALLS
    assert ("README.md", ("ckptfmt", "cat", "run/step-1", "agent-0")) in CALLS
    assert ("docs/tools.md", ("ckptfmt", "export", "run/step-1", "-o", "records.jsonl")) in CALLS


@pytest.mark.parametrize(("page", "call"), CALLS, ids=[f"{page}: {' '.join(call)}" for page, call in CALLS])
def test_the_commands_options_and_targets_of_a_page_exist(page: str, call: tuple[str, ...]) -> None:
    program, *words = call
    options = {word.split("=")[0] for word in words if word.startswith("-") and word != "-"}
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert {word for word in words if "=" not in word} - options <= set(targets)
        return
    command = next((word for word in words if not word.startswith("-")), "")
    text = help_of(program, command)
    assert text, f"{program} has no command {command}"
    assert options <= {"--help", *re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text)}


_ENTRY: Final = re.compile(
    r"^\.\. (currentmodule|autofunction|autoclass|autoexception|autodata):: (\S+)$", re.MULTILINE
)


def entries() -> list[str]:
    """The full name of every entry of the reference."""
    found = []
    for page in sorted(PROJECT.glob("docs/reference/*.rst")):
        module = ""
        for directive, name in _ENTRY.findall(page.read_text(encoding="utf-8")):
            if directive == "currentmodule":
                module = f"{name}."
            else:
                found.append(name if name.startswith(("ckptfmt.", "ckptctl.")) else module + name)
    return found


def test_every_public_name_has_one_entry_in_the_reference() -> None:
    assert sorted(entries()) == sorted(public_entries())


def public_entries() -> Iterator[str]:
    """The full name of every public object; of one that two modules offer, that of the first."""
    seen: set[tuple[str, int]] = set()
    for module, name in public_names():
        identity = (name, id(getattr(importlib.import_module(module), name)))
        if identity not in seen:
            yield f"{module}.{name}"
        seen.add(identity)


def test_both_commands_have_their_help_in_the_reference() -> None:
    page = (PROJECT / "docs/reference/commands.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^```\{command-help\} (\w+) ?(\w*)$", page, re.MULTILINE))
    for program in ("ckptfmt", "ckptctl"):
        assert (program, "") in shown
        known = set(re.findall(r"^ *│? *([a-z]+)\b", help_of(program, ""), re.MULTILINE))
        there = {(program, word) for word in known if help_of(program, word)}
        assert there == {(name, command) for name, command in shown if name == program and command}

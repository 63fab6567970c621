"""The code on the pages of the documentation runs and has right types, and the commands that they name exist.

The Python blocks of a page run in order in one module, in an empty folder. A ``text`` block right below one is
what it prints. All pages are checked by mypy in one run, as strictly as the packages are, except that a function
of an example may leave its types out.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

PROJECT: Final = Path(__file__).parents[1]
PAGES: Final = sorted(
    path.relative_to(PROJECT).as_posix()
    for path in [PROJECT / "README.md", *PROJECT.glob("docs/**/*.md")]
    if path.parent.name != "decisions"
)
RUN_ELSEWHERE: Final = {"README.md": "tests/test_readme.py", "docs/tools.md": "tests/ckptfmt/test_other_tools.py"}

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


@pytest.mark.parametrize("page", [each for each in PAGES if blocks(each, "python") and each not in RUN_ELSEWHERE])
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

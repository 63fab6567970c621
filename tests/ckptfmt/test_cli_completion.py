"""Shell completion of the command ``ckptfmt``: the answers that typer gives, and the scripts it generates."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.ckptfmt.command import Command

COMMANDS: Final = ["cat", "copy", "diff", "export", "ls", "prune", "report", "show", "verify"]


def answer_to_bash(
    line: str, ckptfmt_command: Command, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, list[str]]:
    monkeypatch.setenv("_CKPTFMT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    status, out, err = ckptfmt_command()
    assert err == ""
    return status, out.split()


def answer_to_zsh(
    line: str, ckptfmt_command: Command, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, list[str]]:
    monkeypatch.setenv("_CKPTFMT_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    status, out, err = ckptfmt_command()
    assert err == ""
    if out == "_files\n":
        return status, []
    assert out.startswith("_arguments '*: :((")
    rows = out.removeprefix("_arguments '*: :((").removesuffix("))'\n").splitlines()
    return status, [row.split('"')[1] for row in rows]


def answer_to_fish(
    line: str, ckptfmt_command: Command, monkeypatch: pytest.MonkeyPatch
) -> tuple[int, list[str]]:
    monkeypatch.setenv("_CKPTFMT_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "is-args")
    nothing_to_offer, out, err = ckptfmt_command()
    assert (out.strip(), err) == ("", "")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    status, out, err = ckptfmt_command()
    assert err == ""
    words = [row.split("\t")[0] for row in out.splitlines() if row]
    assert nothing_to_offer == (0 if words else 1)
    return status, words


Answer = Callable[[str, Command, pytest.MonkeyPatch], tuple[int, list[str]]]


@pytest.mark.parametrize("answer", [answer_to_bash, answer_to_zsh, answer_to_fish])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ckptfmt ", COMMANDS),
        ("ckptfmt v", ["verify"]),
        ("ckptfmt --json c", ["cat", "copy"]),
        ("ckptfmt --v", ["--version"]),
        ("ckptfmt --", ["--help", "--install-completion", "--json", "--show-completion", "--version"]),
        ("ckptfmt prune --ke", ["--keep", "--keep-age"]),
        ("ckptfmt ls run --", ["--help", "--json"]),
        ("ckptfmt export run --format ", ["jsonl", "parquet"]),
        ("ckptfmt export run --format p", ["parquet"]),
        ("ckptfmt ls r", []),  # the shell completes paths itself
        ("ckptfmt export run --output r", []),
    ],
)
def test_what_is_offered(
    answer: Answer,
    line: str,
    expected: list[str],
    ckptfmt_command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    status, words = answer(line, ckptfmt_command, monkeypatch)
    assert (status, sorted(words)) == (0, expected)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell(
    shell: str, tmp_path: Path, ckptfmt_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_CKPTFMT_COMPLETE", f"source_{shell}")
    status, script, err = ckptfmt_command()
    assert (status, err) == (0, "")
    assert f"_CKPTFMT_COMPLETE=complete_{shell}" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True, timeout=30)


def in_bash(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line in a bash that finds this ``ckptfmt`` on its path, with ``folder`` as home."""
    program = folder / "bin" / "ckptfmt"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ckptfmt "$@"\n')
        program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    pythonpath = os.pathsep.join(each for each in sys.path if each)
    environment = {**os.environ, "HOME": str(folder), "PATH": path, "PYTHONPATH": pythonpath}
    return subprocess.run(
        ["bash", "--norc", "-c", line],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        check=True,
        timeout=30,
    )


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed here")


@needs_bash
def test_bash_completes_with_the_shown_script(tmp_path: Path) -> None:
    done = in_bash(
        'eval "$(ckptfmt --show-completion)"\n'
        "COMP_WORDS=(ckptfmt prune --ke); COMP_CWORD=2\n"
        '_ckptfmt_completion ckptfmt; echo "${COMPREPLY[@]}"',
        tmp_path,
    )
    assert (done.stdout.split(), done.stderr) == (["--keep", "--keep-age"], "")


@needs_bash
def test_completion_is_installed_for_bash(tmp_path: Path) -> None:
    done = in_bash("ckptfmt --install-completion; true", tmp_path)
    assert "bash completion installed in" in done.stdout
    assert done.stderr == ""
    (script,) = (tmp_path / ".bash_completions").iterdir()
    assert "complete -o default -F _ckptfmt_completion ckptfmt" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_an_unknown_shell_is_wrong_usage(
    option: str, ckptfmt_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("tcsh", "/bin/tcsh"))
    status, err = ckptfmt_command.refused(option)
    assert status == 2
    assert "tcsh" in err
    status, found = ckptfmt_command.json(option)
    assert (status, found["error"]["code"]) == (2, "usage")


def test_an_unknown_request_of_a_shell_is_an_error(
    ckptfmt_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_CKPTFMT_COMPLETE", "complete_tcsh")
    status, out, err = ckptfmt_command()
    assert status != 0
    assert (out, err.count("\n")) == ("", 1)

"""Shell completion, and the progress of long work."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ckptfmt import Limits
from ckptfmt._cli.arguments import SHELLS
from ckptfmt._cli.progress import bytes_to_read, counted
from ckptfmt._read.checkpoint import find_checkpoint
from ckptfmt.stores import choose_store
from tests.ckptfmt.building import build, many_records
from tests.ckptfmt.command import Command


def completed(script: str, line: str, folder: Path) -> list[str]:
    """What bash offers for the last word of ``line``."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    program = (
        f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _ckptfmt; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", program], capture_output=True, text=True, cwd=folder, check=True, timeout=30
    )
    assert done.stderr == ""
    return sorted(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed here")
def test_bash(tmp_path: Path, ckptfmt_command: Command) -> None:
    status, script, err = ckptfmt_command("completion", "bash")
    assert (status, err) == (0, "")
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-2").mkdir()
    assert completed(script, "ckptfmt v", tmp_path) == ["verify"]
    assert completed(script, "ckptfmt c", tmp_path) == ["cat", "completion", "copy"]
    assert completed(script, "ckptfmt prune --ke", tmp_path) == ["--keep", "--keep-age"]
    assert completed(script, "ckptfmt ls run", tmp_path) == ["run-1", "run-2"]
    assert completed(script, "ckptfmt copy run-1 run-2", tmp_path) == ["run-2"]
    assert completed(script, "ckptfmt completion ", tmp_path) == ["bash", "fish", "zsh"]
    assert completed(script, "ckptfmt completion -", tmp_path) == ["--help", "--json", "-h"]
    assert completed(script, "ckptfmt export run-1 --format ", tmp_path) == ["jsonl", "parquet"]
    assert completed(script, "ckptfmt export run-1 --output r", tmp_path) == ["run-1", "run-2"]
    assert completed(script, "ckptfmt --", tmp_path) == ["--help", "--json", "--version"]


def test_zsh_needs_nothing_done_before(tmp_path: Path, ckptfmt_command: Command) -> None:
    """Without ``compinit`` in somebody's ``.zshrc`` there is no completion to add one to."""
    script = ckptfmt_command("completion", "zsh")[1]
    assert script.index("$+functions[compdef]") < script.index("compinit -i") < script.index("bashcompinit")
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not installed here")
    (tmp_path / "script").write_text(script)
    done = subprocess.run(
        ["zsh", "-f", "-c", f"source {tmp_path / 'script'}; print -r -- $_comps[ckptfmt]"],
        capture_output=True,
        text=True,
        env={**os.environ, "ZDOTDIR": str(tmp_path)},
        timeout=30,
        check=True,
    )
    assert (done.stdout.strip(), done.stderr) == ("_bash_complete -F _ckptfmt", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_each_script_is_one_that_its_shell_reads(
    tmp_path: Path, ckptfmt_command: Command, shell: str
) -> None:
    status, script, _ = ckptfmt_command("completion", shell)
    assert status == 0
    assert ckptfmt_command.json("completion", shell) == (0, {"shell": shell, "script": script})
    assert all(word in script for word in ("prune", "keep-age", "dry-run", "jsonl parquet"))
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True, timeout=30)


def test_an_unknown_shell_is_wrong_usage(ckptfmt_command: Command) -> None:
    assert ckptfmt_command.refused("completion", "tcsh")[0] == 2


def on_a_terminal(*argv: str) -> tuple[int, str, str]:
    """Run the command with a terminal as standard error; status, stdout, and what the terminal got."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ckptfmt", *argv],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
        text=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    out = process.communicate(timeout=30)[0]
    return process.returncode, out, shown.decode()


def test_progress_adds_up_to_what_is_read(tmp_path: Path) -> None:
    told: list[int] = []
    store = counted(choose_store(build(tmp_path / "step-1", many_records(50)).folder), told.append)
    checkpoint = find_checkpoint(store, Limits())
    assert checkpoint.verify().ok
    total = bytes_to_read(checkpoint)
    assert total == sum(part.manifest.bytes for part in checkpoint.values())
    assert total <= sum(told) < 1.5 * total  # the index, too


@pytest.mark.parametrize("command", ["verify", "copy", "export", "report", "diff", "cat", "prune"])
def test_progress_is_for_terminals(tmp_path: Path, ckptfmt_command: Command, command: str) -> None:
    folder = str(build(tmp_path / "run" / "step-1", many_records(50)).folder)
    other = str(build(tmp_path / "run" / "step-2", [*many_records(49), *many_records(1, 600, "s")]).folder)
    argv = {
        "diff": [command, folder, other],
        "cat": [command, folder],
        "prune": [command, str(tmp_path / "run"), "--verify", "--keep", "2"],
        "verify": [command, folder],
        "copy": [command, folder, str(tmp_path / "copy")],
        "export": [command, folder, "-o", str(tmp_path / "x.jsonl")],
        "report": [command, folder, "-o", str(tmp_path / "x.html")],
    }[command]
    status, out, shown = on_a_terminal(*argv, "--json")
    assert status == (1 if command == "diff" else 0)
    assert out.count("\n") == (101 if command == "cat" else 1)
    assert command in shown
    assert "KiB" in shown
    assert re.search(r" [kM]B", shown) is None  # one kind of units
    again, _, err = ckptfmt_command(*argv)
    assert (again, err) == (status, "")

"""The progress of long work."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ckptfmt import Limits
from ckptfmt._cli.progress import bytes_to_read, counted
from ckptfmt._read.opening import find_checkpoint
from ckptfmt.stores import choose_store
from tests.ckptfmt.building import build, many_records
from tests.ckptfmt.command import Command


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

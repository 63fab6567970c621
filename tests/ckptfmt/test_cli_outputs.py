"""The outputs and the exit status of ``ckptfmt``, and unexpected errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from tests.ckptfmt.building import Built, build, many_records, write
from tests.ckptfmt.command import Command


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1", many_records(5, 50))


def test_an_error_with_json_is_one_line_on_stdout_too(tmp_path: Path, ckptfmt_command: Command) -> None:
    status, found = ckptfmt_command.json("verify", tmp_path / "nowhere")
    assert (status, found["error"]["code"]) == (2, "not_found")
    for argv in (["ls"], ["frobnicate"], ["prune", tmp_path, "--keep", 0], ["ls", "x", "--nope"]):
        status, found = ckptfmt_command.json(*argv)
        assert (status, found["error"]["code"]) == (2, "usage")
        assert found["error"]["message"]


def test_json_may_stand_before_the_command(built: Built, ckptfmt_command: Command) -> None:
    before = ckptfmt_command("--json", "ls", built.folder)
    assert before == ckptfmt_command("ls", built.folder, "--json")
    assert json.loads(before[1])["complete"]


def test_json_is_an_option_only_before_the_double_dash(tmp_path: Path, ckptfmt_command: Command) -> None:
    assert ckptfmt_command.refused("ls", "--", "--json")[0] == 2  # a path of this name
    status, out, _ = ckptfmt_command("export", tmp_path, "-o", "--json")
    assert (status, json.loads(out)["error"]["code"]) == (2, "usage")


def test_a_path_that_is_not_utf8(built: Built, tmp_path: Path, ckptfmt_command: Command) -> None:
    strange = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    status, found = ckptfmt_command.json("ls", strange)
    assert (status, found["error"]["code"]) == (2, "not_found")
    status, found = ckptfmt_command.json("copy", built.folder, strange)
    assert (status, found["url"]) == (0, f"{tmp_path}/\\udcff")
    assert ckptfmt_command.json("ls", strange)[0] == 0
    assert ckptfmt_command("ls", strange)[0] == 0


@pytest.mark.parametrize("error", [RuntimeError("a mistake"), MemoryError(), RecursionError("deep")])
def test_an_unexpected_error_is_not_reported_as_damage(
    built: Built, ckptfmt_command: Command, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("ckptfmt._cli.reading.open_checkpoint", fail)
    monkeypatch.delenv("CKPTFMT_DEBUG", raising=False)
    status, err = ckptfmt_command.refused("ls", built.folder)
    assert status == 2
    assert f"internal error: {type(error).__name__}" in err
    status, found = ckptfmt_command.json("ls", built.folder)
    assert (status, found["error"]["code"]) == (2, "internal_error")
    monkeypatch.setenv("CKPTFMT_DEBUG", "1")
    status, _, err = ckptfmt_command("ls", built.folder)
    assert status == 2
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("ckptfmt ls: internal error")


def _run(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ckptfmt", *argv],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        **options,
    )


def test_as_a_process(built: Built) -> None:
    done = _run("cat", str(built.folder), "agent-0", "r2")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["episode"] == "r2"
    assert _run("verify", str(built.folder / "no")).returncode == 2


def test_a_reader_that_stops_early_is_not_an_error(tmp_path: Path) -> None:
    write(tmp_path / "c", many_records(3000, 300), tuning=ckptfmt.Tuning())
    command = f"{sys.executable} -m ckptfmt cat {tmp_path / 'c'} | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, timeout=30, check=False
    )
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1


def _in_a_shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which ``ckptfmt`` is this one."""
    program = f'ckptfmt() {{ "{sys.executable}" -m ckptfmt "$@"; }}\n{line}'
    # Unbuffered, nothing would be left to fail when Python flushes at its end.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, env=environment, timeout=30, check=False
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("command", ["cat", "ls", "ls --json", "--version #", "--help #"])
def test_output_that_cannot_be_written_is_2(built: Built, command: str) -> None:
    words = command.partition("#")[0]
    url = "" if "#" in command else built.folder
    for redirection, said in ((">/dev/full", "cannot write the output"), (">&-", "is closed")):
        done = _in_a_shell(f"ckptfmt {words} {url} {redirection}")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert said in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-"])
def test_the_exit_status_is_kept_when_standard_error_is_not_writable(built: Built, redirection: str) -> None:
    assert _in_a_shell(f"ckptfmt ls {built.folder}/nowhere {redirection}").returncode == 2
    assert _in_a_shell(f"ckptfmt ls --nope {redirection}").returncode == 2
    assert _in_a_shell(f"ckptfmt verify {built.folder} {redirection}").returncode == 0
    (built.cut_folder / "cut.json").unlink()
    done = _in_a_shell(f"ckptfmt verify --json {built.folder} {redirection}")
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (1, False)

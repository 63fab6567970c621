"""``ckptfmt diff``, ``export`` and ``report``."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.ckptfmt.building import Built, build, many_records, record
from tests.ckptfmt.command import Command
from tests.ckptfmt.runs import checkpoint, records_file


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1", [*many_records(5), record("nan", [float("nan"), 2**70])])


def test_diff(tmp_path: Path, ckptfmt_command: Command) -> None:
    one = checkpoint(tmp_path, 1, [record("r", {"a": 1})]).folder
    other = checkpoint(tmp_path, 2, [record("r", {"a": 2})]).folder
    status, out, err = ckptfmt_command("diff", one, other)
    assert (status, err) == (1, "")
    assert "$.a: 1 -> 2" in out
    status, found = ckptfmt_command.json("diff", one, other)
    assert (status, found["same"]) == (1, False)
    assert found["participants"][0]["changed"][0]["places"][0]["path"] == "$.a"
    status, out, _ = ckptfmt_command("diff", one, one)
    assert status == 0
    assert "the same records" in out
    assert ckptfmt_command.refused("diff", one, tmp_path / "nowhere")[0] == 2
    assert ckptfmt_command.refused("diff", one)[0] == 2


def test_export_of_json_lines(built: Built, tmp_path: Path, ckptfmt_command: Command) -> None:
    status, out, err = ckptfmt_command("export", built.folder)
    assert (status, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 12
    assert rows[3] | {"payload": 0} == {
        "participant": "agent-0",
        "kind": "agent",
        "episode": "r3",
        "rollout_id": "r3",
        "attempt": 0,
        "boundary": 3,
        "schema": 1,
        "references": [],
        "size": rows[3]["size"],
        "payload": 0,
        "patches": None,
    }
    assert rows[3]["payload"]["number"] == 3
    assert rows[5]["payload"] == [None, None]
    assert json.loads(rows[5]["patches"]) == [[[], [[0, "nan"], [1, {"int": "400000000000000000"}]]]]
    status, out, _ = ckptfmt_command("export", built.folder, "tools/0", "-o", tmp_path / "x.jsonl")
    assert "6 records" in out
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 6
    status, out, _ = ckptfmt_command("export", built.folder, "--json")
    assert json.loads(out.splitlines()[-1]) == {"records": 12, "output": None}


def test_export_of_parquet(built: Built, tmp_path: Path, ckptfmt_command: Command) -> None:
    file = tmp_path / "x.parquet"
    file.write_bytes(b"replaced")
    assert ckptfmt_command.json("export", built.folder, "-o", file) == (
        0,
        {"records": 12, "output": str(file)},
    )
    table = pyarrow.parquet.read_table(file)
    assert table.num_rows == 12
    assert table.column("episode").to_pylist()[:2] == ["r0", "r1"]
    assert json.loads(table.column("payload")[3].as_py())["number"] == 3
    other = tmp_path / "y"
    assert ckptfmt_command("export", built.folder, "-o", other, "--format", "parquet")[0] == 0
    assert pyarrow.parquet.read_table(other).equals(table)


def test_an_export_that_fails_leaves_no_file(
    built: Built, tmp_path: Path, ckptfmt_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ckptfmt_command.refused("export", built.folder, "--format", "parquet")[0] == 2
    assert ckptfmt_command.refused("export", built.folder, "nobody", "-o", tmp_path / "x")[0] == 2
    status, err = ckptfmt_command.refused("export", built.folder, "-o", tmp_path / "no" / "x.jsonl")
    assert status == 2
    assert "no/x.jsonl" in err
    file = records_file(built)
    file.write_bytes(file.read_bytes()[:-1])
    for name in ("x.jsonl", "x.parquet"):
        assert ckptfmt_command.refused("export", built.folder, "-o", tmp_path / name)[0] == 1
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    status, err = ckptfmt_command.refused("export", built.folder, "-o", tmp_path / "x.parquet")
    assert status == 2
    assert "ckptfmt[frames]" in err


def test_report(built: Built, tmp_path: Path, ckptfmt_command: Command) -> None:
    file = tmp_path / "page.html"
    status, found = ckptfmt_command.json("report", built.folder, "-o", file)
    assert (status, found) == (0, {"output": str(file), "bytes": file.stat().st_size, "problems": []})
    assert file.read_text().startswith("<!DOCTYPE html>")
    assert ckptfmt_command.refused("report", built.folder)[0] == 2
    assert ckptfmt_command.refused("report", tmp_path / "nowhere", "-o", file)[0] == 2
    assert ckptfmt_command.refused("report", built.folder, "-o", tmp_path)[0] == 2
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".tmp")] == []


@pytest.mark.req("FS9")
def test_a_report_of_a_damaged_checkpoint_is_1(
    built: Built, tmp_path: Path, ckptfmt_command: Command
) -> None:
    stored = records_file(built)
    data = bytearray(stored.read_bytes())
    data[-20] ^= 1
    stored.write_bytes(data)
    file = tmp_path / "page.html"
    status, _, err = ckptfmt_command("report", built.folder, "-o", file)
    assert (status, err.count("\n")) == (1, 1)
    assert stored.name in err
    assert "damaged" in file.read_text()
    status, found = ckptfmt_command.json("report", built.folder, "-o", file)
    assert status == 1
    assert [(each["file"], each["code"]) for each in found["problems"]] == [
        (f"{built.cut.name}/agent-0/{stored.name}", "damaged")
    ]


def test_a_report_reads_nothing_when_it_cannot_be_written(
    built: Built, tmp_path: Path, ckptfmt_command: Command
) -> None:
    records_file(built).unlink()  # reading would report that first
    status, err = ckptfmt_command.refused("report", built.folder, "-o", tmp_path / "no" / "x.html")
    assert status == 2
    assert f"cannot write {tmp_path}/no/x.html: No such" in err


def test_names_of_standard_output(built: Built, ckptfmt_command: Command) -> None:
    lines = ckptfmt_command("export", built.folder)[1]
    for name in ("-", "/dev/stdout"):
        assert ckptfmt_command("export", built.folder, "-o", name) == (0, lines, "")
    _, out, _ = ckptfmt_command("export", built.folder, "-o", "-", "--json")
    assert out == lines + '{"records":12,"output":null}\n'
    assert ckptfmt_command("report", built.folder, "-o", "-")[1].startswith("<!DOCTYPE html>")
    assert ckptfmt_command.refused("export", built.folder, "-o", "-", "--format", "parquet")[0] == 2
    assert not os.path.exists("-")


def test_the_file_to_write_is_not_an_option(built: Built, ckptfmt_command: Command) -> None:
    for argv in (["export", built.folder, "-o", "--format"], ["report", built.folder, "-o", "-x"]):
        status, err = ckptfmt_command.refused(*argv)
        assert status == 2
        assert "is an option; write ./-" in err
    status, err = ckptfmt_command.refused("export", built.folder, "--format", "csv")
    assert status == 2
    assert "'csv' is not one of 'jsonl', 'parquet'" in err


def test_a_fifo_a_link_or_a_device_is_written_to(
    built: Built, tmp_path: Path, ckptfmt_command: Command
) -> None:
    lines = ckptfmt_command("export", built.folder)[1]
    fifo, link, target = tmp_path / "fifo", tmp_path / "link", tmp_path / "target"
    os.mkfifo(fifo)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_text()))
    reader.start()
    assert ckptfmt_command("export", built.folder, "-o", fifo)[0] == 0
    reader.join()
    assert got == [lines]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    link.symlink_to("target")
    for _ in ("no file yet", "a file to replace"):
        assert ckptfmt_command("export", built.folder, "-o", link)[0] == 0
        assert (link.is_symlink(), target.read_text()) == (True, lines)
        target.write_text("before")
    link.unlink()
    link.symlink_to("/dev/null")
    assert ckptfmt_command("export", built.folder, "-o", link)[0] == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert link.is_symlink()


def test_a_file_of_a_checkpoint_is_not_replaced(
    built: Built, tmp_path: Path, ckptfmt_command: Command
) -> None:
    link = tmp_path / "link"
    link.symlink_to(built.folder / "checkpoint.json")
    manifest = built.cut_folder / "agent-0" / "manifest.json"
    for file in (manifest, records_file(built), built.cut_folder / "cut.json", link):
        status, err = ckptfmt_command.refused("export", built.folder, "-o", file)
        assert status == 2
        assert "belongs to a checkpoint" in err
    assert ckptfmt_command("verify", built.folder)[0] == 0


def test_the_format_is_that_of_the_name(built: Built, tmp_path: Path, ckptfmt_command: Command) -> None:
    for name in ("x.csv", "x.arrow", "x.jsonl.gz"):
        status, err = ckptfmt_command.refused("export", built.folder, "-o", tmp_path / name)
        assert status == 2
        assert "--format" in err
        assert not (tmp_path / name).exists()
    assert ckptfmt_command("export", built.folder, "-o", tmp_path / "x.csv", "--format", "jsonl")[0] == 0
    assert ckptfmt_command("export", built.folder, "-o", tmp_path / "X.PARQUET")[0] == 0
    assert pyarrow.parquet.read_table(tmp_path / "X.PARQUET").num_rows == 12


def test_an_error_names_the_file_that_was_asked_for(
    built: Built, tmp_path: Path, ckptfmt_command: Command
) -> None:
    for path in (str(tmp_path), f"{tmp_path}/new/"):
        status, err = ckptfmt_command.refused("export", built.folder, "-o", path, "--format", "jsonl")
        assert status == 2
        assert f"cannot write {path}: Is a directory" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_export_that_is_stopped_leaves_no_file(
    built: Built, tmp_path: Path, number: signal.Signals
) -> None:
    program = (
        "import sys\n"
        "from ckptfmt._cli import main, export\n"
        "def wait(*_):\n"
        "    print('at work', flush=True)\n"
        "    sys.stdin.read()\n"
        "export.json_line = wait\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "export", str(built.folder), "-o", str(tmp_path / "x.jsonl")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    assert [each.name for each in tmp_path.glob("x*")] != []
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert [each.name for each in tmp_path.iterdir()] == ["run"]

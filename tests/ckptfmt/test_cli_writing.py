"""``ckptfmt diff``, ``export`` and ``report``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.ckptfmt.building import Built, build, many_records, record
from tests.ckptfmt.command import Command
from tests.ckptfmt.runs import checkpoint, records_file


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1", [*many_records(5), record("nan", [float("nan"), 2**70])])


@pytest.fixture
def ckptfmt_command(capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capfdbinary)


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
    assert rows[5]["patches"] == [[[], [[0, "nan"], [1, {"int": "400000000000000000"}]]]]
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
    assert (status, found) == (0, {"output": str(file), "bytes": file.stat().st_size})
    assert file.read_text().startswith("<!DOCTYPE html>")
    assert ckptfmt_command.refused("report", built.folder)[0] == 2
    assert ckptfmt_command.refused("report", tmp_path / "nowhere", "-o", file)[0] == 2
    assert ckptfmt_command.refused("report", built.folder, "-o", tmp_path)[0] == 2
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".tmp")] == []

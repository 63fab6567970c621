"""``ckptfmt copy`` and ``ckptfmt prune``."""

from __future__ import annotations

from pathlib import Path

import pytest

import ckptfmt
from tests.ckptfmt.building import Built, build, many_records
from tests.ckptfmt.command import Command
from tests.ckptfmt.runs import checkpoint, make_old, records_file


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1", many_records(20))


def test_copy(built: Built, tmp_path: Path, ckptfmt_command: Command) -> None:
    target = tmp_path / "copy"
    status, out, err = ckptfmt_command("copy", built.folder, target)
    assert (status, err) == (0, "")
    assert "complete" in out
    assert ckptfmt.open(target).verify().ok
    status, found = ckptfmt_command.json("copy", built.folder, target)
    assert status == 0
    assert (found["url"], found["copied"], found["present"] > 0) == (str(target), 0, True)
    assert found["digest"] == ckptfmt.open(target).digest


def test_copy_that_is_refused(built: Built, tmp_path: Path, ckptfmt_command: Command) -> None:
    other = build(tmp_path / "other")
    status, err = ckptfmt_command.refused("copy", built.folder, other.folder)
    assert status == 2
    assert "was not replaced" in err
    assert ckptfmt_command.refused("copy", tmp_path / "nowhere", tmp_path / "x")[0] == 2
    assert ckptfmt_command.refused("copy", built.folder)[0] == 2
    file = records_file(built)
    file.write_bytes(file.read_bytes()[:-1])
    assert ckptfmt_command.refused("copy", built.folder, tmp_path / "x")[0] == 1
    (built.folder / "checkpoint.json").unlink()
    assert ckptfmt_command.refused("copy", built.folder, tmp_path / "x")[0] == 1


def test_prune(tmp_path: Path, ckptfmt_command: Command) -> None:
    run = tmp_path / "run"
    for sequence in (1, 2, 3):
        checkpoint(run, sequence)
    ckptfmt.create_cut(run / "step-4", "step-4")
    status, out, err = ckptfmt_command("prune", run, "--keep", 2, "--dry-run")
    assert (status, err) == (0, "")
    assert all(said in out for said in ("would remove", "step-1", "step-4", "5 files", "would be removed"))
    assert (run / "step-1").exists()
    status, found = ckptfmt_command.json("prune", run, "--keep", 2)
    assert status == 0
    assert [each["path"] for each in found["removed"]] == ["step-1"]
    assert found["files"] == 5
    assert found["bytes"] == found["removed"][0]["size"] > 0
    assert [Path(each["path"]).parts[0] for each in found["kept"]] == ["step-4"]
    make_old(run)
    assert ckptfmt_command("prune", run, "--min-age", "11d")[0] == 0
    assert (run / "step-4").exists()
    status, out, _ = ckptfmt_command("prune", run, "--min-age", "12h", "--verify", "--keep-age", "1h")
    assert status == 0
    assert not (run / "step-4").exists()
    assert [each.name for each in ckptfmt.list(run)] == ["step-3"]
    assert "2 " not in ckptfmt_command("prune", run)[1]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--keep", "0"], "not a whole number from 1"),
        (["--keep"], "requires an argument; see ckptfmt prune --help"),
        (["--kee", "1"], "No such option: --kee"),
        (["--keep", "x"], "not a whole number from 1"),
        (["--keep-age", "7"], "write 90s, 30m, 12h or 7d"),
        (["--min-age", "-1d"], "not an age"),
        (["--min-age", "inf"], "not an age"),
        (["--min-age", "9" * 400 + "d"], "too long"),
        (["--keep-age", "9" * 400 + "s"], "too long"),
    ],
)
def test_wrong_usage(tmp_path: Path, ckptfmt_command: Command, argv: list[str], said: str) -> None:
    status, err = ckptfmt_command.refused("prune", tmp_path, *argv)
    assert status == 2
    assert said in err


def test_prune_of_nothing(tmp_path: Path, ckptfmt_command: Command) -> None:
    assert ckptfmt_command.refused("prune", tmp_path / "nowhere")[0] == 2
    assert ckptfmt_command("prune", tmp_path)[:2] == (0, "0 files, 0 bytes removed\n")


def test_json_holds_absolute_paths(
    built: Built, tmp_path: Path, ckptfmt_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert ckptfmt_command.json("ls", "run")[1]["url"] == str(tmp_path / "run")
    assert ckptfmt_command.json("prune", "run")[1]["url"] == str(tmp_path / "run")
    assert ckptfmt_command.json("copy", "run/step-1", "copy")[1]["url"] == str(tmp_path / "copy")


def test_a_count_of_one_is_singular(tmp_path: Path, ckptfmt_command: Command) -> None:
    one = checkpoint(tmp_path / "run", 1)
    extra = one.cut_folder / "agent-0" / f"records-{'0' * 64}.jsonl"
    extra.write_bytes(b"12345")
    assert (
        "1 file, 5 bytes would be removed"
        in ckptfmt_command("prune", tmp_path / "run", "--min-age", "0s", "--dry-run")[1]
    )
    assert "1 file of records copied" in ckptfmt_command("copy", one.folder, tmp_path / "copy")[1]

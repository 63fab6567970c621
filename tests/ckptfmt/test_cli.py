"""The commands of ``ckptfmt`` that read checkpoints; wrong usage, help and version."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt._values.compiled import form
from ckptfmt.testing import Fault, failing_disk
from tests.ckptfmt.building import Built, build, many_records, record, sealed, write
from tests.ckptfmt.command import Command


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1", many_records(5, 50))


def test_ls_of_a_run_names_its_checkpoints(built: Built, ckptfmt_command: Command) -> None:
    run = built.folder.parent
    ckptfmt.start_life(run)
    ckptfmt.create_cut(run / "step-2", "step-2")
    write(run / "alone", many_records(1))
    (run / "notes").mkdir()
    broken = build(run / "step-3")
    status, out, err = ckptfmt_command("ls", run)
    assert (status, err) == (0, "")
    assert all(word in out for word in ("step-1", "complete", "step-2", "incomplete", "alone"))
    assert "notes" not in out
    (broken.folder / "checkpoint.json").write_bytes(b"")
    status, found = ckptfmt_command.json("ls", run)
    assert status == 1
    assert [(each["name"], each["state"]) for each in found["checkpoints"]] == [
        ("alone", "incomplete"),
        ("step-1", "complete"),
        ("step-2", "incomplete"),
        ("step-3", "broken"),
    ]
    assert found["checkpoints"][1]["episodes"] == 5
    assert "is empty" in found["checkpoints"][3]["reason"]


def test_ls_of_a_checkpoint_and_of_a_participant(built: Built, ckptfmt_command: Command) -> None:
    status, out, _ = ckptfmt_command("ls", built.folder)
    assert status == 0
    assert "tools/0" in out
    status, found = ckptfmt_command.json("ls", built.folder)
    assert [(each["name"], each["kind"], each["records"]) for each in found["participants"]] == [
        ("agent-0", "agent", 5),
        ("tools/0", "resources", 5),
    ]
    status, found = ckptfmt_command.json("ls", built.folder, "agent-0")
    assert [(each["episode"], each["boundary"]) for each in found["records"]] == [
        ("r0", None),
        *((f"r{number}", number) for number in range(1, 5)),
    ]
    status, out, _ = ckptfmt_command("ls", built.folder, "agent-0")
    assert status == 0
    assert "r4" in out


def test_ls_of_a_participant_reads_no_record(built: Built, ckptfmt_command: Command) -> None:
    index = ckptfmt.open(built.folder)["agent-0"].index
    with failing_disk(Fault("open_for_reading", errno.EIO, "*records-*", times=None)):
        status, found = ckptfmt_command.json("ls", built.folder, "agent-0")
    assert status == 0
    assert [each["bytes"] for each in found["records"]] == list(index.length)


def test_a_table_is_neither_folded_nor_cut(built: Built, ckptfmt_command: Command) -> None:
    run = built.folder.parent
    name = "-".join(["a-long-name"] * 20)
    shutil.copytree(built.folder, run / name)
    (run / "step-2").mkdir()
    ckptfmt.create_cut(run / "step-2", "step-2")
    out = ckptfmt_command("ls", run)[1]
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["checkpoint", "state", "sequence", "participants", "episodes", "size", "id"]
    assert lines[1][:5] == [name, "complete", "1", "2", "5"]
    assert lines[1][-1] == "step-1"
    assert lines[3] == ["step-2", "incomplete"]
    assert lines[4][:2] == ["checkpoint.json:", "there"]
    shutil.rmtree(run / name)
    assert ckptfmt_command("ls", run)[1].splitlines()[0].split()[-1] == "size"  # ids that say nothing new


def test_a_missing_records_file_is_named_without_reading_any(built: Built, ckptfmt_command: Command) -> None:
    (stored,) = (built.cut_folder / "agent-0").glob("records-*")
    data = stored.read_bytes()
    for change, code in ((lambda: stored.write_bytes(data[1:]), "damaged"), (stored.unlink, "incomplete")):
        change()
        for command in ("ls", "show"):
            status, out, err = ckptfmt_command(command, built.folder)
            assert (status, err.count("\n")) == (1, 1)
            assert f"  {built.cut.name}/agent-0/{stored.name}: it " in out
            status, found = ckptfmt_command.json(command, built.folder)
            assert (status, found["complete"]) == (1, False)
            assert found["participants"][0]["problem"]["code"] == code
            assert found["participants"][1]["problem"] is None


def test_show(built: Built, ckptfmt_command: Command) -> None:
    status, out, _ = ckptfmt_command("show", built.folder)
    assert status == 0
    assert all(word in out for word in ("step-1", built.cut.name, "agent-0", "restarts"))
    status, found = ckptfmt_command.json("show", built.folder)
    assert (found["complete"], found["sequence"], found["cut"], found["episodes"]) == (
        True,
        1,
        built.cut.name,
        5,
    )
    assert found["participants"][0]["manifest"] == built.manifests["agent-0"]
    status, found = ckptfmt_command.json("show", built.folder, "agent-0")
    assert found["segments"][0]["records"] == 5
    status, out, _ = ckptfmt_command("show", built.folder, "tools/0")
    assert "zstd" in out


def test_cat_prints_the_stored_lines(built: Built, ckptfmt_command: Command) -> None:
    (stored,) = (built.cut_folder / "agent-0").glob("records-*")
    status, out, _ = ckptfmt_command("cat", built.folder, "agent-0")
    assert (status, out.encode()) == (0, stored.read_bytes())
    status, out, _ = ckptfmt_command("cat", built.folder)
    assert out.encode() == stored.read_bytes() * 2  # the other participant holds the same, compressed
    status, out, _ = ckptfmt_command("cat", built.folder, "tools/0", "r3")
    assert json.loads(out)["episode"] == "r3"
    assert out.encode() in stored.read_bytes()
    status, out, _ = ckptfmt_command("cat", built.folder, "agent-0", "--json")
    assert out.encode() == stored.read_bytes() + b'{"records":5}\n'


_GOOD = {"ok": True, "complete": True, "problems": []}


@pytest.mark.req("FS9")
def test_verify(built: Built, ckptfmt_command: Command) -> None:
    status, out, err = ckptfmt_command("verify", built.folder)
    assert (status, err) == (0, "")
    assert "every byte" in out
    assert ckptfmt_command.json("verify", built.folder) == (0, _GOOD)
    (stored,) = (built.cut_folder / "agent-0").glob("records-*")
    stored.unlink()
    (built.cut_folder / "cut.json").write_bytes(b"\0" * 10)
    status, found = ckptfmt_command.json("verify", built.folder)
    assert status == 1
    assert not found["ok"]
    assert [(each["file"], each["code"]) for each in found["problems"]] == [
        (f"{built.cut.name}/cut.json", "damaged"),
        (f"{built.cut.name}/agent-0/{stored.name}", "incomplete"),
    ]
    assert all(set(each) == {"file", "code", "message"} for each in found["problems"])
    status, out, err = ckptfmt_command("verify", built.folder)
    assert status == 1
    assert err.count("\n") == 1
    assert "2 problems" in err


def test_verify_lists_files_that_belong_to_nothing(built: Built, ckptfmt_command: Command) -> None:
    """C40: an extra file does no harm, and is not reported as damage."""
    extra = built.cut_folder / "agent-0" / f"records-{'0' * 64}.jsonl"
    extra.write_bytes(b"12345")
    status, out, err = ckptfmt_command("verify", built.folder)
    assert (status, err) == (0, "")
    assert "every byte" in out
    assert f"{built.cut.name}/agent-0/{extra.name}: 5 bytes, the manifest beside it does not name it" in out
    assert ckptfmt_command.json("verify", built.folder) == (0, _GOOD)


@pytest.mark.req("FS9", "CO11")
def test_verify_of_what_is_not_complete_is_1(built: Built, ckptfmt_command: Command) -> None:
    folder = build(built.folder.parent / "other").folder
    for place in (folder / built.cut.name, folder):
        shutil.rmtree(place, ignore_errors=True)
    write(folder, many_records(3))
    for place in (built.cut_folder, folder):
        status, out, err = ckptfmt_command("verify", place)
        assert status == 1
        assert "every byte is what was written; there is no checkpoint.json" in out
        assert err.count("\n") == 1
        assert "there is no checkpoint.json: it is not complete" in err
        bare = {"ok": True, "complete": False, "problems": []}
        assert ckptfmt_command.json("verify", place) == (1, bare)
        assert ckptfmt_command.json("verify", place, "--incomplete-ok") == (0, bare)
        assert ckptfmt_command("verify", place, "--incomplete-ok")[2] == ""
        assert "there is no checkpoint.json" in ckptfmt_command("ls", place)[1]
    next((folder / "agent-0").glob("records-*")).unlink()
    assert ckptfmt_command("verify", folder, "--incomplete-ok")[0] == 1


def test_what_to_do_depends_on_the_problem(built: Built, ckptfmt_command: Command) -> None:
    (built.folder / "checkpoint.json").write_bytes(sealed({"format": 2}))
    assert "restore from" not in ckptfmt_command("verify", built.folder)[2]
    (built.folder / "checkpoint.json").write_bytes(b"")
    assert "restore from another checkpoint or copy" in ckptfmt_command("verify", built.folder)[2]


@pytest.mark.req("CO11")
def test_incomplete_or_damaged_is_1(built: Built, ckptfmt_command: Command) -> None:
    (built.cut_folder / "agent-0" / "manifest.json").write_bytes(b"{}")
    status, _, err = ckptfmt_command("ls", built.folder)
    assert (status, err.count("\n")) == (1, 1)
    status, found = ckptfmt_command.json("show", built.folder)
    assert status == 1
    assert found["participants"][0]["problem"]["code"] == "damaged"
    assert found["participants"][1]["records"] == 5
    assert ckptfmt_command.refused("cat", built.folder, "agent-0")[0] == 1
    (built.folder / "checkpoint.json").write_bytes(sealed({"format": 2}))
    assert ckptfmt_command.refused("show", built.folder)[0] == 1
    (built.folder / "checkpoint.json").unlink()
    for command in ("ls", "show", "cat"):
        status, err = ckptfmt_command.refused(command, built.folder)
        assert status == 1
        assert "was not completed" in err
    assert ckptfmt_command.json("verify", built.folder)[0] == 1


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["ls", "{tmp}/nowhere"], "there is no such directory"),
        (["show", "{tmp}/nowhere"], "there is no such directory"),
        (["verify", "{tmp}"], "no checkpoint"),
        (["ls", "{tmp}"], "no checkpoint"),
        (["verify", "{tmp}/run"], "open one of them"),
        (["cat", "{tmp}/run/step-1", "nobody"], "no participant 'nobody'; there are: agent-0, tools/0"),
        (["ls", "{tmp}/run/step-1", "tools"], "no participant 'tools'; there are: agent-0, tools/0"),
        (["ls", "{tmp}/run/step-1/{cut}/agent-0"], "use a folder above it"),
        (["cat", "{tmp}/run/step-1", "agent-0", "nobody"], "no record of episode nobody"),
        (["cat", "{tmp}/run/step-1", "agent-0", "r-a1-a2"], "'r-a1-a2' is not a capture key, such as 17-0"),
        (["ls", "{tmp}/run/step-1", "[bold]x[/bold]"], "[bold]x[/bold]"),
        (["ls", "s3://bucket/x"], "not supported yet"),
        (["ls", "s3:/bucket/x"], "mistyped"),
        (["ls", "a\x1b[31mb"], r"a\x1b[31mb"),
        ([], "Missing command"),
        (["ls"], "Missing argument 'URL'"),
        (["frobnicate", "x"], "No such command"),
        (["ls", "x", "--nope"], "No such option: --nope; see ckptfmt ls --help"),
        (["verify", "x", "--incomplete"], "No such option: --incomplete"),  # no abbreviations
        (["completion", "bash"], "No such command"),
        (["verify", "x", "y"], "unexpected extra argument"),
    ],
)
def test_wrong_usage_and_not_found_are_2(
    built: Built, tmp_path: Path, ckptfmt_command: Command, argv: list[str], said: str
) -> None:
    places = {"{tmp}": str(tmp_path), "{cut}": built.cut.name}
    for name, value in places.items():
        argv = [each.replace(name, value) for each in argv]
    status, err = ckptfmt_command.refused(*argv)
    assert status == 2
    assert said in err


def test_a_store_error_is_2(built: Built, ckptfmt_command: Command) -> None:
    for command in ("ls", "verify", "cat"):
        with failing_disk(Fault("open_for_reading", errno.EIO, "*manifest.json")):
            status, err = ckptfmt_command.refused(command, built.folder)
        assert status == 2
        assert os.strerror(errno.EIO) in err


def test_ls_names_the_checkpoints_beside_one_that_cannot_be_read(
    built: Built, ckptfmt_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = built.folder.parent
    (build(run / "step-3").folder / "checkpoint.json").write_bytes(b"")
    build(run / "step-2")
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if path.endswith("/step-2"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    def check(*calls: Callable[[Path], object]) -> None:
        status, found = ckptfmt_command.json("ls", run)
        assert status == 2
        assert [each["state"] for each in found["checkpoints"]] == ["complete", "unreadable", "broken"]
        assert os.strerror(errno.EACCES) in found["checkpoints"][1]["reason"]
        _, out, err = ckptfmt_command("ls", run)
        assert "step-1" in out
        assert [line.split(":")[1] for line in err.splitlines()] == [
            " step-2 is unreadable",
            " step-3 is broken",
        ]
        for call in calls:
            with pytest.raises(ckptfmt.StoreError):
                call(run)

    with failing_disk(Fault("open_for_reading", errno.EACCES, "*/step-2/checkpoint.json", times=None)):
        check(ckptfmt.list, ckptfmt.latest, ckptfmt.prune)
    monkeypatch.setattr(os, "scandir", refuse)
    check(ckptfmt.list, ckptfmt.prune)  # latest reads checkpoint.json and lists nothing beside it


def test_ids_are_data(tmp_path: Path, ckptfmt_command: Command) -> None:
    write(tmp_path / "[red]x", [record("r")], checkpoint_id="[bold]:smile: \u202etxt", kind="[/] kind")
    status, out, _ = ckptfmt_command("show", tmp_path / "[red]x")
    assert status == 0
    assert "[bold]:smile: \\u202etxt" in out
    assert "[/] kind" in out
    status, out, _ = ckptfmt_command("ls", tmp_path)
    assert "[red]x" in out


def test_version_and_help(ckptfmt_command: Command) -> None:
    assert ckptfmt_command("--version") == (0, f"ckptfmt {ckptfmt.__version__} ({form()})\n", "")
    status, out, err = ckptfmt_command("--help")
    assert (status, err) == (0, "")
    for name in ("ls", "show", "cat", "verify", "diff", "export", "copy", "prune", "report"):
        assert re.search(rf"^  {name} +\w.*\.$", out, re.MULTILINE)  # a whole sentence, nothing is cut
        for option in ("-h", "--help"):
            status, help_text, err = ckptfmt_command(name, option)
            assert (status, err) == (0, "")
            assert all(each in help_text for each in (f"Usage: ckptfmt {name} ", "--json", "Exit status"))
    assert "Exit status" in out

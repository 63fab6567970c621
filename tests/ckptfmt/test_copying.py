"""``ckptfmt.copy``: byte for byte, checked at the source and the target, ``checkpoint.json`` last."""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import Conflict, Damaged, Incomplete, NotFound, StoreError
from ckptfmt.testing import Fault, failing_disk
from tests.ckptfmt.building import Built, build, files_below, many_records, record, write


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1", many_records(40))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere" / "kept"


def _have_same_files(one: Path, other: Path) -> bool:
    files = files_below(one)
    return files == files_below(other) and filecmp.cmpfiles(one, other, files, shallow=False)[0] == files


@pytest.mark.req("CO11", "FS4")
def test_a_copy_has_the_same_bytes(built: Built, target: Path) -> None:
    progress: list[int] = []
    result = ckptfmt.copy(built.folder, target, progress=progress.append)
    assert _have_same_files(built.folder, target)
    assert ckptfmt.open(target).verify().ok
    size = sum(part.manifest.bytes for part in ckptfmt.open(target).values())
    assert (result.digest, result.copied_bytes, result.present) == (ckptfmt.open(target).digest, size, 0)
    assert result.copied == sum(len(part.manifest.segments) for part in ckptfmt.open(target).values()) > 3
    assert sum(progress) == 2 * size


def test_orphans_are_not_copied(built: Built, target: Path) -> None:
    before = built.files()
    other_cut = ckptfmt.create_cut(built.folder, "step-1")
    write(Path(other_cut.url), [record("z")])
    (built.cut_folder / "agent-0" / f"records-{'a' * 64}.jsonl").write_bytes(b"x")
    ckptfmt.copy(built.folder, target)
    assert files_below(target) == before


def test_a_checkpoint_without_a_cut_is_copied(tmp_path: Path, target: Path) -> None:
    manifest = write(tmp_path / "c", many_records(3), participant="x/y")
    ckptfmt.publish(tmp_path / "c", participants={"x/y": manifest.digest}, sequence=3)
    ckptfmt.copy(tmp_path / "c", target)
    assert _have_same_files(tmp_path / "c", target)


@pytest.mark.req("CO11")
def test_copying_again_succeeds_and_repairs(built: Built, target: Path) -> None:
    first = ckptfmt.copy(built.folder, target)
    again = ckptfmt.copy(built.folder, target)
    assert (again.copied, again.present) == (0, first.copied)
    damaged = next((target / built.cut.name / "agent-0").glob("records-*"))
    damaged.write_bytes(bytes(damaged.stat().st_size))
    assert ckptfmt.copy(built.folder, target).copied == 1
    assert _have_same_files(built.folder, target)
    assert ckptfmt.copy(target, target).copied == 0


@pytest.mark.req("FS4", "CO11")
def test_another_checkpoint_is_never_replaced(built: Built, target: Path, tmp_path: Path) -> None:
    build(target, many_records(2))
    before = files_below(target)
    with pytest.raises(Conflict, match="another file is there"):
        ckptfmt.copy(built.folder, target)
    assert files_below(target) == before
    assert ckptfmt.open(target).verify().ok
    unreadable = tmp_path / "unreadable"
    unreadable.mkdir()
    (unreadable / "checkpoint.json").write_bytes(b"?")
    with pytest.raises(Conflict):
        ckptfmt.copy(built.folder, unreadable)
    assert files_below(unreadable) == ["checkpoint.json"]
    for name in (f"{built.cut.name}/agent-0/manifest.json", f"{built.cut.name}/cut.json"):
        other = tmp_path / name.replace("/", "-")
        (other / name).parent.mkdir(parents=True)
        (other / name).write_bytes(b"another")
        with pytest.raises(Conflict):
            ckptfmt.copy(built.folder, other)
        assert (other / name).read_bytes() == b"another"
        assert not (other / "checkpoint.json").exists()


@pytest.mark.req("FS9", "CO11")
@pytest.mark.parametrize("name", ["records-*", "index-*", "manifest.json", "cut.json", "checkpoint.json"])
def test_damage_is_never_copied(built: Built, target: Path, name: str) -> None:
    file = next(built.folder.rglob(name))
    good = file.read_bytes()
    for data in (good[:-20] + b"#" + good[-19:], good[:-1], good + b"\n"):
        file.write_bytes(data)
        with pytest.raises(Damaged):
            ckptfmt.copy(built.folder, target)
        assert not (target / "checkpoint.json").exists()
        assert not [each for each in files_below(target) if each.endswith(".tmp")]
        for each in target.rglob("records-*"):
            assert each.read_bytes() == (built.folder / each.relative_to(target)).read_bytes() != data
    file.unlink()
    with pytest.raises(Incomplete):
        ckptfmt.copy(built.folder, target)
    file.write_bytes(good)
    ckptfmt.copy(built.folder, target)
    assert _have_same_files(built.folder, target)


def test_the_error_for_damage_names_the_damaged_checkpoint(built: Built, target: Path) -> None:
    stored = next((built.cut_folder / "agent-0").glob("records-*"))
    stored.write_bytes(stored.read_bytes()[1:])
    with pytest.raises(Damaged) as caught:
        ckptfmt.copy(built.folder, target)
    assert str(caught.value).startswith(f"{built.folder}: ")
    assert caught.value.file == f"{built.cut.name}/agent-0/{stored.name}"


def test_a_checkpoint_is_not_copied_into_itself(built: Built, tmp_path: Path) -> None:
    before = built.files()
    link = tmp_path / "link"
    link.symlink_to(built.folder)
    for place in (built.folder / "in", built.cut_folder, link / "a" / "b"):
        with pytest.raises(Conflict, match="inside the checkpoint"):
            ckptfmt.copy(built.folder, place)
    assert built.files() == before
    assert ckptfmt.copy(built.folder, link).copied == 0  # it is a complete copy already


@pytest.mark.req("CO11")
def test_only_complete_checkpoints_are_copied(built: Built, target: Path, tmp_path: Path) -> None:
    for url, kind in ((built.cut_folder, Incomplete), (tmp_path / "nowhere", NotFound)):
        with pytest.raises(kind):
            ckptfmt.copy(url, target)
    assert not target.exists()


@pytest.mark.req("FS5", "CO11")
def test_files_appear_in_a_safe_order(built: Built, target: Path) -> None:
    with failing_disk() as disk:
        ckptfmt.copy(built.folder, target)
    placed = [
        os.path.relpath(call.path, target) for call in disk.calls if call.operation in ("link", "replace")
    ]
    names = [path.rpartition("/")[2].partition("-")[0] for path in placed]
    assert names[-2:] == ["cut.json", "checkpoint.json"]
    once = list(dict.fromkeys(names))
    assert once == ["records", "index", "manifest.json", "cut.json", "checkpoint.json"]
    # Each participant's names are durable before its manifest appears.
    for number, call in enumerate(disk.calls):
        if call.operation == "link" and call.path.endswith("manifest.json"):
            folder = os.path.dirname(call.path)
            synced = [each.path for each in disk.calls[:number] if each.operation == "sync_directory"]
            assert folder in synced
            assert str(target) in synced


@pytest.mark.req("CO11")
@pytest.mark.parametrize("operation", ["create", "write", "sync", "link", "replace", "sync_directory"])
def test_a_copy_that_failed_at_any_call_can_be_continued(built: Built, target: Path, operation: str) -> None:
    for after in range(0, 200, 3):
        shutil.rmtree(target, ignore_errors=True)
        with failing_disk(Fault(operation, errno.EIO, f"{target.parent}/*", after=after)):  # type: ignore[arg-type]
            try:
                ckptfmt.copy(built.folder, target)
            except StoreError:
                failed = True
            else:
                failed = False
        if (target / "checkpoint.json").exists():
            assert ckptfmt.open(target).verify().ok
        ckptfmt.copy(built.folder, target)
        assert _have_same_files(built.folder, target)
        if not failed:
            return
    raise AssertionError("no attempt succeeded")


_COPY_AND_DIE = """
import os, signal, sys, ckptfmt
from ckptfmt.testing import failing_disk
left = int(sys.argv[3])
def on_call(call):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
with failing_disk(on_call=on_call):
    ckptfmt.copy(sys.argv[1], sys.argv[2])
"""


@pytest.mark.req("CO11", "FS8")
def test_a_killed_copy_can_be_continued(built: Built, target: Path) -> None:
    for calls in range(20, 200, 40):
        argv = [sys.executable, "-c", _COPY_AND_DIE, str(built.folder), str(target), str(calls)]
        done = subprocess.run(argv, check=False, timeout=30)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        if (target / "checkpoint.json").exists():
            assert ckptfmt.open(target).verify().ok
    ckptfmt.copy(built.folder, target)
    assert ckptfmt.open(target).verify().ok
    for orphan in ckptfmt.list(target.parent).orphans:
        assert orphan.kind == "temporary"
    ckptfmt.prune(target.parent, minimum_age=0.0)
    assert _have_same_files(built.folder, target)


@pytest.mark.req("CO11", "FS10")
def test_a_checkpoint_copied_by_another_tool_is_complete(built: Built, target: Path) -> None:
    """The files contain no paths, and reading needs no permission to write."""
    shutil.copytree(built.folder, target)
    with failing_disk(
        *(Fault(each, errno.EROFS, times=None) for each in ("create", "unlink", "make_directory"))
    ):
        assert ckptfmt.open(target).verify().ok
        assert ckptfmt.latest(target.parent).digest == ckptfmt.open(built.folder).digest


@pytest.mark.req("RE3", "FS8")
def test_an_unfinished_copy_by_another_tool_is_reported_as_broken(built: Built, target: Path) -> None:
    """If the manifests were copied before the records, the records are missing, and nothing is deleted."""
    shutil.copytree(built.folder, target, ignore=shutil.ignore_patterns("records-*"))
    before = files_below(target)
    with pytest.raises(Incomplete, match="records file is missing"):
        list(ckptfmt.open(target)["agent-0"])
    (listed,) = ckptfmt.list(target.parent)
    assert (listed.state, "missing" in str(listed.reason)) == ("broken", True)
    assert ckptfmt.prune(target.parent, keep=1, minimum_age=0.0).removed == ()
    assert files_below(target) == before

"""``ckptfmt.prune``: what goes, what stays, and that nothing needed is ever gone."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import PruneResult, StoreError
from ckptfmt._run.listing import list_store
from ckptfmt.stores._interface import Store
from ckptfmt.testing import Fault, failing_disk
from tests.ckptfmt.building import files_below, many_records, record, write
from tests.ckptfmt.runs import checkpoint, make_old, records_file


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def removed(result: PruneResult) -> list[str]:
    return [each.path for each in result.removed]


def kept(result: PruneResult) -> list[str]:
    return [each.path for each in result.kept]


def complete(run: Path) -> list[str]:
    return [each.name for each in ckptfmt.list(run).complete()]


def test_without_being_asked_no_checkpoint_goes(run: Path) -> None:
    for sequence in range(3):
        checkpoint(run, sequence)
    make_old(run)
    before = files_below(run)
    result = ckptfmt.prune(run)
    assert (result.removed, result.kept, result.size) == ((), (), 0)
    assert files_below(run) == before


@pytest.mark.req("FS8")
def test_keep_by_count(run: Path) -> None:
    for sequence in (1, 2, 10, 3):
        checkpoint(run, sequence)
    ckptfmt.start_life(run)
    result = ckptfmt.prune(run, keep=2)
    assert removed(result) == ["step-1", "step-2"]
    assert result.removed[0].files == 5
    assert result.size == sum(each.size for each in result.removed) > 0
    assert complete(run) == ["step-3", "step-10"]
    assert sorted(os.listdir(run)) == ["lives", "step-10", "step-3"]
    assert all(ckptfmt.open(run / name).verify().ok for name in ("step-3", "step-10"))


def test_keep_by_age(run: Path) -> None:
    for sequence in range(1, 5):
        make_old(checkpoint(run, sequence).folder, seconds=(5 - sequence) * 86400)
    assert removed(ckptfmt.prune(run, keep_seconds=2.5 * 86400)) == ["step-1", "step-2"]
    assert removed(ckptfmt.prune(run, keep=2, keep_seconds=60.0)) == []
    assert removed(ckptfmt.prune(run, keep=1, keep_seconds=1.5 * 86400)) == ["step-3"]
    make_old(run)
    checkpoint(run, 3)
    assert removed(ckptfmt.prune(run, keep_seconds=0.0)) == ["step-3"]  # the last one stays at any age
    assert complete(run) == ["step-4"]


@pytest.mark.req("FS8")
def test_the_last_complete_checkpoint_stays(run: Path) -> None:
    """C38: whatever is asked, and however broken what came later is."""
    for sequence in range(1, 5):
        checkpoint(run, sequence)
    for sequence in (3, 4):
        records_file_of = next((run / f"step-{sequence}").rglob("records-*"))
        records_file_of.unlink()
    make_old(run)
    result = ckptfmt.prune(run, keep=1, keep_seconds=0.0)
    assert removed(result) == ["step-1"]
    assert kept(result) == ["step-3", "step-4"]
    assert complete(run) == ["step-2"]
    assert ckptfmt.open(run / "step-2").verify().ok
    for keep in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            ckptfmt.prune(run, keep=keep)
    with pytest.raises(ValueError, match="not negative"):
        ckptfmt.prune(run, minimum_age=-1)


def test_a_broken_checkpoint_goes_when_it_is_older_than_what_stays(run: Path) -> None:
    broken = checkpoint(run, 1)
    records_file(broken).unlink()
    unreadable = checkpoint(run, 2)
    (unreadable.folder / "checkpoint.json").write_bytes(b"")
    checkpoint(run, 3)
    result = ckptfmt.prune(run, keep=1)
    assert removed(result) == ["step-1"]
    assert kept(result) == ["step-2"]
    assert not broken.folder.exists()


def test_verify_counts_only_what_is_really_good(run: Path) -> None:
    for sequence in range(1, 4):
        checkpoint(run, sequence)
    file = records_file(checkpoint(run, 4))
    data = bytearray(file.read_bytes())
    data[-10] ^= 1
    file.write_bytes(data)
    assert complete(run)[-1] == "step-4"  # a flipped bit is not seen without reading
    result = ckptfmt.prune(run, keep=2, verify=True)
    assert removed(result) == ["step-1"]
    assert kept(result) == ["step-4"]
    assert complete(run) == ["step-2", "step-3", "step-4"]


def test_when_nothing_is_good_nothing_goes(run: Path) -> None:
    for sequence in (1, 2):
        file = records_file(checkpoint(run, sequence))
        file.write_bytes(file.read_bytes().replace(b"number", b"numbed"))
    assert removed(ckptfmt.prune(run, keep=1, verify=True)) == []
    assert complete(run) == ["step-1", "step-2"]


@pytest.mark.req("FS8")
def test_orphans_go_when_they_are_old_enough(run: Path) -> None:
    built = checkpoint(run, 1)
    before = files_below(run)
    zombie = ckptfmt.create_cut(built.folder, "step-1")
    write(Path(zombie.url), many_records(2), participant="tools/0")
    dead = ckptfmt.create_cut(run / "step-2", "step-2")
    agent = built.cut_folder / "agent-0"
    unnamed = agent / f"records-{'a' * 64}.jsonl"
    temporary = agent / ".ckptfmt-0123456789abcdef.tmp"
    for path in (unnamed, temporary, run / ".ckptfmt-aa.tmp"):
        path.write_bytes(b"12345")
    young = ckptfmt.prune(run)
    assert removed(young) == []
    assert len(young.kept) == 5
    assert all("may still be in use" in each.reason for each in young.kept)
    make_old(run)
    planned = ckptfmt.prune(run, dry_run=True)
    assert planned.dry_run
    assert len(planned.removed) == 5
    assert Path(zombie.url).exists()
    done = ckptfmt.prune(run)
    assert [vars_of(each) for each in done.removed] == [vars_of(each) for each in planned.removed]
    assert files_below(run) == before
    assert not Path(dead.url).parent.exists()


def vars_of(pruned: ckptfmt.Pruned) -> tuple[object, ...]:
    return (pruned.path, pruned.kind, pruned.reason, pruned.files, pruned.size)


@pytest.mark.req("FS8")
@pytest.mark.parametrize(
    "wrong",
    [
        *({"minimum_age": age} for age in (float("nan"), float("inf"), -1, True, "3", None)),
        *({"keep_seconds": age} for age in (float("nan"), float("inf"), -0.5, False, "3")),
        *({"keep": count} for count in (True, 1.5, "3", float("nan"))),
    ],
)
def test_a_number_that_protects_nothing_is_refused(run: Path, wrong: dict[str, Any]) -> None:
    """NaN is neither young nor old: a cut that is being written must not go for it."""
    for sequence in (1, 2):
        checkpoint(run, sequence)
    ckptfmt.create_cut(run / "step-3", "step-3")
    before = files_below(run)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ckptfmt.prune(run, **{"keep": 1, **wrong})
    assert files_below(run) == before


@pytest.mark.req("FS8")
def test_a_cut_that_may_still_be_written_stays(run: Path) -> None:
    """Its age is that of the newest thing in it, by the store's clock."""
    checkpoint(run, 1)
    cut = ckptfmt.create_cut(run / "step-2", "step-2")
    make_old(run)
    writer = ckptfmt.create(cut.url, participant="agent-0", kind="agent", checkpoint_id="step-2")
    writer.write(record("r"))
    manifest = writer.publish()
    assert removed(ckptfmt.prune(run, keep=1)) == []
    ckptfmt.publish(run / "step-2", participants={"agent-0": manifest.digest}, sequence=2, cut=cut)
    assert removed(ckptfmt.prune(run, keep=1)) == ["step-1"]
    assert ckptfmt.latest(run).verify().ok


def test_the_clock_is_that_of_the_store(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(run, 1)
    ckptfmt.create_cut(run / "step-2", "step-2")
    monkeypatch.setattr(time, "time", lambda: 1e12)
    assert removed(ckptfmt.prune(run)) == []
    assert [name for name in files_below(run) if name.endswith(".tmp")] == []


@pytest.mark.req("FS8")
def test_a_checkpoint_that_completes_meanwhile_stays(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = ckptfmt.create_cut(run / "step-1", "step-1")
    manifest = write(Path(cut.url), many_records(2))
    make_old(run)

    def look_then_publish(store: Store, limits: ckptfmt.Limits) -> ckptfmt.Listing:
        listing = list_store(store, limits)
        ckptfmt.publish(run / "step-1", participants={"agent-0": manifest.digest}, sequence=1, cut=cut)
        return listing

    monkeypatch.setattr("ckptfmt._run.pruning.list_store", look_then_publish)
    result = ckptfmt.prune(run)
    assert removed(result) == []
    assert "names it now" in result.kept[0].reason
    assert ckptfmt.open(run / "step-1").verify().ok


def test_what_is_not_ours_is_never_touched(run: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    built = checkpoint(outside, 7)
    keep = outside / "keep"
    keep.mkdir()
    (keep / ".ckptfmt-aa.tmp").write_bytes(b"x")
    old = checkpoint(run, 1)
    (old.folder / "weights.bin").write_bytes(b"w")
    (old.cut_folder / "agent-0" / "notes").write_bytes(b"n")
    cut = ckptfmt.create_cut(run / "step-3", "step-3")
    (Path(cut.url) / "link").symlink_to(keep)
    (Path(cut.url) / f"records-{'0' * 64}.jsonl").symlink_to(keep / ".ckptfmt-aa.tmp")
    (run / "step-0").symlink_to(built.folder)
    checkpoint(run, 8)
    make_old(run)
    result = ckptfmt.prune(run, keep=1)
    assert removed(result) == ["step-1", f"step-3/{cut.name}"]
    assert "step-0" in kept(result)
    assert (old.folder / "weights.bin").read_bytes() == b"w"
    assert (old.cut_folder / "agent-0" / "notes").exists()
    assert (keep / ".ckptfmt-aa.tmp").exists()
    assert (Path(cut.url) / "link").is_symlink()
    assert ckptfmt.open(built.folder).verify().ok


@pytest.mark.req("FS8")
@pytest.mark.parametrize("with_cut", [True, False])
def test_a_prune_that_was_interrupted_is_finished_by_the_next(run: Path, with_cut: bool) -> None:
    for calls in range(12):
        if with_cut:
            checkpoint(run, 1)
        else:
            manifest = write(run / "step-1", many_records(3))
            ckptfmt.publish(run / "step-1", participants={"agent-0": manifest.digest}, sequence=1)
        checkpoint(run, 2)
        with failing_disk(Fault("unlink", errno.EIO, "*/step-1/*", after=calls, times=None)):
            try:
                ckptfmt.prune(run, keep=1)
            except StoreError:
                interrupted = True
            else:
                interrupted = False
        assert complete(run)[-1] == "step-2"
        make_old(run)
        ckptfmt.prune(run, keep=1)
        assert os.listdir(run) == ["step-2"], f"interrupted after {calls}"
        (run / "step-2").rename(run.parent / f"done-{calls}")
        if not interrupted:
            return
    raise AssertionError("it never ended")


def test_a_read_only_run_can_be_looked_at(run: Path) -> None:
    for sequence in (1, 2):
        checkpoint(run, sequence)
    with failing_disk(Fault("create", errno.EROFS, times=None)):
        assert removed(ckptfmt.prune(run, keep=1, dry_run=True)) == ["step-1"]

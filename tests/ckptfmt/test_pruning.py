"""``ckptfmt.prune``: what it removes, what it keeps, and that it never removes what is needed."""

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
from ckptfmt.stores import Store
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


def test_without_arguments_all_checkpoints_are_kept(run: Path) -> None:
    for sequence in range(3):
        checkpoint(run, sequence)
    make_old(run)
    before = files_below(run)
    result = ckptfmt.prune(run)
    assert (result.removed, result.kept, result.size) == ((), (), 0)
    assert files_below(run) == before


@pytest.mark.req("FS8")
def test_checkpoints_are_kept_by_count(run: Path) -> None:
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


def test_checkpoints_are_kept_by_age(run: Path) -> None:
    for sequence in range(1, 5):
        make_old(checkpoint(run, sequence).folder, seconds=(5 - sequence) * 86400)
    assert removed(ckptfmt.prune(run, keep_seconds=2.5 * 86400)) == ["step-1", "step-2"]
    assert removed(ckptfmt.prune(run, keep=2, keep_seconds=60.0)) == []
    assert removed(ckptfmt.prune(run, keep=1, keep_seconds=1.5 * 86400)) == ["step-3"]
    make_old(run)
    checkpoint(run, 3)
    assert removed(ckptfmt.prune(run, keep_seconds=0.0)) == ["step-3"]  # the latest one is kept at any age
    assert complete(run) == ["step-4"]


@pytest.mark.req("FS8")
def test_the_latest_complete_checkpoint_is_always_kept(run: Path) -> None:
    """With any arguments, and even if all later checkpoints are broken."""
    for sequence in range(1, 5):
        checkpoint(run, sequence)
    for sequence in (3, 4):
        file = next((run / f"step-{sequence}").rglob("records-*"))
        file.unlink()
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


def test_a_broken_checkpoint_older_than_the_kept_ones_is_removed(run: Path) -> None:
    broken = checkpoint(run, 1)
    records_file(broken).unlink()
    unreadable = checkpoint(run, 2)
    (unreadable.folder / "checkpoint.json").write_bytes(b"")
    checkpoint(run, 3)
    result = ckptfmt.prune(run, keep=1)
    assert removed(result) == ["step-1"]
    assert kept(result) == ["step-2"]
    assert not broken.folder.exists()


def test_verify_counts_only_undamaged_checkpoints(run: Path) -> None:
    for sequence in range(1, 4):
        checkpoint(run, sequence)
    file = records_file(checkpoint(run, 4))
    data = bytearray(file.read_bytes())
    data[-10] ^= 1
    file.write_bytes(data)
    assert complete(run)[-1] == "step-4"  # listing does not read the records
    result = ckptfmt.prune(run, keep=2, verify=True)
    assert removed(result) == ["step-1"]
    assert kept(result) == ["step-4"]
    assert complete(run) == ["step-2", "step-3", "step-4"]


def test_without_an_undamaged_checkpoint_all_are_kept(run: Path) -> None:
    for sequence in (1, 2):
        file = records_file(checkpoint(run, sequence))
        file.write_bytes(file.read_bytes().replace(b"number", b"numbed"))
    assert removed(ckptfmt.prune(run, keep=1, verify=True)) == []
    assert complete(run) == ["step-1", "step-2"]


@pytest.mark.req("FS8")
def test_old_orphans_are_removed(run: Path) -> None:
    built = checkpoint(run, 1)
    before = files_below(run)
    other_cut = ckptfmt.create_cut(built.folder, "step-1")
    write(Path(other_cut.url), many_records(2), participant="tools/0")
    unfinished = ckptfmt.create_cut(run / "step-2", "step-2")
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
    assert Path(other_cut.url).exists()
    done = ckptfmt.prune(run)
    assert [as_tuple(each) for each in done.removed] == [as_tuple(each) for each in planned.removed]
    assert files_below(run) == before
    assert not Path(unfinished.url).parent.exists()


def as_tuple(pruned: ckptfmt.Pruned) -> tuple[object, ...]:
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
def test_invalid_ages_and_counts_are_refused(run: Path, wrong: dict[str, Any]) -> None:
    """NaN compares as neither young nor old; no cut that is being written may be removed because of it."""
    for sequence in (1, 2):
        checkpoint(run, sequence)
    ckptfmt.create_cut(run / "step-3", "step-3")
    before = files_below(run)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ckptfmt.prune(run, **{"keep": 1, **wrong})
    assert files_below(run) == before


@pytest.mark.req("FS8")
def test_a_cut_with_a_recent_file_is_kept(run: Path) -> None:
    """The age of a cut is that of its newest file, by the store's clock."""
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


def test_ages_are_measured_by_the_clock_of_the_store(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(run, 1)
    ckptfmt.create_cut(run / "step-2", "step-2")
    monkeypatch.setattr(time, "time", lambda: 1e12)
    assert removed(ckptfmt.prune(run)) == []
    assert [name for name in files_below(run) if name.endswith(".tmp")] == []


@pytest.mark.req("FS8")
def test_a_checkpoint_completed_after_the_listing_is_kept(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = ckptfmt.create_cut(run / "step-1", "step-1")
    manifest = write(Path(cut.url), many_records(2))
    make_old(run)

    def list_then_publish(store: Store, limits: ckptfmt.Limits) -> ckptfmt.Listing:
        listing = list_store(store, limits)
        ckptfmt.publish(run / "step-1", participants={"agent-0": manifest.digest}, sequence=1, cut=cut)
        return listing

    monkeypatch.setattr("ckptfmt._run.pruning.list_store", list_then_publish)
    result = ckptfmt.prune(run)
    assert removed(result) == []
    assert "names it now" in result.kept[0].reason
    assert ckptfmt.open(run / "step-1").verify().ok


def test_other_files_and_links_are_never_deleted(run: Path, tmp_path: Path) -> None:
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
def test_the_next_prune_finishes_an_interrupted_one(run: Path, with_cut: bool) -> None:
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
    raise AssertionError("no attempt succeeded")


def test_a_dry_run_works_on_a_read_only_run(run: Path) -> None:
    for sequence in (1, 2):
        checkpoint(run, sequence)
    with failing_disk(Fault("create", errno.EROFS, times=None)):
        assert removed(ckptfmt.prune(run, keep=1, dry_run=True)) == ["step-1"]

"""``ckptfmt.list``: the checkpoints, the lives and the orphans of a run."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import NotFound, StoreError
from ckptfmt.testing import Fault, failing_disk
from tests.ckptfmt.building import many_records, record, sealed, write
from tests.ckptfmt.runs import checkpoint, records_file


def states(run: Path) -> dict[str, str]:
    return {each.name: each.state for each in ckptfmt.list(run)}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_complete_checkpoints_are_listed_in_natural_order(run: Path) -> None:
    for sequence in (10, 9, 100):
        checkpoint(run, sequence)
    (run / "notes").mkdir()
    (run / "notes" / "records.txt").write_text("not a checkpoint")
    (run / "file").write_text("")
    listing = ckptfmt.list(run)
    assert [each.name for each in listing] == ["step-9", "step-10", "step-100"]
    first = listing[0]
    assert (first.state, first.checkpoint_id, first.sequence, first.participants, first.episodes) == (
        *("complete", "step-9", 9, 1, 3),
    )
    assert first.size == ckptfmt.open(first.url)["agent-0"].manifest.bytes
    assert first.modified == (run / "step-9" / "checkpoint.json").stat().st_mtime
    assert first.reason is None
    assert listing.orphans == ()
    assert listing.lives == ()
    assert len(listing[1:]) == 2


@pytest.mark.req("CO11")
def test_incomplete_and_broken_checkpoints_are_listed_with_a_reason(run: Path) -> None:
    """No manifest, a damaged one, another digest, a missing file, a short one, and unfinished writing."""
    checkpoint(run, 1)
    ckptfmt.create_cut(run / "step-2", "step-2")
    write(run / "step-3", many_records(2))
    damaged = checkpoint(run, 4)
    (damaged.cut_folder / "agent-0" / "manifest.json").write_bytes(b"{}")
    replaced = checkpoint(run, 5)
    other = write(run / "elsewhere" / "x", [record("r")], checkpoint_id="step-5")
    assert other.digest
    (run / "elsewhere" / "x" / "agent-0" / "manifest.json").replace(
        replaced.cut_folder / "agent-0" / "manifest.json"
    )
    no_manifest = checkpoint(run, 6)
    (no_manifest.cut_folder / "agent-0" / "manifest.json").unlink()
    no_records = checkpoint(run, 7)
    records_file(no_records).unlink()
    short = checkpoint(run, 8)
    os.truncate(records_file(short), 10)
    linked = checkpoint(run, 9)
    records_file(linked).rename(run / "moved")
    (linked.cut_folder / "agent-0" / f"records-{'0' * 64}.jsonl").symlink_to(run / "moved")
    no_cut = checkpoint(run, 10)
    (no_cut.cut_folder / "cut.json").unlink()
    empty = checkpoint(run, 11)
    (empty.folder / "checkpoint.json").write_bytes(b"")
    newer = checkpoint(run, 12)
    (newer.folder / "checkpoint.json").write_bytes(sealed({"format": 2}))
    found = {each.name: (each.state, str(each.reason)) for each in ckptfmt.list(run)}
    expected = {
        "step-1": ("complete", "None"),
        "step-2": ("incomplete", "was not completed"),
        "step-3": ("incomplete", "never completed"),
        "step-4": ("broken", "manifest.json"),
        "step-5": ("broken", "not the one that was published"),
        "step-6": ("broken", "there is no manifest"),
        "step-7": ("broken", "missing"),
        "step-8": ("broken", "10 bytes"),
        "step-9": ("broken", "missing"),
        "step-10": ("broken", "cut.json"),
        "step-11": ("broken", "is empty"),
        "step-12": ("broken", "format version is 2"),
    }
    assert {name: state for name, (state, _) in found.items() if name in expected} == {
        name: state for name, (state, _) in expected.items()
    }
    for name, (_, reason) in expected.items():
        assert reason in found[name][1], name


def test_a_link_instead_of_a_records_file_makes_a_checkpoint_broken(run: Path) -> None:
    built = checkpoint(run, 1)
    file = records_file(built)
    file.rename(run / "moved")
    file.symlink_to(run / "moved")
    (listed,) = ckptfmt.list(run)
    assert (listed.state, "not a regular file" in str(listed.reason)) == ("broken", True)


@pytest.mark.req("FS8")
def test_orphans_are_listed(run: Path) -> None:
    built = checkpoint(run, 1)
    other_cut = ckptfmt.create_cut(built.folder, "step-1")
    write(Path(other_cut.url), many_records(2))
    agent = built.cut_folder / "agent-0"
    unnamed = agent / f"records-{'a' * 64}.jsonl"
    unnamed.write_bytes(b"12345")
    (agent / f"index-{'b' * 64}.json").write_bytes(b"1")
    (agent / ".ckptfmt-0123456789abcdef.tmp").write_bytes(b"123")
    (agent / "notes.txt").write_text("another file")
    (built.cut_folder / f"scope-{'c' * 64}.json").write_bytes(b"{}")
    write(built.cut_folder, [record("x")], participant="late")
    unfinished = ckptfmt.create_cut(run / "step-2", "step-2")
    (run / ".ckptfmt-aa.tmp").write_bytes(b"")
    ckptfmt.start_life(run)
    (run / "lives" / ".ckptfmt-bb.tmp").write_bytes(b"")
    listing = ckptfmt.list(run)
    inner = f"step-1/{built.cut.name}/agent-0"
    found = {each.path: each for each in listing.orphans}
    assert {path: each.kind for path, each in found.items()} == {
        f"step-1/{other_cut.name}": "cut",
        f"{inner}/{unnamed.name}": "file",
        f"{inner}/index-{'b' * 64}.json": "file",
        f"{inner}/.ckptfmt-0123456789abcdef.tmp": "temporary",
        f"step-1/{built.cut.name}/late": "participant",
        f"step-2/{unfinished.name}": "cut",
        ".ckptfmt-aa.tmp": "temporary",
        "lives/.ckptfmt-bb.tmp": "temporary",
    }
    assert found[f"{inner}/{unnamed.name}"].size == 5
    cut = found[f"step-1/{other_cut.name}"]
    names = [Path(each).name for each in cut.files]
    assert (names[0], names[-1], len(names)) == ("manifest.json", "cut.json", 4)
    assert states(run) == {"step-1": "complete", "step-2": "incomplete"}
    assert "orphans" in repr(listing)


def test_a_damaged_checkpoint_has_no_orphans(run: Path) -> None:
    unreadable = checkpoint(run, 1)
    (unreadable.folder / "checkpoint.json").write_bytes(b"x")
    damaged = checkpoint(run, 2)
    (damaged.cut_folder / "agent-0" / "manifest.json").write_bytes(b"x")
    no_manifest = checkpoint(run, 3)
    (no_manifest.cut_folder / "agent-0" / "manifest.json").unlink()
    other = checkpoint(run, 4)
    manifest = other.cut_folder / "agent-0" / "manifest.json"
    write(run / "x" / "y", [record("r")], checkpoint_id="step-4")
    (run / "x" / "y" / "agent-0" / "manifest.json").replace(manifest)
    orphans = ckptfmt.list(run).orphans
    assert [each.path for each in orphans if not each.path.startswith("x/")] == []


def test_a_run_inside_of_a_run_is_ignored(run: Path) -> None:
    """A folder below the run that has checkpoints of its own is another run."""
    checkpoint(run, 1)
    damaged = checkpoint(run / "inner", 1)
    (damaged.cut_folder / "agent-0" / "manifest.json").unlink()
    unfinished_cut = ckptfmt.create_cut(run / "inner" / "step-2", "step-2")
    records = Path(unfinished_cut.url) / "agent-0" / f"records-{'0' * 64}.jsonl"
    records.parent.mkdir()
    records.write_bytes(b"x")
    listing = ckptfmt.list(run)
    assert [each.name for each in listing] == ["step-1"]
    assert listing.orphans == ()
    assert [each.kind for each in ckptfmt.list(run / "inner").orphans] == ["cut"]


@pytest.mark.filterwarnings("error")
def test_other_files_are_not_an_incomplete_checkpoint(run: Path) -> None:
    checkpoint(run, 1)
    for name in ("wandb/html/index-main.js", "eval/records-2026.csv", "docs/index-0.json", "records-x/a"):
        (run / name).parent.mkdir(parents=True)
        (run / name).write_text("x")
    assert states(run) == {"step-1": "complete"}
    assert ckptfmt.latest(run).passed_over == ()
    (run / "step-2" / "agent-0").mkdir(parents=True)
    (run / "step-2" / "agent-0" / f"records-{'0' * 64}.jsonl.zst").write_text("x")
    assert states(run) == {"step-1": "complete", "step-2": "incomplete"}


def test_lives_are_listed(run: Path) -> None:
    ckptfmt.start_life(run)
    ckptfmt.start_life(run, "step-1")
    (run / "lives" / "2.json").write_bytes(b"")
    (run / "lives" / "3.json").write_bytes(sealed({"life": 4, "source_checkpoint_id": None}))
    (run / "lives" / "x.json").write_bytes(b"")
    lives = ckptfmt.list(run).lives
    assert [(each.number, each.source_checkpoint_id) for each in lives] == [
        *((0, None), (1, "step-1"), (2, None), (3, None)),
    ]
    assert [each.problem is None for each in lives] == [True, True, False, False]


def test_a_missing_folder_is_not_found_and_an_empty_one_has_no_checkpoint(run: Path) -> None:
    with pytest.raises(NotFound):
        ckptfmt.list(run)
    run.mkdir()
    assert list(ckptfmt.list(run)) == []
    with pytest.raises(NotFound, match="no checkpoint"):
        ckptfmt.latest(run)


def test_folders_of_checkpoints_cuts_and_participants_are_not_runs(run: Path) -> None:
    built = checkpoint(run, 1)
    for folder in (built.folder, built.cut_folder, built.cut_folder / "agent-0"):
        for call in (ckptfmt.list, ckptfmt.latest, ckptfmt.prune):
            with pytest.raises(NotFound, match="not the folder of a run"):
                call(folder)


def test_a_store_error_is_raised_and_not_listed_as_broken(run: Path) -> None:
    checkpoint(run, 1)
    with failing_disk(Fault("open_for_reading", errno.EIO, "*manifest.json", times=None)):
        with pytest.raises(StoreError):
            ckptfmt.list(run)


def test_an_interrupted_copy_is_listed_as_incomplete(run: Path) -> None:
    """``copy`` creates ``cut.json`` after the manifests, so the cut may not have one yet."""
    cut = run / "step-1" / f"cut-{'0' * 16}"
    write(cut, many_records(2))
    (listed,) = ckptfmt.list(run)
    assert listed.state == "incomplete"
    assert [each.kind for each in ckptfmt.list(run).orphans] == ["cut"]

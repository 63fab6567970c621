"""Opening a checkpoint: the number of store calls, links, and missing files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import Incomplete, NotFound
from ckptfmt.stores import choose_store
from ckptfmt.testing import CountingStore
from tests.ckptfmt.building import build, many_records, write


@pytest.mark.req("FS9", "CO11")
def test_a_checkpoint_whose_cut_is_missing_is_incomplete(tmp_path: Path) -> None:
    built = build(tmp_path / "step-1")
    shutil.rmtree(built.cut_folder)
    with pytest.raises(Incomplete, match=rf"{built.cut.name}/cut.json: there is none"):
        ckptfmt.open(built.folder)
    assert [each.state for each in ckptfmt.list(tmp_path)] == ["broken"]
    assert not ckptfmt.verify(built.folder).ok
    with pytest.raises(NotFound, match="no such directory"):
        ckptfmt.read_cut(built.cut_folder)


def test_latest_does_not_walk_through_complete_checkpoints(tmp_path: Path) -> None:
    for step in (1, 2):
        build(tmp_path / f"step-{step}")
    store = CountingStore(choose_store(tmp_path))
    assert ckptfmt.latest(store).sequence == 1
    assert "walk" not in store.counts()
    (tmp_path / "step-3" / "cut-0123456789abcdef").mkdir(parents=True)
    with pytest.warns(ckptfmt.LaterCheckpointUnusable, match="step-3 is incomplete"):
        ckptfmt.latest(store)
    assert store.counts()["walk"] > 0


def test_a_participant_behind_a_link_is_found(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", many_records(3))
    (tmp_path / "c").mkdir()
    os.symlink(tmp_path / "elsewhere" / "agent-0", tmp_path / "c" / "agent-0")
    assert len(ckptfmt.open(tmp_path / "c")["agent-0"]) == 3


def test_a_cycle_of_links_ends(tmp_path: Path) -> None:
    write(tmp_path / "c", many_records(3))
    os.symlink(tmp_path / "c", tmp_path / "c" / "again")
    assert "agent-0" in ckptfmt.open(tmp_path / "c")
    assert ckptfmt.list(tmp_path)[0].state == "incomplete"


def test_the_number_of_calls_to_open_does_not_depend_on_the_number_of_files(tmp_path: Path) -> None:
    """Without ``checkpoint.json`` one walk finds all participants."""
    for folder, participants in (("few", 1), ("many", 9)):
        for number in range(participants):
            write(tmp_path / folder, many_records(2), participant=f"agent-{number}")
        store = CountingStore(choose_store(tmp_path / folder))
        assert len(ckptfmt.open(store)) == participants
        # Both missing files, checkpoint.json and cut.json, cost one listing of their folder.
        assert store.counts() == {"read": 2, "entries": 2, "walk": 1}

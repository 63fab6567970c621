"""What is opened, with how many calls, and what a missing part is called."""

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
def test_a_missing_cut_is_a_part_that_is_missing(tmp_path: Path) -> None:
    built = build(tmp_path / "step-1")
    shutil.rmtree(built.cut_folder)
    with pytest.raises(Incomplete, match=rf"{built.cut.name}/cut.json: there is none"):
        ckptfmt.open(built.folder)
    assert [each.state for each in ckptfmt.list(tmp_path)] == ["broken"]
    assert not ckptfmt.verify(built.folder).ok
    with pytest.raises(NotFound, match="no such directory"):
        ckptfmt.read_cut(built.cut_folder)


def test_the_latest_checkpoint_is_found_without_a_walk_through_complete_ones(tmp_path: Path) -> None:
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


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    write(tmp_path / "c", many_records(3))
    os.symlink(tmp_path / "c", tmp_path / "c" / "again")
    assert "agent-0" in ckptfmt.open(tmp_path / "c")
    assert ckptfmt.list(tmp_path)[0].state == "incomplete"


def test_a_url_is_opened_with_a_number_of_calls_that_does_not_grow(tmp_path: Path) -> None:
    """Also where there is no ``checkpoint.json``: one walk says what there is."""
    for folder, participants in (("few", 1), ("many", 9)):
        for number in range(participants):
            write(tmp_path / folder, many_records(2), participant=f"agent-{number}")
        store = CountingStore(choose_store(tmp_path / folder))
        assert len(ckptfmt.open(store)) == participants
        # checkpoint.json and cut.json are not there: their folder is looked at once each.
        assert store.counts() == {"read": 2, "entries": 2, "walk": 1}

"""``ckptfmt.latest``: the checkpoint to restore, and warnings about later ones that cannot be used."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import Damaged, Incomplete, LaterCheckpointUnusable
from tests.ckptfmt.runs import checkpoint, records_file


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.mark.req("CO11")
def test_latest_is_the_complete_checkpoint_with_the_highest_sequence(run: Path) -> None:
    for sequence in (2, 10, 9):
        checkpoint(run, sequence)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ckptfmt.latest(run)
    assert (found.sequence, found.id, found.passed_over) == (10, "step-10", ())


@pytest.mark.req("CO11")
def test_latest_warns_about_unusable_later_checkpoints(run: Path) -> None:
    checkpoint(run, 1)
    good = checkpoint(run, 2)
    broken = checkpoint(run, 3)
    records_file(broken).unlink()
    with pytest.warns(LaterCheckpointUnusable, match=r"step-3 is broken.*missing"):
        found = ckptfmt.latest(run)
    assert found.sequence == 2
    assert [each.name for each in found.passed_over] == ["step-3"]
    ckptfmt.create_cut(run / "step-4", "step-4")
    with pytest.warns(LaterCheckpointUnusable, match="step-4 is incomplete"):
        assert len(ckptfmt.latest(run).passed_over) == 2
    # There is no warning about older checkpoints.
    checkpoint(run, 5)
    old = good.folder / "checkpoint.json"
    old.unlink()
    for path in (good.folder, *good.folder.rglob("*")):
        os.utime(path, (1, 1))
    for path in (run / "step-4", *(run / "step-4").rglob("*")):
        os.utime(path, (1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ckptfmt.latest(run).sequence == 5
    # The sequence of an unreadable checkpoint.json is unknown, so it may be later.
    (broken.folder / "checkpoint.json").write_bytes(b"")
    with pytest.warns(LaterCheckpointUnusable, match="step-3"):
        assert ckptfmt.latest(run).sequence == 5


def test_only_incomplete_and_only_broken_checkpoints_are_different_errors(run: Path) -> None:
    ckptfmt.create_cut(run / "step-1", "step-1")
    with pytest.raises(Incomplete, match="step-1"):
        ckptfmt.latest(run)
    broken = checkpoint(run, 2)
    (broken.folder / "checkpoint.json").write_bytes(b"")
    with pytest.raises(Damaged, match=r"step-2 is broken.*is empty") as refused:
        ckptfmt.latest(run)
    assert not isinstance(refused.value, Incomplete)

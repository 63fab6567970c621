"""Pickled checkpoints, participants and bodies."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import shutil
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import (
    Conflict,
    Damaged,
    NotFound,
)
from ckptfmt._model.checkpoint_file import seal_checkpoint_body
from tests.ckptfmt.building import Built, build, many_records


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1")


def _read_all(part: ckptfmt.ParticipantCheckpoint) -> tuple[str, int, int]:
    return part.name, len(list(part)), sum(each.payload["number"] for each in part)


def test_checkpoints_and_participants_can_be_sent_to_other_processes(tmp_path: Path) -> None:
    built = build(tmp_path / "c", many_records(20))
    checkpoint = ckptfmt.open(built.folder)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_read_all, checkpoint.values()) == [("agent-0", 20, 190), ("tools/0", 20, 190)]
    for copied in (pickle.loads(pickle.dumps(checkpoint)), copy.deepcopy(checkpoint)):
        assert (copied.url, copied.digest, copied.body) == (
            checkpoint.url,
            checkpoint.digest,
            checkpoint.body,
        )
        assert copied["agent-0"]["r7"].payload == checkpoint["agent-0"]["r7"].payload
        assert copied.verify().ok
    part = copy.deepcopy(checkpoint["tools/0"])
    assert (part.manifest, part.kind) == (checkpoint["tools/0"].manifest, "resources")
    assert len(pickle.dumps(checkpoint)) < 1000
    for place in (built.cut_folder, built.cut_folder / "tools"):
        opened = ckptfmt.open(place)
        assert list(pickle.loads(pickle.dumps(opened))) == list(opened)


@pytest.mark.req("FS9")
def test_a_pickled_participant_keeps_its_limits_and_reports_damage(built: Built) -> None:
    limits = ckptfmt.Limits(record_bytes=10)
    part = pickle.loads(pickle.dumps(ckptfmt.open(built.folder, limits=limits)["agent-0"]))
    with pytest.raises(Damaged, match="integers from 1 to 10"):
        list(part)
    data = pickle.dumps(ckptfmt.open(built.folder)["agent-0"])
    (file,) = (built.cut_folder / "agent-0").glob("records-*")
    file.write_bytes(file.read_bytes().replace(b'"number":1', b'"number":2'))
    with pytest.raises(Damaged, match=f"^{built.cut.name}/agent-0/records-"):
        list(pickle.loads(data))


@pytest.mark.req("CO11")
def test_unpickling_refuses_another_checkpoint_in_the_same_folder(tmp_path: Path) -> None:
    folder = build(tmp_path / "c").folder
    data = pickle.dumps(ckptfmt.open(folder))
    shutil.rmtree(folder)
    with pytest.raises(NotFound):
        pickle.loads(data)
    build(folder)
    with pytest.raises(Conflict, match="another checkpoint than the one that was pickled"):
        pickle.loads(data)


def test_a_pickled_body_stays_read_only(tmp_path: Path) -> None:
    body = ckptfmt.open(build(tmp_path / "c").folder).body
    assert body is not None
    for copied in (pickle.loads(pickle.dumps(body)), copy.deepcopy(body)):
        assert copied == body
        assert seal_checkpoint_body(copied) == seal_checkpoint_body(body)
        with pytest.raises(TypeError):
            copied.marks["r"] = 1  # type: ignore[index]


def test_passed_over_checkpoints_are_pickled(tmp_path: Path) -> None:
    build(tmp_path / "step-1")
    ckptfmt.create_cut(tmp_path / "step-2", "step-2")
    with pytest.warns(ckptfmt.LaterCheckpointUnusable):
        checkpoint = ckptfmt.latest(tmp_path)
    assert len(checkpoint.passed_over) == 1
    assert pickle.loads(pickle.dumps(checkpoint)).passed_over == checkpoint.passed_over

"""Opening checkpoints, cuts and bare folders, and what they show."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import (
    EpisodeId,
    Incomplete,
    InexactValue,
    NotFound,
)
from tests.ckptfmt.building import Built, build, many_records, record, write


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1")


@pytest.mark.req("CO11")
def test_a_checkpoint_without_a_cut_can_be_opened(tmp_path: Path) -> None:
    manifest = write(tmp_path, many_records(3))
    ckptfmt.publish(tmp_path, participants={"agent-0": manifest.digest}, sequence=3)
    checkpoint = ckptfmt.open(tmp_path)
    assert checkpoint.cut is None
    assert checkpoint.state is None
    assert checkpoint["agent-0"]["r1"].boundary == 1
    assert checkpoint.verify().ok


@pytest.mark.req("CO11", "FS10")
def test_checkpoints_cuts_and_bare_folders_can_be_opened(built: Built, tmp_path: Path) -> None:
    cut = ckptfmt.open(built.cut_folder)
    assert (cut.id, cut.cut, cut.sequence, cut.digest) == ("step-1", built.cut.name, None, None)
    assert sorted(cut) == sorted(built.manifests) == ["agent-0", "tools/0"]
    assert cut.verify().ok
    bare = tmp_path / "bare"
    write(bare, many_records(3), participant="x/y", checkpoint_id="c")
    checkpoint = ckptfmt.open(bare)
    assert list(checkpoint) == ["x/y"]
    assert (checkpoint.id, checkpoint.restarts, dict(checkpoint.marks)) == ("c", (), {})
    assert checkpoint.episodes == ("r0", "r1", "r2")
    assert "x" not in checkpoint
    with pytest.raises(NotFound):
        checkpoint["x"]
    assert checkpoint.get("missing") is None
    assert str(ckptfmt.open(f"file://{bare}")) == str(checkpoint)


@pytest.mark.req("CO11")
def test_an_incomplete_checkpoint_is_reported_as_incomplete(built: Built, tmp_path: Path) -> None:
    (built.folder / "checkpoint.json").unlink()
    for attempt in (ckptfmt.open, ckptfmt.read_checkpoint):
        with pytest.raises(Incomplete, match="was not completed"):
            attempt(built.folder)
    (problem,) = ckptfmt.verify(built.folder).problems
    assert (problem.file, problem.code) == ("checkpoint.json", "incomplete")
    for url in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(NotFound):
            ckptfmt.open(url)
        with pytest.raises(NotFound):
            ckptfmt.verify(url)
    with pytest.raises(NotFound, match="folder of one participant"):
        ckptfmt.open(built.cut_folder / "agent-0")
    with pytest.raises(NotFound):
        ckptfmt.read_checkpoint(tmp_path / "nowhere")
    (built.cut_folder / "agent-0" / "manifest.json").unlink()
    (built.cut_folder / "tools" / "0" / "manifest.json").unlink()
    (built.cut_folder / "cut.json").unlink()
    with pytest.raises(Incomplete, match="nothing was committed"):
        ckptfmt.open(built.cut_folder)


@pytest.mark.req("CO11")
def test_the_folder_of_a_run_is_not_a_checkpoint(built: Built) -> None:
    write(built.folder.parent / "bare", many_records(2))
    with pytest.raises(NotFound, match="holds checkpoints"):
        ckptfmt.open(built.folder.parent)


@pytest.mark.req("CO11")
def test_a_cut_that_checkpoint_json_does_not_name_is_ignored(built: Built) -> None:
    other_cut = ckptfmt.create_cut(built.folder, "step-1")
    write(Path(other_cut.url), many_records(2, prefix="z"))
    checkpoint = ckptfmt.open(built.folder)
    assert checkpoint.episodes == ("r0", "r1")
    assert checkpoint.verify().ok


@pytest.mark.req("FS10")
def test_a_copied_checkpoint_is_complete_once_all_files_are_copied(built: Built, tmp_path: Path) -> None:
    copied = tmp_path / "elsewhere"
    shutil.copytree(built.folder, copied)
    assert ckptfmt.open(copied).verify().ok
    # An unfinished copy whose manifests came first: the records are missing, and nothing is deleted.
    for path in copied.rglob("records-*"):
        path.unlink()
    messages = [problem.message for problem in ckptfmt.verify(copied).problems]
    assert messages
    assert all("the records file is missing" in message for message in messages)
    shutil.copytree(built.folder, copied, dirs_exist_ok=True)
    assert ckptfmt.open(copied).verify().ok


@pytest.mark.req("FS10")
def test_a_read_only_checkpoint_can_be_read(built: Built) -> None:
    for path in sorted(built.folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert ckptfmt.open(built.folder).verify().ok
        assert len(built.restore()) == 4
    finally:
        for path in built.folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_reprs_name_the_object_and_show_no_payload(built: Built) -> None:
    checkpoint = ckptfmt.open(built.folder)
    assert "2 participants, complete" in repr(checkpoint)
    assert "agent-0 (agent): 2 records" in repr(checkpoint["agent-0"])
    assert repr(checkpoint["agent-0"]["r1"]) == "<StoredRecord r1 at boundary 1: 42 bytes>"


def test_reprs_are_short_and_show_no_state(tmp_path: Path) -> None:
    secret = {"token": "hunter2", "more": ["x" * 10**6], "large": 10**6000}
    each = ckptfmt.Record(EpisodeId("r", 2), secret, 4, references=("key/hunter2",))
    assert repr(each) == "<Record r-a2 at boundary 4: dict of 3 elements, 1 reference>"
    encoded = ckptfmt.Record(EpisodeId("r"), ckptfmt.JsonPayload.of([1, 2]))
    assert repr(encoded) == "<Record r at boundary None: 5 bytes>"
    assert repr(record("r", "hunter2")) == "<Record r at boundary None: str of 7 characters>"
    assert repr(record("r", (1,))) == "<Record r at boundary None: tuple>"
    manifest = write(tmp_path, [each, *many_records(999)], kind="agent\u202e", checkpoint_id="c\u202e")
    ckptfmt.publish(tmp_path, participants={"agent-0": manifest.digest}, sequence=3, state=secret)
    checkpoint = ckptfmt.open(tmp_path)
    assert repr(checkpoint.body) == (
        "<CheckpointBody c\\u202e: sequence 3, 1 participant, 1000 episodes, 0 restarts, "
        "state: dict of 3 elements>"
    )
    assert repr(checkpoint["agent-0"]) == (
        f"<ParticipantCheckpoint agent-0 (agent\\u202e): 1000 records, {manifest.bytes} bytes>"
    )
    one = write(tmp_path / "one", [record("r")])
    assert "agent-0 (agent): 1 record, " in repr(ckptfmt.open(tmp_path / "one")["agent-0"])
    assert one.records == 1


def test_the_error_for_a_missing_participant_names_the_existing_ones(built: Built) -> None:
    with pytest.raises(NotFound, match=r"no participant 'env'; the checkpoint has agent-0, tools/0$"):
        _ = ckptfmt.open(built.folder)["env"]
    folder = built.folder.parent / "step-2"
    cut = ckptfmt.create_cut(folder, "two")
    ckptfmt.publish(folder, participants={}, sequence=2, cut=cut)
    with pytest.raises(NotFound, match="the checkpoint has no participants"):
        _ = ckptfmt.open(folder)["env"]
    digests = {
        f"p{n:02}": write(folder.parent / "many", [], participant=f"p{n:02}").digest for n in range(30)
    }
    ckptfmt.publish(folder.parent / "many", participants=digests, sequence=3)
    with pytest.raises(NotFound, match=r"has p00, p01, .*p09 and 20 more$"):
        _ = ckptfmt.open(folder.parent / "many")["env"]


@pytest.mark.parametrize("scope", ["17-0", b"17-0", EpisodeId("r"), 3])
def test_a_single_key_is_not_a_scope(built: Built, scope: Any) -> None:
    part = ckptfmt.open(built.folder)["agent-0"]
    with pytest.raises(TypeError, match=f"scope takes several keys, .* {type(scope).__name__}"):
        part.read(scope=scope)
    with pytest.raises(TypeError, match="rollouts takes several keys"):
        part.restore(scope, 10)
    with pytest.raises(TypeError, match="digest takes a str"):
        ckptfmt.open_participant(built.cut_folder, "agent-0", digest=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("references", [None, 3, EpisodeId("r")])
def test_references_must_be_a_sequence_of_strings(references: Any) -> None:
    with pytest.raises(InexactValue, match="episode r: references are a sequence of strings, not of type"):
        ckptfmt.Record(EpisodeId("r"), 1, references=references)

"""Completing a checkpoint, opening it in its shapes, cuts, lives, and where things may lie."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import (
    Conflict,
    Damaged,
    EpisodeId,
    Incomplete,
    InexactValue,
    InvalidId,
    NotFound,
    Unsupported,
    UnusableDirectory,
)
from ckptfmt.testing import same_exact
from tests.ckptfmt.building import Built, body_of, build, files_below, many_records, record, sealed, write


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1")


@pytest.mark.req("CO11", "RS6")
def test_checkpoint_json_says_what_was_committed(tmp_path: Path) -> None:
    folder = tmp_path / "step-7"
    cut = ckptfmt.create_cut(folder, "seven")
    agent = write(Path(cut.url), [record("b-a2"), record("a")], checkpoint_id="seven")
    tools = write(
        Path(cut.url), [record("c"), record("a")], checkpoint_id="seven", participant="t", kind="resources"
    )
    state = {"seen": [1, 2**70, math.nan], "\ud800": {"x": -0.0}}
    digest = ckptfmt.publish(
        folder,
        participants={"t": tools.digest, "agent-0": agent.digest},
        sequence=7,
        state=state,
        cut=cut,
        restarts=[EpisodeId("z", 3), "y"],
        marks={"b": 1, "a": 0},
    )
    checkpoint = ckptfmt.open(folder)
    assert (checkpoint.id, checkpoint.sequence, checkpoint.digest, checkpoint.cut) == (
        "seven",
        7,
        digest,
        cut.name,
    )
    assert checkpoint.episodes == ("a", "b-a2", "c")
    assert checkpoint.restarts == ("y", "z-a3")
    assert dict(checkpoint.marks) == {"a": 0, "b": 1}
    assert same_exact(checkpoint.state, state)
    assert list(checkpoint) == ["agent-0", "t"]
    assert checkpoint["t"].kind == "resources"
    body = ckptfmt.read_checkpoint(folder)
    assert body.digest == digest
    assert body.cut == ckptfmt.CutReference(cut.name, cut.digest)
    assert body.participants["t"] == ckptfmt.ParticipantReference("resources", tools.digest)
    stored = body_of(folder / "checkpoint.json")
    assert list(stored) == [
        *("format", "features", "checkpoint_id", "sequence", "cut", "participants", "episodes", "restarts"),
        *("marks", "state", "patches"),
    ]
    assert checkpoint.verify().ok


@pytest.mark.req("CO11")
def test_the_same_content_again_is_success_and_other_content_a_conflict(built: Built) -> None:
    before = (built.folder / "checkpoint.json").read_bytes()
    again = ckptfmt.publish(
        built.folder, participants=built.manifests, sequence=1, cut=built.cut.name, state={"seed": 2**70}
    )
    assert again == ckptfmt.open(built.folder).digest
    with pytest.raises(Conflict, match="not replaced"):
        ckptfmt.publish(built.folder, participants=built.manifests, sequence=2, cut=built.cut)
    assert (built.folder / "checkpoint.json").read_bytes() == before


@pytest.mark.req("CO11", "RS6")
def test_parts_that_do_not_belong_together_are_refused(built: Built, tmp_path: Path) -> None:
    folder = tmp_path / "other"

    def publish(**changes: Any) -> None:
        ckptfmt.publish(folder, **{"participants": digests, "sequence": 1, **changes})

    digests = {"a": write(folder, [record("r-a1")], participant="a").digest}
    with pytest.raises(Conflict, match="cannot be both"):
        publish(restarts=["r-a1"])
    digests["b"] = write(folder, [record("r-a2")], participant="b").digest
    with pytest.raises(Conflict, match="not of one cut"):
        publish()
    digests["b"] = write(folder, [record("r-a1")], participant="c", checkpoint_id="another").digest
    digests["c"] = digests.pop("b")
    with pytest.raises(Conflict, match="different checkpoints"):
        publish()
    del digests["c"]
    with pytest.raises(Damaged, match="not the one that was published"):
        publish(participants={"a": "0" * 64})
    with pytest.raises(Incomplete):
        publish(participants={**digests, "nobody": "0" * 64})
    with pytest.raises(InvalidId, match="only in case"):
        publish(participants={**digests, "A": digests["a"]})
    with pytest.raises(InexactValue) as refused:
        publish(state={"x": (1,)})
    assert refused.value.path == "$.x"
    with pytest.raises(ValueError, match="sequence"):
        publish(sequence=True)
    with pytest.raises(ValueError, match="at least one participant"):
        publish(participants={})
    with pytest.raises(InvalidId):
        publish(cut="a/b")
    with pytest.raises(NotFound):
        publish(cut="nothing")
    assert not (folder / "checkpoint.json").exists()


@pytest.mark.req("CO11")
def test_a_checkpoint_without_a_cut(tmp_path: Path) -> None:
    manifest = write(tmp_path, many_records(3))
    ckptfmt.publish(tmp_path, participants={"agent-0": manifest.digest}, sequence=3)
    checkpoint = ckptfmt.open(tmp_path)
    assert checkpoint.cut is None
    assert checkpoint.state is None
    assert checkpoint["agent-0"]["r1"].boundary == 1
    assert checkpoint.verify().ok


@pytest.mark.req("CO11", "FS10")
def test_open_works_on_a_checkpoint_a_cut_and_a_bare_folder(built: Built, tmp_path: Path) -> None:
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
    assert checkpoint.get("nobody") is None
    assert str(ckptfmt.open(f"file://{bare}")) == str(checkpoint)


@pytest.mark.req("CO11")
def test_what_is_not_complete_is_said_so(built: Built, tmp_path: Path) -> None:
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
def test_a_run_is_no_checkpoint(built: Built) -> None:
    write(built.folder.parent / "bare", many_records(2))
    with pytest.raises(NotFound, match="holds checkpoints"):
        ckptfmt.open(built.folder.parent)


@pytest.mark.req("CO11")
def test_a_zombies_cut_does_not_join(built: Built) -> None:
    zombie = ckptfmt.create_cut(built.folder, "step-1")
    write(Path(zombie.url), many_records(2, prefix="z"))
    checkpoint = ckptfmt.open(built.folder)
    assert checkpoint.episodes == ("r0", "r1")
    assert checkpoint.verify().ok


def test_a_cut_has_a_random_name_and_word(tmp_path: Path) -> None:
    cuts = [ckptfmt.create_cut(tmp_path / "step-1", "step-1") for _ in range(3)]
    assert (
        len({cut.name for cut in cuts})
        == len({cut.word for cut in cuts})
        == len({cut.digest for cut in cuts})
        == 3
    )
    for cut in cuts:
        assert cut.url == str(tmp_path / "step-1" / cut.name)
        assert ckptfmt.read_cut(cut.url) == cut
        assert body_of(Path(cut.url) / "cut.json") == {"checkpoint_id": "step-1", "word": cut.word}


@pytest.mark.req("CM11")
def test_another_directory_is_not_the_cut(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        ckptfmt.read_cut(tmp_path / "nowhere")
    with pytest.raises(Incomplete, match="not the folder of the cut"):
        ckptfmt.read_cut(tmp_path)
    (tmp_path / "cut.json").write_bytes(b"{}")
    with pytest.raises(Damaged):
        ckptfmt.read_cut(tmp_path)
    bodies: list[Any] = [{"checkpoint_id": 1, "word": "w"}, {"checkpoint_id": "c"}, []]
    for body in bodies:
        (tmp_path / "cut.json").write_bytes(sealed(body))
        with pytest.raises(Damaged):
            ckptfmt.read_cut(tmp_path)
    with pytest.raises(InvalidId):
        ckptfmt.create_cut(tmp_path / "x", "")


@pytest.mark.req("CO13")
def test_lives_are_numbered_from_zero(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert [ckptfmt.start_life(run), ckptfmt.start_life(run, "step-1"), ckptfmt.start_life(run)] == [0, 1, 2]
    assert [body_of(run / "lives" / f"{life}.json") for life in range(3)] == [
        {"life": 0, "source_checkpoint_id": None},
        {"life": 1, "source_checkpoint_id": "step-1"},
        {"life": 2, "source_checkpoint_id": None},
    ]
    for name in ("7.json", "007.json", "9", "x.json", "8.json.tmp"):
        (run / "lives" / name).write_bytes(b"")
    assert ckptfmt.start_life(run) == 8


@pytest.mark.req("FS10")
@pytest.mark.parametrize(
    "name", ["a b", "r[1]*?", "a#b%20c", "s3:", "x::y", "é\u2028", "~", "$HOME", "'\"", "-rf", "\udcff"]
)
def test_paths_are_data(tmp_path: Path, name: str) -> None:
    """Everything lies at exactly the place that was named."""
    folder = tmp_path / name
    write(folder, many_records(2))
    found = files_below(tmp_path)
    assert len(found) == 3
    assert all(each.startswith(f"{name}/agent-0/") for each in found)
    assert ckptfmt.open(folder).verify().ok
    write(f"file://{tmp_path}/literal/{name}", many_records(2))
    assert (tmp_path / "literal" / name / "agent-0" / "manifest.json").exists()


@pytest.mark.req("FS10")
def test_a_link_on_the_way_is_followed_and_dots_mean_what_the_disk_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real" / "below")
    write(tmp_path / "link" / "c", many_records(1))
    assert (tmp_path / "real" / "below" / "c" / "agent-0" / "manifest.json").exists()
    write(f"{tmp_path}/link/../d", many_records(1))
    assert (tmp_path / "real" / "d" / "agent-0" / "manifest.json").exists()
    monkeypatch.chdir(tmp_path)
    write("relative/e", many_records(1))
    assert (tmp_path / "relative" / "e" / "agent-0" / "manifest.json").exists()
    assert ckptfmt.open("relative/e").verify().ok


@pytest.mark.parametrize(
    "url",
    [
        *(
            "s3://bucket/x",
            "gs://b/x",
            "memory://x",
            "http://h/x",
            "file://host/x",
            "file://relative",
            "FTP://x",
        ),
        *("s3:/b/x", "gs:/b/x", "file:/x", "s3:b"),
    ],
)
def test_other_stores_are_refused_and_nothing_is_made(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for attempt in (
        lambda: ckptfmt.create(url, participant="a", kind="agent", checkpoint_id="c"),
        lambda: ckptfmt.open(url),
        lambda: ckptfmt.create_cut(url, "c"),
        lambda: ckptfmt.start_life(url),
        lambda: ckptfmt.check_directory(url),
    ):
        with pytest.raises(Unsupported):
            attempt()
    assert files_below(tmp_path) == []


def test_a_url_is_text(tmp_path: Path) -> None:
    with pytest.raises(UnusableDirectory):
        ckptfmt.open(os.fsencode(tmp_path))  # type: ignore[arg-type]


@pytest.mark.req("FS10")
def test_a_copied_checkpoint_is_as_good(built: Built, tmp_path: Path) -> None:
    copied = tmp_path / "elsewhere"
    shutil.copytree(built.folder, copied)
    assert ckptfmt.open(copied).verify().ok
    # A copy under way, manifest first: the records are missing, and nothing is deleted.
    for path in copied.rglob("records-*"):
        path.unlink()
    messages = [problem.message for problem in ckptfmt.verify(copied).problems]
    assert messages
    assert all("the records file is missing" in message for message in messages)
    shutil.copytree(built.folder, copied, dirs_exist_ok=True)
    assert ckptfmt.open(copied).verify().ok


@pytest.mark.req("FS10")
def test_a_read_only_checkpoint_is_read(built: Built) -> None:
    for path in sorted(built.folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert ckptfmt.open(built.folder).verify().ok
        assert len(built.restore()) == 4
    finally:
        for path in built.folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_reprs_say_what_it_is_and_not_what_it_holds(built: Built) -> None:
    checkpoint = ckptfmt.open(built.folder)
    assert "2 participants, complete" in repr(checkpoint)
    assert "agent-0 (agent): 2 records" in repr(checkpoint["agent-0"])
    assert repr(checkpoint["agent-0"]["r1"]) == "<StoredRecord r1 at boundary 1: 42 bytes>"

"""Completing a checkpoint, opening it in its shapes, cuts, lives, and where things may lie."""

from __future__ import annotations

import copy
import math
import multiprocessing
import os
import pickle
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
    UnsupportedStore,
    UnusableDirectory,
)
from ckptfmt._model.checkpoint_file import seal_checkpoint_body
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
        with pytest.raises(UnsupportedStore):
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


def test_a_participant_that_is_not_there_is_told_with_those_that_are(built: Built) -> None:
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


def _count(part: ckptfmt.ParticipantCheckpoint) -> tuple[str, int, int]:
    return part.name, len(list(part)), sum(each.payload["number"] for each in part)


def test_checkpoints_and_participants_go_to_other_processes(tmp_path: Path) -> None:
    built = build(tmp_path / "c", many_records(20))
    checkpoint = ckptfmt.open(built.folder)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_count, checkpoint.values()) == [("agent-0", 20, 190), ("tools/0", 20, 190)]
    for again in (pickle.loads(pickle.dumps(checkpoint)), copy.deepcopy(checkpoint)):
        assert (again.url, again.digest, again.body) == (checkpoint.url, checkpoint.digest, checkpoint.body)
        assert again["agent-0"]["r7"].payload == checkpoint["agent-0"]["r7"].payload
        assert again.verify().ok
    part = copy.deepcopy(checkpoint["tools/0"])
    assert (part.manifest, part.kind) == (checkpoint["tools/0"].manifest, "resources")
    assert len(pickle.dumps(checkpoint)) < 1000
    for place in (built.cut_folder, built.cut_folder / "tools"):
        shape = ckptfmt.open(place)
        assert list(pickle.loads(pickle.dumps(shape))) == list(shape)


@pytest.mark.req("FS9")
def test_a_pickled_participant_knows_damage_and_limits(built: Built) -> None:
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
def test_another_checkpoint_in_its_folder_is_not_the_one_that_was_pickled(tmp_path: Path) -> None:
    folder = build(tmp_path / "c").folder
    data = pickle.dumps(ckptfmt.open(folder))
    shutil.rmtree(folder)
    with pytest.raises(NotFound):
        pickle.loads(data)
    build(folder)
    with pytest.raises(Conflict, match="another checkpoint than the one that was pickled"):
        pickle.loads(data)


def test_a_body_pickles_and_stays_read_only(tmp_path: Path) -> None:
    body = ckptfmt.open(build(tmp_path / "c").folder).body
    assert body is not None
    for again in (pickle.loads(pickle.dumps(body)), copy.deepcopy(body)):
        assert again == body
        assert seal_checkpoint_body(again) == seal_checkpoint_body(body)
        with pytest.raises(TypeError):
            again.marks["r"] = 1  # type: ignore[index]


def test_what_was_passed_over_is_pickled_too(tmp_path: Path) -> None:
    build(tmp_path / "step-1")
    ckptfmt.create_cut(tmp_path / "step-2", "step-2")
    with pytest.warns(ckptfmt.LaterCheckpointUnusable):
        checkpoint = ckptfmt.latest(tmp_path)
    assert len(checkpoint.passed_over) == 1
    assert pickle.loads(pickle.dumps(checkpoint)).passed_over == checkpoint.passed_over


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"participants": ["agent-0"]}, "participants takes a mapping, .*, not a value of type list"),
        ({"participants": {"agent-0": 3}}, r"participants\['agent-0'\] takes the digest .* type int"),
        ({"restarts": "r-a1"}, "restarts takes several keys, .* type str"),
        ({"restarts": 3}, "restarts takes several keys, .* type int"),
        ({"marks": ["r"]}, "marks takes a mapping, .* type list"),
        ({"cut": 3}, "cut takes a Cut, .* type int"),
    ],
)
def test_arguments_of_publish_have_types(built: Built, arguments: dict[str, Any], said: str) -> None:
    everything: dict[str, Any] = {
        "participants": built.manifests,
        "sequence": 2,
        "cut": built.cut,
    } | arguments
    with pytest.raises(TypeError, match=said):
        ckptfmt.publish(built.folder, **everything)


@pytest.mark.parametrize("scope", ["17-0", b"17-0", EpisodeId("r"), 3])
def test_a_scope_is_several_keys(built: Built, scope: Any) -> None:
    part = ckptfmt.open(built.folder)["agent-0"]
    with pytest.raises(TypeError, match=f"scope takes several keys, .* {type(scope).__name__}"):
        part.read(scope=scope)
    with pytest.raises(TypeError, match="rollouts takes several keys"):
        part.restore(scope, 10)
    with pytest.raises(TypeError, match="digest takes a str"):
        ckptfmt.open_participant(built.cut_folder, "agent-0", digest=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("references", [None, 3, EpisodeId("r")])
def test_references_of_a_record_are_several(references: Any) -> None:
    with pytest.raises(InexactValue, match="episode r: references are a sequence of strings, not of type"):
        ckptfmt.Record(EpisodeId("r"), 1, references=references)


_SPELLED = {
    "one": b'{"a":1e-7,"b":1e16,"s":"\xc3\xa9"}',
    "other": b'{"a":1e-7,"b":1e+16,"s":"\xc3\xa9"}',  # as another release of the encoder spells it
    "third": b'{"a":1E-07,"b":10000000000000000.0,"s":"\\u00e9"}',
}
"""One value, as encoders may spell it."""


def _spelled(folder: Path, spelling: str) -> ckptfmt.Checkpoint:
    payload = ckptfmt.JsonPayload(_SPELLED[spelling])
    digest = write(folder, [ckptfmt.Record(EpisodeId("r"), payload)]).digest
    ckptfmt.publish(folder, participants={"agent-0": digest}, sequence=1)
    return ckptfmt.open(folder)


@pytest.mark.req("FS2", "FS9", "FS10")
def test_bytes_that_another_encoder_wrote_are_read_and_never_encoded_again(tmp_path: Path) -> None:
    found = {spelling: _spelled(tmp_path / spelling, spelling) for spelling in _SPELLED}
    assert len({each["agent-0"].digest for each in found.values()}) == len(_SPELLED)
    for checkpoint in found.values():
        assert checkpoint["agent-0"]["r"].payload == {"a": 1e-7, "b": 1e16, "s": "é"}
        assert [each.json_payload.data for each in checkpoint["agent-0"]] == [
            _SPELLED[Path(checkpoint.url).name]
        ]
        assert checkpoint.verify().ok
        assert all(ckptfmt.diff(checkpoint, other).is_same for other in found.values())


@pytest.mark.req("FS4")
@pytest.mark.parametrize("second", ["other", "third"])
def test_a_second_writer_of_another_spelling_is_a_conflict_and_no_damage(tmp_path: Path, second: str) -> None:
    checkpoint = _spelled(tmp_path, "one")
    files = files_below(tmp_path)
    with pytest.raises(Conflict, match="another writer published 1 record of checkpoint step-1"):
        _spelled(tmp_path, second)
    assert files_below(tmp_path) == files
    assert checkpoint.verify().ok
    assert _spelled(tmp_path, "one").digest == checkpoint.digest


@pytest.mark.req("FS2", "FS4")
def test_the_same_state_gives_the_same_bytes_whatever_stands_beside_it(tmp_path: Path) -> None:
    state = {"a": 1e-7, "b": 1e16, "s": "é"}
    alone = ckptfmt.JsonPayload.of(state).data
    for beside in (2**80, math.nan, "\ud800", {"\ud800": 1}, "x" * 3_000_000):
        digests = {write(tmp_path / name, [record("r", [state, beside])]).digest for name in "xy"}
        assert len(digests) == 1
        (line,) = ckptfmt.open(tmp_path / "x")["agent-0"].lines()
        assert b'"payload":[' + alone + b"," in line
        shutil.rmtree(tmp_path / "x")
        shutil.rmtree(tmp_path / "y")

"""Publishing ``checkpoint.json``: its contents, repeated calls, and parts that do not belong together."""

from __future__ import annotations

import math
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
)
from ckptfmt.testing import same_exact
from tests.ckptfmt.building import Built, body_of, build, record, write


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "run" / "step-1")


@pytest.mark.req("CO11", "RS6")
def test_checkpoint_json_holds_what_was_published(tmp_path: Path) -> None:
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
def test_publishing_again_succeeds_for_equal_content_and_conflicts_otherwise(built: Built) -> None:
    before = (built.folder / "checkpoint.json").read_bytes()
    again = ckptfmt.publish(
        built.folder, participants=built.manifests, sequence=1, cut=built.cut.name, state={"seed": 2**70}
    )
    assert again == ckptfmt.open(built.folder).digest
    with pytest.raises(Conflict, match="not replaced"):
        ckptfmt.publish(built.folder, participants=built.manifests, sequence=2, cut=built.cut)
    assert (built.folder / "checkpoint.json").read_bytes() == before


@pytest.mark.req("CO11", "RS6")
def test_participants_that_do_not_belong_together_are_refused(built: Built, tmp_path: Path) -> None:
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
        publish(participants={**digests, "missing": "0" * 64})
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"participants": ["agent-0"]}, "participants takes a mapping, .*, not a value of type list"),
        ({"participants": {"agent-0": 3}}, r"participants\['agent-0'\] takes the digest .* type int"),
        ({"restarts": "r-a1"}, "restarts takes several keys, .* type str"),
        ({"restarts": 3}, "restarts takes several keys, .* type int"),
        ({"marks": ["r"]}, "marks takes a mapping, .* type list"),
        ({"cut": 3}, "cut takes a Cut, .* type int"),
    ],
)
def test_publish_checks_the_types_of_its_arguments(
    built: Built, arguments: dict[str, Any], message: str
) -> None:
    everything: dict[str, Any] = {
        "participants": built.manifests,
        "sequence": 2,
        "cut": built.cut,
    } | arguments
    with pytest.raises(TypeError, match=message):
        ckptfmt.publish(built.folder, **everything)

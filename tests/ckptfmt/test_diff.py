"""``ckptfmt.diff`` and the exact comparison below it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import ckptfmt
from ckptfmt import Difference, EpisodeId, Record
from ckptfmt.comparing import compare, differences
from ckptfmt.testing import same_exact
from ckptfmt.testing.strategies import exact_values
from tests.ckptfmt.building import many_records, record, write


def publish(folder: Path, parts: dict[str, Sequence[Record]], **options: Any) -> Path:
    manifests = {
        name: write(
            folder, records, participant=name, kind=name, checkpoint_id=folder.name.replace("\x1b", "")
        ).digest
        for name, records in parts.items()
    }
    ckptfmt.publish(folder, participants=manifests, **{"sequence": 1, **options})
    return folder


@given(exact_values(), exact_values())
def test_what_is_the_same_has_no_differences_and_what_is_not_has_some(left: Any, right: Any) -> None:
    assert list(compare(left, left)) == []
    assert (list(compare(left, right)) == []) == same_exact(left, right)
    assert (differences(left, right) == []) == same_exact(left, right)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, True, ("$", "type", "1 of type int", "True of type bool")),
        (1, 1.0, ("$", "type", "1 of type int", "1.0 of type float")),
        (0.0, -0.0, ("$", "value", "0.0", "-0.0")),
        (math.nan, 1.0, ("$", "value", "nan", "1.0")),
        ([1, 2], [1, 2, 3], ("$", "length", "2 elements", "3")),
        ({"a": {"b": [1]}}, {"a": {"b": [2]}}, ("$.a.b[0]", "value", "1", "2")),
        ({"a b": 1}, {}, ('$["a b"]', "removed", "1", None)),
        ({}, {"x": {"y": 1}}, ("$.x", "added", None, "1 elements")),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ("$", "order", "'a'", "'b'")),
        (2**70, 2**70 + 1, ("$", "value", hex(2**70), hex(2**70 + 1))),
        (["\ud800"], ["\udc00"], ("$[0]", "value", r"'\ud800'", r"'\udc00'")),
        ("x" * 100, "y", ("$", "value", "'" + "x" * 56 + "...", "'y'")),
    ],
)
def test_each_kind_of_difference(left: Any, right: Any, expected: tuple[Any, ...]) -> None:
    assert list(compare(left, right)) == [Difference(*expected)]


def test_nan_is_equal_to_nan_and_deep_values_need_no_stack() -> None:
    one: Any = [math.nan]
    other: Any = [-math.nan]
    for _ in range(100_000):
        one, other = [one], [other]
    assert list(compare(one, other)) == []
    while one and type(one[0]) is list:
        one, other = one[0], other[0]
    assert differences({"a": math.nan}, {"a": -0.5}) == ["$.a: expected nan, got -0.5"]


def test_what_changed_and_where(tmp_path: Path) -> None:
    same = list(many_records(30))
    before = publish(
        tmp_path / "a",
        {
            "agent": [
                *same,
                record("gone", 1),
                record("retried", {"x": 1}),
                Record(EpisodeId("moved"), [1], 3, 1, ("k",)),
                record("changed", {"m": [{"score": 0.5}, {"t": 1}], "big": 2**70}),
            ],
            "old": [record("o")],
            "equal": same,
        },
        sequence=1,
        state={"step": 1},
        restarts=["z"],
    )
    after = publish(
        tmp_path / "b",
        {
            "agent": [
                record("new", 1),
                record("changed", {"m": [{"score": math.nan}, {"t": 1, "u": 2}], "big": 2**70}),
                record("retried-a1", {"x": 1}),
                Record(EpisodeId("moved"), [1], 4, 2, ()),
                *reversed(same),
            ],
            "new": [record("n")],
            "equal": same,
        },
        sequence=2,
        state={"step": 2},
        restarts=["z"],
        marks={"retried": 0},
    )
    found = ckptfmt.diff(before, after)
    assert not found.is_same
    assert found.header == {"id": ("a", "b"), "sequence": (1, 2), "marks": ({}, {"retried": 0})}
    assert found.state == (Difference("$.step", "value", "1", "2"),)
    agent, equal, new, old = found.participants
    assert (agent.name, agent.added, agent.removed, agent.same) == ("agent", ("new",), ("gone",), 30)
    changed = {each.rollout_id: each for each in agent.changed}
    assert sorted(changed) == ["changed", "moved", "retried"]
    assert changed["changed"].places == (
        Difference("$.m[0].score", "value", "0.5", "nan"),
        Difference("$.m[1].u", "added", None, "2"),
    )
    assert (changed["retried"].left, changed["retried"].right) == ("retried", "retried-a1")
    assert changed["retried"].places == ()
    assert changed["moved"].envelope == {"boundary": (3, 4), "schema": (1, 2), "references": (["k"], [])}
    assert (equal.is_same, equal.same) == (True, 30)
    assert (new.added, new.kind) == (("n",), (None, "new"))
    assert (old.removed, old.kind) == (("o",), ("old", None))
    text = str(found)
    assert repr(found) == text
    for line in (
        "$.m[0].score: 0.5 -> nan",
        "~ retried -> retried-a1",
        "boundary: 3 -> 4",
        "+ new",
        "- gone",
    ):
        assert line in text
    assert json.loads(json.dumps(found.to_json()))["participants"][0]["changed"][0]["rollout_id"]
    assert ckptfmt.open(before).diff(after).to_json() == found.to_json()
    assert ckptfmt.diff(ckptfmt.open(before), ckptfmt.open(before)).is_same


def test_the_same_records_in_another_checkpoint_are_the_same(tmp_path: Path) -> None:
    records = list(many_records(3))
    one = publish(tmp_path / "a", {"x": records}, sequence=1)
    other = publish(tmp_path / "b", {"x": list(reversed(records))}, sequence=9)
    found = ckptfmt.diff(one, other)
    assert found.is_same
    assert found.header == {"id": ("a", "b"), "sequence": (1, 9)}
    assert found.participants[0].same == 3
    assert "the same records" in str(found)


def test_equal_bytes_are_not_decoded_and_equal_files_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[str] = []
    read: list[str] = []
    payload = ckptfmt.StoredRecord.payload
    assert isinstance(payload, property)

    def decode(stored: ckptfmt.StoredRecord) -> Any:
        decoded.append(stored.episode.capture_key)
        assert payload.fget is not None
        return payload.fget(stored)

    def read_all(part: ckptfmt.ParticipantCheckpoint, scope: Any = None) -> Any:
        read.append(part.name)
        return whole(part, scope)

    whole = ckptfmt.ParticipantCheckpoint.read
    monkeypatch.setattr(ckptfmt.StoredRecord, "payload", property(decode))
    monkeypatch.setattr(ckptfmt.ParticipantCheckpoint, "read", read_all)
    same = list(many_records(5))
    one = publish(tmp_path / "a", {"x": [*same, record("c", 1)], "y": same})
    other = publish(tmp_path / "b", {"x": [*same, record("c", 2)], "y": same})
    assert len(ckptfmt.diff(one, other).participants[0].changed) == 1
    assert decoded == ["c", "c"]
    assert read == ["x", "x"]


def test_many_differences_of_one_payload_are_cut(tmp_path: Path) -> None:
    one = publish(tmp_path / "a", {"x": [record("r", list(range(100)))]})
    other = publish(tmp_path / "b", {"x": [record("r", list(range(1, 101)))]})
    (changed,) = ckptfmt.diff(one, other, most_places=5).participants[0].changed
    assert (len(changed.places), changed.more) == (5, True)
    assert "and more" in str(ckptfmt.diff(one, other))


@pytest.mark.req("FS9")
def test_damage_is_raised_and_not_taken_for_a_difference(tmp_path: Path) -> None:
    one = publish(tmp_path / "a", {"x": list(many_records(5))})
    other = publish(tmp_path / "b", {"x": list(many_records(6))})
    file = next(one.rglob("records-*"))
    file.write_bytes(file.read_bytes().replace(b'"number":3', b'"number":4'))
    with pytest.raises(ckptfmt.Damaged):
        ckptfmt.diff(one, other)


def test_ids_are_data(tmp_path: Path) -> None:
    one = publish(tmp_path / "a\x1b[31m", {"x": [record("r", {"\u202e": 1})]})
    other = publish(tmp_path / "b", {"x": [record("r", {"<b>": 1})]})
    found = ckptfmt.diff(one, other)
    assert str(found).isascii()
    assert "\x1b" not in str(found)
    assert "&lt;b&gt;" in found._repr_html_()
    assert "<b>" not in found._repr_html_()

"""``ckptfmt.diff``, and the comparison of values that it uses."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import ckptfmt
from ckptfmt import Difference, EpisodeId, Record
from ckptfmt._values.comparison import compare, differences
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
def test_values_have_differences_exactly_when_they_are_not_the_same(left: Any, right: Any) -> None:
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
        ({"a": {"b": [1]}}, {"a": {"b": [2]}}, ("$.a.b[0]", "value", "1", "2")),
        ({"a b": 1}, {}, ('$["a b"]', "removed", "1", None)),
        ({}, {"x": {"y": 1}}, ("$.x", "added", None, "{'y': 1}")),
        ({}, {"x": "y" * 99}, ("$.x", "added", None, "'" + "y" * 56 + "...")),
        ([{}], [[1]], ("$[0]", "type", "0 elements of type dict", "1 element of type list")),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ("$", "order", "'a'", "'b'")),
        (2**70, 2**70 + 1, ("$", "value", hex(2**70), hex(2**70 + 1))),
        (["\ud800"], ["\udc00"], ("$[0]", "value", r"'\ud800'", r"'\udc00'")),
        ("x" * 100, "y", ("$", "value", "'" + "x" * 56 + "...", "'y'")),
    ],
)
def test_each_kind_of_difference_is_found(left: Any, right: Any, expected: tuple[Any, ...]) -> None:
    assert list(compare(left, right)) == [Difference(*expected)]


_SENTENCE = "The quick brown fox jumps over the lazy dog "


@pytest.mark.parametrize(
    ("left", "right", "shown_left", "shown_right", "position"),
    [
        (
            _SENTENCE * 9 + "again",
            _SENTENCE * 9 + "anew",
            "...'ver the lazy dog again'",
            "...'ver the lazy dog anew'",
            397,
        ),
        (_SENTENCE * 9, _SENTENCE * 9 + "!", "...'over the lazy dog '", "...'over the lazy dog !'", 396),
        ("x" * 55 + "a" * 9, "x" * 55 + "b" * 9, "'" + "x" * 55 + "a...", "'" + "x" * 55 + "b...", None),
        ("x" * 57 + "a", "x" * 57 + "b", "'" + "x" * 57 + "a'", "'" + "x" * 57 + "b'", None),
        ("x" * 58 + "a", "x" * 58 + "b", "...'" + "x" * 18 + "a'", "...'" + "x" * 18 + "b'", 58),
        ("😀" * 30 + "a", "😀" * 30 + "b", r"...'\U0001f600\U0001f600a'", r"...'\U0001f600\U0001f600b'", 30),
        ("x" * 10**6 + "\ud800", "x" * 10**6, r"xx\ud800'", "xx'", 10**6),
        (16**5000, 16**5000 + 1, "..." + "0" * 21, "..." + "0" * 20 + "1", 5002),
        (-(16**5000), 16**5000, "-0x1000", "0x1000", None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_long_values_are_shortened_around_their_first_difference(
    left: Any, right: Any, shown_left: str, shown_right: str, position: int | None
) -> None:
    (found,) = compare([left], [right])
    assert (found.path, found.kind, found.position) == ("$[0]", "value", position)
    assert found.left is not None
    assert found.right is not None
    assert found.left != found.right
    assert shown_left in found.left
    assert shown_right in found.right
    assert max(len(found.left), len(found.right)) <= 63
    line = f"$[0]: expected {found.left}, got {found.right}"
    assert differences([left], [right]) == [
        line if position is None else f"{line} (from character {position} on)"
    ]


@given(exact_values(), exact_values())
def test_different_values_are_shown_differently(left: Any, right: Any) -> None:
    for found in compare(left, right):
        assert found.left != found.right or found.position is not None


def test_appended_and_removed_items_are_shown() -> None:
    message = {"role": "user", "content": "hi " * 99}
    assert list(compare([1, 2], [1, 2, message, 4, 5, 6])) == [
        Difference("$", "length", "2 elements", "6"),
        Difference("$[2]", "added", None, "{'role': 'user', 'content': 'hi hi hi hi hi hi hi hi hi h..."),
        Difference("$[3]", "added", None, "4"),
        Difference("$[4]", "added", None, "5"),
    ]
    assert list(compare({"a": [1, [[[[[2]]]]]]}, {"a": []})) == [
        Difference("$.a", "length", "2 elements", "0"),
        Difference("$.a[0]", "removed", "1", None),
        Difference("$.a[1]", "removed", "[[[[1 element]]]]", None),
    ]
    assert differences([1], [1, 2]) == ["$: expected 1 element, got 2", "$[1]: not expected"]
    large = {"k" * 10**6: list(range(10**6))}
    assert list(compare([], [large])) == [
        Difference("$", "length", "0 elements", "1"),
        Difference("$[0]", "added", None, "{'" + "k" * 55 + "..."),
    ]


def test_nan_equals_nan_and_comparing_deep_values_does_not_recurse() -> None:
    one: Any = [math.nan]
    other: Any = [-math.nan]
    for _ in range(100_000):
        one, other = [one], [other]
    assert list(compare(one, other)) == []
    while one and type(one[0]) is list:
        one, other = one[0], other[0]
    assert differences({"a": math.nan}, {"a": -0.5}) == ["$.a: expected nan, got -0.5"]


def test_the_differences_of_two_checkpoints(tmp_path: Path) -> None:
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
    assert ckptfmt.diff(ckptfmt.open(before), after).to_json() == found.to_json()
    assert ckptfmt.diff(ckptfmt.open(before), ckptfmt.open(before)).is_same


def test_equal_records_of_two_checkpoints_have_no_differences(tmp_path: Path) -> None:
    records = list(many_records(3))
    one = publish(tmp_path / "a", {"x": records}, sequence=1)
    other = publish(tmp_path / "b", {"x": list(reversed(records))}, sequence=9)
    found = ckptfmt.diff(one, other)
    assert found.is_same
    assert found.header == {"id": ("a", "b"), "sequence": (1, 9)}
    assert found.participants[0].same == 3
    assert "the same records" in str(found)


def test_equal_bytes_are_not_decoded_and_equal_files_are_not_read(
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


def test_the_number_of_differences_of_one_payload_is_limited(tmp_path: Path) -> None:
    one = publish(tmp_path / "a", {"x": [record("r", list(range(100)))]})
    other = publish(tmp_path / "b", {"x": [record("r", list(range(1, 101)))]})
    (changed,) = ckptfmt.diff(one, other, most_places=5).participants[0].changed
    assert (len(changed.places), changed.more) == (5, True)
    assert "and more" in str(ckptfmt.diff(one, other))
    for most in (-1, 1.5, None, True):
        with pytest.raises(ValueError, match="most_places"):
            ckptfmt.diff(one, other, most_places=most)  # type: ignore[arg-type]


def test_a_notebook_shows_only_the_first_of_many_episodes(tmp_path: Path) -> None:
    one = publish(tmp_path / "a", {"x": [record(f"r{number}", number) for number in range(200)]})
    other = publish(tmp_path / "b", {"x": [record(f"r{number}", -1) for number in range(200)]})
    found = ckptfmt.diff(one, other)
    assert str(found).count("~ r") == 200
    for short in (repr(found), found._repr_html_()):
        assert short.count("~ r") == 20
        assert "~ and 180 more" in short
    assert repr(found.participants) == ("(<ParticipantDiff x: 0 added, 0 removed, 200 changed, 0 the same>,)")


def test_the_text_names_the_position_where_long_values_differ(tmp_path: Path) -> None:
    one = publish(tmp_path / "a", {"x": [record("r", {"m": "x" * 999 + "a"})]})
    other = publish(tmp_path / "b", {"x": [record("r", {"m": "x" * 999 + "b"})], "y": [record("r")]})
    found = ckptfmt.diff(one, other)
    assert "$.m: ...'xxxxxxxxxxxxxxxxxxa' -> ...'xxxxxxxxxxxxxxxxxxb' (from character 999 on)" in str(found)
    assert found.to_json()["participants"][0]["changed"][0]["places"][0]["position"] == 999
    assert "y (y): added, with 1 episode\n" in f"{found}\n"


@pytest.mark.req("FS9")
def test_damage_is_raised_and_not_shown_as_a_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = publish(tmp_path / "a", {"x": list(many_records(5))})
    other = publish(tmp_path / "b", {"x": list(many_records(6))})
    file = next(one.rglob("records-*"))
    file.write_bytes(file.read_bytes().replace(b'"number":3', b'"number":4'))
    for pair in ((one, other), (other, one)):
        with pytest.raises(ckptfmt.Damaged, match=f"^{re.escape(str(one))}: x/records-") as raised:
            ckptfmt.diff(*pair)
        assert raised.value.file == f"x/{file.name}"
    (one / "x" / "manifest.json").unlink()
    with pytest.raises(ckptfmt.Incomplete, match=f"^{re.escape(str(one))}: x/manifest.json"):
        ckptfmt.diff(other, ckptfmt.open(one))
    (other / "checkpoint.json").write_bytes(b"{}")
    monkeypatch.chdir(tmp_path)
    for right in (other, "b"):
        with pytest.raises(ckptfmt.Damaged, match=f"^{re.escape(str(other))}: checkpoint.json"):
            ckptfmt.diff(one, right)
    with pytest.raises(ckptfmt.NotFound) as missing:
        ckptfmt.diff(one, tmp_path / "nowhere")
    assert str(missing.value).count("nowhere") == 1


@pytest.mark.req("FS9")
def test_the_error_for_an_undecodable_payload_names_its_checkpoint(tmp_path: Path) -> None:
    one = publish(tmp_path / "a", {"x": [record("r", ckptfmt.JsonPayload(b"{"))]})
    other = publish(tmp_path / "b", {"x": [record("r", {})]})
    for pair in ((one, other), (other, one)):
        with pytest.raises(ckptfmt.Damaged, match=f"^{re.escape(str(one))}: .*episode r") as raised:
            ckptfmt.diff(*pair)
        assert raised.value.episode == "r"


def test_names_are_escaped(tmp_path: Path) -> None:
    one = publish(tmp_path / "a\x1b[31m", {"x": [record("r", {"\u202e": 1})]})
    other = publish(tmp_path / "b", {"x": [record("r", {"<b>": 1})]})
    found = ckptfmt.diff(one, other)
    assert str(found).isascii()
    assert "\x1b" not in str(found)
    assert "&lt;b&gt;" in found._repr_html_()
    assert "<b>" not in found._repr_html_()

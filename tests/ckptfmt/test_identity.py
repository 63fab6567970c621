"""Rollout ids, attempts, capture keys, and the identity in run bodies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ckptfmt
from ckptfmt import EpisodeId, InvalidId, episode_from_run_body, new_rollout_id
from ckptfmt._identity import rollouts_of
from ckptfmt.testing.strategies import episode_ids


@pytest.mark.req("ID1")
@pytest.mark.parametrize(
    ("rollout", "attempt", "key"),
    [
        ("r", 0, "r"),
        ("r", 1, "r-a1"),
        ("17-0", 12, "17-0-a12"),
        ("r-a0", 0, "r-a0"),
        ("r-a01", 3, "r-a01-a3"),
    ],
)
def test_capture_keys_are_encoded_and_decoded(rollout: str, attempt: int, key: str) -> None:
    episode = EpisodeId(rollout_id=rollout, attempt=attempt)
    assert episode.capture_key == str(episode) == key
    assert EpisodeId.from_capture_key(key) == episode


@given(episode_ids())
@pytest.mark.req("ID1")
def test_every_capture_key_decodes_to_its_episode(episode: EpisodeId) -> None:
    assert EpisodeId.from_capture_key(episode.capture_key) == episode


@pytest.mark.req("ID2", "ID10")
@pytest.mark.parametrize(
    "key",
    [
        *(
            "",
            "-a1",
            "r-a1-a2",
            "r-a1\n",
            "r\n",
            " r",
            "r ",
            ".r",
            "_r",
            "r/x",
            "r:x",
            "é",
            "r\0",
            "r-a1234567890",
        ),
        *("r-a1-a2-a3", "r-a٣-a1", "a" * 257, "a" * 257 + "-a1"),
    ],
)
def test_a_key_that_names_no_attempt_is_refused(key: str) -> None:
    with pytest.raises(InvalidId):
        EpisodeId.from_capture_key(key)


@pytest.mark.req("ID2", "ID10")
@pytest.mark.parametrize("attempt", [True, 1.0, "1", -1, None, 10**9])
def test_an_attempt_is_an_int_in_range(attempt: Any) -> None:
    with pytest.raises(InvalidId):
        EpisodeId("r", attempt)


@pytest.mark.req("ID10")
@pytest.mark.parametrize("key", [None, 1, b"r", ["r"]])
def test_a_key_of_another_type_is_refused(key: Any) -> None:
    with pytest.raises(InvalidId):
        EpisodeId.from_capture_key(key)


@pytest.mark.req("ID2")
def test_the_error_for_a_reserved_suffix_names_new_rollout_id() -> None:
    with pytest.raises(InvalidId, match=r"new_rollout_id\(\)"):
        EpisodeId("0f8fad5b-d9cb-469f-a165-a70867728950-a1")


@pytest.mark.req("ID2")
def test_new_rollout_ids_are_valid_and_distinct() -> None:
    ids = [new_rollout_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(EpisodeId.from_capture_key(each) == EpisodeId(each) for each in ids)


@pytest.mark.req("ID1")
def test_episodes_are_ordered_by_rollout_and_attempt() -> None:
    assert sorted([EpisodeId("b"), EpisodeId("a", 10), EpisodeId("a", 9)]) == [
        EpisodeId("a", 9),
        EpisodeId("a", 10),
        EpisodeId("b"),
    ]


@pytest.mark.req("ID3", "ID4", "ID7")
@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"_ng_rollout_id": "x-a2"}, "x-a2"),
        ({"_ng_rollout_id": "x-a2", "_ng_attempt_index": None}, "x-a2"),
        ({"_ng_rollout_id": "x"}, "x"),
        ({"_ng_rollout_id": "x", "_ng_attempt_index": 0}, "x"),
        ({"_ng_rollout_id": "x", "_ng_attempt_index": 3}, "x-a3"),
        ({"_ng_rollout_id": "x", "_ng_task_index": 1, "_ng_rollout_index": 2}, "x"),
        ({"_ng_task_index": 17, "_ng_rollout_index": 0}, "17-0"),
        ({"_ng_task_index": 17, "_ng_rollout_index": 0, "_ng_attempt_index": 4}, "17-0-a4"),
        ({"_ng_rollout_id": None, "_ng_task_index": 17, "_ng_rollout_index": 0}, "17-0"),
        ({"_ng_task_index": 17}, None),
        ({}, None),
    ],
)
def test_the_episode_of_a_run_body(body: dict[str, Any], key: str | None) -> None:
    episode = episode_from_run_body(body)
    assert (None if episode is None else episode.capture_key) == key


@pytest.mark.req("ID3", "ID10")
@pytest.mark.parametrize(
    "body",
    [
        {"_ng_rollout_id": "x-a2", "_ng_attempt_index": 2},
        {"_ng_rollout_id": "x-a2", "_ng_attempt_index": 0},
        {"_ng_rollout_id": "x-a2-a1"},
        {"_ng_rollout_id": ""},
        {"_ng_rollout_id": 17},
        *({"_ng_rollout_id": "x", "_ng_attempt_index": bad} for bad in (True, 1.0, "1", -1, 10**9)),
        *({"_ng_task_index": bad, "_ng_rollout_index": 0} for bad in (True, 1.0, "1", -1)),
    ],
)
def test_contradictory_run_bodies_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(InvalidId):
        episode_from_run_body(body)


@pytest.mark.req("ID10")
def test_every_public_function_checks_its_keys(tmp_path: Any) -> None:
    with ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c") as writer:
        writer.write(ckptfmt.Record(EpisodeId("r"), 1))
    part = ckptfmt.open(tmp_path)["a"]
    with pytest.raises(InvalidId):
        part["r-a1-a2"]
    with pytest.raises(InvalidId):
        part.read(scope=["r", "r-a1\n"])
    with pytest.raises(InvalidId):
        ckptfmt.publish(tmp_path, participants={"a": writer.manifest.digest}, sequence=1, restarts=["-a1"])
    with pytest.raises(InvalidId):
        ckptfmt.publish(tmp_path, participants={"a": writer.manifest.digest}, sequence=1, marks={"r-a1": 2})


@given(st.lists(st.one_of(episode_ids().map(str), st.from_regex(r"[a-b0-1.-]{0,4}(-a[0-2]{0,3}){0,2}\n?"))))
@pytest.mark.req("ID1", "ID10")
def test_many_keys_are_decoded_like_single_keys(keys: list[str]) -> None:
    expected: list[str] | str
    try:
        expected = [EpisodeId.from_capture_key(key).rollout_id for key in keys]
    except InvalidId as error:
        expected = str(error)
    if isinstance(expected, list):
        assert rollouts_of(keys) == expected
    else:
        with pytest.raises(InvalidId) as refused:
            rollouts_of(keys)
        assert str(refused.value) == expected


@pytest.mark.parametrize(
    "key", ["", "\n", "a\n", "a\nb", "é", "-a1", "r-a1-a2", "x" * 257, "x-a1234567890", "r-a1-a2\nb"]
)
@pytest.mark.req("ID10")
def test_one_wrong_key_among_many_is_refused(key: str) -> None:
    with pytest.raises(InvalidId):
        rollouts_of(["a", "x" * 256 + "-a123456789", key, "b-a0", "c-a7"])


@pytest.mark.req("ID2", "ID10")
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (
            "r-a1-a2",
            "'r-a1-a2' is not a capture key: before '-a2' it ends in '-a1', which is reserved",
        ),
        ("-a1", "there is no rollout id before the attempt"),
        ("x y", r"rollout id 'x y' is not of the form .*: letters, digits"),
        ("r-a1234567890", "an attempt of 10 digits"),
        (3, "a capture key is a str, not a value of type int"),
        (None, "a capture key is a str, not None"),
    ],
)
def test_the_error_for_an_invalid_key_names_the_fault(key: Any, expected: str) -> None:
    with pytest.raises(InvalidId, match=expected) as raised:
        EpisodeId.from_capture_key(key)
    assert "new_rollout_id" not in str(raised.value)


@pytest.mark.req("ID10")
def test_the_error_for_a_rollout_id_of_another_type_names_both_types() -> None:
    with pytest.raises(InvalidId, match="a rollout id is a str, not a value of type int"):
        EpisodeId(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("body", [None, 3, "body", b"{}", [("_ng_rollout_id", "r")]])
def test_a_run_body_that_is_not_a_mapping_is_refused(body: Any) -> None:
    with pytest.raises(TypeError, match=f"episode_from_run_body takes a mapping.* {type(body).__name__}"):
        episode_from_run_body(body)

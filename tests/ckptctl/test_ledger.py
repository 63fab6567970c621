"""The controller's ledger of rollouts."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptctl import Ledger
from ckptfmt import EpisodeId

A, B, C = EpisodeId("a"), EpisodeId("b"), EpisodeId("c")


def test_a_rollout_is_in_flight_then_settled() -> None:
    ledger = Ledger()
    for each in (B, A):
        ledger.dispatch(each)
    assert ledger.in_flight() == [B, A]
    assert ledger.settle(A, {"reward": 1.0})
    assert ledger.in_flight() == [B]
    assert ledger.settled == {"a": {"reward": 1.0}}


def test_a_result_of_another_attempt_is_not_kept() -> None:
    ledger = Ledger()
    ledger.dispatch(A)
    ledger.dispatch(EpisodeId("a", 100))
    assert not ledger.settle(A, "late")
    assert ledger.settled == {}
    assert ledger.settle(EpisodeId("a", 100), "right")
    assert not ledger.settle(EpisodeId("a", 100), "twice")
    assert not ledger.settle(B, "never sent")
    assert ledger.settled == {"a": "right"}


@pytest.mark.req("CO13")
@pytest.mark.parametrize("again", [EpisodeId("a", 7), EpisodeId("a", 6), A])
def test_no_attempt_is_sent_twice(again: EpisodeId) -> None:
    ledger = Ledger()
    ledger.dispatch(EpisodeId("a", 7))
    with pytest.raises(ValueError, match="rollout a was sent before"):
        ledger.dispatch(again)
    ledger.dispatch(EpisodeId("a", 8))
    assert ledger.in_flight() == [EpisodeId("a", 8)]


def test_a_rollout_that_is_over_is_not_sent_again() -> None:
    ledger = Ledger()
    ledger.dispatch(A)
    ledger.settle(A, 1)
    ledger.drop("b")
    for over in (EpisodeId("a", 100), B):
        with pytest.raises(ValueError, match="is over"):
            ledger.dispatch(over)


def test_a_rollout_is_in_flight_or_settled_or_dropped() -> None:
    ledger = Ledger()
    ledger.dispatch(A)
    ledger.dispatch(B)
    ledger.settle(A, 1)
    ledger.drop("a")
    ledger.drop("b")
    assert ledger.value() == {"in_flight": {}, "settled": {}, "dropped": ["a", "b"]}
    assert not ledger.settle(B, "late")


def test_the_value_is_a_snapshot() -> None:
    ledger = Ledger()
    ledger.dispatch(A)
    value = ledger.value()
    ledger.dispatch(B)
    ledger.settle(A, 1)
    ledger.drop("c")
    assert value == {"in_flight": {"a": 0}, "settled": {}, "dropped": []}


@pytest.mark.req("CO11")
def test_the_value_can_be_stored_in_a_checkpoint_and_pickled(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.dispatch(EpisodeId("b", 101))
    ledger.dispatch(A)
    ledger.settle(A, {"reward": float("inf")})
    ledger.drop("c")
    value = ledger.value()
    with ckptfmt.create(tmp_path, participant="p", kind="agent", checkpoint_id="c") as writer:
        pass
    ckptfmt.publish(tmp_path, participants={"p": writer.manifest.digest}, sequence=1, state=value)
    for back in (
        ckptfmt.open(tmp_path).state,
        pickle.loads(pickle.dumps(value)),
        json.loads(json.dumps(value)),
    ):
        again = Ledger.from_value(back)
        assert again.value() == value
        assert again.in_flight() == [EpisodeId("b", 101)]
        with pytest.raises(ValueError, match="is over"):
            again.dispatch(C)


@pytest.mark.parametrize("value", [None, 5, {}, {"in_flight": {}, "settled": {}}, []])
def test_a_value_of_no_ledger_is_refused(value: Any) -> None:
    with pytest.raises((KeyError, TypeError)):
        Ledger.from_value(value)

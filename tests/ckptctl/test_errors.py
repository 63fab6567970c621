"""The errors: codes, statuses, shape, pickling, and the code of every error of the format."""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import ckptfmt
from ckptctl import (
    CkptctlError,
    ClientGone,
    ControlError,
    CoordinationError,
    NotPrepared,
    SettingsError,
    StepOrderError,
)
from ckptctl import _errors as errors
from ckptctl._errors import CODES, control_error, reading_error

TABLE = {
    "unauthorized": (401, False),
    "invalid_request": (400, False),
    "checkpoint_conflict": (409, False),
    "wrong_phase": (409, False),
    "not_ready": (409, True),
    "restart_in_scope": (409, False),
    "export_failed": (409, False),
    "stale_attempt": (409, False),
    "not_fresh": (409, False),
    "wrong_instance": (409, False),
    "invalid_checkpoint_state": (422, False),
    "internal_error": (500, False),
    "outcome_unknown": (503, True),
    "store_unusable": (503, True),
    "deadline_exceeded": (504, True),
    "unreachable": (503, True),
    "no_reply": (504, True),
    "bad_reply": (502, False),
}
"""Append-only: controllers of other versions read these."""

FORMAT_ERRORS = [
    (ckptfmt.InexactValue("m", path="$.a", episode="r-a1"), "export_failed", "invalid_checkpoint_state"),
    (ckptfmt.SnapshotChanged("m"), "export_failed", "invalid_checkpoint_state"),
    (ckptfmt.LimitExceeded("m"), "export_failed", "invalid_checkpoint_state"),
    (ckptfmt.Stopped("m"), "checkpoint_conflict", "invalid_checkpoint_state"),
    (ckptfmt.Conflict("m"), "checkpoint_conflict", "invalid_checkpoint_state"),
    (ckptfmt.OutcomeUnknown("m"), "outcome_unknown", "outcome_unknown"),
    (ckptfmt.UnusableDirectory("m"), "invalid_checkpoint_state", "invalid_checkpoint_state"),
    (ckptfmt.StoreError("m"), "store_unusable", "store_unusable"),
    (ckptfmt.InvalidId("m"), "invalid_request", "invalid_checkpoint_state"),
    (ckptfmt.Damaged("m"), "invalid_checkpoint_state", "invalid_checkpoint_state"),
    (ckptfmt.Incomplete("m"), "invalid_checkpoint_state", "invalid_checkpoint_state"),
    (ckptfmt.NotFound("m"), "invalid_checkpoint_state", "invalid_checkpoint_state"),
    (ckptfmt.Unsupported("m"), "invalid_checkpoint_state", "invalid_checkpoint_state"),
    (ckptfmt.BadCheckpoint("m"), "invalid_checkpoint_state", "invalid_checkpoint_state"),
    (ckptfmt.UnsupportedStore("m"), "invalid_checkpoint_state", "invalid_checkpoint_state"),
    (ckptfmt.MissingLibrary("m"), "invalid_checkpoint_state", "invalid_checkpoint_state"),
    (ckptfmt.BadInput("m"), "export_failed", "invalid_checkpoint_state"),
]
"""An error of the format package, its code while storing, and its code while reading."""


@pytest.mark.req("CP12")
def test_the_codes_are_the_stated_ones() -> None:
    assert {name: tuple(code) for name, code in CODES.items()} == TABLE


@pytest.mark.req("CP12")
@pytest.mark.parametrize("code", TABLE)
def test_an_error_has_the_status_and_shape_of_its_code(code: str) -> None:
    error = ControlError(code, "what and where", details={"a": [1]})
    assert (error.status, error.retryable) == TABLE[code]
    assert error.to_wire() == {
        "error": {
            "code": code,
            "message": "what and where",
            "retryable": TABLE[code][1],
            "details": {"a": [1]},
        }
    }
    assert str(error) == f"{code}: what and where"


@pytest.mark.req("CP12")
def test_a_message_can_always_be_sent() -> None:
    error = ControlError("store_unusable", f"no space: {os.fsdecode(b'/tmp/' + bytes([0xFF]))}")
    json.dumps(error.to_wire(), ensure_ascii=False).encode("utf-8")


@pytest.mark.req("CP12")
@pytest.mark.parametrize(("error", "storing", "reading"), FORMAT_ERRORS)
def test_each_error_of_the_format_has_a_code(error: Exception, storing: str, reading: str) -> None:
    assert control_error(error).code == storing
    assert reading_error(error).code == reading


def test_no_error_of_the_format_is_missing_here() -> None:
    def below(kind: type[Exception]) -> Iterator[type[Exception]]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    assert set(below(ckptfmt.CheckpointError)) == {type(error) for error, _, _ in FORMAT_ERRORS}


@pytest.mark.req("CP12")
def test_an_inexact_value_names_its_place() -> None:
    error = control_error(ckptfmt.InexactValue("r-a1: $.a is a set", path="$.a", episode="r-a1"))
    assert error.details == {"episode": "r-a1", "path": "$.a"}


@pytest.mark.req("CP12")
@pytest.mark.parametrize("error", [RuntimeError("odd"), KeyError("odd"), OSError(5, "odd")])
def test_an_unexpected_error_is_internal_error(error: Exception) -> None:
    found = control_error(error)
    assert (found.code, found.status) == ("internal_error", 500)
    assert type(error).__name__ in found.message


NOT_READY = {"agent": [{"episode": "r", "reason": "in a step", "since": 2.5}], "tools": []}

EXAMPLES = [
    CkptctlError("m"),
    ControlError("not_ready", "m", details={"a": [1]}, status=418, retryable=False),
    ControlError("a_code_of_later", "m"),
    CoordinationError("commit", {"a": ControlError("no_reply", "m"), "b": ckptfmt.StoreError("m", errno=28)}),
    NotPrepared(NOT_READY, {"agent": 500}),
    SettingsError("lease_grace_seconds", "must be positive"),
    SettingsError("", "must be a mapping"),
    StepOrderError("m"),
    ClientGone(),
]


def attributes(error: BaseException) -> dict[str, Any]:
    found = {**vars(error), "type": type(error), "str": str(error)}
    if isinstance(error, CoordinationError):
        found["failures"] = {name: attributes(each) for name, each in error.failures.items()}
        found["retryable"] = error.retryable
    return found


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [lambda each: pickle.loads(pickle.dumps(each)), copy.copy, copy.deepcopy])
def test_every_error_keeps_its_attributes_when_it_is_pickled(error: CkptctlError, again: Any) -> None:
    if not hasattr(error, "__notes__"):
        error.add_note("and while cleaning up: b was unreachable")
    assert attributes(again(error)) == attributes(error)
    assert attributes(again(error))["__notes__"] == ["and while cleaning up: b was unreachable"]


def test_no_error_is_missing_here() -> None:
    found = {each for each in vars(errors).values() if isinstance(each, type)}
    assert {each for each in found if issubclass(each, CkptctlError)} == {type(each) for each in EXAMPLES}


@pytest.mark.req("CP12")
def test_a_failure_over_many_servers_is_retryable_when_each_is() -> None:
    late, gone, final = (ControlError(each, "m") for each in ("no_reply", "unreachable", "export_failed"))
    assert CoordinationError("commit", {"a": late, "b": gone}).retryable
    assert not CoordinationError("commit", {"a": late, "b": final}).retryable
    assert not CoordinationError("commit", {"a": ValueError("m")}).retryable
    error = CoordinationError("commit", {"b": final, "a": late})
    assert error.first is final
    assert error.has("no_reply")
    assert not error.has("not_ready")
    assert str(error) == "commit failed on 2 server(s): b: export_failed: m; a: no_reply: m"


@pytest.mark.req("CO10", "CP6")
def test_not_prepared_has_the_blockers_and_their_number() -> None:
    error = NotPrepared(NOT_READY, {"agent": 500})
    assert error.blockers == NOT_READY
    assert error.counts == {"agent": 500, "tools": 0}
    assert "500 execution(s)" in str(error)
    assert error.retryable

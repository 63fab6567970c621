"""Request bodies and headers: validated once, and refused with one code whatever is wrong."""

from __future__ import annotations

import json
import math
import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ckptctl import ControlError
from ckptctl._protocol import (
    MAX_BODY_BYTES,
    REQUESTS,
    Request,
    format_deadline,
    parse_deadline,
    parse_key,
    parse_request,
)
from ckptfmt import EpisodeId
from tests.ckptctl.support import refused

VALID: dict[str, dict[str, Any]] = {
    "prepare": {"checkpoint_id": "c", "directory": "/run/c", "cut_digest": "0" * 64, "restarts": ["r-a1"]},
    "renew": {"checkpoint_id": "c"},
    "commit": {"checkpoint_id": "c", "directory": "file:///run/c", "episodes": ["r", "s-a2"]},
    "resume": {"checkpoint_id": "c"},
    "restore": {
        "checkpoint_id": "c",
        "directory": "/run/c",
        "episodes": ["r-a100"],
        "checkpoint_digest": "f" * 64,
        "marks": {"r": 99, "q": 0},
    },
    "retire": {"episodes": ["r", "r-a1"]},
    "forget": {"rollouts": ["r", "r"]},
}
OPTIONAL = {"cut_digest", "restarts", "checkpoint_digest", "marks"}
NO_KEYS = ["", "-a1", "r-a1-a2", "r-a1\n", " r", "r ", "r/s", "é", "a" * 257, "r-a1234567890", "\ud800"]
WRONG: dict[str, list[Any]] = {
    "checkpoint_id": ["", "a" * 257, "a\nb", "a\x00", "a\x85", "\ud800"],
    "directory": ["", "relative/path", "/a\x00b", "/" + "a" * 4096, "C:\\run"],
    "cut_digest": ["0" * 63, "0" * 65, "0" * 64 + "\n", "F" * 64, "g" * 64],
    "checkpoint_digest": ["0" * 63, "0" * 64 + "\n", "F" * 64],
    "restarts": [["r", 5], [None], "r", [["r"]], *([key] for key in NO_KEYS)],
    "episodes": [["r", 5], [None], "r", {"r": 0}, *([key] for key in NO_KEYS)],
    "rollouts": [["r-a1"], [5], "r", *([key] for key in NO_KEYS)],
    "marks": [
        [["r", 1]],
        {"r-a1": 1},
        *({"r": attempt} for attempt in (-1, 10**9, 10**30, "1", 1.0, True, None)),
        *({key: 1} for key in NO_KEYS),
    ],
}
"""Wrong values of each field; those of another type are added below."""
OTHER_TYPES: list[Any] = [5, True, 1.5, "", [], {}, [[]], {"a": {}}]


def changes() -> list[Any]:
    found = []
    for verb, body in VALID.items():
        for name, right in body.items():
            values = [*WRONG[name], *(each for each in OTHER_TYPES if type(each) is not type(right))]
            if name not in OPTIONAL or name in ("restarts", "marks"):
                values.append(None)
            found += [pytest.param(verb, {**body, name: value}, id=f"{verb}-{name}") for value in values]
            if name not in OPTIONAL:
                rest = {key: value for key, value in body.items() if key != name}
                found.append(pytest.param(verb, rest, id=f"{verb}-without-{name}"))
        found.append(pytest.param(verb, {**body, "more": 1}, id=f"{verb}-more"))
        found.append(pytest.param(verb, {**body, "\ud800": 1}, id=f"{verb}-surrogate"))
    return found


@pytest.mark.parametrize("verb", REQUESTS)
def test_valid_bodies_are_accepted(verb: str) -> None:
    request = parse_request(verb, json.dumps(VALID[verb]).encode())
    assert request.open_id == VALID[verb].get("checkpoint_id")
    required = {name: value for name, value in VALID[verb].items() if name not in OPTIONAL}
    parse_request(verb, json.dumps(required).encode())


@pytest.mark.req("CP11", "CP12")
@pytest.mark.parametrize(("verb", "body"), changes())
def test_a_field_that_is_wrong_is_a_client_error(verb: str, body: dict[str, Any]) -> None:
    with refused("invalid_request", f": {verb}: ") as caught:
        parse_request(verb, json.dumps(body).encode())
    assert caught.value.status == 400
    assert len(caught.value.message) < 1000


@pytest.mark.req("CP11")
@pytest.mark.parametrize("verb", REQUESTS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"{}x",
        b"\xef\xbb\xbf{}",
        b'{"checkpoint_id": "c\xff"}',
        b'{"checkpoint_id": "c", "checkpoint_id": "c"}',
        b'{"marks": {"r": 1, "r": 2}}',
        b'{"checkpoint_id": NaN}',
        b'{"checkpoint_id": -Infinity}',
        b'{"checkpoint_id": 1e999}',
        b'{"checkpoint_id": ' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[" * 100_000 + b"]" * 100_000,
        '{"checkpoint_id": "c"}'.encode("utf-16"),
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_that_is_not_a_strict_json_object_is_a_client_error(verb: str, body: bytes) -> None:
    with refused("invalid_request") as caught:
        parse_request(verb, body)
    assert caught.value.status == 400


@pytest.mark.req("CP11")
def test_a_body_that_is_too_large_is_a_client_error() -> None:
    with refused("invalid_request", str(MAX_BODY_BYTES)) as caught:
        parse_request("renew", b" " * (MAX_BODY_BYTES + 1))
    assert caught.value.status == 413
    padded = json.dumps(VALID["renew"]).encode().ljust(MAX_BODY_BYTES)
    assert parse_request("renew", padded).open_id == "c"


@pytest.mark.req("CP11")
@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("retire", {"episodes": [0] * 200_000}),
        ("retire", {"episodes": ["-a1"] * 100_000}),
        ("forget", {"rollouts": [{}] * 100_000}),
        ("restore", {**VALID["restore"], "marks": {f"{n}": "x" for n in range(100_000)}}),
        ("renew", {f"unknown {n}": 1 for n in range(100_000)}),
        ("renew", {"u" * 1_000_000: 1}),
    ],
    ids=["types", "keys", "rollouts", "marks", "unknown", "long-name"],
)
def test_a_large_bad_body_is_refused_at_its_first_fault(verb: str, body: Any) -> None:
    encoded = json.dumps(body).encode()
    tracemalloc.start()
    began = time.process_time()
    try:
        with refused("invalid_request") as caught:
            parse_request(verb, encoded)
        # An error for each of 2 million elements, a body of 4 MB, took 15 s and 2.4 GB.
        assert time.process_time() - began < 5
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()
    assert len(caught.value.message) < 1000


@pytest.mark.req("CM6")
def test_a_scope_names_one_attempt_of_a_rollout() -> None:
    for episodes in (["r", "r"], ["r", "s", "r-a1"]):
        with refused("invalid_request", "of one rollout"):
            parse_request("commit", json.dumps({**VALID["commit"], "episodes": episodes}).encode())
        with refused("invalid_request", "of one rollout"):
            parse_request("restore", json.dumps({**VALID["restore"], "episodes": episodes}).encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.just("\ud800"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
FIELDS = sorted({name for body in VALID.values() for name in body})
SKEWED = st.dictionaries(st.sampled_from(FIELDS), JSON | st.sampled_from(["c", "/d", ["r"], ["r-a1"], {}]))


@pytest.mark.req("CP11")
@given(verb=st.sampled_from(sorted(REQUESTS)), value=JSON | SKEWED)
@example("restore", {**VALID["restore"], "marks": {"": 1}})
def test_any_json_is_a_request_or_refused(verb: str, value: Any) -> None:
    read(verb, json.dumps(value).encode())


@pytest.mark.req("CP11")
@given(verb=st.sampled_from(sorted(REQUESTS)), body=st.binary())
def test_any_bytes_are_a_request_or_refused(verb: str, body: bytes) -> None:
    read(verb, body)


def read(verb: str, body: bytes) -> None:
    try:
        found: Request | ControlError = parse_request(verb, body)
    except ControlError as error:
        found = error
    if isinstance(found, ControlError):
        assert (found.code, found.status) == ("invalid_request", 400)
        json.dumps(found.to_wire(), ensure_ascii=False).encode()


@pytest.mark.req("ID10")
@pytest.mark.parametrize("key", [*NO_KEYS, 5, None, b"r", ["r"]])
def test_a_key_is_never_guessed(key: object) -> None:
    with pytest.raises(ValueError, match=r"capture key|rollout id"):
        parse_key(key)
    assert parse_key("r-a1") == EpisodeId("r", 1)


@pytest.mark.req("CP12")
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 60.0),
        ("0", 0.0),
        ("0.000", 0.0),
        ("2.5", 2.5),
        ("3600", 3600.0),
        ("3601", 3600.0),
        ("999999999", 3600.0),
    ],
)
def test_a_deadline_is_seconds_left(header: str | None, seconds: float) -> None:
    assert parse_deadline(header, default=60.0, maximum=3600.0) == seconds


@pytest.mark.req("CP12")
@pytest.mark.parametrize(
    "header",
    ["", " ", "-1", "+1", "1e3", "nan", "inf", "1,5", "1.", ".5", "5s", "١", "0x10", "1\n", "9" * 400],
)
def test_a_bad_deadline_is_a_client_error(header: str) -> None:
    with refused("invalid_request", "x-ng-deadline-seconds"):
        parse_deadline(header, default=60.0, maximum=3600.0)


@given(st.floats())
def test_every_deadline_that_is_sent_can_be_read(seconds: float) -> None:
    read = parse_deadline(format_deadline(seconds), default=-1.0, maximum=3600.0)
    expected = 0.0 if math.isnan(seconds) else min(max(0.0, seconds), 3600.0)
    assert read == pytest.approx(expected, abs=0.001)

"""Exact values are read back unchanged; other values are refused with their paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ckptfmt
from ckptfmt import EpisodeId, InexactValue, JsonPayload, Record
from ckptfmt._values.paths import path_text
from ckptfmt.testing import same_exact
from ckptfmt.testing.strategies import exact_values, inexact_values, records


@given(exact_values())
@pytest.mark.req("FS2", "FS3")
def test_any_exact_value_is_read_back_unchanged(value: Any) -> None:
    payload = JsonPayload.of(value)
    assert same_exact(payload.value(), value)
    assert b"\n" not in payload.data + payload.patch_data
    # The JSON is strict. The json module accepts NaN by default, so the test refuses it.
    json.loads(payload.data, parse_constant=_refuse)
    assert payload.patches == (orjson.loads(payload.patch_data) if payload.patch_data else [])


def _refuse(constant: str) -> None:
    raise AssertionError(constant)


@given(exact_values())
@pytest.mark.req("FS2")
def test_the_same_value_has_the_same_bytes(value: Any) -> None:
    first = JsonPayload.of(value)
    assert JsonPayload.of(first.value()) == first


@given(exact_values(), st.sampled_from([float("nan"), 2**64, "\ud800", {"\udc00": 1}]))
@pytest.mark.req("FS2")
def test_a_patched_neighbour_does_not_change_other_values(value: Any, unusual: Any) -> None:
    assert same_exact(JsonPayload.of([value, unusual, value]).value(), [value, unusual, value])


@given(inexact_values(), st.sampled_from([None, float("nan"), 2**70, "\ud800", {"\udc00": 1}]))
@pytest.mark.req("FS2")
def test_any_other_value_is_refused_with_its_path(where: tuple[Any, list[str | int]], neighbour: Any) -> None:
    value, path = where
    with pytest.raises(InexactValue) as refused:
        JsonPayload.of([neighbour, value], episode="17-0-a1")
    assert refused.value.path == path_text([1, *path])
    assert refused.value.episode == "17-0-a1"
    assert refused.value.path in str(refused.value)


@given(st.lists(records(), max_size=5, unique_by=lambda record: record.episode.rollout_id))
@pytest.mark.req("FS1", "FS2", "FS12")
def test_any_records_are_read_back_unchanged(
    tmp_path_factory: pytest.TempPathFactory, written: list[Record]
) -> None:
    folder = tmp_path_factory.mktemp("records")
    _write(folder, written, "zstd")
    part = ckptfmt.open(folder)["agent-0"]
    read = list(part)
    assert [(each.episode, each.boundary, each.schema, each.references) for each in read] == [
        (each.episode, each.boundary, each.schema, each.references) for each in written
    ]
    for stored, record in zip(read, written, strict=True):
        assert same_exact(stored.payload, record.payload)
        assert same_exact(part[record.episode].payload, record.payload)
        assert EpisodeId.from_capture_key(stored.episode.capture_key) == record.episode
    assert ckptfmt.open(folder).verify().ok


def _write(folder: Path, written: list[Record], compression: Any) -> None:
    with ckptfmt.create(
        folder, participant="agent-0", kind="agent", checkpoint_id="c", compression=compression
    ) as writer:
        for record in written:
            writer.write(record)

"""Payloads with equal values and different JSON text, as other encoders write them."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import (
    Conflict,
    EpisodeId,
)
from tests.ckptfmt.building import files_below, record, write

_ENCODINGS = {
    "one": b'{"a":1e-7,"b":1e16,"s":"\xc3\xa9"}',
    "other": b'{"a":1e-7,"b":1e+16,"s":"\xc3\xa9"}',  # another release of the encoder
    "third": b'{"a":1E-07,"b":10000000000000000.0,"s":"\\u00e9"}',
}
"""One value in the JSON of different encoders."""


def _write_encoded(folder: Path, encoding: str) -> ckptfmt.Checkpoint:
    payload = ckptfmt.JsonPayload(_ENCODINGS[encoding])
    digest = write(folder, [ckptfmt.Record(EpisodeId("r"), payload)]).digest
    ckptfmt.publish(folder, participants={"agent-0": digest}, sequence=1)
    return ckptfmt.open(folder)


@pytest.mark.req("FS2", "FS9", "FS10")
def test_the_json_of_other_encoders_is_read_and_kept_as_it_is(tmp_path: Path) -> None:
    found = {encoding: _write_encoded(tmp_path / encoding, encoding) for encoding in _ENCODINGS}
    assert len({each["agent-0"].digest for each in found.values()}) == len(_ENCODINGS)
    for checkpoint in found.values():
        assert checkpoint["agent-0"]["r"].payload == {"a": 1e-7, "b": 1e16, "s": "é"}
        assert [each.json_payload.data for each in checkpoint["agent-0"]] == [
            _ENCODINGS[Path(checkpoint.url).name]
        ]
        assert checkpoint.verify().ok
        assert all(ckptfmt.diff(checkpoint, other).is_same for other in found.values())


@pytest.mark.req("FS4")
@pytest.mark.parametrize("second", ["other", "third"])
def test_a_second_writer_with_another_encoding_gets_a_conflict(tmp_path: Path, second: str) -> None:
    checkpoint = _write_encoded(tmp_path, "one")
    files = files_below(tmp_path)
    with pytest.raises(Conflict, match="another writer published 1 record of checkpoint step-1"):
        _write_encoded(tmp_path, second)
    assert files_below(tmp_path) == files
    assert checkpoint.verify().ok
    assert _write_encoded(tmp_path, "one").digest == checkpoint.digest


@pytest.mark.req("FS2", "FS4")
def test_a_value_is_encoded_the_same_beside_any_other_value(tmp_path: Path) -> None:
    state = {"a": 1e-7, "b": 1e16, "s": "é"}
    alone = ckptfmt.JsonPayload.of(state).data
    for other in (2**80, math.nan, "\ud800", {"\ud800": 1}, "x" * 3_000_000):
        digests = {write(tmp_path / name, [record("r", [state, other])]).digest for name in "xy"}
        assert len(digests) == 1
        (line,) = ckptfmt.open(tmp_path / "x")["agent-0"].lines()
        assert b'"payload":[' + alone + b"," in line
        shutil.rmtree(tmp_path / "x")
        shutil.rmtree(tmp_path / "y")

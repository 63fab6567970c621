"""Records: their fields, the stored line, and reading it back."""

from __future__ import annotations

import hashlib
import json
import math
import pickle
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import Damaged, EpisodeId, InexactValue, JsonPayload, LimitExceeded, Limits, Record
from ckptfmt.testing import same_exact
from tests.ckptfmt.building import index_bytes, put_index, record, sealed, write


@pytest.mark.req("FS2")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("boundary", bad) for bad in (True, 1.0, "1", -1, 2**63)),
        *(("schema", bad) for bad in (True, 1.0, "1", -1, 2**63, None)),
        *(("references", bad) for bad in ("abc", (1,), ("\ud800",), (b"x",), (None,))),
    ],
)
def test_the_fields_of_a_record_are_checked_for_exact_types(field: str, value: Any) -> None:
    with pytest.raises(InexactValue) as refused:
        Record(EpisodeId("r", 2), None, **{field: value})
    assert refused.value.path.startswith(field)
    assert refused.value.episode == "r-a2"
    with pytest.raises(ckptfmt.InvalidId):
        Record("r", None)  # type: ignore[arg-type]


@pytest.mark.req("FS12", "FS2")
def test_a_line_is_strict_json_with_the_payload_last(tmp_path: Path) -> None:
    value = {"\ud800": {"x": 1, "payload": [',"payload":', math.nan]}, "u": "\u2028"}
    each = Record(EpisodeId("r", 1), value, 4, 2, ("data/1", 'a",\n"payload":"b'))
    manifest = write(tmp_path, [each])
    (segment,) = manifest.segments
    data = (tmp_path / "agent-0" / segment.file).read_bytes()
    assert data.count(b"\n") == 1
    assert data.endswith(b"}\n")
    parsed = json.loads(data)
    assert list(parsed) == ["episode", "boundary", "schema", "references", "patches", "payload"]
    assert parsed["episode"] == "r-a1"
    assert parsed["boundary"] == 4
    stored = ckptfmt.open(tmp_path)["agent-0"]["r-a1"]
    assert same_exact(stored.payload, value)
    assert stored.references == each.references
    assert (stored.schema, stored.boundary) == (2, 4)


@pytest.mark.req("FS3")
def test_an_encoded_payload_is_written_without_another_check(tmp_path: Path) -> None:
    first = tmp_path / "first"
    write(first, [record("r", {"n": math.nan, "m": [1]})])
    stored = ckptfmt.open(first)["agent-0"]["r"]
    unpickled = pickle.loads(pickle.dumps(stored.json_payload))
    assert unpickled == stored.json_payload
    write(tmp_path / "second", [record("r-a1", unpickled)])
    again = ckptfmt.open(tmp_path / "second")["agent-0"]["r-a1"]
    assert again.json_payload == stored.json_payload
    assert same_exact(again.payload, {"n": math.nan, "m": [1]})


@pytest.mark.req("FS3", "FS12")
def test_a_payload_with_a_line_feed_is_refused(tmp_path: Path) -> None:
    writer = ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c")
    with pytest.raises(InexactValue, match="line feed"):
        writer.write(record("r", JsonPayload(b'{\n"a":1}')))
    writer.abort()


_LINE = (
    b'{"episode":"r","boundary":1,"schema":1,"references":["a"],'
    b'"patches":[[[],[["x","nan"]]]],"payload":{"x":null}}\n'
)


@pytest.mark.req("FS12", "RE2")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"episode":"r"', b'"episode":"r-a1-a2"'),
        (b'"episode":"r"', b'"episode":"\\u0072"'),
        (b'"boundary":1', b'"boundary":01'),
        (b'"boundary":1', b'"boundary":-1'),
        (b'"boundary":1', b'"boundary":1.0'),
        (b'"boundary":1', b'"boundary":true'),
        (b'"boundary":1', b'"boundary":9223372036854775808'),
        (b'"boundary":1,', b""),
        (b'"schema":1', b'"schema":null'),
        (b'"schema":1', b'"schema": 1'),
        (b'"references":["a"]', b'"references":[]'),
        (b'"references":["a"]', b'"references":["\\u0061"]'),
        (b'"references":["a"]', b'"references":[1]'),
        (b'"patches":[', b'"patches":{['),
        (b'"patches":[[[],[["x","nan"]]]],', b'"patches":[],"extra":1,'),
        (b'{"episode"', b'\xef\xbb\xbf{"episode"'),
        (b"}\n", b"}\r\n"),
        (b"}\n", b"} \n"),
        (b',"payload":{"x":null}', b',"pay":1,"payload":{"x":null}'),
    ],
)
def test_a_damaged_envelope_names_its_episode(tmp_path: Path, old: bytes, new: bytes) -> None:
    _write_participant(tmp_path, _LINE)
    assert ckptfmt.open(tmp_path).verify().ok
    line = _LINE.replace(old, new)
    assert line != _LINE
    _write_participant(tmp_path, line)
    with pytest.raises(Damaged, match="episode r") as damaged:
        list(ckptfmt.open(tmp_path)["a"])
    assert damaged.value.episode == "r"
    assert not ckptfmt.open(tmp_path).verify().ok


def _write_participant(folder: Path, line: bytes, **changes: Any) -> None:
    """Write a participant with one line of any content, with correct digests."""
    shutil.rmtree(folder / "a", ignore_errors=True)
    (folder / "a").mkdir()
    digest = hashlib.sha256(line).hexdigest()
    (folder / "a" / f"records-{digest}.jsonl").write_bytes(line)
    block = {
        "episode": ["r"],
        "boundary": [1],
        "segment": [0],
        "offset": [0],
        "stored": [len(line)],
        "start": [0],
        "length": [len(line)],
        "crc32": [zlib.crc32(line)],
    }
    segment = {
        "file": f"records-{digest}.jsonl",
        "stored": len(line),
        "plain": len(line),
        "records": 1,
        "codec": "none",
    }
    manifest = {
        "format": 1,
        "features": [],
        "checkpoint_id": "c",
        "participant": {"name": "a", "kind": "agent"},
        "segments": [segment],
        "records": 1,
    }
    (folder / "a" / "manifest.json").write_bytes(sealed({**manifest, **changes}))
    put_index(folder / "a", index_bytes([block]))


@pytest.mark.req("RE1", "RE2")
def test_a_payload_that_is_not_json_is_found_by_verify_and_when_it_is_decoded(tmp_path: Path) -> None:
    _write_participant(tmp_path, _LINE.replace(b'{"x":null}', b'{"x":1}'))
    (stored,) = ckptfmt.open(tmp_path)["a"]
    with pytest.raises(Damaged, match="episode r: ") as damaged:
        _ = stored.payload
    assert damaged.value.episode == "r"
    (problem,) = ckptfmt.open(tmp_path).verify().problems
    assert "episode r" in problem.message


@pytest.mark.req("FS2")
def test_the_bytes_of_a_record_are_limited(tmp_path: Path) -> None:
    writer = ckptfmt.create(
        tmp_path, participant="a", kind="agent", checkpoint_id="c", limits=Limits(record_bytes=1000)
    )
    with pytest.raises(LimitExceeded, match="episode big"):
        writer.write(record("big", "x" * 1001))
    writer.write(record("small", "x"))
    writer.publish()


@pytest.mark.req("FS12")
def test_a_second_record_of_a_rollout_is_refused(tmp_path: Path) -> None:
    writer = ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c")
    writer.write(record("r-a1"))
    with pytest.raises(LimitExceeded, match="at most one record per rollout"):
        writer.write(record("r-a2"))
    assert writer.accepted == 1
    assert writer.publish().records == 1

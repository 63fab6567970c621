"""FORMAT.md is correct: its example is valid, and a reader written from the page alone reads checkpoints."""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import ckptfmt
from ckptfmt import EpisodeId, FormatLimits, Limits, Record
from ckptfmt.testing import same_exact
from ckptfmt.testing.strategies import records
from tests.ckptfmt.building import SMALL, files_below, write

_PAGE = (Path(__file__).parents[2] / "FORMAT.md").read_text(encoding="utf-8")
_FILE = re.compile(r"^`(run/\S+)`\n\n((?: {4}.*\n)+)", re.MULTILINE)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The files of the example in FORMAT.md."""
    found = _FILE.findall(_PAGE)
    assert len(found) == 6
    for name, text in found:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(line[4:] for line in text.splitlines(keepends=True)), encoding="utf-8")
    return tmp_path / "run"


@pytest.mark.req("FS10")
def test_the_example_is_a_valid_checkpoint(run: Path) -> None:
    checkpoint = ckptfmt.open(run / "step-1200")
    assert checkpoint.verify().ok
    assert checkpoint.state == {"step": 1200}
    stored = checkpoint["agent-0"]["17-0-a1"]
    assert repr(stored.payload) == "{'messages': ['hi'], 'logprobs': [-0.5, nan]}"
    assert ckptfmt.start_life(run) == 1
    tree = _PAGE.split("## A whole checkpoint")[1].split("```")[1]
    assert all(Path(name).name in tree for name in files_below(run) if name != "lives/1.json")


@pytest.mark.req("FS10")
def test_the_code_writes_the_bytes_of_the_example(run: Path, tmp_path: Path) -> None:
    example = run / "step-1200"
    written = tmp_path / "written"
    (cut,) = (path.name for path in example.iterdir() if path.is_dir())
    (written / cut).mkdir(parents=True)
    (written / cut / "cut.json").write_bytes((example / cut / "cut.json").read_bytes())
    payload = {"messages": ["hi"], "logprobs": [-0.5, float("nan")]}
    manifest = write(
        written / cut,
        [
            Record(EpisodeId("17-0", 1), payload, boundary=4, references=("batch/17",)),
            Record(EpisodeId("17-1"), {"messages": []}),
        ],
        checkpoint_id="step-1200",
    )
    ckptfmt.publish(
        written,
        participants={"agent-0": manifest.digest},
        sequence=1200,
        cut=cut,
        restarts=["18-0"],
        marks={"17-0": 0},
        state={"step": 1200},
    )
    assert files_below(written) == files_below(example)
    for name in files_below(example):
        assert (written / name).read_bytes() == (example / name).read_bytes()


@pytest.mark.req("FS10")
def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    limits = Limits()
    fixed = FormatLimits
    assert f"| nesting of a payload | {fixed.DEPTH} |" in _PAGE
    # Eight containers surround the values of `pairs` at the root of a state; they replace one of the 250.
    assert f"| nesting of a body, a block, or `patches` | {fixed.DEPTH + 7}, " in _PAGE
    assert f"| values in one payload | {limits.record_values:,}, " in _PAGE
    rows = (
        f"| one line | {limits.record_bytes // 2**30} GiB |",
        f"| one zstd frame | {limits.frame_plain_bytes // 2**30} GiB unpacked, 1 GiB and "
        f"{(limits.frame_stored_bytes - 2**30) // 2**20} MiB stored |",
        f"`[A-Za-z0-9][A-Za-z0-9._-]*`, at most {fixed.ROLLOUT_ID_BYTES} bytes, MUST NOT end in ",
        f" of a rollout from 0 | at most {fixed.ATTEMPT_DIGITS} decimal digits |",
        f"joined by `/`, at most {fixed.PARTICIPANT_NAME_CHARACTERS} characters; ",
        f"| window of a zstd frame | {limits.window_bytes // 2**20} MiB |",
        f"| manifest, cut, life | {limits.manifest_bytes // 2**20} MiB |",
        f"| index | {limits.index_bytes // 2**30} GiB |",
        f"| head of an index | {limits.index_head_bytes // 2**20} MiB |",
        f"| block of an index | {limits.index_block_rows:,} rows, {limits.index_block_bytes // 2**20} MiB |",
        f"| `checkpoint.json` | {limits.checkpoint_bytes // 2**30} GiB |",
    )
    assert [row for row in rows if row not in _PAGE] == []


# A reader written from the page alone, with json, hashlib, zlib and a zstd library, without ckptfmt.


def _self_checked(data: bytes, digest: str | None = None) -> Any:
    match = re.fullmatch(rb'\{"sha256":"([0-9a-f]{64})","body":(.*)\}\n', data, re.DOTALL)
    assert match is not None
    assert hashlib.sha256(match[2]).hexdigest() == match[1].decode()
    assert digest in (None, match[1].decode())
    return json.loads(match[2])


def _index(path: Path, digest: str) -> list[dict[str, Any]]:
    """The rows of the index in the order in which the records were written."""
    first, *lines = path.read_bytes().splitlines(keepends=True)
    head = _self_checked(first, digest)
    rows: list[dict[str, Any]] = []
    start = 0
    for key, place, length, sha256, line in zip(*map(head["blocks"].get, _BLOCKS), lines, strict=True):
        block = json.loads(line)
        assert (place, length, sha256) == (start, len(line), hashlib.sha256(line).hexdigest())
        assert block["episode"][0] == key
        start += len(line)
        rows += [dict(zip(block, row, strict=True)) for row in zip(*block.values(), strict=True)]
    keys = [row["episode"].encode() for row in rows]
    assert keys == sorted(set(keys))
    assert len(rows) == head["records"]
    return sorted(rows, key=lambda row: (row["segment"], row["offset"], row["start"]))


_BLOCKS = ("first", "start", "length", "sha256")


def _read(folder: Path) -> Iterator[tuple[Any, Any]]:
    manifest = _self_checked((folder / "manifest.json").read_bytes())
    assert manifest["format"] == 1
    rows = _index(folder / manifest["index"], manifest["index"][6:70])
    for number, segment in enumerate(manifest["segments"]):
        data = (folder / segment["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == segment["file"][8:72]
        offset, plain = 0, b""
        for row in [each for each in rows if each["segment"] == number]:
            if row["start"] == 0:
                assert row["offset"] == offset
                plain = data[offset : offset + row["stored"]]
                offset += row["stored"]
                if segment["codec"] == "zstd":
                    plain = zstandard.ZstdDecompressor().decompress(plain)
            line = plain[row["start"] :][: row["length"]]
            assert zlib.crc32(line) == row["crc32"]
            assert line.endswith(b"\n")
            parsed = json.loads(line, parse_constant=_refuse)
            assert list(parsed)[-1] == "payload"
            assert (parsed["episode"], parsed["boundary"]) == (row["episode"], row["boundary"])
            yield parsed, _patched(parsed["payload"], parsed.get("patches", []))
        assert offset == len(data)


def _refuse(constant: str) -> None:
    raise AssertionError(constant)


def _patched(payload: Any, patches: Any) -> Any:
    holder = {None: payload}
    for path, entries in patches:
        container: Any = holder
        if path is not None:
            container = holder[None]
            for step in path:
                container = container[_key(step)]
        for key, value in entries:
            place = None if key is None else _key(key)
            assert container[place] is None
            container[place] = _value(value)
    return holder[None]


def _key(encoded: Any) -> Any:
    return "".join(map(chr, encoded["str"])) if isinstance(encoded, dict) else encoded


def _value(encoded: Any) -> Any:
    if isinstance(encoded, str):
        return float(encoded)
    ((kind, body),) = encoded.items()
    if kind == "int":
        return int(body, 16)
    return {_key(key): value for key, value in body} if kind == "pairs" else "".join(map(chr, body))


@given(
    st.lists(records(), max_size=6, unique_by=lambda record: record.episode.rollout_id),
    st.sampled_from(["none", "zstd"]),
)
@settings(max_examples=60)
@pytest.mark.req("FS10", "FS12")
def test_a_reader_written_from_the_page_reads_all_records(
    tmp_path_factory: pytest.TempPathFactory, written: list[Record], compression: Any
) -> None:
    folder = tmp_path_factory.mktemp("written")
    write(folder, written, compression=compression, tuning=SMALL)
    read = list(_read(folder / "agent-0"))
    assert len(read) == len(written)
    for (line, payload), record in zip(read, written, strict=True):
        assert line["episode"] == record.episode.capture_key
        assert (line["boundary"], line["schema"]) == (record.boundary, record.schema)
        assert tuple(line.get("references", ())) == record.references
        assert same_exact(payload, record.payload)


@pytest.mark.req("FS10")
def test_orjson_spells_strings_as_the_page_requires() -> None:
    """The canonical bytes of an envelope are encoded by orjson."""
    assert orjson.dumps('"\\/\b\t\n\f\r\x00\x1f\x7fé\u2028😀') == (
        '"\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001f\x7fé\u2028😀"'.encode()
    )


def test_a_single_decompress_call_returns_only_the_first_frame(tmp_path: Path) -> None:
    """The page warns of this and names another call."""
    write(
        tmp_path, [Record(EpisodeId(f"r{n}"), "x" * 300) for n in range(4)], compression="zstd", tuning=SMALL
    )
    path = next(tmp_path.glob("agent-0/records-*"))
    unpacker = zstandard.ZstdDecompressor()
    first = unpacker.decompress(path.read_bytes())
    with path.open("rb") as file, unpacker.stream_reader(file, read_across_frames=True) as stream:
        whole = stream.read()
    assert whole.startswith(first)
    assert first.count(b"\n") < whole.count(b"\n")

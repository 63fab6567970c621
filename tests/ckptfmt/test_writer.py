"""Writing a participant: its segments, its index, the names it accepts, and what an error leaves."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from pathlib import Path
from typing import Any

import orjson
import pytest

import ckptfmt
from ckptfmt import Compression, LimitExceeded, Record
from tests.ckptfmt.building import files_below, index_of, many_records, record, write


def _create(folder: Path, **options: Any) -> ckptfmt.Writer:
    return ckptfmt.create(folder, participant="a", kind="agent", checkpoint_id="c", **options)


@pytest.mark.req("FS1", "FS4")
@pytest.mark.parametrize("compression", ["none", "zstd", "auto"])
def test_segments_close_when_they_are_full(tmp_path: Path, compression: Compression) -> None:
    manifest = write(tmp_path, many_records(100, 500), compression=compression)
    folder = tmp_path / "agent-0"
    assert len(manifest.segments) > 3
    for segment in manifest.segments:
        data = (folder / segment.file).read_bytes()
        ending = ".jsonl.zst" if compression == "zstd" else ".jsonl"
        assert segment.file == f"records-{hashlib.sha256(data).hexdigest()}{ending}"
        assert segment.stored == len(data)
    assert all(4000 <= segment.stored < 4000 + 2000 for segment in manifest.segments[:-1])
    assert manifest.bytes == sum(segment.stored for segment in manifest.segments)
    assert [each.episode.rollout_id for each in ckptfmt.open(tmp_path)["agent-0"]] == [
        f"r{n}" for n in range(100)
    ]
    assert files_below(tmp_path) == sorted(f"agent-0/{name}" for name in [*manifest.files, "manifest.json"])


@pytest.mark.req("FS1")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_large_record_has_a_segment_of_its_own(tmp_path: Path, compression: Compression) -> None:
    records = [record("a", 1), record("b", 2), *many_records(1, 9000, "big"), record("c", 3)]
    manifest = write(tmp_path, records, compression=compression)
    assert [segment.records for segment in manifest.segments] == [2, 1, 1]
    assert [each.episode.rollout_id for each in ckptfmt.open(tmp_path)["agent-0"]] == ["a", "b", "big0", "c"]
    assert ckptfmt.open(tmp_path).verify().ok


@pytest.mark.req("FS12", "FS10")
def test_a_participant_may_have_no_records(tmp_path: Path) -> None:
    manifest = write(tmp_path, [])
    assert (manifest.records, manifest.segments, manifest.bytes) == (0, (), 0)
    checkpoint = ckptfmt.open(tmp_path)
    assert list(checkpoint["agent-0"]) == []
    assert checkpoint.verify().ok
    assert checkpoint.episodes == ()


@pytest.mark.req("FS10")
def test_the_zstd_command_reads_a_compressed_segment(tmp_path: Path) -> None:
    manifest = write(tmp_path, many_records(50), compression="zstd")
    files = [str(tmp_path / "agent-0" / segment.file) for segment in manifest.segments]
    try:
        done = subprocess.run(["zstd", "-dc", *files], capture_output=True, check=True)
    except FileNotFoundError:
        pytest.skip("there is no zstd command here")
    assert [orjson.loads(line)["episode"] for line in done.stdout.splitlines()] == [
        f"r{n}" for n in range(50)
    ]


@pytest.mark.req("FS4")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_the_same_records_give_the_same_files(tmp_path: Path, compression: Compression) -> None:
    first = write(tmp_path / "one", many_records(40), compression=compression)
    second = write(tmp_path / "two", many_records(40), compression=compression)
    assert first == second
    assert files_below(tmp_path / "one") == files_below(tmp_path / "two")


@pytest.mark.req("FS10")
def test_the_index_holds_the_place_of_each_record(tmp_path: Path) -> None:
    manifest = write(tmp_path, many_records(20))
    folder = tmp_path / "agent-0"
    head, *blocks = map(orjson.loads, (folder / manifest.index).read_bytes().splitlines())
    assert list(head["body"]) == ["records", "blocks"]
    assert list(head["body"]["blocks"]) == ["first", "start", "length", "sha256"]
    assert [len(block["episode"]) for block in blocks] == [8, 8, 4]
    assert head["body"]["blocks"]["first"] == [block["episode"][0] for block in blocks]
    columns = ["episode", "boundary", "segment", "offset", "stored", "start", "length", "crc32"]
    assert all(list(block) == columns for block in blocks)
    index = index_of(folder)
    assert index["episode"] == sorted(f"r{number}" for number in range(20))
    for key, boundary, segment, offset, stored, start, length, crc32 in zip(*index.values(), strict=True):
        line = (folder / manifest.segments[segment].file).read_bytes()[offset : offset + stored]
        assert orjson.loads(line)["episode"] == key
        assert boundary == (int(key[1:]) or None)
        assert (start, length, crc32) == (0, stored, zlib.crc32(line))


@pytest.mark.req("FS8")
def test_after_an_exception_no_file_or_folder_is_left(tmp_path: Path) -> None:
    url = tmp_path / "not" / "there" / "yet"
    with pytest.raises(ZeroDivisionError):
        with ckptfmt.create(url, participant="a/b", kind="agent", checkpoint_id="c") as writer:
            writer.write(record("r"))
            _ = 1 / 0
    assert files_below(tmp_path) == []
    assert not (tmp_path / "not").exists()


@pytest.mark.req("FS8")
def test_an_exception_after_placed_segments_publishes_nothing(tmp_path: Path) -> None:
    def failing() -> Any:
        yield from many_records(100, 500)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(tmp_path, failing())
    assert all(name.startswith("agent-0/records-") for name in files_below(tmp_path))
    with pytest.raises(ckptfmt.Incomplete):
        ckptfmt.open(tmp_path)
    # The next writer can publish in the same folder.
    assert write(tmp_path, many_records(100, 500)).records == 100


@pytest.mark.req("FS6")
def test_publish_and_abort_are_idempotent(tmp_path: Path) -> None:
    writer = ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c")
    with pytest.raises(ValueError, match="nothing is published"):
        _ = writer.manifest
    writer.write(record("r"))
    assert writer.publish() is writer.publish() is writer.manifest
    writer.abort()
    assert ckptfmt.open(tmp_path).verify().ok
    with pytest.raises(ValueError, match="create a new one"):
        writer.write(record("s"))
    aborted = ckptfmt.create(tmp_path, participant="b", kind="agent", checkpoint_id="c")
    aborted.abort()
    aborted.abort()
    with pytest.raises(ValueError, match="create a new one"):
        aborted.publish()


@pytest.mark.req("CO12")
@pytest.mark.parametrize(
    "name", ["", ".a", "a//b", "/a", "a/", "../a", "a/../b", "a b", "é", "a" * 129, "a\n", 1]
)
def test_invalid_participant_names_are_refused(tmp_path: Path, name: Any) -> None:
    with pytest.raises(ckptfmt.InvalidId):
        ckptfmt.create(tmp_path, participant=name, kind="agent", checkpoint_id="c")
    with pytest.raises(ckptfmt.InvalidId):
        ckptfmt.open_participant(tmp_path, name)


@pytest.mark.parametrize("label", ["", "a\n", "\ud800", "x" * 257, 7])
def test_invalid_ids_and_kinds_are_refused(tmp_path: Path, label: Any) -> None:
    for fields in ({"kind": label, "checkpoint_id": "c"}, {"kind": "agent", "checkpoint_id": label}):
        with pytest.raises(ckptfmt.InvalidId):
            ckptfmt.create(tmp_path, participant="a", **fields)


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="auto, none or zstd"):
        _create(tmp_path, compression="gzip")


@pytest.mark.req("FS12")
def test_a_second_record_of_a_rollout_is_refused(tmp_path: Path) -> None:
    with ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c") as writer:
        writer.write(record("r-a1"))
        for key in ("r", "r-a1", "r-a2"):
            with pytest.raises(LimitExceeded):
                writer.write(record(key))
        writer.write(record("s"))
    assert ckptfmt.open(tmp_path).episodes == ("r-a1", "s")


@pytest.mark.req("FS5")
def test_the_mode_of_files_respects_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(tmp_path, [Record(ckptfmt.EpisodeId("r"), 1)])
    finally:
        os.umask(before)
    modes = {(tmp_path / name).stat().st_mode & 0o777 for name in files_below(tmp_path)}
    assert modes == {0o640}


@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "a/Cut.json",
        "a/checkpoint.json",
        f"records-{'0' * 64}.jsonl.zst",
        f"index-{'a' * 64}.json",
    ],
)
def test_a_participant_cannot_have_the_name_of_a_file(tmp_path: Path, name: str) -> None:
    """A file and a folder cannot have the same name."""
    with pytest.raises(ckptfmt.InvalidId, match="files of the format are named like"):
        ckptfmt.create(tmp_path, participant=name, kind="agent", checkpoint_id="c")
    ckptfmt.create(tmp_path, participant=f"{name}x", kind="agent", checkpoint_id="c")


def test_a_value_of_another_type_than_record_is_refused(tmp_path: Path) -> None:
    with _create(tmp_path) as writer:
        with pytest.raises(TypeError, match="write takes a Record, not a value of type dict"):
            writer.write({"messages": []})  # type: ignore[arg-type]
        assert writer.accepted == 0
        writer.write(record("r"))
    assert writer.manifest.records == 1

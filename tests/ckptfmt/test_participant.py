"""Reading a participant: scopes, single records, restores within a budget, and hostile zstd frames."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

import ckptfmt
from ckptfmt import Compression, Damaged, EpisodeId, Limits, StoredRecord, Tuning
from ckptfmt.testing import failing_disk
from tests.ckptfmt.building import (
    Index,
    body_of,
    index_bytes,
    index_of,
    many_records,
    put_index,
    record,
    sealed,
    write,
)


@pytest.fixture(params=["none", "zstd"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    write(
        tmp_path,
        (_at_attempt(each, number % 3) for number, each in enumerate(many_records(60))),
        compression=request.param,
    )
    return tmp_path


def _at_attempt(each: ckptfmt.Record, attempt: int) -> ckptfmt.Record:
    return ckptfmt.Record(EpisodeId(each.episode.rollout_id, attempt), each.payload, each.boundary)


@pytest.mark.req("RE1", "FS1")
def test_read_returns_only_records_in_the_scope(folder: Path) -> None:
    part = ckptfmt.open(folder)["agent-0"]
    scope: list[str | EpisodeId] = ["r5-a2", EpisodeId("r3"), "r1", "unknown-a7"]
    assert [str(each.episode) for each in part.read(scope)] == ["r3", "r5-a2"]
    assert list(part.read(scope=[])) == []
    assert len(list(part.read())) == len(part) == 60
    assert part.episodes[:3] == ("r0", "r1-a1", "r2-a2")


@pytest.mark.req("RE1", "FS9")
def test_a_small_scope_still_verifies_all_segments(folder: Path) -> None:
    part = ckptfmt.open(folder)["agent-0"]
    last = folder / "agent-0" / part.manifest.segments[-1].file
    data = bytearray(last.read_bytes())
    data[-10] ^= 1
    last.write_bytes(data)
    for scope in ([], ["r0"]):
        with pytest.raises(Damaged):
            list(part.read(scope))
    with pytest.raises(Damaged):
        part.restore({"r0"}, 10**9)
    assert part["r0"].payload["number"] == 0  # in another segment, checked alone


@pytest.mark.req("FS9")
def test_a_single_record_is_read_with_one_range(folder: Path) -> None:
    part = ckptfmt.open(folder)["agent-0"]
    assert "r7-a1" in part
    assert "r7" not in part
    assert part.episodes
    with failing_disk() as disk:
        part = ckptfmt.open(folder)["agent-0"]
        before = len(disk.calls)
        stored = part["r7-a1"]
        first = [os.path.basename(call.path)[:6] for call in disk.calls[before:]]
        before = len(disk.calls)
        assert part["r8-a2"].boundary == 8
        second = [os.path.basename(call.path)[:7] for call in disk.calls[before:]]
    assert first == ["index-", "record"]  # the first read of a small index includes its block
    assert second == ["records"]
    assert stored.payload["number"] == 7
    assert part[EpisodeId("r7", 1)].boundary == 7
    with pytest.raises(ckptfmt.NotFound):
        part["r7"]
    with pytest.raises(KeyError):
        part["missing"]


@pytest.mark.req("FS9")
def test_a_single_record_is_checked(folder: Path) -> None:
    part = ckptfmt.open(folder)["agent-0"]
    assert part.episodes
    for segment in part.manifest.segments:
        path = folder / "agent-0" / segment.file
        path.write_bytes(bytes(each ^ 1 for each in path.read_bytes()))
    with pytest.raises(Damaged):
        part["r0"]
    (folder / "agent-0" / part.manifest.segments[0].file).unlink()
    with pytest.raises(ckptfmt.Incomplete, match="is missing"):
        part["r0"]


@pytest.mark.req("RE1", "RE7")
def test_restore_reads_rollouts_at_any_attempt_within_a_memory_budget(folder: Path) -> None:
    part = ckptfmt.open(folder)["agent-0"]
    rollouts = {f"r{number}" for number in range(0, 60, 2)} | {"unknown"}
    records = part.restore(rollouts, memory_budget=2000)
    assert [each.episode.rollout_id for each in records] == [f"r{number}" for number in range(0, 60, 2)]
    held = sum(b"JsonPayload" in pickle.dumps(each) for each in records)
    assert 2 <= held <= 2000 // records[0].size
    for each in records:
        again = pickle.loads(pickle.dumps(each))
        assert again.payload == each.payload == each.json_payload.value()
        assert again.payload["number"] == int(each.episode.rollout_id[1:]) == (each.boundary or 0)
        assert again.size == each.size == len(each.json_payload.data)
    assert part.restore((), 0) == []


@pytest.mark.req("RE1")
def test_a_record_beyond_the_budget_is_checked_each_time_it_is_read(folder: Path) -> None:
    part = ckptfmt.open(folder)["agent-0"]
    (stored,) = part.restore({"r10"}, memory_budget=0)
    assert stored.payload["number"] == 10
    for segment in part.manifest.segments:
        path = folder / "agent-0" / segment.file
        path.write_bytes(bytes(each ^ 1 for each in path.read_bytes()))
    with pytest.raises(Damaged):
        _ = stored.payload


@pytest.mark.req("RE1", "FS1")
def test_memory_does_not_grow_with_the_checkpoint(tmp_path: Path) -> None:
    tuning = Tuning(segment_bytes=3_000_000)
    payload = ckptfmt.JsonPayload.of(os.urandom(50_000).hex())
    codecs: tuple[Compression, ...] = ("none", "zstd")
    for compression in codecs:
        write(
            tmp_path,
            (record(f"r{number}", payload) for number in range(200)),
            participant=compression,
            compression=compression,
            tuning=tuning,
        )
        part = ckptfmt.open(tmp_path)[compression]
        assert part.episodes
        tracemalloc.start()
        try:
            assert sum(1 for _ in part.read(scope=["r7"])) == 1
            assert part.verify() == []
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 5_000_000  # of 20 MB


@pytest.mark.req("RE1")
def test_a_record_does_not_keep_its_frame_in_memory(tmp_path: Path) -> None:
    write(
        tmp_path,
        (record(f"r{number}", "x" * 100) for number in range(1000)),
        compression="zstd",
        tuning=Tuning(),
    )
    part = ckptfmt.open(tmp_path)["agent-0"]
    (stored,) = part.restore({"r5"}, 10**6)
    assert len(pickle.dumps(stored)) < 1000
    assert type(stored.json_payload.data) is bytes


def _replace_segment(folder: Path, change: Callable[[bytes, Index], bytes]) -> None:
    """Replace the only segment of a participant by other bytes, with correct digests and sizes.

    ``change`` gets the index rows in the order written.
    """
    part_folder = folder / "agent-0"
    manifest = body_of(part_folder / "manifest.json")
    index = _sorted_by(index_of(part_folder), "offset", "start")
    (segment,) = manifest["segments"]
    data = change((part_folder / segment["file"]).read_bytes(), index)
    segment["file"] = f"records-{hashlib.sha256(data).hexdigest()}.jsonl.zst"
    segment["stored"] = len(data)
    segment["plain"] = sum(index["length"])
    (part_folder / segment["file"]).write_bytes(data)
    (part_folder / "manifest.json").write_bytes(sealed(manifest))
    put_index(part_folder, index_bytes([_sorted_by(index, "episode")]))


def _sorted_by(index: Index, *columns: str) -> Index:
    order = sorted(range(len(index["episode"])), key=lambda row: [index[name][row] for name in columns])
    return {name: [column[row] for row in order] for name, column in index.items()}


def _last_rows(index: Index) -> list[int]:
    """The rows of the last frame."""
    return [row for row, offset in enumerate(index["offset"]) if offset == index["offset"][-1]]


def _with_last_frame(frame_of: Callable[[bytes, int], bytes]) -> Callable[[bytes, Index], bytes]:
    def change(data: bytes, index: Index) -> bytes:
        rows, offset = _last_rows(index), index["offset"][-1]
        assert offset > 0
        new = frame_of(data[offset:], sum(index["length"][row] for row in rows))
        for row in rows:
            index["stored"][row] = len(new)
        return data[:offset] + new

    return change


def _unpack(frame: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(frame)


def _compress(plain: bytes, **options: Any) -> bytes:
    return zstandard.ZstdCompressor(**{"write_checksum": True, **options}).compress(plain)


def _compress_without_size(plain: bytes) -> bytes:
    compressor = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
    return compressor.compress(plain)


@pytest.mark.req("FS9", "RE3")
@pytest.mark.parametrize(
    "frame_of",
    [
        pytest.param(lambda frame, plain: frame[:-1], id="cut by one byte"),
        pytest.param(lambda frame, plain: frame[: len(frame) // 2], id="cut in half"),
        pytest.param(lambda frame, plain: frame + frame, id="a second frame"),
        pytest.param(
            lambda frame, plain: frame + b"\x50\x2a\x4d\x18\x01\x00\x00\x00x", id="a skippable frame"
        ),
        pytest.param(lambda frame, plain: frame + b"junk", id="junk"),
        pytest.param(lambda frame, plain: _unpack(frame), id="not compressed"),
        pytest.param(lambda frame, plain: b"\x1f\x8b" + frame[2:], id="another magic number"),
        pytest.param(lambda frame, plain: _compress(bytes(50_000_000)), id="bomb"),
        pytest.param(lambda frame, plain: _compress_without_size(_unpack(frame)), id="no content size"),
        pytest.param(lambda frame, plain: _compress(_unpack(frame), write_checksum=False), id="no checksum"),
        pytest.param(lambda frame, plain: _compress(_unpack(frame)[:-1] + b" "), id="other bytes"),
        pytest.param(lambda frame, plain: _compress(b"\n" * plain), id="empty lines"),
        pytest.param(
            lambda frame, plain: frame[:4] + b"\xe0" + b"\xff" * 8 + frame[5:], id="a size of 2**64"
        ),
        pytest.param(lambda frame, plain: frame[:4] + b"\x84\xff" + frame[5:], id="a huge window"),
        pytest.param(lambda frame, plain: b"", id="nothing"),
    ],
)
def test_hostile_zstd_frames_are_refused_without_much_memory(
    tmp_path: Path, frame_of: Callable[[bytes, int], bytes]
) -> None:
    write(tmp_path, many_records(12), compression="zstd")
    _replace_segment(tmp_path, _with_last_frame(lambda frame, plain: frame))
    assert ckptfmt.verify(tmp_path).ok
    _replace_segment(tmp_path, _with_last_frame(frame_of))
    tracemalloc.start()
    try:
        with pytest.raises(Damaged):
            list(ckptfmt.open_participant(tmp_path, "agent-0"))
        assert not ckptfmt.verify(tmp_path).ok
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000


@pytest.mark.req("FS9", "FS12")
def test_lines_are_compared_with_the_index(tmp_path: Path) -> None:
    """The size, digest and CRC-32 of the frame are correct, but one row has two lines."""
    write(tmp_path, many_records(12), compression="zstd")

    def two_lines(data: bytes, index: Index) -> bytes:
        rows, offset = _last_rows(index), index["offset"][-1]
        plain = _unpack(data[offset:]).replace(b'"number":', b'"num\ner":', 1)
        new = _compress(plain)
        for row in rows:
            line = plain[index["start"][row] :][: index["length"][row]]
            index["crc32"][row] = zlib.crc32(line)
            index["stored"][row] = len(new)
        return data[:offset] + new

    _replace_segment(tmp_path, two_lines)
    with pytest.raises(Damaged, match="was changed after writing"):
        list(ckptfmt.open_participant(tmp_path, "agent-0"))


@pytest.mark.req("FS9")
def test_a_window_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    big = Tuning(frame_bytes=4_000_000, segment_bytes=64_000_000)
    write(
        tmp_path,
        (record(f"r{n}", os.urandom(50_000).hex()) for n in range(30)),
        compression="zstd",
        tuning=big,
    )
    assert len(list(ckptfmt.open(tmp_path)["agent-0"])) == 30
    part = ckptfmt.open(tmp_path, limits=Limits(window_bytes=1000))["agent-0"]
    with pytest.raises(Damaged, match="window"):
        list(part)


@pytest.mark.req("FS3")
def test_a_payload_is_decoded_on_each_access(folder: Path) -> None:
    stored: StoredRecord = ckptfmt.open(folder)["agent-0"]["r0"]
    first = stored.payload
    first["number"] = "changed"
    assert stored.payload["number"] == 0
    assert copy.deepcopy(stored.json_payload) == stored.json_payload


@pytest.mark.req("FS1")
def test_an_abandoned_iterator_closes_its_file(folder: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    rows = iter(ckptfmt.open(folder)["agent-0"])
    next(rows)
    del rows
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after == before

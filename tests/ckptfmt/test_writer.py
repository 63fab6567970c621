"""Streaming records out: segments, frames, back-pressure, the gate, and what is left behind."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import orjson
import pytest

import ckptfmt
from ckptfmt import Compression, Gate, JsonPayload, LimitExceeded, Record, Stopped, Tuning
from ckptfmt.testing import failing_disk
from ckptfmt.testing._faulty_disk import DiskCall
from tests.ckptfmt.building import SMALL, files_below, index_of, many_records, record, write


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
def test_zero_records_are_legal(tmp_path: Path) -> None:
    manifest = write(tmp_path, [])
    assert (manifest.records, manifest.segments, manifest.bytes) == (0, (), 0)
    checkpoint = ckptfmt.open(tmp_path)
    assert list(checkpoint["agent-0"]) == []
    assert checkpoint.verify().ok
    assert checkpoint.episodes == ()


@pytest.mark.req("FS10")
def test_plain_zstd_reads_the_file(tmp_path: Path) -> None:
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
def test_the_index_says_where_each_record_lies(tmp_path: Path) -> None:
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
def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
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
    # The folder is not spoilt: the next writer publishes there.
    assert write(tmp_path, many_records(100, 500)).records == 100


@pytest.mark.req("FS8")
def test_a_forgotten_writer_publishes_nothing_and_ends_its_threads(tmp_path: Path) -> None:
    threads = threading.active_count()
    writer = ckptfmt.create(tmp_path / "x", participant="a", kind="agent", checkpoint_id="c", tuning=SMALL)
    for each in many_records(5):
        writer.write(each)
    deadline = time.monotonic() + 20
    while threading.active_count() < threads + 2 and time.monotonic() < deadline:
        time.sleep(0.001)
    assert threading.active_count() == threads + 2
    del writer
    gc.collect()
    assert threading.active_count() == threads
    assert not [name for name in files_below(tmp_path) if "manifest" in name or name.endswith(".tmp")]


@pytest.mark.req("FS8")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_writer_that_is_collected_in_its_own_thread_leaves_nothing(
    tmp_path: Path, compression: Compression
) -> None:
    threads = threading.active_count()
    writing, forgotten, collected = threading.Event(), threading.Event(), threading.Event()

    def collect(call: DiskCall) -> None:
        if call.operation == "write" and not collected.is_set():
            writing.set()
            assert forgotten.wait(20)
            gc.collect()
            collected.set()

    with failing_disk(on_call=collect):
        writer = ckptfmt.create(
            tmp_path / "x", participant="a", kind="agent", checkpoint_id="c", compression=compression
        )
        circle: list[Any] = [writer]
        circle.append(circle)
        for number in range(8):
            writer.write(record(f"r{number}", os.urandom(300_000).hex()))
        assert writing.wait(20)
        del writer, circle
        forgotten.set()
        assert collected.wait(20)
        deadline = time.monotonic() + 20
        while threading.active_count() > threads and time.monotonic() < deadline:
            time.sleep(0.001)
    assert threading.active_count() == threads
    assert not (tmp_path / "x").exists()


@pytest.mark.req("FS8")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_touch_what_is_written(tmp_path: Path) -> None:
    with ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c", tuning=SMALL) as writer:
        for each in many_records(5, 500):
            writer.write(each)
        while not any(name.endswith(".tmp") for name in files_below(tmp_path)):
            time.sleep(0.001)
        child = os.fork()
        if child == 0:
            try:
                writer._pipeline.packer.discard()  # what its clean-up would come to
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        for each in many_records(50, 500, prefix="s"):
            writer.write(each)
    assert ckptfmt.open(tmp_path).verify().ok
    assert writer.manifest.records == 55


@pytest.mark.req("FS8")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_process_that_ends_publishes_nothing_and_does_not_hang(
    tmp_path: Path, compression: Compression
) -> None:
    code = (
        "import ckptfmt, sys\n"
        f"w = ckptfmt.create(sys.argv[1], participant='a', kind='agent', checkpoint_id='c',"
        f" compression='{compression}',"
        " tuning=ckptfmt.Tuning(segment_bytes=10_000, frame_bytes=1000, batch_bytes=1000))\n"
        "for n in range(300): w.write(ckptfmt.Record(ckptfmt.EpisodeId(f'r{n}'), 'x' * 300))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == ""
    end = ".jsonl.zst" if compression == "zstd" else ".jsonl"
    assert all(name.startswith("a/records-") and name.endswith(end) for name in files_below(tmp_path))


@pytest.mark.req("FS1", "FS8")
def test_a_spool_holds_what_waits_and_is_empty_afterwards(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    with ckptfmt.create(
        tmp_path / "c", participant="a", kind="agent", checkpoint_id="c", spool=spool, tuning=SMALL
    ) as writer:
        for each in many_records(100, 500):
            writer.write(each)
            assert list(spool.iterdir()) == []  # its files have no names, so nothing can be left of them
    assert ckptfmt.open(tmp_path / "c").verify().ok
    assert writer.manifest == write(
        tmp_path / "d", many_records(100, 500), participant="a", checkpoint_id="c"
    )


@pytest.mark.req("FS1", "FS4")
def test_two_threads_compress_and_the_order_stays(tmp_path: Path) -> None:
    """The slower frame comes first: its batch is large, those after it are small."""
    payloads = [os.urandom(400_000).hex() if number % 5 == 0 else "x" * 300_000 for number in range(30)]
    records = [record(f"r{number}", payload) for number, payload in enumerate(payloads)]
    manifests = []
    seen: set[str] = set()

    def look(call: DiskCall) -> None:
        seen.update(each.name for each in threading.enumerate() if each.name.startswith("ckptfmt-compress"))

    for name in ("one", "other"):
        with failing_disk(on_call=look):
            with ckptfmt.create(
                tmp_path / name, participant="a", kind="agent", checkpoint_id="c", compression="zstd"
            ) as writer:
                for each in records:
                    writer.write(each)
        manifests.append(writer.manifest)
    assert len(seen) == 2
    assert manifests[0] == manifests[1]
    assert [each.payload for each in ckptfmt.open(tmp_path / "one")["a"]] == payloads


@pytest.mark.req("FS1")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_memory_holds_what_waits_to_be_packed_and_no_segment(
    tmp_path: Path, compression: Compression
) -> None:
    size, waiting = 350_000, 2_000_000
    tuning = Tuning(segment_bytes=10_000_000, batch_bytes=1_000_000, waiting_bytes=waiting)
    # Text that does not compress, one payload for all: only what the writer holds is counted.
    payload = JsonPayload.of(os.urandom(size // 2).hex())
    placing = threading.Event()

    def slow(call: DiskCall) -> None:
        if call.operation == "write":
            placing.wait(0.005)

    with failing_disk(on_call=slow):
        writer = ckptfmt.create(
            tmp_path, participant="a", kind="agent", checkpoint_id="c", compression=compression, tuning=tuning
        )
        tracemalloc.start()
        try:
            for number in range(100):
                writer.write(record(f"r{number}", payload))
            writer.publish()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    # What waits, the batch that is packed and the one that grows, with a little room in each buffer.
    held = (waiting + 2 * (1_000_000 + size)) * 9 / 8 + 2 * size
    assert peak < (held if compression == "none" else 2 * held)
    assert writer.manifest.records == 100


@pytest.mark.req("FS1")
def test_back_pressure_stops_the_caller_not_the_memory(tmp_path: Path) -> None:
    placing, go_on = threading.Event(), threading.Event()

    def wait(call: DiskCall) -> None:
        if call.operation == "replace":
            placing.set()
            go_on.wait(20)

    with failing_disk(on_call=wait):
        writer = ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c", tuning=SMALL)

        def produce() -> None:
            for each in many_records(200, 500):
                writer.write(each)

        producer = threading.Thread(target=produce)
        producer.start()
        assert placing.wait(10)
        time.sleep(0.3)
        held = writer.accepted
        # Three segments of at least 4,000 bytes, one frame on its way, one in the making.
        assert 3 * 4000 / 600 <= held <= 3 * 10 + 2 * 4
        time.sleep(0.2)
        assert writer.accepted == held
        go_on.set()
        producer.join(20)
        assert writer.publish().records == 200


@pytest.mark.req("CM8")
def test_a_stopped_gate_ends_the_writer_at_the_next_record(tmp_path: Path) -> None:
    gate = Gate()
    with pytest.raises(Stopped):
        with ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c", gate=gate) as writer:
            writer.write(record("r0"))
            gate.stop()
            writer.write(record("r1"))
    assert writer.accepted == 1
    assert files_below(tmp_path) == []
    assert gate.stopped
    assert gate.wait_published(0)


@pytest.mark.req("CM8")
def test_a_stopped_gate_ends_a_write_that_waits_for_the_disk(tmp_path: Path) -> None:
    gate, blocked, go_on = Gate(), threading.Event(), threading.Event()

    def wait(call: DiskCall) -> None:
        if call.operation == "replace":
            blocked.set()
            go_on.wait(20)

    ended: list[BaseException] = []
    with failing_disk(on_call=wait):
        writer = ckptfmt.create(
            tmp_path, participant="a", kind="agent", checkpoint_id="c", gate=gate, tuning=SMALL
        )

        def produce() -> None:
            try:
                for each in many_records(200, 500):
                    writer.write(each)
            except Stopped as error:
                ended.append(error)

        producer = threading.Thread(target=produce)
        producer.start()
        assert blocked.wait(10)
        gate.stop()
        producer.join(5)
        assert ended
        go_on.set()
        writer.abort()
    assert not [name for name in files_below(tmp_path) if not name.startswith("a/records-")]


@pytest.mark.req("CM8")
def test_no_manifest_appears_once_the_gate_was_stopped_and_taken(tmp_path: Path) -> None:
    """Whenever the stop comes: the manifest is there when ``wait_published`` returns, or never."""
    outcomes = set()
    for moment in range(40):
        folder = tmp_path / str(moment)
        gate, reached, go_on = Gate(), threading.Event(), threading.Event()
        calls = 0

        def wait(call: DiskCall, moment: int = moment, reached: Any = reached, go_on: Any = go_on) -> None:
            nonlocal calls
            calls += 1
            if calls == moment:
                reached.set()
                go_on.wait(0.05)  # a creation under way goes on while the stopper waits for the gate

        ended: list[BaseException | None] = []

        def commit(folder: Path = folder, gate: Gate = gate, ended: Any = ended) -> None:
            try:
                with ckptfmt.create(
                    folder, participant="a", kind="agent", checkpoint_id="c", gate=gate
                ) as writer:
                    writer.write(record("r"))
                ended.append(None)
            except Stopped as error:
                ended.append(error)

        with failing_disk(on_call=wait):
            committer = threading.Thread(target=commit)
            committer.start()
            reached.wait(0.2)
            gate.stop()
            assert gate.wait_published(10)
            there = (folder / "a" / "manifest.json").exists()
            go_on.set()
            committer.join(10)
        assert (folder / "a" / "manifest.json").exists() == there
        outcomes.add((there, ended[0] is None))
        assert not [name for name in files_below(folder) if name.endswith(".tmp")]
    assert {(False, False), (True, True)} <= outcomes
    assert (False, True) not in outcomes


@pytest.mark.req("CM8")
def test_wait_published_has_a_timeout() -> None:
    gate = Gate()
    with gate.publishing():
        assert not gate.wait_published(0.01)
    assert gate.wait_published(None)
    gate.stop()
    with pytest.raises(Stopped):
        with gate.publishing():
            raise AssertionError


@pytest.mark.req("FS6")
def test_publish_and_abort_are_harmless_when_repeated(tmp_path: Path) -> None:
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
def test_participants_names(tmp_path: Path, name: Any) -> None:
    with pytest.raises(ckptfmt.InvalidId):
        ckptfmt.create(tmp_path, participant=name, kind="agent", checkpoint_id="c")
    with pytest.raises(ckptfmt.InvalidId):
        ckptfmt.open_participant(tmp_path, name)


@pytest.mark.parametrize("label", ["", "a\n", "\ud800", "x" * 257, 7])
def test_ids_and_kinds_are_plain_text(tmp_path: Path, label: Any) -> None:
    for fields in ({"kind": label, "checkpoint_id": "c"}, {"kind": "agent", "checkpoint_id": label}):
        with pytest.raises(ckptfmt.InvalidId):
            ckptfmt.create(tmp_path, participant="a", **fields)


def test_a_compression_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="auto, none or zstd"):
        _create(tmp_path, compression="gzip")


@pytest.mark.req("FS12")
def test_a_second_record_of_a_rollout_takes_nothing(tmp_path: Path) -> None:
    with ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c") as writer:
        writer.write(record("r-a1"))
        for key in ("r", "r-a1", "r-a2"):
            with pytest.raises(LimitExceeded):
                writer.write(record(key))
        writer.write(record("s"))
    assert ckptfmt.open(tmp_path).episodes == ("r-a1", "s")


@pytest.mark.req("FS5")
def test_files_have_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
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
def test_a_participant_is_not_named_like_a_file(tmp_path: Path, name: str) -> None:
    """A file and a folder of one name cannot lie beside each other."""
    with pytest.raises(ckptfmt.InvalidId, match="files of the format are named like"):
        ckptfmt.create(tmp_path, participant=name, kind="agent", checkpoint_id="c")
    ckptfmt.create(tmp_path, participant=f"{name}x", kind="agent", checkpoint_id="c")


def test_what_is_no_record_is_refused_by_its_type(tmp_path: Path) -> None:
    with _create(tmp_path) as writer:
        with pytest.raises(TypeError, match="write takes a Record, not a value of type dict"):
            writer.write({"messages": []})  # type: ignore[arg-type]
        assert writer.accepted == 0
        writer.write(record("r"))
    assert writer.manifest.records == 1

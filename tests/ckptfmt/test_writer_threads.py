"""The threads of a writer: back-pressure, memory, compression, spooling, and writers that are abandoned."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import Compression, JsonPayload, Tuning
from ckptfmt.testing import failing_disk
from ckptfmt.testing._faulty_disk import DiskCall
from tests.ckptfmt.building import SMALL, files_below, many_records, record, write


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

"""The threads of a writer: back-pressure, memory, compression, spooling, and writers that are abandoned."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import Compression, Gate, JsonPayload, Tuning
from ckptfmt.testing import DiskCall, failing_disk
from tests.ckptfmt.building import SMALL, files_below, many_records, record, write
from tests.polling import block_until


@pytest.mark.req("FS8")
def test_a_garbage_collected_writer_ends_its_threads_and_publishes_nothing(tmp_path: Path) -> None:
    threads = threading.active_count()
    writer = ckptfmt.create(tmp_path / "x", participant="a", kind="agent", checkpoint_id="c", tuning=SMALL)
    for each in many_records(5):
        writer.write(each)
    block_until(lambda: threading.active_count() == threads + 2)
    del writer
    gc.collect()
    assert threading.active_count() == threads
    assert not [name for name in files_below(tmp_path) if "manifest" in name or name.endswith(".tmp")]


@pytest.mark.req("FS8")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_writer_can_be_garbage_collected_in_one_of_its_own_threads(
    tmp_path: Path, compression: Compression
) -> None:
    threads = threading.active_count()
    writing, released, collected = threading.Event(), threading.Event(), threading.Event()

    def collect(call: DiskCall) -> None:
        if call.operation == "write" and not collected.is_set():
            writing.set()
            assert released.wait(20)
            gc.collect()
            collected.set()

    with failing_disk(on_call=collect):
        writer = ckptfmt.create(
            tmp_path / "x", participant="a", kind="agent", checkpoint_id="c", compression=compression
        )
        cycle: list[Any] = [writer]
        cycle.append(cycle)
        for number in range(8):
            writer.write(record(f"r{number}", os.urandom(300_000).hex()))
        assert writing.wait(20)
        del writer, cycle
        released.set()
        assert collected.wait(20)
        block_until(lambda: threading.active_count() == threads)
    assert not (tmp_path / "x").exists()


@pytest.mark.req("FS8")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_delete_files_of_its_parent(tmp_path: Path) -> None:
    with ckptfmt.create(tmp_path, participant="a", kind="agent", checkpoint_id="c", tuning=SMALL) as writer:
        for each in many_records(5, 500):
            writer.write(each)
        block_until(lambda: any(name.endswith(".tmp") for name in files_below(tmp_path)))
        child = os.fork()
        if child == 0:
            try:
                writer._pipeline.packer.discard()  # as the finalizer of the writer does
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        for each in many_records(50, 500, prefix="s"):
            writer.write(each)
    assert ckptfmt.open(tmp_path).verify().ok
    assert writer.manifest.records == 55


@pytest.mark.req("FS8")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_process_that_exits_with_an_open_writer_neither_hangs_nor_publishes(
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
def test_spooled_files_have_no_names(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    with ckptfmt.create(
        tmp_path / "c", participant="a", kind="agent", checkpoint_id="c", spool=spool, tuning=SMALL
    ) as writer:
        for each in many_records(100, 500):
            writer.write(each)
            assert list(spool.iterdir()) == []  # files without names cannot be left behind
    assert ckptfmt.open(tmp_path / "c").verify().ok
    assert writer.manifest == write(
        tmp_path / "d", many_records(100, 500), participant="a", checkpoint_id="c"
    )


@pytest.mark.req("FS1", "FS4")
def test_two_threads_compress_and_keep_the_order(tmp_path: Path) -> None:
    """The first of five batches is large, so that its frame is finished after the smaller ones behind it."""
    payloads = [os.urandom(400_000).hex() if number % 5 == 0 else "x" * 300_000 for number in range(30)]
    records = [record(f"r{number}", payload) for number, payload in enumerate(payloads)]
    manifests = []
    seen: set[str] = set()

    def collect_names(call: DiskCall) -> None:
        seen.update(each.name for each in threading.enumerate() if each.name.startswith("ckptfmt-compress"))

    for name in ("one", "other"):
        with failing_disk(on_call=collect_names):
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
def test_memory_is_bounded_by_the_queue_and_not_by_the_segments(
    tmp_path: Path, compression: Compression
) -> None:
    size, waiting = 350_000, 2_000_000
    tuning = Tuning(segment_bytes=10_000_000, batch_bytes=1_000_000, waiting_bytes=waiting)
    # All records share one payload, so only the memory of the writer counts. It does not compress.
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
    # The queue, the batch that is packed and the one that grows, each with spare room in its buffer.
    held = (waiting + 2 * (1_000_000 + size)) * 9 / 8 + 2 * size
    assert peak < (held if compression == "none" else 2 * held)
    assert writer.manifest.records == 100


class _CountingGate(Gate):
    """Counts the checks. A blocked writer checks its gate again and again."""

    checks = 0

    def check(self) -> None:
        self.checks += 1
        super().check()


def _wait_until_blocked(writer: ckptfmt.Writer, gate: _CountingGate) -> None:
    """Wait until the writer has checked its gate several times without accepting a record."""
    accepted, checks = writer.accepted, gate.checks

    def is_blocked() -> bool:
        nonlocal accepted, checks
        if writer.accepted != accepted:
            accepted, checks = writer.accepted, gate.checks
        return gate.checks >= checks + 4

    block_until(is_blocked)


@pytest.mark.req("FS1")
def test_back_pressure_blocks_the_caller(tmp_path: Path) -> None:
    release = threading.Event()

    def block(call: DiskCall) -> None:
        if call.operation == "replace":
            assert release.wait(20)

    gate = _CountingGate()
    with failing_disk(on_call=block):
        writer = ckptfmt.create(
            tmp_path, participant="a", kind="agent", checkpoint_id="c", tuning=SMALL, gate=gate
        )

        def produce() -> None:
            for each in many_records(200, 500):
                writer.write(each)

        producer = threading.Thread(target=produce)
        producer.start()
        # Three segments of at least 4,000 bytes, one queued batch and one that grows: no more fit.
        block_until(lambda: writer.accepted >= 3 * 4000 / 600)
        _wait_until_blocked(writer, gate)
        accepted = writer.accepted
        assert accepted <= 3 * 10 + 2 * 4
        _wait_until_blocked(writer, gate)
        assert writer.accepted == accepted
        release.set()
        producer.join(20)
        assert writer.publish().records == 200

"""Decoding pauses the garbage collector and restores its state in every case."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import Damaged, InexactValue, JsonPayload, Tuning
from ckptfmt.testing import same_exact
from tests.ckptfmt.building import many_records, record, write


@pytest.fixture(autouse=True)
def _check_collector() -> Iterator[None]:
    """Check that each test leaves the garbage collector enabled."""
    assert gc.isenabled()
    yield
    enabled = gc.isenabled()
    gc.enable()
    assert enabled


def _objects(count: int) -> Any:
    return [{"number": number, "list": [number]} for number in range(count)]


def test_payloads_returns_the_payloads_in_the_order_of_the_records(tmp_path: Path) -> None:
    values = [None, float("nan"), 2**70, "\ud800", _objects(100)]
    write(tmp_path, [record(f"r{number}", value) for number, value in enumerate(values)])
    part = ckptfmt.open(tmp_path)["agent-0"]
    assert same_exact(ckptfmt.payloads(part), values)
    assert same_exact(ckptfmt.payloads(part.read(["r1", "r3"])), [values[1], values[3]])
    assert same_exact(ckptfmt.payloads(part.restore(["r4"], 10**6)), [values[4]])
    assert ckptfmt.payloads([]) == []


def test_no_collection_runs_during_or_right_after_decoding_many_records(tmp_path: Path) -> None:
    write(tmp_path, [record(f"r{number}", _objects(2000)) for number in range(20)])
    part = ckptfmt.open(tmp_path)["agent-0"]
    assert part.episodes
    gc.collect()
    found: list[int] = []

    def record_start(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(sum(gc.get_count()))

    gc.callbacks.append(record_start)
    try:
        values = ckptfmt.payloads(part)
        assert found == []
        assert gc.get_count()[0] < 2000  # the next collection visits none of the 80,000 new containers
    finally:
        gc.callbacks.remove(record_start)
    assert len(values) == 20
    assert gc.get_freeze_count() == 0


def test_objects_that_the_caller_froze_stay_frozen(tmp_path: Path) -> None:
    write(tmp_path, many_records(3))
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        assert before > 0
        assert len(ckptfmt.payloads(ckptfmt.open(tmp_path)["agent-0"])) == 3
        assert gc.get_freeze_count() == pytest.approx(before, abs=100)  # some of them may have been freed
    finally:
        gc.unfreeze()


def _decode_damaged() -> None:
    with pytest.raises(Damaged):
        JsonPayload(b"[1,").value()


def _decode_bad_patches() -> None:
    with pytest.raises(Damaged):
        JsonPayload(b"[1]", b'[[[],[[0,"nan"]]]]').value()


def _encode_inexact() -> None:
    with pytest.raises(InexactValue):
        JsonPayload.of({"a": (1, 2)})


def _decode_many_damaged() -> None:
    class Broken:
        @property
        def payload(self) -> Any:
            raise Damaged("broken")

    with pytest.raises(Damaged):
        ckptfmt.payloads([Broken()])  # type: ignore[list-item]


@pytest.mark.parametrize("act", [_decode_damaged, _decode_bad_patches, _encode_inexact, _decode_many_damaged])
def test_a_failure_restores_the_state_of_the_collector(act: Callable[[], None]) -> None:
    act()
    assert gc.isenabled()
    gc.disable()
    try:
        act()
        assert not gc.isenabled()
    finally:
        gc.enable()


def _encode_and_decode() -> None:
    JsonPayload.of({"a": [1, 2, {"b": None}]}).value()


def _encode_and_decode_with_patches() -> None:
    JsonPayload.of({"a": [1, float("inf"), {"b": 2**64}]}).value()


@pytest.mark.parametrize("act", [_encode_and_decode, _encode_and_decode_with_patches])
def test_an_interrupt_at_any_moment_leaves_the_collector_enabled(act: Callable[[], None]) -> None:
    """The signal can arrive wherever Python code runs, like Ctrl-C in a notebook."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for moment in range(400):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + moment * 1e-6)
                while True:
                    act()
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert gc.isenabled()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_overlapping_threads_leave_the_collector_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread reads the state while another one pauses the collector, and pauses it after that one ended."""
    was_read, ended = threading.Event(), threading.Event()
    isenabled = gc.isenabled

    def slow_isenabled() -> bool:
        found = isenabled()
        if threading.current_thread().name == "second":
            was_read.set()
            assert ended.wait(20)
        return found

    class First:
        @property
        def payload(self) -> Any:
            second.start()
            assert was_read.wait(20)

    payload = JsonPayload.of(_objects(50))
    second = threading.Thread(target=payload.value, name="second")
    monkeypatch.setattr(gc, "isenabled", slow_isenabled)
    ckptfmt.payloads([First()])  # type: ignore[list-item]
    ended.set()
    second.join()
    monkeypatch.undo()
    assert gc.isenabled()


@pytest.mark.req("FS1")
def test_closing_an_iterator_of_records_ends_its_thread(tmp_path: Path) -> None:
    text = "x" * 500_000
    write(tmp_path, [record(f"r{number}", text) for number in range(12)], tuning=Tuning())
    before = threading.active_count()
    reading = ckptfmt.open(tmp_path)["agent-0"].read()
    for _ in range(8):
        next(reading)
    assert threading.active_count() == before + 1
    reading.close()  # type: ignore[attr-defined]  # it is a generator
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.001)
    assert threading.active_count() == before

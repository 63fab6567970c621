"""Decoding pauses the garbage collector, and leaves it as it was whatever happens."""

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
def _collector() -> Iterator[None]:
    assert gc.isenabled()
    yield
    enabled = gc.isenabled()
    gc.enable()
    assert enabled


def _objects(count: int) -> Any:
    return [{"number": number, "list": [number]} for number in range(count)]


def test_payloads_are_those_of_the_records(tmp_path: Path) -> None:
    values = [None, float("nan"), 2**70, "\ud800", _objects(100)]
    write(tmp_path, [record(f"r{number}", value) for number, value in enumerate(values)])
    part = ckptfmt.open(tmp_path)["agent-0"]
    assert same_exact(ckptfmt.payloads(part), values)
    assert same_exact(ckptfmt.payloads(part.read(["r1", "r3"])), [values[1], values[3]])
    assert same_exact(ckptfmt.payloads(part.restore(["r4"], 10**6)), [values[4]])
    assert ckptfmt.payloads([]) == []


def test_no_collection_runs_while_many_records_are_decoded_nor_right_after(tmp_path: Path) -> None:
    write(tmp_path, [record(f"r{number}", _objects(2000)) for number in range(20)])
    part = ckptfmt.open(tmp_path)["agent-0"]
    assert part.episodes
    gc.collect()
    found: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(sum(gc.get_count()))

    gc.callbacks.append(note)
    try:
        values = ckptfmt.payloads(part)
        assert found == []
        assert gc.get_count()[0] < 2000  # of the 80,000 new containers, the next collection looks at none
    finally:
        gc.callbacks.remove(note)
    assert len(values) == 20
    assert gc.get_freeze_count() == 0


def test_what_somebody_froze_stays_frozen(tmp_path: Path) -> None:
    write(tmp_path, many_records(3))
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        assert before > 0
        assert len(ckptfmt.payloads(ckptfmt.open(tmp_path)["agent-0"])) == 3
        assert gc.get_freeze_count() == pytest.approx(before, abs=100)  # some of them may have died
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


def _many_damaged() -> None:
    class Broken:
        @property
        def payload(self) -> Any:
            raise Damaged("broken")

    with pytest.raises(Damaged):
        ckptfmt.payloads([Broken()])  # type: ignore[list-item]


@pytest.mark.parametrize("act", [_decode_damaged, _decode_bad_patches, _encode_inexact, _many_damaged])
def test_the_collector_is_as_before_after_a_failure(act: Callable[[], None]) -> None:
    act()
    assert gc.isenabled()
    gc.disable()
    try:
        act()
        assert not gc.isenabled()
    finally:
        gc.enable()


def _values() -> None:
    JsonPayload.of({"a": [1, 2, {"b": None}]}).value()


def _odd_values() -> None:
    JsonPayload.of({"a": [1, float("inf"), {"b": 2**64}]}).value()


@pytest.mark.parametrize("act", [_values, _odd_values])
def test_an_interrupt_at_any_moment_leaves_the_collector_on(act: Callable[[], None]) -> None:
    """As Ctrl-C in a notebook: the signal comes wherever Python code runs."""

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


def test_threads_that_overlap_leave_the_collector_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread asks whether it is on while another pauses it, and pauses it when that one has ended."""
    asked, ended = threading.Event(), threading.Event()
    isenabled = gc.isenabled

    def slow_isenabled() -> bool:
        found = isenabled()
        if threading.current_thread().name == "second":
            asked.set()
            assert ended.wait(20)
        return found

    class First:
        @property
        def payload(self) -> Any:
            second.start()
            assert asked.wait(20)

    payload = JsonPayload.of(_objects(50))
    second = threading.Thread(target=payload.value, name="second")
    monkeypatch.setattr(gc, "isenabled", slow_isenabled)
    ckptfmt.payloads([First()])  # type: ignore[list-item]
    ended.set()
    second.join()
    monkeypatch.undo()
    assert gc.isenabled()


@pytest.mark.req("FS1")
def test_a_reading_that_is_given_up_ends_its_thread(tmp_path: Path) -> None:
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

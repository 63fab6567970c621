"""Interrupts of a writer, such as Ctrl-C, at any moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import Writer
from ckptfmt.testing import failing_disk
from ckptfmt.testing._faulty_disk import DiskCall
from tests.ckptfmt.building import SMALL, files_below, many_records, write


def _create(folder: Path, **options: Any) -> Writer:
    return ckptfmt.create(
        folder, participant="a", kind="agent", checkpoint_id="c", **{"tuning": SMALL, **options}
    )


def _write_on(writer: Writer, records: list[ckptfmt.Record]) -> None:
    for each in records[writer.accepted :]:
        writer.write(each)


@pytest.mark.req("FS8")
def test_an_abort_that_is_interrupted_can_be_called_again(tmp_path: Path) -> None:
    """A disk that hangs makes people press Ctrl-C, also while the writer is giving up."""
    hanging, go_on = threading.Event(), threading.Event()

    def hang(call: DiskCall) -> None:
        if call.operation == "write" and not go_on.is_set():
            hanging.set()
            assert go_on.wait(20)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with failing_disk(on_call=hang):
            writer = _create(tmp_path)
            _write_on(writer, list(many_records(2, 500)))
            assert hanging.wait(20)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                writer.abort()
            go_on.set()
            writer.abort()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert files_below(tmp_path) == []
    assert not (tmp_path / "a").exists()


def _write_until_interrupted(writer: Writer, records: list[ckptfmt.Record], seconds: float) -> str:
    """What came of it: done, interrupted, or midway (an interrupt before came in the middle of something)."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            _write_on(writer, records)
            outcome = "done"
        except ValueError as error:
            outcome = "midway" if "was interrupted" in str(error) else str(error)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return "interrupted"
    return outcome


@pytest.mark.req("CM4", "FS4")
def test_interrupts_at_any_moment_lose_and_double_nothing(tmp_path: Path) -> None:
    records = list(many_records(40, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    outcomes = set()
    try:
        for moment in range(150):
            writer = _create(tmp_path / str(moment))
            published, tries = None, 0
            while published is None:
                tries += 1
                outcome = _write_until_interrupted(writer, records, 0.0001 * tries + moment * 0.00002)
                if outcome == "done":
                    try:
                        published = writer.publish()
                    except ValueError:  # the last record was the one that was interrupted
                        outcome = "midway"
                if outcome == "midway":
                    assert not writer.retry()
                outcomes.add(outcome)
            assert published == expected
    finally:
        signal.signal(signal.SIGALRM, before)
    assert {"interrupted", "done"} <= outcomes


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() <= before

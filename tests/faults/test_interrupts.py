"""Interrupts of a writer, such as Ctrl-C, at any moment."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import Writer
from ckptfmt.testing import DiskCall, failing_disk
from tests.ckptfmt.building import files_below, many_records, write
from tests.faults.writing import create_writer, write_remaining


@pytest.mark.req("FS8")
def test_an_interrupted_abort_can_be_repeated(tmp_path: Path) -> None:
    """Users press Ctrl-C when a disk hangs, also while ``abort`` runs."""
    hanging, release = threading.Event(), threading.Event()

    def hang(call: DiskCall) -> None:
        if call.operation == "write" and not release.is_set():
            hanging.set()
            assert release.wait(20)

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with failing_disk(on_call=hang):
            writer = create_writer(tmp_path)
            write_remaining(writer, list(many_records(2, 500)))
            assert hanging.wait(20)
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                writer.abort()  # waits for the disk until the interrupt
            release.set()
            writer.abort()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert files_below(tmp_path) == []
    assert not (tmp_path / "a").exists()


def _write_until_interrupted(writer: Writer, records: list[ckptfmt.Record], seconds: float) -> str:
    """Returns ``done``, ``interrupted``, or ``refused`` when an earlier interrupt requires a retry."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            write_remaining(writer, records)
            outcome = "done"
        except ValueError as error:
            outcome = "refused" if "was interrupted" in str(error) else str(error)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return "interrupted"
    return outcome


@pytest.mark.req("CM4", "FS4")
def test_interrupts_at_any_moment_neither_lose_nor_duplicate_records(tmp_path: Path) -> None:
    records = list(many_records(40, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    outcomes = set()
    try:
        for moment in range(150):
            writer = create_writer(tmp_path / str(moment))
            published, tries = None, 0
            while published is None:
                tries += 1
                outcome = _write_until_interrupted(writer, records, 0.0001 * tries + moment * 0.00002)
                if outcome == "done":
                    try:
                        published = writer.publish()
                    except ValueError:  # the interrupt came during the last record
                        outcome = "refused"
                if outcome == "refused":
                    assert not writer.retry()
                outcomes.add(outcome)
            assert published == expected
    finally:
        signal.signal(signal.SIGALRM, before)
    assert {"interrupted", "done"} <= outcomes

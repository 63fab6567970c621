"""Stopping a writer with a gate."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import Gate, Stopped
from ckptfmt.testing import failing_disk
from ckptfmt.testing._faulty_disk import DiskCall
from tests.ckptfmt.building import SMALL, files_below, many_records, record


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

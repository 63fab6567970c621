"""Stopping a writer with a gate."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import Gate, Stopped
from ckptfmt.testing import DiskCall, failing_disk
from tests.ckptfmt.building import SMALL, files_below, many_records, record


@pytest.mark.req("CM8")
def test_a_stopped_gate_is_raised_by_the_next_write(tmp_path: Path) -> None:
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
    gate, blocked, release = Gate(), threading.Event(), threading.Event()

    def block(call: DiskCall) -> None:
        if call.operation == "replace":
            blocked.set()
            release.wait(20)

    ended: list[BaseException] = []
    with failing_disk(on_call=block):
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
        release.set()
        writer.abort()
    assert not [name for name in files_below(tmp_path) if not name.startswith("a/records-")]


@pytest.mark.req("CM8")
def test_no_manifest_appears_after_stop_and_wait_published(tmp_path: Path) -> None:
    """At any moment of a stop: the manifest exists when ``wait_published`` returns, or never appears."""
    outcomes = set()
    for moment in range(40):
        folder = tmp_path / str(moment)
        gate, reached, release = Gate(), threading.Event(), threading.Event()
        calls = 0

        def block(
            call: DiskCall, moment: int = moment, reached: Any = reached, release: Any = release
        ) -> None:
            nonlocal calls
            calls += 1
            if calls == moment:
                reached.set()
                release.wait(0.05)  # not longer: the stopper may be waiting for the gate meanwhile

        outcome: list[BaseException | None] = []

        def commit(
            folder: Path = folder, gate: Gate = gate, outcome: Any = outcome, reached: Any = reached
        ) -> None:
            try:
                with ckptfmt.create(
                    folder, participant="a", kind="agent", checkpoint_id="c", gate=gate
                ) as writer:
                    writer.write(record("r"))
                outcome.append(None)
            except Stopped as error:
                outcome.append(error)
            finally:
                reached.set()  # there are fewer disk calls than moments

        with failing_disk(on_call=block):
            committer = threading.Thread(target=commit)
            committer.start()
            assert reached.wait(20)
            gate.stop()
            assert gate.wait_published(10)
            exists = (folder / "a" / "manifest.json").exists()
            release.set()
            committer.join(10)
        assert (folder / "a" / "manifest.json").exists() == exists
        outcomes.add((exists, outcome[0] is None))
        assert not [name for name in files_below(folder) if name.endswith(".tmp")]
    assert {(False, False), (True, True)} <= outcomes
    assert (False, True) not in outcomes


@pytest.mark.req("CM8")
def test_wait_published_returns_after_its_timeout() -> None:
    gate = Gate()
    with gate.publishing():
        assert not gate.wait_published(0.01)
    assert gate.wait_published(None)
    gate.stop()
    with pytest.raises(Stopped):
        with gate.publishing():
            raise AssertionError

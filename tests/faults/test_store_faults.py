"""A disk that fails: typed errors, nothing lost, nothing left behind, and a retry that goes on."""

from __future__ import annotations

import dataclasses
import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import Conflict, SnapshotChanged, StoreError, UnsupportedStore, UnusableDirectory, Writer
from ckptfmt.testing import Fault, failing_disk
from ckptfmt.testing._faulty_disk import DiskCall, Operation
from tests.ckptfmt.building import SMALL, files_below, many_records, record, write


def _create(folder: Path, **options: Any) -> Writer:
    return ckptfmt.create(
        folder, participant="a", kind="agent", checkpoint_id="c", **{"tuning": SMALL, **options}
    )


def _write_on(writer: Writer, records: list[ckptfmt.Record]) -> None:
    for each in records[writer.accepted :]:
        writer.write(each)


def _until_it_fails(writer: Writer, records: list[ckptfmt.Record]) -> StoreError:
    with pytest.raises(StoreError) as failed:
        _write_on(writer, records)
        time.sleep(0.2)
        writer.publish()
    return failed.value


_STORING: list[tuple[Operation, str]] = [
    ("create", "*"),
    ("write", "*"),
    ("sync", "*"),
    ("replace", "*records-*"),
    ("replace", "*index-*"),
    ("sync_directory", "*"),
    ("link", "*manifest.json"),
    ("make_directory", "*"),
]


@pytest.mark.req("FS6", "FS8", "CM4")
@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize(("operation", "path"), _STORING)
@pytest.mark.parametrize("after", [0, 2])
def test_a_failure_is_typed_and_the_retry_goes_on(
    tmp_path: Path, operation: Operation, path: str, number: int, after: int
) -> None:
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")
    if operation in ("make_directory", "link") or path == "*index-*":
        after = 0
    folder = tmp_path / "bad"
    with failing_disk(Fault(operation, number, path, after)):
        writer = _create(folder)
        failure = _until_it_fails(writer, records)
        assert failure.errno == number
        assert failure.path is not None
        assert failure.path in str(failure)
        assert os.strerror(number) in str(failure)
        assert failure.retryable
        if operation == "write":
            assert failure.written is not None
        # After a sync that failed, nobody knows which bytes the disk has: all are written again.
        assert writer.retry() == (operation != "sync")
        _write_on(writer, records)
        assert writer.publish() == expected
    assert files_below(folder) == files_below(tmp_path / "good")
    assert ckptfmt.open(folder).verify().ok


@pytest.mark.req("CM4")
def test_a_failure_in_the_background_shows_at_the_next_record(tmp_path: Path) -> None:
    with failing_disk(Fault("replace", errno.EIO)) as disk:
        writer = _create(tmp_path)
        for each in many_records(10, 500):  # one segment, and a little of the next
            writer.write(each)
        while not any(call.operation == "replace" for call in disk.calls):
            time.sleep(0.01)
        time.sleep(0.1)
        with pytest.raises(StoreError):
            writer.write(record("small"))
        assert writer.accepted == 10
        writer.abort()


@pytest.mark.req("CM4")
def test_a_failure_stays_until_retry(tmp_path: Path) -> None:
    records = list(many_records(60, 500))
    with failing_disk(Fault("write", errno.ENOSPC)):
        writer = _create(tmp_path)
        _until_it_fails(writer, records)
        accepted = writer.accepted
        for _ in range(3):
            with pytest.raises(StoreError):
                writer.write(records[accepted])
            with pytest.raises(StoreError):
                writer.publish()
        assert writer.accepted == accepted
        assert writer.retry()
        _write_on(writer, records)
        assert writer.publish().records == 60
        assert writer.retry()


@pytest.mark.req("FS8")
@pytest.mark.parametrize(("operation", "path"), _STORING)
def test_giving_up_after_a_failure_leaves_no_temporary_file(
    tmp_path: Path, operation: Operation, path: str
) -> None:
    with failing_disk(Fault(operation, errno.ENOSPC, path, times=None)):
        with pytest.raises(StoreError):
            with _create(tmp_path / "x") as writer:
                _write_on(writer, list(many_records(60, 500)))
    assert not [name for name in files_below(tmp_path) if not name.startswith(("x/a/records-", "x/a/index-"))]


@pytest.mark.req("FS8")
def test_a_cleanup_that_fails_does_not_hide_the_full_disk(tmp_path: Path) -> None:
    with failing_disk(Fault("write", errno.ENOSPC, times=None), Fault("unlink", errno.EIO, times=None)):
        with pytest.raises(StoreError, match="free some space") as failed:
            with _create(tmp_path) as writer:
                writer.write(record("r"))
    assert failed.value.errno == errno.ENOSPC
    assert failed.value.written == 0


@pytest.mark.req("FS6")
def test_a_commit_whose_last_sync_failed_is_durable_after_its_retry(tmp_path: Path) -> None:
    folder = str(tmp_path / "a")
    with failing_disk(Fault("sync_directory", errno.EIO, folder, after=1)) as disk:
        writer = _create(tmp_path)
        writer.write(record("r"))
        with pytest.raises(StoreError):
            writer.publish()
        assert (tmp_path / "a" / "manifest.json").exists()
        with pytest.raises(ValueError, match="nothing is published"):
            _ = writer.manifest
        synced = len(disk.calls)
        assert writer.retry()
        manifest = writer.publish()
        last = [call for call in disk.calls[synced:] if call.operation in ("link", "sync_directory")][-1]
        assert (last.operation, last.path) == ("sync_directory", folder)
    assert ckptfmt.open(tmp_path)["a"].digest == manifest.digest


@pytest.mark.req("FS6")
def test_another_process_may_finish_a_commit(tmp_path: Path) -> None:
    """After a crash between manifest and sync, a second writer of the same records succeeds, and syncs."""
    first = write(tmp_path, many_records(30))
    with failing_disk() as disk:
        assert write(tmp_path, many_records(30)) == first
    assert [call.path for call in disk.calls if call.operation == "sync_directory"][-1] == str(
        tmp_path / "agent-0"
    )


@pytest.mark.req("CM4")
def test_a_placed_segment_that_is_gone_is_written_again(tmp_path: Path) -> None:
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")
    with failing_disk(Fault("replace", errno.EIO, "*records-*", after=2)):
        writer = _create(tmp_path / "bad")
        _until_it_fails(writer, records)
        placed = sorted((tmp_path / "bad" / "a").glob("records-*"))
        assert len(placed) == 2
        placed[0].unlink()
        assert not writer.retry()
        assert writer.accepted == 0
        _write_on(writer, records)
        assert writer.publish() == expected
    assert ckptfmt.open(tmp_path / "bad").verify().ok


@pytest.mark.req("CM4")
@pytest.mark.parametrize("change", ["another value", "fewer records"])
def test_records_that_changed_meanwhile_are_refused(tmp_path: Path, change: str) -> None:
    records = list(many_records(60, 500))
    with failing_disk(Fault("replace", errno.EIO, "*records-*", after=2)):
        writer = _create(tmp_path)
        _until_it_fails(writer, records)
        for path in (tmp_path / "a").glob("records-*"):
            path.write_bytes(b"")
        assert not writer.retry()
        if change == "fewer records":
            records = records[:3]
        else:
            records[1] = record("r1", "changed")
        for _ in range(2):  # it stays refused
            with pytest.raises(SnapshotChanged):
                _write_on(writer, records)
                writer.publish()
        if change == "another value":
            with pytest.raises(SnapshotChanged):
                writer.retry()
        writer.abort()
    assert not (tmp_path / "a" / "manifest.json").exists()


@pytest.mark.req("CM11")
@pytest.mark.parametrize(
    ("number", "operation"),
    [
        (number, operation)
        for number in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR)
        for operation in ("create", "make_directory")
    ],
)
def test_a_place_that_cannot_hold_state_is_said_so(tmp_path: Path, number: int, operation: Operation) -> None:
    with failing_disk(Fault(operation, number, times=None)):
        with pytest.raises(UnusableDirectory) as failed:
            write(tmp_path / "x", [record("r")])
    assert not failed.value.retryable
    assert failed.value.errno == number
    assert files_below(tmp_path) == []


@pytest.mark.req("CM11")
def test_a_file_where_a_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for url in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UnusableDirectory):
            write(url, [record("r")])
        with pytest.raises(UnusableDirectory):
            ckptfmt.check_directory(url)
    (tmp_path / "agent-0").write_bytes(b"")
    with pytest.raises(UnusableDirectory):
        write(tmp_path, [record("r")])
    for name in (os.path.join(tmp_path, "a\0b"), "", os.path.join(tmp_path, "x" * 300)):
        with pytest.raises(UnusableDirectory):
            write(name, [record("r")])


@pytest.mark.req("FS4", "CM11")
@pytest.mark.parametrize(
    "number", [errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL, errno.EMLINK, errno.EXDEV]
)
def test_a_file_system_without_hard_links_is_refused(tmp_path: Path, number: int) -> None:
    (tmp_path / "there").mkdir()
    with failing_disk(Fault("link", number, times=None)):
        with pytest.raises(UnsupportedStore, match="no hard links"):
            write(tmp_path / "x", [record("r")])
        with pytest.raises(UnsupportedStore, match="no hard links"):
            ckptfmt.check_directory(tmp_path / "there")
    assert not [name for name in files_below(tmp_path) if "manifest" in name or ".tmp" in name]


@pytest.mark.req("FS4")
def test_a_directory_that_may_not_be_written_is_not_taken_for_one_without_links(tmp_path: Path) -> None:
    with failing_disk(Fault("link", errno.EACCES, times=None)):
        with pytest.raises(UnusableDirectory):
            write(tmp_path, [record("r")])


@pytest.mark.req("FS5")
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP])
def test_a_directory_that_cannot_be_synced_is_warned_about_once(tmp_path: Path, number: int) -> None:
    with failing_disk(Fault("sync_directory", number, times=None)):
        with pytest.warns(RuntimeWarning, match="cannot sync a directory") as warned:
            write(tmp_path / "x", [record("r")])
        write(tmp_path / "y", [record("r")])  # a second warning would be an error
    assert len(warned) == 1
    assert ckptfmt.open(tmp_path / "x").verify().ok


@pytest.mark.req("FS5")
@pytest.mark.parametrize("number", [errno.EIO, errno.EBADF, errno.ENOSPC])
def test_any_other_failure_to_sync_a_directory_fails_the_commit(tmp_path: Path, number: int) -> None:
    with failing_disk(Fault("sync_directory", number, times=None)):
        with pytest.raises(StoreError):
            write(tmp_path, [record("r")])
    assert not (tmp_path / "agent-0" / "manifest.json").exists()


@pytest.mark.req("FS4")
def test_a_manifest_that_cannot_be_read_back_is_an_unknown_outcome(tmp_path: Path) -> None:
    write(tmp_path, many_records(20))
    before = files_below(tmp_path)
    with failing_disk(Fault("open_for_reading", errno.EIO, "*manifest.json")):
        with pytest.raises(ckptfmt.OutcomeUnknown) as unknown:
            write(tmp_path, many_records(20, prefix="other"))
    assert unknown.value.retryable
    assert set(before) <= set(files_below(tmp_path))
    assert ckptfmt.open(tmp_path).verify().ok


@pytest.mark.req("FS4")
def test_a_losing_writer_removes_only_what_the_manifest_does_not_name(tmp_path: Path) -> None:
    winner = list(many_records(40, 500))
    write(tmp_path, winner)
    before = files_below(tmp_path)
    loser = [
        *winner[:20],
        record("other", "x" * 3000),
    ]  # its first segments have the winner's bytes and names
    with pytest.raises(Conflict, match="another writer published 40 records"):
        write(tmp_path, loser)
    assert files_below(tmp_path) == before
    assert ckptfmt.open(tmp_path).verify().ok


@pytest.mark.req("FS4")
def test_a_published_manifest_that_is_damaged_is_a_conflict_that_deletes_nothing(tmp_path: Path) -> None:
    write(tmp_path, many_records(10))
    (tmp_path / "agent-0" / "manifest.json").write_bytes(b"{}\n")
    with pytest.raises(Conflict, match="cannot be read"):
        write(tmp_path, many_records(10, prefix="x"))
    assert (tmp_path / "agent-0" / "manifest.json").read_bytes() == b"{}\n"
    assert len(list((tmp_path / "agent-0").glob("records-*"))) == 2


@pytest.mark.req("CM11")
def test_check_directory_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ckptfmt.NotFound):
        ckptfmt.check_directory(tmp_path / "nowhere")
    ckptfmt.check_directory(tmp_path)
    with failing_disk(Fault("sync", errno.ENOSPC, times=None)):
        with pytest.raises(StoreError) as failed:
            ckptfmt.check_directory(tmp_path)
    assert failed.value.errno == errno.ENOSPC
    assert files_below(tmp_path) == []


@pytest.mark.req("FS5", "FS6", "CM4")
def test_a_sync_that_fails_while_a_segment_grows_costs_all_records(tmp_path: Path) -> None:
    """The kernel forgets what it could not write, and says so once: the file must not be placed later."""
    tuning = dataclasses.replace(SMALL, segment_bytes=10**6, sync_bytes=1000)
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c", tuning=tuning)
    with failing_disk(Fault("sync", errno.EIO)) as disk:
        writer = _create(tmp_path / "bad", tuning=tuning)
        failure = _until_it_fails(writer, records)
        assert not any(call.operation == "replace" for call in disk.calls)
        assert (failure.errno, failure.retryable) == (errno.EIO, True)
        assert not writer.retry()
        assert writer.accepted == 0
        _write_on(writer, records)
        assert writer.publish() == expected
    assert files_below(tmp_path / "bad") == files_below(tmp_path / "good")
    assert ckptfmt.open(tmp_path / "bad").verify().ok


@pytest.mark.req("FS5", "CM4")
def test_a_sync_that_fails_during_a_retry_is_not_forgotten(tmp_path: Path) -> None:
    """A write fails first; a sync that is under way fails when the caller has begun to try again."""
    tuning = dataclasses.replace(SMALL, segment_bytes=10**6, sync_bytes=1000)
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c", tuning=tuning)
    syncing, fail_now, failed = threading.Event(), threading.Event(), threading.Event()
    writes = 0

    def act(call: DiskCall) -> None:
        nonlocal writes
        if call.operation == "sync" and not failed.is_set():
            syncing.set()
            assert fail_now.wait(20)
            failed.set()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if call.operation == "write":
            writes += 1
            if writes == 8:
                assert syncing.wait(20)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with failing_disk(on_call=act):
        writer = _create(tmp_path / "bad", tuning=tuning)
        assert _until_it_fails(writer, records).errno == errno.ENOSPC
        fail_now.set()
        assert failed.wait(20)
        for _ in range(3):  # whenever the sync's failure arrives: it is never True and published
            if not writer.retry():
                break
            _until_it_fails(writer, records)
        assert writer.accepted == 0
        _write_on(writer, records)
        assert writer.publish() == expected
    assert ckptfmt.open(tmp_path / "bad").verify().ok


@pytest.mark.req("CM4", "FS4")
@pytest.mark.parametrize("operation", ["create", "write"])
def test_a_record_with_its_own_segment_may_fail_first(tmp_path: Path, operation: Operation) -> None:
    records = [record("r0"), record("r1", "x" * 5000), record("r2")]
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")
    for after in range(3):
        folder = tmp_path / f"bad{after}"
        with failing_disk(Fault(operation, errno.ENOSPC, after=after)):
            writer = _create(folder)
            _until_it_fails(writer, records)
            assert writer.retry()
            _write_on(writer, records)
            assert writer.publish() == expected
        assert ckptfmt.open(folder).verify().ok


@pytest.mark.req("CM4")
def test_a_growing_file_that_somebody_removed_is_written_again(tmp_path: Path) -> None:
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")
    removed = threading.Event()

    def remove(call: DiskCall) -> None:
        if call.operation == "replace" and not removed.is_set():
            removed.set()
            (temporary,) = (tmp_path / "bad" / "a").glob(".ckptfmt-*.tmp")
            temporary.unlink()

    with failing_disk(on_call=remove):
        writer = _create(tmp_path / "bad", tuning=dataclasses.replace(SMALL, unplaced_segments=1))
        assert _until_it_fails(writer, records[:9]).errno == errno.ENOENT
        assert not writer.retry()
        _write_on(writer, records)
        assert writer.publish() == expected


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


@pytest.mark.req("FS1", "FS5")
def test_a_growing_segment_is_written_and_synced_on_the_way(tmp_path: Path) -> None:
    tuning = dataclasses.replace(SMALL, segment_bytes=10**6, sync_bytes=2000)
    with failing_disk() as disk:
        writer = _create(tmp_path, tuning=tuning)
        for each in many_records(40, 500):
            writer.write(each)
            time.sleep(0.001)
        deadline = time.monotonic() + 20
        while not any(call.operation == "sync" for call in disk.calls) and time.monotonic() < deadline:
            time.sleep(0.005)
        names = files_below(tmp_path)
        assert [name for name in names if name.endswith(".tmp")] == names  # no name before it is finished
        assert not any(call.operation == "replace" for call in disk.calls)
        assert any(call.operation == "sync" for call in disk.calls)
        writer.publish()
    (segment,) = writer.manifest.segments
    synced = [call for call in disk.calls if call.operation == "sync"]
    assert len(synced) <= segment.stored / 2000 + 3  # and the ends of segment, index and manifest
    assert not [name for name in files_below(tmp_path) if name.endswith(".tmp")]


@pytest.mark.req("FS8")
def test_a_spool_that_is_full_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")
    writer = _create(tmp_path / "bad", spool=tmp_path / "spool")  # which is not there yet
    failure = _until_it_fails(writer, records)
    assert failure.errno == errno.ENOENT
    (tmp_path / "spool").mkdir()
    assert writer.retry()
    _write_on(writer, records)
    assert writer.publish() == expected


@pytest.mark.req("FS1")
def test_a_read_that_fails_is_a_store_error(tmp_path: Path) -> None:
    write(tmp_path, many_records(10))
    part = ckptfmt.open(tmp_path)["agent-0"]
    assert part.episodes
    with failing_disk(Fault("open_for_reading", errno.EIO, "*index-*")):
        part = ckptfmt.open(tmp_path)["agent-0"]
        with pytest.raises(StoreError) as failed:
            _ = part.episodes
        assert failed.value.errno == errno.EIO
        assert len(list(part)) == 10
    with failing_disk(Fault("open_for_reading", errno.EIO, "*records-*")):
        part = ckptfmt.open(tmp_path)["agent-0"]
        with pytest.raises(StoreError):
            list(part)
    with failing_disk(Fault("open_for_reading", errno.EIO, "*records-*")):
        with pytest.raises(StoreError):
            ckptfmt.open(tmp_path).verify()


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() <= before

"""Retries after store errors: nothing is lost, nothing is written twice, and the bytes are the same."""

from __future__ import annotations

import dataclasses
import errno
import os
import threading
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import SnapshotChanged, StoreError
from ckptfmt.testing import DiskCall, Fault, Operation, failing_disk
from tests.ckptfmt.building import SMALL, files_below, many_records, record, write
from tests.faults.writing import WRITE_CALLS, create_writer, has_failed, write_remaining, write_until_failure
from tests.polling import block_until


@pytest.mark.req("FS6", "FS8", "CM4")
@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize(("operation", "path"), WRITE_CALLS)
@pytest.mark.parametrize("after", [0, 2])
def test_a_failed_call_raises_store_error_and_a_retry_continues(
    tmp_path: Path, operation: Operation, path: str, number: int, after: int
) -> None:
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")
    if operation in ("make_directory", "link") or path == "*index-*":
        after = 0
    folder = tmp_path / "bad"
    with failing_disk(Fault(operation, number, path, after)):
        writer = create_writer(folder)
        failure = write_until_failure(writer, records)
        assert failure.errno == number
        assert failure.path is not None
        assert failure.path in str(failure)
        assert os.strerror(number) in str(failure)
        assert failure.retryable
        if operation == "write":
            assert failure.written is not None
        # After a failed sync it is unknown which bytes the disk has, so all are written again.
        assert writer.retry() == (operation != "sync")
        write_remaining(writer, records)
        assert writer.publish() == expected
    assert files_below(folder) == files_below(tmp_path / "good")
    assert ckptfmt.open(folder).verify().ok


@pytest.mark.req("CM4")
def test_a_background_failure_is_raised_by_the_next_write(tmp_path: Path) -> None:
    with failing_disk(Fault("replace", errno.EIO)):
        writer = create_writer(tmp_path)
        for each in many_records(10, 500):  # one segment and the beginning of the next
            writer.write(each)
        block_until(lambda: has_failed(writer))
        with pytest.raises(StoreError):
            writer.write(record("small"))
        assert writer.accepted == 10
        writer.abort()


@pytest.mark.req("CM4")
def test_a_failure_is_raised_until_retry_is_called(tmp_path: Path) -> None:
    records = list(many_records(60, 500))
    with failing_disk(Fault("write", errno.ENOSPC)):
        writer = create_writer(tmp_path)
        write_until_failure(writer, records)
        accepted = writer.accepted
        for _ in range(3):
            with pytest.raises(StoreError):
                writer.write(records[accepted])
            with pytest.raises(StoreError):
                writer.publish()
        assert writer.accepted == accepted
        assert writer.retry()
        write_remaining(writer, records)
        assert writer.publish().records == 60
        assert writer.retry()


@pytest.mark.req("FS6")
def test_a_commit_whose_last_sync_failed_is_durable_after_a_retry(tmp_path: Path) -> None:
    folder = str(tmp_path / "a")
    with failing_disk(Fault("sync_directory", errno.EIO, folder, after=1)) as disk:
        writer = create_writer(tmp_path)
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
def test_another_process_can_finish_a_commit(tmp_path: Path) -> None:
    """After a crash between manifest and sync, a second writer of the same records succeeds and syncs."""
    first = write(tmp_path, many_records(30))
    with failing_disk() as disk:
        assert write(tmp_path, many_records(30)) == first
    assert [call.path for call in disk.calls if call.operation == "sync_directory"][-1] == str(
        tmp_path / "agent-0"
    )


@pytest.mark.req("CM4")
def test_a_deleted_segment_is_written_again(tmp_path: Path) -> None:
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")
    with failing_disk(Fault("replace", errno.EIO, "*records-*", after=2)):
        writer = create_writer(tmp_path / "bad")
        write_until_failure(writer, records)
        placed = sorted((tmp_path / "bad" / "a").glob("records-*"))
        assert len(placed) == 2
        placed[0].unlink()
        assert not writer.retry()
        assert writer.accepted == 0
        write_remaining(writer, records)
        assert writer.publish() == expected
    assert ckptfmt.open(tmp_path / "bad").verify().ok


@pytest.mark.req("CM4")
@pytest.mark.parametrize("change", ["another value", "fewer records"])
def test_records_that_changed_before_a_retry_are_refused(tmp_path: Path, change: str) -> None:
    records = list(many_records(60, 500))
    with failing_disk(Fault("replace", errno.EIO, "*records-*", after=2)):
        writer = create_writer(tmp_path)
        write_until_failure(writer, records)
        for path in (tmp_path / "a").glob("records-*"):
            path.write_bytes(b"")
        assert not writer.retry()
        if change == "fewer records":
            records = records[:3]
        else:
            records[1] = record("r1", "changed")
        for _ in range(2):  # a second attempt is refused, too
            with pytest.raises(SnapshotChanged):
                write_remaining(writer, records)
                writer.publish()
        if change == "another value":
            with pytest.raises(SnapshotChanged):
                writer.retry()
        writer.abort()
    assert not (tmp_path / "a" / "manifest.json").exists()


@pytest.mark.req("FS5", "FS6", "CM4")
def test_after_a_failed_sync_of_an_open_segment_all_records_are_written_again(tmp_path: Path) -> None:
    """The kernel reports a failed write once and drops the bytes, so the file must not be placed later."""
    tuning = dataclasses.replace(SMALL, segment_bytes=10**6, sync_bytes=1000)
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c", tuning=tuning)
    with failing_disk(Fault("sync", errno.EIO)) as disk:
        writer = create_writer(tmp_path / "bad", tuning=tuning)
        with pytest.raises(StoreError) as failed:
            write_remaining(writer, records)
            block_until(lambda: has_failed(writer))
            writer.publish()
        failure = failed.value
        assert not any(call.operation == "replace" for call in disk.calls)
        assert (failure.errno, failure.retryable) == (errno.EIO, True)
        assert not writer.retry()
        assert writer.accepted == 0
        write_remaining(writer, records)
        assert writer.publish() == expected
    assert files_below(tmp_path / "bad") == files_below(tmp_path / "good")
    assert ckptfmt.open(tmp_path / "bad").verify().ok


@pytest.mark.req("FS5", "CM4")
def test_a_sync_that_fails_during_a_retry_is_reported(tmp_path: Path) -> None:
    """A write fails while a sync is running; the sync fails after the caller has called retry."""
    tuning = dataclasses.replace(SMALL, segment_bytes=10**6, sync_bytes=1000)
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c", tuning=tuning)
    syncing, fail_now, failed = threading.Event(), threading.Event(), threading.Event()
    writes = 0

    def fail_write_then_sync(call: DiskCall) -> None:
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

    with failing_disk(on_call=fail_write_then_sync):
        writer = create_writer(tmp_path / "bad", tuning=tuning)
        assert write_until_failure(writer, records).errno == errno.ENOSPC
        fail_now.set()
        assert failed.wait(20)
        for _ in range(3):  # the failed sync may be reported by any of the next calls, but must be
            if not writer.retry():
                break
            write_until_failure(writer, records)
        assert writer.accepted == 0
        write_remaining(writer, records)
        assert writer.publish() == expected
    assert ckptfmt.open(tmp_path / "bad").verify().ok


@pytest.mark.req("CM4", "FS4")
@pytest.mark.parametrize("operation", ["create", "write"])
def test_a_record_with_its_own_segment_can_be_retried(tmp_path: Path, operation: Operation) -> None:
    records = [record("r0"), record("r1", "x" * 5000), record("r2")]
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")
    for after in range(3):
        folder = tmp_path / f"bad{after}"
        with failing_disk(Fault(operation, errno.ENOSPC, after=after)):
            writer = create_writer(folder)
            write_until_failure(writer, records)
            assert writer.retry()
            write_remaining(writer, records)
            assert writer.publish() == expected
        assert ckptfmt.open(folder).verify().ok


@pytest.mark.req("CM4")
def test_a_deleted_temporary_file_is_written_again(tmp_path: Path) -> None:
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")
    removed = threading.Event()

    def remove(call: DiskCall) -> None:
        if call.operation == "replace" and not removed.is_set():
            removed.set()
            (temporary,) = (tmp_path / "bad" / "a").glob(".ckptfmt-*.tmp")
            temporary.unlink()

    with failing_disk(on_call=remove):
        writer = create_writer(tmp_path / "bad", tuning=dataclasses.replace(SMALL, unplaced_segments=1))
        assert write_until_failure(writer, records[:9]).errno == errno.ENOENT
        assert not writer.retry()
        write_remaining(writer, records)
        assert writer.publish() == expected


@pytest.mark.req("FS8")
def test_a_commit_continues_once_the_spool_folder_exists(tmp_path: Path) -> None:
    records = list(many_records(60, 500))
    expected = write(tmp_path / "good", records, participant="a", checkpoint_id="c")
    writer = create_writer(tmp_path / "bad", spool=tmp_path / "spool")  # the folder does not exist yet
    failure = write_until_failure(writer, records)
    assert failure.errno == errno.ENOENT
    (tmp_path / "spool").mkdir()
    assert writer.retry()
    write_remaining(writer, records)
    assert writer.publish() == expected

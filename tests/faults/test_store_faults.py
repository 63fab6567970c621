"""Store faults: which error each one raises, and which files are left."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import Conflict, StoreError, UnsupportedStore, UnusableDirectory
from ckptfmt.testing import Fault, Operation, failing_disk
from tests.ckptfmt.building import files_below, many_records, record, write
from tests.faults.writing import WRITE_CALLS, create_writer, write_remaining


@pytest.mark.req("FS8")
@pytest.mark.parametrize(("operation", "path"), WRITE_CALLS)
def test_no_temporary_file_is_left_after_a_failure(tmp_path: Path, operation: Operation, path: str) -> None:
    with failing_disk(Fault(operation, errno.ENOSPC, path, times=None)):
        with pytest.raises(StoreError):
            with create_writer(tmp_path / "x") as writer:
                write_remaining(writer, list(many_records(60, 500)))
    assert not [name for name in files_below(tmp_path) if not name.startswith(("x/a/records-", "x/a/index-"))]


@pytest.mark.req("FS8")
def test_a_failed_cleanup_does_not_hide_the_first_error(tmp_path: Path) -> None:
    with failing_disk(Fault("write", errno.ENOSPC, times=None), Fault("unlink", errno.EIO, times=None)):
        with pytest.raises(StoreError, match="free some space") as failed:
            with create_writer(tmp_path) as writer:
                writer.write(record("r"))
    assert failed.value.errno == errno.ENOSPC
    assert failed.value.written == 0


@pytest.mark.req("CM11")
@pytest.mark.parametrize(
    ("number", "operation"),
    [
        (number, operation)
        for number in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR)
        for operation in ("create", "make_directory")
    ],
)
def test_a_directory_that_cannot_be_written_is_unusable(
    tmp_path: Path, number: int, operation: Operation
) -> None:
    with failing_disk(Fault(operation, number, times=None)):
        with pytest.raises(UnusableDirectory) as failed:
            write(tmp_path / "x", [record("r")])
    assert not failed.value.retryable
    assert failed.value.errno == number
    assert files_below(tmp_path) == []


@pytest.mark.req("CM11")
def test_a_file_instead_of_a_directory_is_unusable(tmp_path: Path) -> None:
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
def test_a_link_without_permission_is_not_reported_as_missing_hard_links(tmp_path: Path) -> None:
    with failing_disk(Fault("link", errno.EACCES, times=None)):
        with pytest.raises(UnusableDirectory):
            write(tmp_path, [record("r")])


@pytest.mark.req("FS5")
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP])
def test_a_file_system_that_cannot_sync_directories_is_warned_about_once(tmp_path: Path, number: int) -> None:
    with failing_disk(Fault("sync_directory", number, times=None)):
        with pytest.warns(RuntimeWarning, match="cannot sync a directory") as warned:
            write(tmp_path / "x", [record("r")])
        write(tmp_path / "y", [record("r")])  # a second warning would be an error
    assert len(warned) == 1
    assert ckptfmt.open(tmp_path / "x").verify().ok


@pytest.mark.req("FS5")
@pytest.mark.parametrize("number", [errno.EIO, errno.EBADF, errno.ENOSPC])
def test_any_other_failed_sync_of_a_directory_fails_the_commit(tmp_path: Path, number: int) -> None:
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
def test_a_losing_writer_deletes_only_files_that_the_manifest_does_not_name(tmp_path: Path) -> None:
    winner = list(many_records(40, 500))
    write(tmp_path, winner)
    before = files_below(tmp_path)
    # The first segments have the same bytes, and so the same names, as those of the winner.
    loser = [*winner[:20], record("other", "x" * 3000)]
    with pytest.raises(Conflict, match="another writer published 40 records"):
        write(tmp_path, loser)
    assert files_below(tmp_path) == before
    assert ckptfmt.open(tmp_path).verify().ok


@pytest.mark.req("FS4")
def test_a_damaged_published_manifest_is_a_conflict_and_nothing_is_deleted(tmp_path: Path) -> None:
    write(tmp_path, many_records(10))
    (tmp_path / "agent-0" / "manifest.json").write_bytes(b"{}\n")
    with pytest.raises(Conflict, match="cannot be read"):
        write(tmp_path, many_records(10, prefix="x"))
    assert (tmp_path / "agent-0" / "manifest.json").read_bytes() == b"{}\n"
    assert len(list((tmp_path / "agent-0").glob("records-*"))) == 2


@pytest.mark.req("CM11")
def test_check_directory_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ckptfmt.NotFound):
        ckptfmt.check_directory(tmp_path / "nowhere")
    ckptfmt.check_directory(tmp_path)
    with failing_disk(Fault("sync", errno.ENOSPC, times=None)):
        with pytest.raises(StoreError) as failed:
            ckptfmt.check_directory(tmp_path)
    assert failed.value.errno == errno.ENOSPC
    assert files_below(tmp_path) == []


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

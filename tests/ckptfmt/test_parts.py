"""Parts: several workers write one participant, and one of them commits it, all or nothing."""

from __future__ import annotations

import dataclasses
import errno
import multiprocessing
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptfmt import Conflict, Damaged, Gate, Incomplete, InvalidId, Part, Record, Stopped, StoreError
from ckptfmt.testing import Fault, failing_disk
from tests.ckptfmt.building import SMALL, files_below, many_records, record, write


def _write_part(folder: Path, number: int, records: Any = None, **changes: Any) -> Part:
    arguments: dict[str, Any] = {
        "participant": "agent-0",
        "kind": "agent",
        "checkpoint_id": "step-1",
        "tuning": SMALL,
        **changes,
    }
    with ckptfmt.part(folder, number=number, **arguments) as writer:
        for each in many_records(20, prefix=f"w{number}-") if records is None else records:
            writer.write(each)
    return writer.part


def _read_keys(folder: Path) -> list[str]:
    return [str(each.episode) for each in ckptfmt.open(folder)["agent-0"]]


@pytest.mark.req("FS1", "CM1")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_parts_are_committed_as_one_participant(tmp_path: Path, compression: Any) -> None:
    parts = [_write_part(tmp_path, number, compression=compression) for number in range(3)]
    with pytest.raises(Incomplete):
        ckptfmt.open(tmp_path)
    random.Random(7).shuffle(parts)
    manifest = ckptfmt.commit(parts=pickle.loads(pickle.dumps(parts)))
    assert manifest.records == 60
    assert _read_keys(tmp_path) == [f"w{number}-{row}" for number in range(3) for row in range(20)]
    part = ckptfmt.open(tmp_path)["agent-0"]
    assert (part.kind, part.manifest) == ("agent", manifest)
    assert part["w1-7"].payload["number"] == 7
    assert ckptfmt.verify(tmp_path).ok
    assert files_below(tmp_path) == sorted(f"agent-0/{name}" for name in [*manifest.files, "manifest.json"])
    assert all(len(pickle.dumps(each)) < 2500 for each in parts)


def _write_part_in_process(folder: str, number: int) -> Part:
    return _write_part(Path(folder), number)


@pytest.mark.req("FS1")
def test_parts_can_be_written_in_other_processes(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        parts = pool.starmap(_write_part_in_process, [(str(tmp_path), number) for number in range(2)])
    ckptfmt.commit(parts=parts)
    assert len(_read_keys(tmp_path)) == 40
    assert ckptfmt.verify(tmp_path).ok


@pytest.mark.req("FS4")
def test_one_part_has_the_files_of_a_writer_and_parts_may_be_empty(tmp_path: Path) -> None:
    manifest = ckptfmt.commit(parts=[_write_part(tmp_path / "one", 0, many_records(30))], tuning=SMALL)
    assert manifest == write(tmp_path / "two", many_records(30))
    assert files_below(tmp_path / "one") == files_below(tmp_path / "two")
    both = [_write_part(tmp_path / "three", 1, []), _write_part(tmp_path / "three", 0, many_records(30))]
    assert ckptfmt.commit(parts=both, tuning=SMALL) == manifest
    nothing = ckptfmt.commit(
        parts=[_write_part(tmp_path / "four", 0, []), _write_part(tmp_path / "four", 1, [])]
    )
    assert (nothing.records, nothing.segments) == (0, ())
    assert ckptfmt.verify(tmp_path / "four").ok


@pytest.mark.req("FS6")
def test_a_commit_is_idempotent(tmp_path: Path) -> None:
    parts = [_write_part(tmp_path, number) for number in range(2)]
    manifest = ckptfmt.commit(parts=parts)
    files = files_below(tmp_path)
    assert ckptfmt.commit(parts=parts) == manifest
    assert ckptfmt.commit(str(tmp_path), parts=parts) == manifest
    assert files_below(tmp_path) == files
    assert ckptfmt.verify(tmp_path).ok


@pytest.mark.req("FS6", "CM1")
@pytest.mark.parametrize(
    ("operation", "path"),
    [("replace", "*index-*"), ("create", "*"), ("link", "*"), ("sync_directory", "*agent-0"), ("sync", "*")],
)
def test_a_failed_commit_can_be_repeated(tmp_path: Path, operation: Any, path: str) -> None:
    parts = [_write_part(tmp_path, number) for number in range(2)]
    for after in (0, 1):
        with failing_disk(Fault(operation, errno.EIO, path, after=after)):
            try:
                ckptfmt.commit(parts=parts)
            except StoreError:
                assert not list(tmp_path.rglob("*.tmp"))
    manifest = ckptfmt.commit(parts=parts)
    assert manifest.records == len(_read_keys(tmp_path)) == 40
    assert files_below(tmp_path) == sorted(f"agent-0/{name}" for name in [*manifest.files, "manifest.json"])


@pytest.mark.req("FS12", "CM1")
def test_parts_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    part = _write_part(tmp_path, 0)
    for changes in ({"participant": "b"}, {"kind": "resources"}, {"checkpoint_id": "step-2"}):
        with pytest.raises(Conflict, match="do not belong together"):
            ckptfmt.commit(parts=[part, _write_part(tmp_path, 1, [], **changes)])
    elsewhere = _write_part(tmp_path / "elsewhere", 1)
    with pytest.raises(Conflict, match="do not belong together"):
        ckptfmt.commit(parts=[part, elsewhere])
    with pytest.raises(Incomplete):
        ckptfmt.commit(tmp_path, parts=[part, elsewhere])
    with pytest.raises(Conflict, match="two parts of number 0"):
        ckptfmt.commit(parts=[part, _write_part(tmp_path, 0, [record("x")])])
    with pytest.raises(Conflict, match="part 1 is missing"):
        ckptfmt.commit(parts=[part, _write_part(tmp_path, 2)])
    with pytest.raises(Conflict, match="parts 0 and 1 both hold a record of rollout w0-3"):
        ckptfmt.commit(parts=[part, _write_part(tmp_path, 1, [record("y"), record("w0-3-a4")])])
    with pytest.raises(ValueError, match="no part"):
        ckptfmt.commit(parts=[])
    assert not (tmp_path / "agent-0" / "manifest.json").exists()
    ckptfmt.commit(parts=[part])
    with pytest.raises(Conflict, match="another writer published"):
        ckptfmt.commit(parts=[_write_part(tmp_path, 0, [record("x")])])
    assert ckptfmt.verify(tmp_path).ok


@pytest.mark.req("FS9", "CM1")
def test_missing_and_damaged_files_of_parts_are_found_before_the_manifest_is_created(tmp_path: Path) -> None:
    parts = [_write_part(tmp_path, number) for number in range(2)]
    folder = tmp_path / "agent-0"
    segment_file = folder / parts[1].segments[1].file
    data = segment_file.read_bytes()
    for damage in (segment_file.unlink, lambda: segment_file.write_bytes(data[:-1])):
        damage()
        with pytest.raises(Incomplete, match="of part 1 is missing"):
            ckptfmt.commit(parts=parts)
        assert not (folder / "manifest.json").exists()
    segment_file.write_bytes(data)
    index = folder / parts[0].index
    text = index.read_bytes()
    index.write_bytes(text.replace(b"w0-1", b"w0-9", 1))
    with pytest.raises(Damaged):
        ckptfmt.commit(parts=parts)
    with pytest.raises(Damaged):
        ckptfmt.commit(parts=[dataclasses.replace(parts[0], records=19), parts[1]])
    index.unlink()
    with pytest.raises(Incomplete, match="index file is missing"):
        ckptfmt.commit(parts=parts)
    index.write_bytes(text)
    assert ckptfmt.commit(parts=parts).records == 40


@pytest.mark.req("CM8")
def test_a_stopped_gate_ends_a_part_and_a_commit(tmp_path: Path) -> None:
    part = _write_part(tmp_path, 0)
    gate = Gate()
    gate.stop()
    with pytest.raises(Stopped):
        _write_part(tmp_path, 1, gate=gate)
    with pytest.raises(Stopped):
        ckptfmt.commit(parts=[part], gate=gate)
    assert not (tmp_path / "agent-0" / "manifest.json").exists()


@pytest.mark.req("FS8")
def test_after_an_exception_no_file_of_a_part_is_left(tmp_path: Path) -> None:
    def failing() -> Any:
        yield record("r")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _write_part(tmp_path / "x", 0, failing())
    assert os.listdir(tmp_path) == []


@pytest.mark.req("FS5", "FS6")
@pytest.mark.parametrize("fault", [("write", errno.ENOSPC), ("sync_directory", errno.EIO)])
def test_a_part_is_durable_and_can_be_retried(tmp_path: Path, fault: Any) -> None:
    with failing_disk(Fault(*fault)):
        writer = ckptfmt.part(tmp_path / "x", participant="a", kind="agent", checkpoint_id="c", number=0)
        with pytest.raises(ValueError, match="not finished"):
            _ = writer.part
        writer.write(Record(ckptfmt.EpisodeId("r"), 1))
        with pytest.raises(StoreError):
            writer.finish()
        assert writer.retry()
        assert writer.finish() is writer.finish() is writer.part
        assert writer.retry()
        writer.abort()
        assert ckptfmt.commit(parts=[writer.part]).records == 1


@pytest.mark.parametrize("number", [-1, True, 1.0, "0", None])
def test_invalid_part_numbers_are_refused(tmp_path: Path, number: Any) -> None:
    with pytest.raises(ValueError, match="number of a part"):
        _write_part(tmp_path, number)
    with pytest.raises(InvalidId):
        _write_part(tmp_path, 0, participant="../x")


@pytest.mark.parametrize("parts", [3, [3], "ab", [None]])
def test_other_values_than_parts_are_refused(tmp_path: Path, parts: Any) -> None:
    with pytest.raises(TypeError, match="parts takes several Part"):
        ckptfmt.commit(tmp_path, parts=parts)

"""Verification: verify and a restore find every kind of damage and describe it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import CheckpointError, Damaged, Incomplete
from tests.ckptfmt.building import Built, build, files_below, many_records, write

_HEAD_BYTES = 85  # the bytes of a self-checked file before its body


def _changes(data: bytes) -> Iterator[bytes]:
    """``data`` with flipped bits in every byte, cut at every length, and with some bytes added."""
    for place in range(len(data)):
        masks = range(8) if place < _HEAD_BYTES or place >= len(data) - 2 else (place % 8, 5)
        for bit in set(masks):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            yield bytes(changed)
    for length in range(len(data)):
        yield data[:length]
    for more in (b"\n", b" ", b"\0", b"}", data):
        yield data + more
        yield more + data
    yield bytes(len(data))


@pytest.mark.req("FS9", "RE3")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["checkpoint.json", "cut.json", "manifest.json", "index-", "records-"])
def test_every_flipped_bit_cut_and_extension_is_found(tmp_path: Path, kind: str) -> None:
    built = build(tmp_path / "step-1", many_records(1, 20))
    assert ckptfmt.open(built.folder).verify().ok
    assert len(built.restore()) == 2
    files = [name for name in built.files() if os.path.basename(name).startswith(kind)]
    assert len(files) == (1 if kind in ("checkpoint.json", "cut.json") else 2)
    for name in files:
        path = built.folder / name
        data = path.read_bytes()
        for changed in _changes(data):
            path.write_bytes(changed)
            problems = ckptfmt.verify(built.folder).problems
            assert name in {problem.file for problem in problems}, changed
            with pytest.raises(Damaged) as damaged:
                built.restore()
            assert os.path.basename(name) in str(damaged.value)
        path.write_bytes(data)
    assert ckptfmt.verify(built.folder).ok


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "step-1", many_records(30))


def _records_file(built: Built, participant: str = "agent-0") -> Path:
    folder = built.cut_folder / participant
    return min(folder.glob("records-*"))


def _messages(built: Built) -> str:
    report = ckptfmt.verify(built.folder)
    assert not report.ok
    with pytest.raises(CheckpointError):
        built.restore()
    return "\n".join(problem.message for problem in report.problems)


@pytest.mark.req("FS9", "RE3")
def test_missing_short_long_and_changed_files_have_different_messages(built: Built) -> None:
    path = _records_file(built)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    assert "cut short" in _messages(built)
    path.write_bytes(data + b"\n")
    assert "bytes added" in _messages(built)
    path.write_bytes(data.replace(b"text", b"next", 1))
    assert "was changed after writing" in _messages(built)
    path.write_bytes(bytes(len(data)))
    assert "was changed after writing" in _messages(built)
    path.unlink()
    assert "the records file is missing" in _messages(built)


@pytest.mark.req("FS9")
def test_all_problems_are_reported(built: Built) -> None:
    _records_file(built).unlink()
    damaged = _records_file(built, "tools/0")
    damaged.write_bytes(damaged.read_bytes()[:-3])
    (built.cut_folder / "cut.json").write_bytes(b"")
    problems = ckptfmt.verify(built.folder).problems
    assert [(problem.file, problem.code) for problem in problems] == [
        (f"{built.cut.name}/cut.json", "damaged"),
        (os.path.relpath(_missing_file(built), built.folder), "incomplete"),
        (os.path.relpath(damaged, built.folder), "damaged"),
    ]


def _missing_file(built: Built) -> Path:
    manifest = ckptfmt.open_participant(built.cut_folder, "agent-0").manifest
    (missing,) = (
        each.file for each in manifest.segments if not (built.cut_folder / "agent-0" / each.file).exists()
    )
    return built.cut_folder / "agent-0" / missing


@pytest.mark.req("FS9", "RE3")
@pytest.mark.parametrize("kind", ["manifest.json", "index", "records"])
@pytest.mark.parametrize("what", ["link", "fifo", "directory", "socket"])
def test_only_regular_files_are_read(
    built: Built, kind: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = min((built.cut_folder / "agent-0").glob(f"{kind}*"))
    moved = built.folder.parent / "elsewhere"
    path.rename(moved)
    if what == "link":
        path.symlink_to(moved)
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "directory":
        path.mkdir()
    else:
        monkeypatch.chdir(path.parent)  # the path of a socket must be short
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("s")
        Path("s").rename(path)
    assert "not a regular file" in _messages(built)


@pytest.mark.req("RE3")
def test_a_participant_without_manifest_is_incomplete(built: Built) -> None:
    (built.cut_folder / "agent-0" / "manifest.json").unlink()
    with pytest.raises(Incomplete, match="there is no manifest"):
        ckptfmt.open_participant(built.cut_folder, "agent-0")
    assert "there is no manifest" in _messages(built)
    with pytest.raises(ckptfmt.NotFound):
        ckptfmt.open_participant(built.cut_folder, "agent-7")
    with pytest.raises(Incomplete):
        ckptfmt.open_participant(built.cut_folder, "agent-7", digest="0" * 64)


@pytest.mark.req("CO11")
def test_a_manifest_with_another_digest_is_damage(built: Built, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other, many_records(3), checkpoint_id="step-1")
    folder = built.cut_folder / "agent-0"
    for name in files_below(other / "agent-0"):
        (folder / name).write_bytes((other / "agent-0" / name).read_bytes())
    assert "is not the one that was published" in _messages(built)


@pytest.mark.req("FS9")
def test_a_renamed_participant_folder_is_damage(built: Built) -> None:
    (built.cut_folder / "agent-0").rename(built.cut_folder / "agent-1")
    assert "there is no manifest" in _messages(built)
    with pytest.raises(Damaged, match="manifest of participant"):
        ckptfmt.open_participant(built.cut_folder, "agent-1")


@pytest.mark.req("FS9")
def test_orphans_are_not_damage(built: Built) -> None:
    (built.cut_folder / "agent-0" / ("records-" + "0" * 64 + ".jsonl")).write_bytes(b"{}\n")
    (built.folder / "cut-of-a-dead-run").mkdir()
    assert ckptfmt.verify(built.folder).ok


@pytest.mark.req("FS9")
def test_a_renamed_checkpoint_is_undamaged(built: Built) -> None:
    moved = built.folder.with_name("kept for ever [1]*")
    built.folder.rename(moved)
    assert ckptfmt.open(moved).verify().ok
    assert ckptfmt.open(moved).id == "step-1"

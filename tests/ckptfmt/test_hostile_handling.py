"""Changes by editors and copying tools, and values of other libraries, are refused or detected."""

from __future__ import annotations

import math
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import zstandard

import ckptfmt
from ckptfmt import CheckpointError, Damaged, Incomplete, InexactValue, Tuning
from tests.ckptfmt.building import Built, build, files_below, index_of, many_records, record, write

_RESAVED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "with a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "with CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "with both": lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    "with a blank line at the end": lambda data: data + b"\n",
    "without the last line feed": lambda data: data[:-1],
    "with spaces after commas": lambda data: data.replace(b",", b", "),
    "with escapes for all that is not ASCII": lambda data: (
        data.decode().encode("ascii", "backslashreplace") + b" "
    ),
    "as an empty file": lambda data: b"",
}


@pytest.mark.req("FS9", "RE3")
@pytest.mark.parametrize("how", _RESAVED)
def test_a_file_saved_again_by_an_editor_is_damaged(tmp_path: Path, how: str) -> None:
    built = build(tmp_path / "step-1", [record("r0", {"text": "é, ü"}, 1), record("r1", None, 2)])
    for name in built.files():
        if name.endswith(".zst"):
            continue
        path = built.folder / name
        data = path.read_bytes()
        path.write_bytes(_RESAVED[how](data))
        problems = ckptfmt.verify(built.folder).problems
        assert {problem.file for problem in problems} == {name}
        faults = ("changed after writing", "bytes added", "cut short")
        assert all(any(words in problem.message for words in faults) for problem in problems)
        path.write_bytes(data)
    assert ckptfmt.verify(built.folder).ok


@pytest.mark.req("RE3", "FS10")
def test_a_copy_without_its_records_files_is_incomplete_and_can_be_completed(tmp_path: Path) -> None:
    built = build(tmp_path / "step-1", many_records(5))
    copied = tmp_path / "copied"
    names = sorted(built.files(), key=lambda name: name.count("/"))
    late = [name for name in names if Path(name).name.startswith("records-")]
    for name in [name for name in names if name not in late]:
        (copied / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built.folder / name, copied / name)
    checkpoint = ckptfmt.open(copied)
    for part in checkpoint.values():
        with pytest.raises(Incomplete, match="records file is missing"):
            list(part)
        with pytest.raises(Incomplete, match="records file is missing"):
            part["r0"]
    assert {problem.code for problem in checkpoint.verify().problems} == {"incomplete"}
    assert files_below(copied) == [name for name in sorted(names) if name not in late]
    for name in late:
        shutil.copyfile(built.folder / name, copied / name)
    assert ckptfmt.verify(copied).ok


@pytest.mark.req("FS9", "RE3")
def test_a_truncated_compressed_file_is_damaged(tmp_path: Path) -> None:
    manifest = write(
        tmp_path, many_records(30), compression="zstd", tuning=Tuning(frame_bytes=2000, segment_bytes=10**6)
    )
    (segment,) = manifest.segments
    rows = index_of(tmp_path / "agent-0")
    ends = {offset + stored for offset, stored in zip(rows["offset"], rows["stored"], strict=True)}
    assert len(ends) > 4
    path = tmp_path / "agent-0" / segment.file
    data = path.read_bytes()
    assert max(ends) == len(data)
    for length in {0, 1, len(data) - 1, len(data) - 100, *(ends - {len(data)}), *(end - 3 for end in ends)}:
        path.write_bytes(data[:length])
        with pytest.raises(Damaged, match="cut short"):
            list(ckptfmt.open(tmp_path)["agent-0"])
        assert not ckptfmt.verify(tmp_path).ok
        # Fetching the missing record alone fails as well.
        with pytest.raises(Damaged):
            ckptfmt.open(tmp_path)["agent-0"]["r29"]
        if length - max((end for end in ends if end <= length), default=0):
            # A tool without the manifest detects it as well, unless the cut is between two frames.
            with pytest.raises(zstandard.ZstdError), path.open("rb") as file:
                _all_frames(file.read())
    path.write_bytes(data)
    assert _all_frames(data).count(b"\n") == 30


def _all_frames(data: bytes) -> bytes:
    plain = b""
    while data:
        unpacker = zstandard.ZstdDecompressor().decompressobj()
        plain += unpacker.decompress(data)
        if not unpacker.eof:
            raise zstandard.ZstdError("cut")
        data = unpacker.unused_data
    return plain


@pytest.mark.req("FS2")
def test_a_nan_after_many_numbers_is_stored(tmp_path: Path) -> None:
    numbers = [number / 7 for number in range(100_000)]
    write(tmp_path, [record("r", {"lp": [*numbers, math.nan]}), record("s", {"lp": [*numbers, None]})])
    part = ckptfmt.open(tmp_path)["agent-0"]
    read = part["r"].payload["lp"]
    assert struct.pack(">100001d", *read) == struct.pack(">100001d", *numbers, math.nan)
    assert part["s"].payload["lp"][-1] is None


_SCALARS: Final[dict[str, Any]] = {
    "float32": np.float32(0.1),
    "float64": np.float64(0.1),  # a subclass of float
    "int64": np.int64(7),
    "bool": np.bool_(True),
    "str": np.str_("x"),  # a subclass of str
    "array": np.array([1, 2]),
    "0-d": np.array(1),
}


@pytest.mark.req("FS2")
@pytest.mark.parametrize("name", _SCALARS)
@pytest.mark.parametrize("neighbour", [None, 2**70, math.nan, "\ud800"])
def test_numpy_scalars_are_refused_with_a_hint(name: str, neighbour: Any) -> None:
    with pytest.raises(InexactValue, match=r"\.item\(\)") as refused:
        ckptfmt.JsonPayload.of({"n": neighbour, "steps": [{"reward": _SCALARS[name]}]}, episode="r")
    assert refused.value.path == "$.steps[0].reward"


@pytest.mark.req("FS2", "FS8", "FS12")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_refused_record_leaves_nothing_in_the_files(tmp_path: Path, compression: Any) -> None:
    tuning = Tuning(segment_bytes=20_000, frame_bytes=4000)
    writer = ckptfmt.create(
        tmp_path, participant="a", kind="agent", checkpoint_id="c", compression=compression, tuning=tuning
    )
    for number in range(1000):
        writer.write(record(f"r{number}", {"n": number, "t": "x" * 40}))
    for bad in (np.float32(1), {"deep": [1, {"s": {1}}]}):
        with pytest.raises(InexactValue):
            writer.write(record("bad", {"fine": "y" * 3000, "patched": [math.nan, 2**70], "bad": bad}))
        assert writer.accepted == 1000
    writer.write(record("bad", "exact"))
    writer.publish()
    assert ckptfmt.verify(tmp_path).ok
    part = ckptfmt.open(tmp_path)["a"]
    assert [str(each.episode) for each in part] == [*(f"r{number}" for number in range(1000)), "bad"]
    assert not any(b"yyy" in path.read_bytes() for path in (tmp_path / "a").glob("records-*.jsonl"))


@pytest.mark.req("FS9")
@pytest.mark.parametrize("name", ["checkpoint.json", "cut.json", "manifest.json"])
def test_an_error_never_shows_the_content_of_a_file(tmp_path: Path, name: str) -> None:
    built: Built = build(tmp_path / "step-1", many_records(2))
    secret = "s3cr3t-t0ken"
    for path in list(built.folder.rglob(name)):
        path.write_bytes(f'{{"password":"{secret}"}}\n'.encode() * 20)
    with pytest.raises(CheckpointError) as refused:
        built.restore()
    assert secret not in str(refused.value)
    assert all(secret not in problem.message for problem in ckptfmt.verify(built.folder).problems)

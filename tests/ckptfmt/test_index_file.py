"""The index in blocks: the reads of a lookup, and every kind of invalid head, block and row."""

from __future__ import annotations

import copy
import hashlib
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

import ckptfmt
from ckptfmt import Damaged, Limits, Record, Tuning
from ckptfmt.testing import failing_disk
from tests.ckptfmt.building import (
    SMALL,
    Index,
    body_of,
    index_bytes,
    index_of,
    many_records,
    put_index,
    record,
    sealed,
    write,
)
from tools.vectors.raw import drop, set_in

Change = Callable[[Any], None]

_COLUMNS = ("episode", "boundary", "segment", "offset", "stored", "start", "length", "crc32")
_HEAD_COLUMNS = ("first", "start", "length", "sha256")


def _any(*values: Any) -> tuple[Any, ...]:
    return values


def _shift(column: str, row: int, by: int) -> Change:
    def change(body: Any) -> None:
        body[column][row] += by

    return change


def _swap(columns: tuple[str, ...], row: int = 0) -> Change:
    def change(body: Any) -> None:
        for name in columns:
            body[name][row], body[name][row + 1] = body[name][row + 1], body[name][row]

    return change


def _blocks(folder: Path) -> list[Any]:
    path = folder / body_of(folder / "manifest.json")["index"]
    return list(map(orjson.loads, path.read_bytes().splitlines()[1:]))


def _is_refused(folder: Path, *, lookups: bool = False) -> str:
    """Check that reading all records fails, and each lookup as well if ``lookups``. Return the message."""
    with pytest.raises(Damaged) as refused:
        list(ckptfmt.open_participant(folder, "agent-0"))
    assert not ckptfmt.verify(folder).ok
    for number in range(30):
        part = ckptfmt.open_participant(folder, "agent-0")
        if lookups:
            with pytest.raises(Damaged):
                _ = part[f"r{number}"]
        else:
            with suppress(Damaged, ckptfmt.NotFound):
                assert part[f"r{number}"].payload["number"] == number  # never the payload of another record
    return str(refused.value)


@pytest.mark.req("FS9", "RE1", "FS12")
@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize(
    "change",
    [
        *(drop(name) for name in _COLUMNS),
        *(drop(name, 0) for name in _COLUMNS),
        *(
            set_in(name, 0, to=bad)
            for name in _COLUMNS
            for bad in _any(True, 1.5, "r-a1-a2", -1, 2**63, 2**64 - 1, [])
        ),
        *(set_in(name, to=bad) for name in _COLUMNS for bad in _any([], {}, None, "r")),
        *(_shift(name, 1, by) for name in _COLUMNS[2:] for by in (1, 10**12)),
        *(_shift(name, 1, -1) for name in ("length", "stored", "crc32")),
        set_in("boundary", 0, to=7),
        set_in("episode", 1, to="r0-a1"),
        set_in("episode", 1, to="elsewhere"),
        _swap(("episode", "boundary")),
        _swap(_COLUMNS),
        _swap(_COLUMNS[2:]),
        *(_swap((name,), 1) for name in ("episode", "boundary", "offset", "crc32")),
    ],
)
def test_a_changed_row_is_refused(tmp_path: Path, compression: Any, change: Change) -> None:
    write(tmp_path, many_records(30), compression=compression)
    folder = tmp_path / "agent-0"
    first, *others = _blocks(folder)
    assert len(others) == 3
    change(first)
    put_index(folder, index_bytes([first, *others], records=30, change=set_in("blocks", "first", 0, to="r0")))
    _is_refused(tmp_path)


@pytest.mark.req("FS9")
def test_an_unchanged_index_that_is_written_again_is_accepted(tmp_path: Path) -> None:
    """The helpers of these tests do not change the index by themselves."""
    manifest = write(tmp_path, many_records(30))
    folder = tmp_path / "agent-0"
    put_index(folder, index_bytes(copy.deepcopy(_blocks(folder))))
    assert ckptfmt.verify(tmp_path).ok
    assert ckptfmt.open(tmp_path)["agent-0"].manifest.index == manifest.index


@pytest.mark.req("FS9", "RE3")
@pytest.mark.parametrize(
    "change",
    [
        *(drop(name) for name in ("records", "blocks")),
        *(set_in("records", to=bad) for bad in _any(29, 31, True, -1, "30", None)),
        *(set_in("blocks", to=bad) for bad in _any([], None, {})),
        *(drop("blocks", name) for name in _HEAD_COLUMNS),
        *(drop("blocks", name, 0) for name in _HEAD_COLUMNS),
        *(drop("blocks", name, 3) for name in _HEAD_COLUMNS),
        *(set_in("blocks", name, to=[]) for name in _HEAD_COLUMNS),
        *(
            set_in("blocks", name, 1, to=bad)
            for name in _HEAD_COLUMNS
            for bad in _any(True, 1.5, "x", "", -1, 0, 2**63, None)
        ),
        set_in("blocks", "sha256", 0, to="0" * 64),
        set_in("blocks", "sha256", 0, to="A" * 64),
        lambda head: [column.reverse() for column in head["blocks"].values()],
        lambda head: [column.pop() for column in head["blocks"].values()],
        lambda head: head["blocks"]["first"].__setitem__(0, "r"),
    ],
)
def test_a_changed_member_of_the_head_is_refused(tmp_path: Path, change: Change) -> None:
    write(tmp_path, many_records(30))
    folder = tmp_path / "agent-0"
    put_index(folder, index_bytes(_blocks(folder), change=change))
    assert "index-" in _is_refused(tmp_path)


@pytest.mark.req("FS9", "RE3")
@pytest.mark.parametrize(
    "block",
    [
        b"\n",
        b"[]\n",
        b"null\n",
        b"{}\n",
        b"not json\n",
        b"[" * 100_000 + b"\n",
        b'{"episode":["r0"],"episode":["r0"]}\n',
    ],
)
def test_a_block_that_is_not_an_object_of_columns_is_refused(tmp_path: Path, block: bytes) -> None:
    write(tmp_path, many_records(30))
    folder = tmp_path / "agent-0"
    first = set_in("blocks", "first", 0, to="a")
    put_index(folder, index_bytes([block, *_blocks(folder)[1:]], records=30, change=first))
    assert "block 0" in _is_refused(tmp_path)


@pytest.mark.req("FS9", "RE3")
def test_a_block_of_several_lines_and_unsorted_blocks_are_refused(tmp_path: Path) -> None:
    write(tmp_path, many_records(30))
    folder = tmp_path / "agent-0"
    blocks = _blocks(folder)
    spread = [orjson.dumps(block, option=orjson.OPT_INDENT_2) + b"\n" for block in blocks]

    def firsts(head: Any) -> None:
        head["blocks"]["first"] = [block["episode"][0] for block in blocks]

    put_index(folder, index_bytes(spread, records=30, change=firsts))
    assert "not one line" in _is_refused(tmp_path, lookups=True)
    _swap(("episode",), 6)(blocks[0])
    blocks[0]["episode"][7], blocks[1]["episode"][1] = blocks[1]["episode"][1], blocks[0]["episode"][7]
    put_index(folder, index_bytes(blocks))
    assert "not sorted" in _is_refused(tmp_path)


@pytest.mark.req("FS9")
def test_empty_and_oversized_blocks_are_refused(tmp_path: Path) -> None:
    write(tmp_path, many_records(30))
    folder = tmp_path / "agent-0"
    index = index_of(folder)
    empty: Index = {name: [] for name in _COLUMNS}
    put_index(folder, index_bytes([index, empty], change=set_in("blocks", "first", 1, to="x")))
    assert "1 to 4096 rows" in _is_refused(tmp_path)
    put_index(folder, index_bytes([index]))
    assert ckptfmt.verify(tmp_path).ok
    with pytest.raises(Damaged, match="cannot hold 30 records"):
        _ = ckptfmt.open(tmp_path, limits=Limits(index_block_rows=29))["agent-0"].index
    assert len(ckptfmt.open(tmp_path, limits=Limits(index_block_rows=30))["agent-0"].index) == 30


@pytest.mark.req("FS9")
@pytest.mark.parametrize("limit", ["index_bytes", "index_head_bytes", "index_block_bytes"])
def test_the_byte_limits_of_an_index_are_exact(tmp_path: Path, limit: str) -> None:
    manifest = write(tmp_path, many_records(30))
    data = (tmp_path / "agent-0" / manifest.index).read_bytes()
    head, *blocks = data.splitlines(keepends=True)
    size = {
        "index_bytes": len(data),
        "index_head_bytes": len(head),
        "index_block_bytes": max(map(len, blocks)),
    }[limit]
    part = ckptfmt.open(tmp_path, limits=Limits(**{limit: size}))["agent-0"]
    assert part["r7"].boundary == 7
    assert part.verify() == []
    part = ckptfmt.open(tmp_path, limits=Limits(**{limit: size - 1}))["agent-0"]
    with pytest.raises(Damaged):
        _ = part["r7"]
    assert [problem.code for problem in part.verify()] == ["damaged"]


@pytest.mark.req("FS9", "RE3")
@pytest.mark.parametrize(
    ("compression", "change"),
    [
        ("none", set_in("segment", 0, to=99)),
        ("none", set_in("offset", 0, to=10**6)),
        ("none", _shift("start", 0, 1)),
        ("none", _shift("length", 0, -1)),
        ("none", _shift("stored", 0, 1)),
        ("zstd", set_in("stored", 0, to=10**6)),
        ("zstd", set_in("start", 0, to=10**6)),
    ],
)
def test_a_row_outside_its_segment_is_refused_before_the_segment_is_read(
    tmp_path: Path, compression: Any, change: Change
) -> None:
    write(tmp_path, many_records(30), compression=compression)
    folder = tmp_path / "agent-0"
    index = index_of(folder)
    change(index)
    put_index(folder, index_bytes([index]))
    with failing_disk() as disk:
        part = ckptfmt.open(tmp_path)["agent-0"]
        with pytest.raises(Damaged, match="leads outside its segment"):
            _ = part[index["episode"][0]]
    assert not [call for call in disk.calls if "records-" in call.path]


@pytest.mark.req("FS9")
@pytest.mark.parametrize("limit", ["index_bytes", "index_head_bytes"])
def test_an_index_beyond_the_limits_of_readers_is_not_published(tmp_path: Path, limit: str) -> None:
    manifest = write(tmp_path / "ok", many_records(30))
    data = (tmp_path / "ok" / "agent-0" / manifest.index).read_bytes()
    size = len(data) if limit == "index_bytes" else data.index(b"\n") + 1
    bound = Limits(**{limit: size})
    assert write(tmp_path / "at", many_records(30), limits=bound) == manifest
    bound = Limits(**{limit: size - 1})
    with pytest.raises(ckptfmt.LimitExceeded, match="fewer records"):
        write(tmp_path / "above", many_records(30), limits=bound)
    assert not list(tmp_path.glob("above/agent-0/*.json"))


@pytest.mark.req("FS9")
def test_the_byte_limits_of_a_frame_are_exact(tmp_path: Path) -> None:
    write(tmp_path, many_records(3), compression="zstd")
    index = index_of(tmp_path / "agent-0")
    for limit, size in (
        ("frame_plain_bytes", sum(index["length"])),
        ("frame_stored_bytes", index["stored"][0]),
    ):
        part = ckptfmt.open(tmp_path, limits=Limits(**{limit: size}))["agent-0"]
        assert part["r2"].boundary == 2
        assert part.verify() == []
        part = ckptfmt.open(tmp_path, limits=Limits(**{limit: size - 1}))["agent-0"]
        with pytest.raises(Damaged):
            _ = part["r2"]
        assert part.verify() != []


@pytest.mark.req("FS9", "RE3")
def test_the_error_names_added_and_missing_bytes(tmp_path: Path) -> None:
    manifest = write(tmp_path, many_records(30))
    path = tmp_path / "agent-0" / manifest.index
    data = path.read_bytes()
    path.write_bytes(data + b"{}\n")
    assert "bytes added" in _is_refused(tmp_path)
    path.write_bytes(data[:-1])
    assert "cut short" in _is_refused(tmp_path)
    path.write_bytes(data[:100])
    assert "bytes were added or cut off" in _is_refused(tmp_path, lookups=True)
    path.unlink()
    with pytest.raises(ckptfmt.Incomplete, match="the index file is missing"):
        _ = ckptfmt.open(tmp_path)["agent-0"]["r1"]


@pytest.mark.req("FS12")
def test_two_records_of_one_rollout_are_damaged(tmp_path: Path) -> None:
    """All digests, lengths and rows are correct; only the rule is violated."""
    write(tmp_path, [record("r0", 1), record("r0.x", 2), record("r1-a1", 3)])
    folder = tmp_path / "agent-0"
    body, index = body_of(folder / "manifest.json"), index_of(folder)
    (segment,) = body["segments"]
    data = (folder / segment["file"]).read_bytes().replace(b'"r1-a1"', b'"r0-a2"')
    segment["file"] = f"records-{hashlib.sha256(data).hexdigest()}.jsonl"
    (folder / segment["file"]).write_bytes(data)
    (folder / "manifest.json").write_bytes(sealed(body))
    lines = data.splitlines(keepends=True)
    rows = [0, 2, 1]  # "r0", "r0-a2", "r0.x"
    index["episode"] = ["r0", "r0-a2", "r0.x"]
    for name in ("offset", "stored", "length"):
        index[name] = [index[name][row] for row in rows]
    index["crc32"] = [zlib.crc32(lines[row]) for row in rows]
    put_index(folder, index_bytes([index]))
    with pytest.raises(Damaged, match="rollout r0 has two records"):
        list(ckptfmt.open_participant(tmp_path, "agent-0"))
    assert not ckptfmt.verify(tmp_path).ok


def _many(count: int) -> list[Record]:
    return [record(f"task-{number * 7919 % count:06}-{number}-a3", number, number) for number in range(count)]


@pytest.mark.req("FS9")
def test_a_lookup_reads_only_the_head_one_block_and_the_record(tmp_path: Path) -> None:
    records = _many(5000)
    manifest = write(tmp_path, records, tuning=Tuning(block_rows=100))
    size = (tmp_path / "agent-0" / manifest.index).stat().st_size
    part = ckptfmt.open(tmp_path)["agent-0"]
    with failing_disk() as disk:
        part = ckptfmt.open(tmp_path)["agent-0"]
        before = len(disk.calls)
        assert part[records[4321].episode].payload == 4321
        names = [os.path.basename(call.path) for call in disk.calls[before:]]
    assert size > 2 * 65_536
    assert names == [manifest.index, manifest.index, manifest.segments[0].file]
    for each in records[::37]:
        assert part[each.episode].payload == part[str(each.episode)].boundary
    for key in ("a", "z", "task-000000", "task-000000-0-a4", "task-9"):
        assert key not in part
    assert [str(each.episode) for each in part] == [str(each.episode) for each in records]


@pytest.mark.req("FS9")
def test_a_head_that_is_longer_than_the_first_read_is_read(tmp_path: Path) -> None:
    records = _many(3000)
    manifest = write(tmp_path, records, tuning=Tuning(block_rows=2))
    head = (tmp_path / "agent-0" / manifest.index).read_bytes().partition(b"\n")[0]
    assert len(head) > 2 * 65_536
    part = ckptfmt.open(tmp_path)["agent-0"]
    assert [part[each.episode].payload for each in records[::100]] == list(range(0, 3000, 100))
    assert part.verify() == []


@pytest.mark.req("FS1")
def test_only_the_latest_blocks_are_cached(tmp_path: Path) -> None:
    records = _many(3000)
    manifest = write(tmp_path, records, tuning=Tuning(block_rows=10))
    with failing_disk() as disk:
        part = ckptfmt.open(tmp_path)["agent-0"]
        keys = sorted(str(each.episode) for each in records)
        for key in (keys[2999], keys[2999], keys[2000], keys[2500], keys[2999], keys[2600], keys[2700]):
            assert key in part
        before = len(disk.calls)
        assert keys[2995] in part
        assert len(disk.calls) == before
        assert keys[2000] in part
        assert [os.path.basename(call.path) for call in disk.calls[before:]] == [manifest.index]


@pytest.mark.req("FS9")
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_all_records_are_read_in_the_order_in_which_they_were_written(
    tmp_path: Path, compression: Any
) -> None:
    records = list(many_records(40))[::-1]
    write(tmp_path, records, compression=compression, tuning=SMALL)
    part = ckptfmt.open(tmp_path)["agent-0"]
    keys = [str(each.episode) for each in records]
    assert list(part.episodes) == keys
    assert [str(each.episode) for each in part] == keys

"""A small checkpoint that is built byte by byte from FORMAT.md, so that each step can be made wrong.

The module does not use the package, which could repair or refuse the faults.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import zstandard

Body = dict[str, Any]
Files = dict[str, bytes]
"""The bytes of each file, by its path in the checkpoint's folder."""

COLUMNS: Final = ("episode", "boundary", "segment", "offset", "stored", "start", "length", "crc32")
NAME: Final = "agent-0"
LINES: Final = (
    b'{"episode":"17-0-a1","boundary":4,"schema":1,"references":["batch/17"],"payload":{"m":["hi"]}}\n',
    b'{"episode":"17-1","boundary":null,"schema":1,"payload":[1,2.5,"x"]}\n',
    b'{"episode":"18-0","boundary":2,"schema":1,"payload":null}\n',
)


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def to_json(value: Any) -> bytes:
    """JSON without spaces and without escapes that are not required."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def sealed(body: Any) -> bytes:
    """A self-checked file. ``body`` is a value, or the bytes of the body."""
    text = body if isinstance(body, bytes) else to_json(body)
    return b'{"sha256":"%b","body":%b}\n' % (digest(text).encode(), text)


def inner_digest(file: bytes) -> str:
    """The correct digest of a self-checked file's body, whatever its frame states."""
    return digest(file[file.index(b'"body":') + 7 : file.rindex(b"}")])


def frame(plain: bytes, *, checksum: bool = True, size: bool = True) -> bytes:
    """One zstd frame."""
    return zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=size).compress(plain)


def set_in(*path: Any, to: Any) -> Callable[[Any], None]:
    """A change that sets the value at a path."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        body[path[-1]] = to

    return change


def drop(*path: Any) -> Callable[[Any], None]:
    """A change that removes the member at a path."""

    def change(body: Any) -> None:
        for step in path[:-1]:
            body = body[step]
        del body[path[-1]]

    return change


def _nothing(_: Any) -> None:
    pass


def _one_block(rows: list[Body]) -> list[bytes]:
    return [block(rows)] if rows else []


def block(rows: list[Body]) -> bytes:
    """A block of the index."""
    return to_json({name: [row[name] for row in rows] for name in COLUMNS}) + b"\n"


@dataclass
class Draft:
    """The steps that build a checkpoint of one participant and one segment, with a hook for each step.

    A hook may change the result of its step. The digests of later steps are computed from the changed result,
    so they are correct unless ``files`` changes a finished file.
    """

    lines: Sequence[bytes] = LINES
    codec: str = "none"
    pack: Callable[[bytes], bytes] = frame
    """Compresses all lines into one zstd frame."""
    rows: Callable[[list[Body]], None] = _nothing
    """Changes the rows, sorted by key."""
    blocks: Callable[[list[Body]], list[bytes]] = _one_block
    head: Callable[[Any], Any] = _nothing
    """Changes the body of the index's head, or returns other bytes for it."""
    index: Callable[[bytes], bytes] = bytes
    """Changes the bytes of the index, but not its name."""
    manifest: Callable[[Any], Any] = _nothing
    manifest_file: Callable[[bytes], bytes] = bytes
    with_cut: bool = False
    cut: Callable[[Any], Any] = _nothing
    checkpoint: Callable[[Any], Any] = _nothing
    files: Callable[[Files], None] = _nothing
    more: Files = field(default_factory=dict)

    def build(self) -> Files:
        """Build all files."""
        segment, rows = self._segment()
        ending = ".jsonl.zst" if self.codec == "zstd" else ".jsonl"
        records = f"records-{digest(segment)}{ending}"
        index = self._index(rows)
        index_name = f"index-{inner_digest(index.splitlines(keepends=True)[0])}.json"
        manifest = self._manifest(records, segment, index_name)
        folder = "cut-0/" if self.with_cut else ""
        files = {
            f"{folder}{NAME}/{records}": segment,
            f"{folder}{NAME}/{index_name}": self.index(index),
            f"{folder}{NAME}/manifest.json": self.manifest_file(manifest),
            **self.more,
        }
        cut = None
        if self.with_cut:
            body = {"checkpoint_id": "step-1", "word": "9f2d6c0b8a41e35770c4b1d2e9f83a56"}
            files[folder + "cut.json"] = sealed(_changed(body, self.cut))
            cut = {"name": "cut-0", "sha256": inner_digest(files[folder + "cut.json"])}
        checkpoint = {
            "format": 1,
            "features": [],
            "checkpoint_id": "step-1",
            "sequence": 1,
            "cut": cut,
            "participants": {NAME: {"kind": "agent", "manifest": inner_digest(manifest)}},
            "episodes": sorted(row["episode"] for row in self._segment()[1]),
            "restarts": ["19-0"],
            "marks": {"17-0": 0},
            "state": {"step": 1},
        }
        files["checkpoint.json"] = sealed(_changed(checkpoint, self.checkpoint))
        self.files(files)
        return files

    def _segment(self) -> tuple[bytes, list[Body]]:
        plain = b"".join(self.lines)
        stored = self.pack(plain) if self.codec == "zstd" else plain
        rows = []
        start = 0
        for line in self.lines:
            place = (0, len(stored), start) if self.codec == "zstd" else (start, len(line), 0)
            values = (*_named(line), 0, *place, len(line), zlib.crc32(line))
            rows.append(dict(zip(COLUMNS, values, strict=True)))
            start += len(line)
        return stored, sorted(rows, key=lambda row: row["episode"].encode())

    def _index(self, rows: list[Body]) -> bytes:
        self.rows(rows)
        blocks = self.blocks(rows)
        starts, place = [], 0
        for each in blocks:
            starts.append(place)
            place += len(each)
        body = {
            "records": len(rows),
            "blocks": {
                "first": [_first(each) for each in blocks],
                "start": starts,
                "length": list(map(len, blocks)),
                "sha256": list(map(digest, blocks)),
            },
        }
        return sealed(_changed(body, self.head)) + b"".join(blocks)

    def _manifest(self, records: str, segment: bytes, index_name: str) -> bytes:
        plain = sum(map(len, self.lines))
        entry = {
            "file": records,
            "stored": len(segment),
            "plain": plain,
            "records": len(self.lines),
            "codec": self.codec,
        }
        body = {
            "format": 1,
            "features": [],
            "checkpoint_id": "step-1",
            "participant": {"name": NAME, "kind": "agent"},
            "segments": [entry],
            "index": index_name,
            "records": len(self.lines),
        }
        return sealed(_changed(body, self.manifest))


def _named(line: bytes) -> tuple[Any, Any]:
    """Episode and boundary of a line; ``r`` and 1 for a line that does not state them."""
    try:
        envelope = json.loads(line.decode().split(',"schema":')[0] + "}")
        return str(envelope["episode"]), envelope["boundary"]
    except (ValueError, LookupError):
        return "r", 1


def _first(data: bytes) -> str:
    try:
        return str(json.loads(data)["episode"][0])
    except (ValueError, LookupError, TypeError, RecursionError):
        return "17-0-a1"


def _changed(body: Any, change: Callable[[Any], Any]) -> Any:
    """``body`` after a change in place, or the result of ``change`` if it returns one."""
    result = change(body)
    return body if result is None else result

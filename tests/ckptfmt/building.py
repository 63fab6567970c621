"""Small checkpoints for tests, written with the public names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

import ckptfmt
from ckptfmt import Compression, EpisodeId, Limits, Manifest, Record, Tuning
from ckptfmt.stores import Url

SMALL = Tuning(segment_bytes=4000, frame_bytes=1000, batch_bytes=1000, waiting_bytes=1000, block_rows=8)
"""Sizes at which a few records already need several segments, frames and blocks of the index."""


def record(key: str, payload: Any = None, boundary: int | None = None) -> Record:
    """A record of the episode with this capture key."""
    return Record(EpisodeId.from_capture_key(key), payload, boundary)


def many_records(count: int, size: int = 300, prefix: str = "r") -> Iterator[Record]:
    """Yield records of about ``size`` bytes whose text hardly compresses."""
    for number in range(count):
        text = "".join(
            hashlib.sha256(b"%d %d" % (number, part)).hexdigest() for part in range(size // 64 + 1)
        )
        yield record(f"{prefix}{number}", {"text": text[:size], "number": number}, number or None)


def write(
    folder: Url,
    records: Iterable[Record],
    *,
    participant: str = "agent-0",
    kind: str = "agent",
    checkpoint_id: str = "step-1",
    compression: Compression = "none",
    limits: Limits | None = None,
    tuning: Tuning = SMALL,
) -> Manifest:
    """Write one participant, and return its manifest."""
    with ckptfmt.create(
        folder,
        participant=participant,
        kind=kind,
        checkpoint_id=checkpoint_id,
        compression=compression,
        limits=limits or Limits(),
        tuning=tuning,
    ) as writer:
        for each in records:
            writer.write(each)
    return writer.manifest


@dataclass(frozen=True)
class Built:
    """A published checkpoint: its folder, its cut, and the digests of its manifests."""

    folder: Path
    cut: ckptfmt.Cut
    manifests: dict[str, str]

    @property
    def cut_folder(self) -> Path:
        """The folder of the cut."""
        return self.folder / self.cut.name

    def files(self) -> list[str]:
        """The paths of all files of the checkpoint."""
        return files_below(self.folder)

    def restore(self) -> list[ckptfmt.StoredRecord]:
        """Read all records like a restore, starting from ``checkpoint.json``."""
        body = ckptfmt.read_checkpoint(self.folder)
        assert body.cut is not None
        folder = self.folder / body.cut.name
        cut = ckptfmt.read_cut(folder)
        if cut.digest != body.cut.digest:
            raise ckptfmt.Damaged("another cut")
        return [
            each
            for name, reference in body.participants.items()
            for each in ckptfmt.open_participant(folder, name, digest=reference.manifest).read()
        ]


def build(folder: Path, records: Iterable[Record] | None = None, tuning: Tuning = SMALL) -> Built:
    """Write a complete checkpoint with one participant for each codec."""
    listed = list(many_records(2, 20)) if records is None else list(records)
    cut = ckptfmt.create_cut(folder, "step-1")
    participants: list[tuple[str, str, Compression]] = [
        ("agent-0", "agent", "none"),
        ("tools/0", "resources", "zstd"),
    ]
    manifests = {
        name: write(
            Path(cut.url), listed, participant=name, kind=kind, compression=codec, tuning=tuning
        ).digest
        for name, kind, codec in participants
    }
    ckptfmt.publish(folder, participants=manifests, sequence=1, cut=cut, state={"seed": 2**70})
    return Built(folder, cut, manifests)


def files_below(folder: Path) -> list[str]:
    """The sorted relative paths of all files below, and of empty directories with a slash at the end."""
    found = []
    for root, folders, files in os.walk(folder):
        found += [os.path.relpath(os.path.join(root, name), folder) for name in files]
        if not folders and not files and Path(root) != folder:
            found.append(os.path.relpath(root, folder) + "/")
    return sorted(found)


def sealed(body: Any) -> bytes:
    """A self-checked file with any body, as FORMAT.md specifies it."""
    text = body if isinstance(body, bytes) else orjson.dumps(body)
    return b'{"sha256":"%b","body":%b}\n' % (hashlib.sha256(text).hexdigest().encode(), text)


_COLUMNS = ("episode", "boundary", "segment", "offset", "stored", "start", "length", "crc32")
Index = dict[str, list[Any]]
"""The columns of a whole index, joined from its blocks."""


def index_of(folder: Path) -> Index:
    """The index of the participant in this folder, in the order of the file."""
    lines = (folder / body_of(folder / "manifest.json")["index"]).read_bytes().splitlines()
    blocks = list(map(orjson.loads, lines[1:]))
    return {name: [value for block in blocks for value in block[name]] for name in _COLUMNS}


def index_bytes(
    blocks: list[Any], *, records: int | None = None, change: Callable[[Any], None] | None = None
) -> bytes:
    """An index file of these blocks (JSON values or bytes) with correct digests.

    ``change`` changes the body of the head.
    """
    lines = [each if isinstance(each, bytes) else orjson.dumps(each) + b"\n" for each in blocks]
    firsts = [each["episode"][0] if isinstance(each, dict) and each.get("episode") else "" for each in blocks]
    lengths = list(map(len, lines))
    head = {
        "records": sum(len(each["episode"]) for each in blocks) if records is None else records,
        "blocks": {
            "first": firsts,
            "start": [sum(lengths[:number]) for number in range(len(lengths))],
            "length": lengths,
            "sha256": [hashlib.sha256(line).hexdigest() for line in lines],
        },
    }
    if change is not None:
        change(head)
    return b"".join([sealed(head), *lines])


def put_index(folder: Path, data: bytes) -> None:
    """Write ``data`` as the index of the participant in ``folder``, and name it in the manifest."""
    name = f"index-{orjson.loads(data.splitlines()[0])['sha256']}.json"
    (folder / name).write_bytes(data)
    manifest = body_of(folder / "manifest.json")
    (folder / "manifest.json").write_bytes(sealed({**manifest, "index": name}))


def body_of(path: Path) -> Any:
    """The body of a self-checked file."""
    return orjson.loads(path.read_bytes())["body"]

"""Methods of storing and reading back the same records: ckptfmt, and common alternatives.

Each writes one file or database to disk and syncs it. Only ckptfmt checks that the values read back exactly
and has an index; only ckptfmt and ``source-method`` name the file by its digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

import ckptfmt
from ckptfmt import Record


class Peer(NamedTuple):
    """One method: ``commit`` stores records in an empty folder, and ``restore`` returns all payloads."""

    commit: Callable[[Path, Iterable[Record]], None]
    restore: Callable[[Path], list[Any]]


def ckptfmt_commit(directory: Path, given: Iterable[Record]) -> None:
    """Write and publish one participant."""
    with ckptfmt.create(str(directory), participant="agent-0", kind="agent", checkpoint_id="bench") as writer:
        for record in given:
            writer.write(record)


def ckptfmt_restore_lazy(directory: Path) -> list[Any]:
    """Verify every byte without decoding payloads, as a restore of a server does."""
    part = ckptfmt.open_participant(str(directory), "agent-0")
    rollouts = [key.partition("-a")[0] for key in part.episodes]
    return list(part.restore(rollouts, memory_budget=8 * 2**30))


def ckptfmt_restore(directory: Path) -> list[Any]:
    """Verify every byte and decode all payloads."""
    return ckptfmt.payloads(ckptfmt.open_participant(str(directory), "agent-0"))


def source_commit(directory: Path, given: Iterable[Record]) -> None:
    """The straightforward method: for each record, orjson as a check, json.dumps, hash and write."""
    digest = hashlib.sha256()
    path = directory / "records.jsonl"
    with path.open("wb") as file:
        for record in given:
            orjson.dumps(record.payload)
            line = json.dumps({"episode": str(record.episode), "payload": record.payload}).encode() + b"\n"
            digest.update(line)
            file.write(line)
        _sync(file)
    path.rename(directory / f"records-{digest.hexdigest()}.jsonl")


def source_restore(directory: Path) -> list[Any]:
    """Hash and decode line by line."""
    (path,) = directory.glob("records-*.jsonl")
    digest = hashlib.sha256()
    found = []
    with path.open("rb") as file:
        for line in file:
            digest.update(line)
            found.append(json.loads(line)["payload"])
    assert digest.hexdigest() in path.name
    return found


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _line_peer(dumps: Callable[[Any], bytes], loads: Callable[[bytes], Any]) -> Peer:
    def commit(directory: Path, given: Iterable[Record]) -> None:
        with (directory / "records").open("wb") as file:
            for record in given:
                data = dumps(record.payload)
                file.write(len(data).to_bytes(8, "little") + data)
            _sync(file)

    def pieces(directory: Path) -> Iterator[bytes]:
        with (directory / "records").open("rb") as file:
            while head := file.read(8):
                yield file.read(int.from_bytes(head, "little"))

    return Peer(commit, lambda directory: [loads(piece) for piece in pieces(directory)])


def _msgpack() -> Peer:
    import ormsgpack

    return _line_peer(ormsgpack.packb, ormsgpack.unpackb)


def _langgraph() -> Peer:
    """LangGraph's SqliteSaver with its own serializer: one thread for each record."""
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.sqlite import SqliteSaver

    def configuration(thread: str) -> Any:
        return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}

    def commit(directory: Path, given: Iterable[Record]) -> None:
        with SqliteSaver.from_conn_string(str(directory / "checkpoints.sqlite")) as saver:
            for record in given:
                checkpoint = {**empty_checkpoint(), "channel_values": {"state": record.payload}}
                metadata: Any = {"source": "loop", "step": record.boundary}
                saver.put(configuration(str(record.episode)), checkpoint, metadata, {})

    def restore(directory: Path) -> list[Any]:
        with SqliteSaver.from_conn_string(str(directory / "checkpoints.sqlite")) as saver:
            return [found.checkpoint["channel_values"]["state"] for found in saver.list(None)]

    return Peer(commit, restore)


def peer(name: str) -> Peer:
    """The method of this name. Its library is imported here, so that the others do not pay memory for it."""
    return _PEERS[name]()


_PEERS: Mapping[str, Callable[[], Peer]] = {
    "ckptfmt": lambda: Peer(ckptfmt_commit, ckptfmt_restore),
    "ckptfmt-lazy": lambda: Peer(ckptfmt_commit, ckptfmt_restore_lazy),
    "source-method": lambda: Peer(source_commit, source_restore),
    "pickle": lambda: _line_peer(lambda value: pickle.dumps(value, protocol=5), pickle.loads),
    "json": lambda: _line_peer(lambda value: json.dumps(value).encode(), json.loads),
    "msgpack": _msgpack,
    "langgraph": _langgraph,
}

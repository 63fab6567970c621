"""The floor: each stage alone, with the fastest library for it.

A commit or restore cannot be faster than its slowest stage.
"""

from __future__ import annotations

import gc
import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import orjson

from ckptfmt import Record

Run = Callable[[], object]


def encode(directory: Path, given: list[Record]) -> Run:
    """orjson.dumps without checks."""
    return lambda: [len(orjson.dumps(record.payload)) for record in given]


def hash_bytes(directory: Path, given: list[Record]) -> Run:
    """SHA-256 of the bytes."""
    lines = [orjson.dumps(record.payload) for record in given]

    def run() -> None:
        digest = hashlib.sha256()
        for line in lines:
            digest.update(line)

    return run


def write(directory: Path, given: list[Record]) -> Run:
    """Write the bytes to a file and fsync it."""
    lines = [orjson.dumps(record.payload) for record in given]

    def run() -> None:
        with (directory / "records").open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())

    return run


def read(directory: Path, given: list[Record]) -> Run:
    """Read a file that is in the page cache."""
    write(directory, given)()
    path = directory / "records"

    def run() -> int:
        total = 0
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(1024 * 1024):
                total += len(chunk)
        return total

    return run


def decode(directory: Path, given: list[Record]) -> Run:
    """orjson.loads of every line, with the garbage collector off."""
    lines = [orjson.dumps(record.payload) for record in given]

    def run() -> object:
        gc.disable()
        try:
            return [orjson.loads(line) for line in lines]
        finally:
            gc.enable()

    return run


STAGES: Mapping[str, Callable[[Path, list[Record]], Run]] = {
    "encode": encode,
    "hash": hash_bytes,
    "write": write,
    "read": read,
    "decode": decode,
}
STAGES_OF_CASE: Mapping[str, tuple[str, ...]] = {
    "commit-local": ("encode", "hash", "write"),
    "restore-lazy": ("read", "hash"),
    "restore-decoded": ("read", "hash", "decode"),
}

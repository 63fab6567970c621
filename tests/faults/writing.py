"""Writing records to a disk that fails, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

import ckptfmt
from ckptfmt import StoreError, Writer
from ckptfmt.testing import Operation
from tests.ckptfmt.building import SMALL

WRITE_CALLS: Final[list[tuple[Operation, str]]] = [
    ("create", "*"),
    ("write", "*"),
    ("sync", "*"),
    ("replace", "*records-*"),
    ("replace", "*index-*"),
    ("sync_directory", "*"),
    ("link", "*manifest.json"),
    ("make_directory", "*"),
]
"""The calls of a commit that may fail: operations and patterns of paths."""


def create_writer(folder: Path, **options: Any) -> Writer:
    return ckptfmt.create(
        folder, participant="a", kind="agent", checkpoint_id="c", **{"tuning": SMALL, **options}
    )


def write_remaining(writer: Writer, records: list[ckptfmt.Record]) -> None:
    """Write the records that the writer has not accepted yet."""
    for each in records[writer.accepted :]:
        writer.write(each)


def write_until_failure(writer: Writer, records: list[ckptfmt.Record]) -> StoreError:
    """Write and publish, which must fail at some point. Publishing waits for all background work."""
    with pytest.raises(StoreError) as failed:
        write_remaining(writer, records)
        writer.publish()
    return failed.value


def has_failed(writer: Writer) -> bool:
    """Whether a background thread has failed, which the next call raises."""
    try:
        writer._pipeline.raise_failure()
    except StoreError:
        return True
    return False

"""Runs with several checkpoints, for tests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import ckptfmt
from ckptfmt import Record
from tests.ckptfmt.building import Built, many_records, write


def checkpoint(run: Path, sequence: int, records: Iterable[Record] | None = None) -> Built:
    """Write a complete checkpoint ``step-<sequence>`` of one participant."""
    folder = run / f"step-{sequence}"
    cut = ckptfmt.create_cut(folder, f"step-{sequence}")
    manifest = write(
        Path(cut.url), many_records(3) if records is None else records, checkpoint_id=f"step-{sequence}"
    )
    ckptfmt.publish(folder, participants={"agent-0": manifest.digest}, sequence=sequence, cut=cut)
    return Built(folder, cut, {"agent-0": manifest.digest})


def records_file(built: Built) -> Path:
    """The path of the first records file of a checkpoint."""
    return next((built.cut_folder / "agent-0").glob("records-*"))


def make_old(*paths: Path, seconds: float = 10 * 86400) -> None:
    """Change the times of all files, as if they had been written so many seconds earlier."""
    for path in paths:
        for each in (path, *path.rglob("*")):
            then = each.stat(follow_symlinks=False).st_mtime - seconds
            os.utime(each, (then, then), follow_symlinks=False)

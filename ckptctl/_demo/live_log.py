"""The append-only log of the work that was really done, outside every checkpoint.

A result that is equal because everything silently started over would be a failure; this log shows it. It
is one file for each server of a run, one JSON object a line, appended with one write each, so that a
killed process loses no line that it wrote.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from ckptctl._controller.lives import ATTEMPTS_PER_LIFE
from ckptfmt import EpisodeId


class LiveLog:
    """The log of one server."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def add(self, what: str, episode: EpisodeId) -> None:
        """Note that a unit of work (``token`` or ``call``) of this episode runs now."""
        line = json.dumps({"what": what, "episode": episode.capture_key})
        os.write(self._file, line.encode() + b"\n")


def count_live(directory: Path, what: str) -> dict[int, Counter[str]]:
    """How many units of ``what`` were done, from the logs in a directory: life -> rollout id -> number."""
    found: dict[int, Counter[str]] = {}
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            entry = json.loads(line)
            if entry["what"] == what:
                episode = EpisodeId.from_capture_key(entry["episode"])
                life = episode.attempt // ATTEMPTS_PER_LIFE
                found.setdefault(life, Counter())[episode.rollout_id] += 1
    return found

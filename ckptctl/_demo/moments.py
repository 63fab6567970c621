"""Moments of the second checkpoint at which the demo can be killed, and how a process holds still there.

A moment that lies inside one server's commit needs that server to hold still: the records that it exports
then stop coming, in the thread that writes them, until the SIGKILL.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, overload

from ckptctl import EpisodeParticipant
from ckptfmt import EpisodeId, Record

if TYPE_CHECKING:
    from ckptctl._demo.server import ServerConfig

MOMENTS = (
    "before-prepare",
    "prepared",
    "mid-commit",
    "between-commits",
    "before-publish",
    "resumed",
    "restored",
)
"""``--crash-after`` takes one of these; each is of the second checkpoint of a life but the last, which is
right after the restore that follows a first crash."""
SERVER_MOMENTS = ("mid-commit", "between-commits")
SECOND = 2
_stdout_lock = threading.Lock()


def announce(event: dict[str, Any]) -> None:
    """Tell the supervisor: one JSON line on standard output."""
    with _stdout_lock:
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def held_at(
    config: ServerConfig, participant: type[EpisodeParticipant]
) -> Callable[[str, str], EpisodeParticipant]:
    """The participant class of this server, holding still at the configured moment, if there is one."""
    if config.hold is None:
        return participant
    hold = _in_the_middle if config.hold == "mid-commit" else _wait_for_others(config)

    class Held(participant):  # type: ignore[valid-type,misc]
        exports = 0

        async def export(self, scope: Collection[EpisodeId]) -> Sequence[Record]:
            self.exports += 1
            records: Sequence[Record] = await super().export(scope)
            return _HeldRecords(records, hold) if self.exports == SECOND else records

    return Held


class _HeldRecords(list[Record]):
    """Records of which a slice, which is what a writer takes, is iterated by ``hold``."""

    def __init__(self, records: Sequence[Record], hold: Callable[[list[Record]], Iterator[Record]]) -> None:
        super().__init__(records)
        self._hold = hold

    @overload
    def __getitem__(self, index: SupportsIndex) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return _HeldSlice(super().__getitem__(index), self._hold)
        return super().__getitem__(index)


class _HeldSlice(_HeldRecords):
    def __iter__(self) -> Iterator[Record]:
        return self._hold(list(super().__iter__()))


def _in_the_middle(records: list[Record]) -> Iterator[Record]:
    yield from records[: len(records) // 2]
    _hold("mid-commit")


def _wait_for_others(config: ServerConfig) -> Callable[[list[Record]], Iterator[Record]]:
    def hold(records: list[Record]) -> Iterator[Record]:
        run = Path(config.directory) / "run"
        while not all(_committed(run, other) for other in config.others):
            time.sleep(0.005)
        _hold("between-commits")
        yield from records

    return hold


def _committed(run: Path, participant: str) -> bool:
    """Whether this participant has published its manifest in a checkpoint that is not complete yet."""
    return any(
        not (manifest.parents[2] / "checkpoint.json").exists()
        for manifest in run.glob(f"*/*/{participant}/manifest.json")
    )


def _hold(moment: str) -> NoReturn:
    announce({"event": "moment", "moment": moment})
    while True:
        time.sleep(3600)

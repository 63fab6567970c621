"""A server of the demo that stops inside its commit, to be killed there.

The records that it exports stop coming, in the thread that writes them, until the SIGKILL.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NoReturn, SupportsIndex, overload

from ckptctl import EpisodeParticipant
from ckptctl._demo.events import announce
from ckptctl._demo.server import ServerConfig
from ckptfmt import EpisodeId, Record

SECOND = 2


def held_at(
    config: ServerConfig, participant: type[EpisodeParticipant]
) -> Callable[[str, str], EpisodeParticipant]:
    """The participant class of this server, which stops at the configured crash point, if there is one."""
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
    """A list of records; iterating over a slice of it, as a writer does, goes through ``hold``."""

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
    _wait_to_be_killed("mid-commit")


def _wait_for_others(config: ServerConfig) -> Callable[[list[Record]], Iterator[Record]]:
    def hold(records: list[Record]) -> Iterator[Record]:
        run = Path(config.directory) / "run"
        while not all(_committed(run, other) for other in config.others):
            time.sleep(0.005)
        _wait_to_be_killed("between-commits")
        yield from records

    return hold


def _committed(run: Path, participant: str) -> bool:
    """Whether this participant has published its manifest in a checkpoint that is not complete yet."""
    return any(
        not (manifest.parents[2] / "checkpoint.json").exists()
        for manifest in run.glob(f"*/*/{participant}/manifest.json")
    )


def _wait_to_be_killed(point: str) -> NoReturn:
    announce({"event": "crash-point", "point": point})
    while True:
        time.sleep(3600)

"""No attempt is ever used twice, also by controllers that begin lives of one run at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ckptfmt
from ckptctl import first_attempt
from ckptctl.testing import on_virtual_clock
from tests.ckptctl.servers import Cluster
from tests.ckptctl.test_coordination_restore import save

RESTORE = """
import asyncio, sys
from ckptctl import Coordination, ControlPlane, Server, Settings
from ckptctl.testing import ScriptedParticipant

async def main():
    settings = Settings(enabled=True, control_auth_token="t")
    for _ in range(int(sys.argv[2])):
        plane = ControlPlane(ScriptedParticipant("agent", "agent"), settings)
        async with Coordination([Server("agent", "agent", plane.call)]).restored(sys.argv[1]) as back:
            print(back.life, back.checkpoint_id, *map(str, back.episodes.values()))

sys.stdin.read()
asyncio.run(main())
"""
START = """
import sys, ckptfmt
sys.stdin.read()
for _ in range(int(sys.argv[2])):
    print(ckptfmt.start_life(sys.argv[1]))
"""


def race(code: str, directory: Path, *, processes: int, each: int) -> list[str]:
    """The lines that these processes print, which begin at the same moment."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(directory), str(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(processes)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.close()  # The start signal; until here each imports what it needs.
    lines = []
    for process in running:
        assert process.stdout is not None
        with process.stdout:
            lines += process.stdout.read().splitlines()
        assert process.wait(30) == 0
    return lines


@pytest.mark.req("CO13")
def test_lives_that_begin_at_once_in_many_processes_are_different_ones(tmp_path: Path) -> None:
    lives = [int(line) for line in race(START, tmp_path, processes=6, each=20)]
    assert sorted(lives) == list(range(120))


@pytest.mark.req("CO13")
def test_restores_that_begin_at_once_in_many_processes_continue_as_different_attempts(tmp_path: Path) -> None:
    saved = on_virtual_clock(_save_one)
    directory = Path(saved(tmp_path / "c"))
    found = [line.split() for line in race(RESTORE, directory, processes=4, each=3)]
    assert sorted(int(life) for life, _, _ in found) == list(range(1, 13))
    assert {key for _, _, key in found} == {f"r-a{life}00" for life in range(1, 13)}
    assert len({checkpoint_id for _, checkpoint_id, _ in found}) == 12


async def _save_one(directory: Path) -> str:
    return await save(directory, ["r"], cluster=Cluster({"agent": "agent"}))


@pytest.mark.req("CO13")
def test_life_n_owns_a_hundred_attempts() -> None:
    assert [first_attempt(life) for life in (0, 1, 2, 77)] == [0, 100, 200, 7700]


@pytest.mark.req("CO13")
def test_a_life_is_not_created_twice_where_one_is_missing(tmp_path: Path) -> None:
    assert [ckptfmt.start_life(tmp_path) for _ in range(3)] == [0, 1, 2]
    (tmp_path / "lives" / "1.json").unlink()
    assert ckptfmt.start_life(tmp_path) == 3

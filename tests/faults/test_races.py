"""Several writers in one directory: one publishes a complete manifest, the others get a conflict."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt import Conflict, Manifest
from ckptfmt.testing import DiskCall, failing_disk
from tests.ckptfmt.building import SMALL, build, files_below, many_records, write

_WRITERS = 8


@pytest.mark.req("FS4")
@pytest.mark.parametrize("same", [True, False])
def test_of_several_threads_one_publishes(tmp_path: Path, same: bool) -> None:
    for round_number in range(25):
        folder = tmp_path / str(round_number)
        start = threading.Barrier(_WRITERS)

        def commit(number: int, folder: Path = folder, start: threading.Barrier = start) -> Manifest | None:
            writer = ckptfmt.create(folder, participant="a", kind="agent", checkpoint_id="c", tuning=SMALL)
            for each in many_records(20, 300, "same" if same else f"w{number}-"):
                writer.write(each)
            start.wait(10)
            try:
                return writer.publish()
            except Conflict:
                return None
            finally:
                writer.abort()

        with ThreadPoolExecutor(_WRITERS) as pool:
            results = list(pool.map(commit, range(_WRITERS)))
        winners = [each for each in results if each is not None]
        assert len(winners) == (_WRITERS if same else 1)
        _check_complete(folder, winners[0])


def _check_complete(folder: Path, winner: Manifest) -> None:
    """The folder holds the files of the winner and no others."""
    assert ckptfmt.open(folder)["a"].manifest == winner
    assert ckptfmt.open(folder).verify().ok
    assert files_below(folder) == sorted(f"a/{name}" for name in [*winner.files, "manifest.json"])


_COMMIT = """
import sys, ckptfmt
from pathlib import Path
from tests.ckptfmt.building import many_records, write
folder, prefix, go = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
try:
    print(write(Path(folder), many_records(40, 300, prefix), participant="a").digest)
except ckptfmt.Conflict:
    print("conflict")
"""


@pytest.mark.req("FS4")
@pytest.mark.parametrize("same", [True, False])
def test_of_several_processes_one_publishes(tmp_path: Path, same: bool) -> None:
    root = Path(__file__).parents[2]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _COMMIT, str(tmp_path / "c"), "same" if same else f"w{number}-", ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
        )
        for number in range(_WRITERS)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        results = [process.communicate(timeout=30)[0].strip() for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    winners = {result for result in results if result != "conflict"}
    assert len(winners) == 1
    assert results.count("conflict") == (0 if same else _WRITERS - 1)
    part = ckptfmt.open(tmp_path / "c")["a"]
    assert part.digest in winners
    _check_complete(tmp_path / "c", part.manifest)


@pytest.mark.req("CO11")
def test_only_one_checkpoint_json_is_published(tmp_path: Path) -> None:
    built = build(tmp_path / "step-1")
    (built.folder / "checkpoint.json").unlink()

    def complete(number: int) -> str | None:
        try:
            return ckptfmt.publish(
                built.folder,
                participants=built.manifests,
                sequence=number % 4,
                cut=built.cut,
                state=number % 4,
            )
        except Conflict:
            return None

    with ThreadPoolExecutor(_WRITERS) as pool:
        digests = [each for each in pool.map(complete, range(_WRITERS)) if each is not None]
    assert len(set(digests)) == 1
    assert ckptfmt.open(built.folder).digest == digests[0]


@pytest.mark.req("CO13")
def test_concurrent_lives_get_different_numbers(tmp_path: Path) -> None:
    with ThreadPoolExecutor(_WRITERS) as pool:
        lives = list(pool.map(lambda _: ckptfmt.start_life(tmp_path / "run"), range(24)))
    assert sorted(lives) == list(range(24))


@pytest.mark.req("FS8")
def test_a_folder_that_another_writer_removes_is_created_again(tmp_path: Path) -> None:
    """An aborted writer removes the empty folders that it created; another writer may need them then."""
    removed = 0

    def remove(call: DiskCall) -> None:
        nonlocal removed
        if call.operation in ("create", "make_directory") and removed < 6:
            removed += 1
            for name in ("x/y/a", "x/y", "x"):
                with suppress(OSError):
                    (tmp_path / name).rmdir()

    with failing_disk(on_call=remove):
        manifest = write(tmp_path / "x" / "y", many_records(30), participant="a")
    assert removed == 6
    assert ckptfmt.open(tmp_path / "x" / "y")["a"].manifest == manifest

"""The order of writes, syncs and names, so that a published checkpoint survives a loss of power."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt.testing import FaultyDisk, failing_disk
from tests.ckptfmt.building import SMALL, files_below, many_records, record, write
from tests.faults.writing import create_writer
from tests.polling import block_until


def _steps(disk: FaultyDisk, root: Path) -> list[str]:
    """The calls that matter for durability, with short file names."""
    steps = []
    for call in disk.calls:
        path = os.path.relpath(call.path, root)
        name = os.path.basename(path)
        kind = next(
            (kind for kind in ("records", "index", "manifest.json", "checkpoint.json") if kind in name), path
        )
        if call.operation in ("sync", "replace", "link", "sync_directory"):
            steps.append(f"{call.operation} {'temporary' if name.endswith('.tmp') else kind}")
    return steps


@pytest.mark.req("FS5")
def test_all_files_are_durable_before_the_manifest_appears(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with failing_disk() as disk:
        with ckptfmt.create(
            run / "step-1", participant="tools/0", kind="resources", checkpoint_id="c", tuning=SMALL
        ) as writer:
            for each in many_records(12, 500):
                writer.write(each)
    assert len(writer.manifest.segments) == 2
    assert _steps(disk, run) == [
        *("sync temporary", "replace records", "sync temporary", "replace records"),
        *("sync temporary", "replace index"),
        "sync_directory step-1/tools/0",
        "sync_directory step-1/tools",
        "sync_directory step-1",
        "sync_directory .",
        *("sync temporary", "link manifest.json"),
        "sync_directory step-1/tools/0",
    ]


@pytest.mark.req("FS5")
def test_created_parent_directories_are_durable(tmp_path: Path) -> None:
    with failing_disk() as disk:
        write(tmp_path / "new" / "run" / "step-1", [record("r")], participant="a")
    synced = [step for step in _steps(disk, tmp_path) if step.startswith("sync_directory")]
    assert synced == [
        "sync_directory new/run/step-1/a",
        "sync_directory new/run/step-1",
        "sync_directory new/run",
        "sync_directory new",
        "sync_directory .",
        "sync_directory new/run/step-1/a",
    ]


@pytest.mark.req("FS5", "CO11")
def test_a_cut_and_checkpoint_json_are_durable_up_to_the_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with failing_disk() as disk:
        cut = ckptfmt.create_cut(run / "step-1", "step-1")
    assert [step for step in _steps(disk, run) if step.startswith("sync_directory")] == [
        f"sync_directory step-1/{cut.name}",
        "sync_directory step-1",
        "sync_directory .",
    ]
    manifest = write(Path(cut.url), [record("r")])
    with failing_disk() as disk:
        ckptfmt.publish(run / "step-1", participants={"agent-0": manifest.digest}, sequence=1, cut=cut)
    assert _steps(disk, run) == [
        *("sync temporary", "link checkpoint.json"),
        *("sync_directory step-1", "sync_directory ."),
    ]


@pytest.mark.req("CO13")
def test_a_life_is_durable(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with failing_disk() as disk:
        ckptfmt.start_life(tmp_path / "run")
    assert _steps(disk, tmp_path) == [
        *("sync temporary", "link run/lives/0.json"),
        *("sync_directory run/lives", "sync_directory run", "sync_directory ."),
    ]


@pytest.mark.req("FS5")
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_system_calls_are_in_this_order(tmp_path: Path) -> None:
    """The same order in the system calls: no name appears before its bytes are durable."""
    code = (
        "import ckptfmt, sys\n"
        "with ckptfmt.create(sys.argv[1], participant='a', kind='agent', checkpoint_id='c') as writer:\n"
        "    writer.write(ckptfmt.Record(ckptfmt.EpisodeId('r'), 1))\n"
    )
    trace = tmp_path / "trace"
    (tmp_path / "d").mkdir()
    command = [
        "strace",
        "-f",
        "-y",
        "-o",
        str(trace),
        "-e",
        "trace=fsync,rename,renameat,renameat2,link,linkat",
    ]
    try:
        subprocess.run([*command, sys.executable, "-c", code, str(tmp_path / "d")], check=True, timeout=60)
    except subprocess.CalledProcessError:
        pytest.skip("strace is not permitted")
    names = []
    for line in trace.read_text().splitlines():
        if str(tmp_path) not in line:
            continue
        call = line.split("(")[0].split()[-1]
        if call == "fsync":
            names.append("fsync file" if ".tmp>" in line else f"fsync {line.split('<')[1].split('>')[0]}")
        else:
            names.append("manifest" if "manifest.json" in line else "rename")
    folder = str(tmp_path / "d")
    assert names == [
        *("fsync file", "rename", "fsync file", "rename"),
        *(f"fsync {folder}/a", f"fsync {folder}", f"fsync {tmp_path}"),
        *("fsync file", "manifest", f"fsync {folder}/a"),
    ]


@pytest.mark.req("FS1", "FS5")
def test_an_open_segment_is_synced_while_it_grows(tmp_path: Path) -> None:
    tuning = dataclasses.replace(SMALL, segment_bytes=10**6, sync_bytes=2000)
    with failing_disk() as disk:
        writer = create_writer(tmp_path, tuning=tuning)
        for each in many_records(40, 500):
            writer.write(each)
        block_until(lambda: any(call.operation == "sync" for call in disk.calls))
        names = files_below(tmp_path)
        assert [name for name in names if name.endswith(".tmp")] == names  # no other name before it is closed
        assert not any(call.operation == "replace" for call in disk.calls)
        writer.publish()
    (segment,) = writer.manifest.segments
    synced = [call for call in disk.calls if call.operation == "sync"]
    assert len(synced) <= segment.stored / 2000 + 3  # 3: the last syncs of segment, index and manifest
    assert not [name for name in files_below(tmp_path) if name.endswith(".tmp")]

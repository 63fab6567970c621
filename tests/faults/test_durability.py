"""The order of writes, syncs and names: what is published survives a loss of power at any moment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ckptfmt
from ckptfmt.testing import FaultyDisk, failing_disk
from tests.ckptfmt.building import SMALL, many_records, record, write


def _steps(disk: FaultyDisk, root: Path) -> list[str]:
    """The calls that matter for durability, with short names."""
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
def test_everything_is_durable_before_the_manifest_and_its_name_after(tmp_path: Path) -> None:
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
def test_directories_made_above_the_given_one_are_durable_too(tmp_path: Path) -> None:
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
@pytest.mark.skipif(shutil.which("strace") is None, reason="there is no strace here")
def test_the_system_calls_are_those(tmp_path: Path) -> None:
    """The same order, seen from outside: no name appears before the bytes under it are durable."""
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
        pytest.skip("strace may not trace here")
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

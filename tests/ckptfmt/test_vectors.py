"""The vectors of tests/vectors: valid ones have the content of their twins, invalid ones are refused."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

import ckptfmt
from ckptfmt import CheckpointError, Record, StoredRecord
from tools.vectors.__main__ import digest_lines, main, write_case
from tools.vectors.twin import record_twin, tagged

VECTORS = Path(__file__).parents[1] / "vectors"
VALID = sorted(path.name for path in (VECTORS / "valid").iterdir())
INVALID = sorted(path.name for path in (VECTORS / "invalid").iterdir())
LIVES = [name for name in INVALID if name.startswith("life-")]
CHECKPOINTS = [name for name in INVALID if name not in LIVES]


def twin_of(case: Path) -> Any:
    """The expected content or error of a case."""
    return orjson.loads((case / "twin.json").read_bytes())


def _twin(stored: StoredRecord) -> Any:
    return record_twin(
        Record(stored.episode, stored.payload, stored.boundary, stored.schema, stored.references)
    )


def _error_of(call: Callable[[], Any]) -> str | None:
    try:
        call()
    except CheckpointError as error:
        return error.code
    return None


@pytest.mark.req("FS2", "FS9", "FS10", "FS12")
@pytest.mark.parametrize("name", VALID)
def test_a_valid_vector_has_the_content_of_its_twin(name: str) -> None:
    case = VECTORS / "valid" / name
    twin = twin_of(case)
    checkpoint = ckptfmt.open(case / "checkpoint")
    assert checkpoint.verify().problems == []
    assert twin["checkpoint"] == {
        "id": checkpoint.id,
        "sequence": checkpoint.sequence,
        "cut": checkpoint.cut,
        "episodes": list(checkpoint.episodes),
        "restarts": list(checkpoint.restarts),
        "marks": dict(checkpoint.marks),
        "state": tagged(checkpoint.state),
    }
    assert set(checkpoint) == set(twin["participants"])
    for participant, expected in twin["participants"].items():
        part = checkpoint[participant]
        assert part.kind == expected["kind"]
        assert list(map(_twin, part)) == expected["records"]
        assert [_twin(part[each["episode"]]) for each in expected["records"]] == expected["records"]
    assert [
        {"life": life.number, "source_checkpoint_id": life.source_checkpoint_id, "problem": life.problem}
        for life in ckptfmt.list(case).lives
    ] == [{**life, "problem": None} for life in twin["lives"]]


def _read_everything(folder: Path) -> None:
    for part in ckptfmt.open(folder).values():
        for stored in part:
            assert stored.payload is not stored


_KEYS = ("17-0-a1", "17-1", "18-0", "r")


def _read_one(folder: Path, key: str) -> None:
    """Fetch one record. Only one block of the index is read."""
    for part in ckptfmt.open(folder).values():
        assert part[key].payload is not part


@pytest.mark.req("FS9", "FS10", "RE2", "RE3")
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_an_invalid_vector_is_refused(name: str) -> None:
    case = VECTORS / "invalid" / name
    twin = twin_of(case)
    folder = case / "checkpoint"
    assert {problem.code for problem in ckptfmt.verify(folder).problems} == {twin["verify"]}
    assert _error_of(lambda: _read_everything(folder)) == twin["read"]
    # Fetching one record checks less, so it succeeds or fails with the same error.
    assert {_error_of(lambda key=key: _read_one(folder, key)) for key in _KEYS} <= {  # type: ignore[misc]
        *(None, "not_found"),
        twin["verify"],
    }


@pytest.mark.req("CO13", "FS10")
@pytest.mark.parametrize("name", LIVES)
def test_an_invalid_life_is_reported_and_does_not_damage_a_checkpoint(name: str) -> None:
    case = VECTORS / "invalid" / name
    twin = twin_of(case)
    assert (twin["verify"], twin["read"], twin["lives"]) == (None, None, "damaged")
    assert ckptfmt.verify(case / "checkpoint").ok
    first, second = ckptfmt.list(case).lives
    assert (first.number, first.problem) == (0, None)
    assert second.number == 1
    assert second.problem is not None


_GOOD = VECTORS / "valid" / "one-record-none" / "checkpoint"


@pytest.mark.req("FS9", "RE3")
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_all_functions_raise_typed_errors_for_an_invalid_vector(tmp_path: Path, name: str) -> None:
    case = VECTORS / "invalid" / name
    folder = case / "checkpoint"
    twin = twin_of(case)
    allowed = {None, twin["verify"], "incomplete"}

    def display() -> None:
        checkpoint = ckptfmt.open(folder)
        assert all((repr(checkpoint), checkpoint._repr_html_(), ckptfmt.html_report(checkpoint)))

    assert _error_of(display) in allowed
    assert _error_of(lambda: ckptfmt.diff(_GOOD, folder)) in allowed
    assert len(ckptfmt.list(case)) <= 1
    error = _error_of(lambda: ckptfmt.copy(folder, tmp_path / "copied"))
    assert error in allowed
    # A copy is verified, except for faults that only a verification of every payload finds.
    assert (error is None) == (tmp_path / "copied" / "checkpoint.json").exists()
    assert error is not None or not ckptfmt.verify(tmp_path / "copied").ok


@pytest.mark.req("FS10")
def test_no_vector_was_changed() -> None:
    """SHA256SUMS grows with new vectors, but its lines never change: the code has to fit the vectors."""
    assert (VECTORS / "SHA256SUMS").read_text(encoding="ascii") == "".join(digest_lines(VECTORS))


def test_the_tool_never_overwrites_a_vector(tmp_path: Path) -> None:
    folder = tmp_path / "valid" / "case"
    assert write_case(folder, {"checkpoint/a": b"1"}, {"about": "first"})
    assert not write_case(folder, {"checkpoint/a": b"2", "checkpoint/b": b"3"}, {"about": "second"})
    assert sorted(path.name for path in folder.rglob("*")) == ["a", "checkpoint", "twin.json"]
    assert (folder / "checkpoint" / "a").read_bytes() == b"1"
    assert twin_of(folder) == {"about": "first"}
    assert [path.name for path in folder.parent.iterdir()] == ["case"]


def test_the_tool_writes_only_missing_vectors(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors"
    for kind, names in (("valid", VALID), ("invalid", INVALID)):
        for name in names:
            (vectors / kind / name).mkdir(parents=True)
    missing = (vectors / "invalid" / "payload-nan", vectors / "valid" / "one-record-none")
    for folder in missing:
        folder.rmdir()
    main(vectors)
    for folder in missing:
        same = subprocess.run(
            ["diff", "-r", folder, VECTORS / folder.relative_to(vectors)], check=False, capture_output=True
        )
        assert (same.returncode, same.stdout) == (0, b"")
        shutil.rmtree(folder)
    assert [path.name for path in vectors.rglob("*") if path.is_file()] == ["SHA256SUMS"]

"""Arrow, pandas and polars tables of records."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pandas
import polars
import pyarrow
import pytest

import ckptfmt
from ckptfmt import Damaged, EpisodeId, MissingLibrary, Record
from ckptfmt._read import columns
from tests.ckptfmt.building import build, many_records, write

UNUSUAL_VALUES = {"nan": [math.nan, 1], "big": 2**70, "text": "é\u2028"}


@pytest.fixture
def checkpoint(tmp_path: Path) -> ckptfmt.Checkpoint:
    records = [Record(EpisodeId("17-0", 2), UNUSUAL_VALUES, 4, 3, ("a", "b")), *many_records(9)]
    return ckptfmt.open(build(tmp_path / "step-1", records).folder)


def test_a_table_has_one_row_per_record(checkpoint: ckptfmt.Checkpoint) -> None:
    table = checkpoint.to_arrow()
    assert tuple(table.column_names) == columns.COLUMNS
    assert table.num_rows == 20
    first = table.slice(0, 1).to_pylist()[0]
    payload, patches = first.pop("payload"), first.pop("patches")
    assert first == {
        "participant": "agent-0",
        "kind": "agent",
        "episode": "17-0-a2",
        "rollout_id": "17-0",
        "attempt": 2,
        "boundary": 4,
        "schema": 3,
        "references": ["a", "b"],
        "size": len(payload.encode()),
    }
    assert json.loads(payload) == {"nan": [None, 1], "big": None, "text": "é\u2028"}
    assert json.loads(patches) == [[[], [["big", {"int": "400000000000000000"}]]], [["nan"], [[0, "nan"]]]]
    second = table.slice(1, 1).to_pylist()[0]
    assert (second["boundary"], second["patches"], second["references"]) == (None, None, [])
    assert table.column("participant").to_pylist()[10:] == ["tools/0"] * 10


def test_tables_of_one_participant_and_of_no_records(checkpoint: ckptfmt.Checkpoint, tmp_path: Path) -> None:
    part = checkpoint["tools/0"]
    assert part.to_arrow().num_rows == len(part.to_pandas()) == part.to_polars().height == 10
    write(tmp_path / "empty", [])
    empty = ckptfmt.open(tmp_path / "empty")
    assert empty.to_arrow().num_rows == 0
    assert tuple(empty.to_pandas().columns) == tuple(empty.to_polars().columns) == columns.COLUMNS


def test_pandas_and_polars_tables(checkpoint: ckptfmt.Checkpoint) -> None:
    frame = checkpoint.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.groupby("kind")["size"].count().to_dict() == {"agent": 10, "resources": 10}
    assert str(frame["boundary"].dtype) == "Int64"
    assert frame["boundary"].isna().sum() == 2
    table = checkpoint.to_polars()
    assert isinstance(table, polars.DataFrame)
    assert table.height == 20
    assert table.filter(polars.col("boundary") == 8)["episode"].to_list() == ["r8", "r8"]
    assert table["boundary"].null_count() == 2


def test_large_tables_are_made_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "c", many_records(20))
    monkeypatch.setattr(columns, "_BATCH_BYTES", 1000)
    found = list(columns.batches(ckptfmt.open(tmp_path / "c").values()))
    assert len(found) > 4
    assert pyarrow.Table.from_batches(found).num_rows == 20


@pytest.mark.req("FS9")
def test_damage_is_raised(tmp_path: Path) -> None:
    write(tmp_path / "c", many_records(5))
    file = next((tmp_path / "c").rglob("records-*"))
    file.write_bytes(file.read_bytes().replace(b'"number":3', b'"number":4'))
    with pytest.raises(Damaged):
        ckptfmt.open(tmp_path / "c").to_arrow()


@pytest.mark.parametrize("missing", ["pyarrow", "pandas", "polars"])
def test_the_error_for_a_missing_library_names_the_extra(
    checkpoint: ckptfmt.Checkpoint, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    convert = {
        "pyarrow": checkpoint.to_arrow,
        "pandas": checkpoint.to_pandas,
        "polars": checkpoint.to_polars,
    }[missing]
    with pytest.raises(MissingLibrary, match=rf"needs {missing}.*pip install 'ckptfmt\[frames\]'"):
        convert()

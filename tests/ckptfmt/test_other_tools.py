"""A records file is strict JSON Lines for every tool, with and without values that JSON cannot hold.

Patches hold arrays of mixed types. polars and pyarrow, which give each column one type, need to be told the
types of the columns that are wanted; polars also takes the patches as text.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import orjson
import pandas
import polars
import pyarrow.json
import pytest

import ckptfmt
from ckptfmt import EpisodeId, Record
from tests.ckptfmt.building import write

_COUNT: Final = 40
_SEPARATORS: Final = "a\u2028b\u2029c\u0085d\x0b\x0c\x1c\r\r\ne"


def _records(odd: bool) -> list[Record]:
    return [
        Record(
            EpisodeId(f"r{number}", number % 3),
            {
                "text": _SEPARATORS + "é😀" * number,
                "logprobs": [-0.5, math.nan if odd and number % 2 else -1.5],
                "seed": 2**70 if odd and number == 7 else number,
                "half": "\ud83d" if odd and number == 8 else "whole",
            },
            boundary=number or None,
            references=("batch/17",) if number % 2 else (),
        )
        for number in range(_COUNT)
    ]


@pytest.fixture(params=[False, True], ids=["plain", "patched"])
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    manifest = write(tmp_path, _records(request.param), limits=ckptfmt.Limits())
    (segment,) = manifest.segments
    assert segment.records == _COUNT
    return tmp_path / "agent-0" / segment.file


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def _json_module(path: Path) -> list[Any]:
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line, parse_constant=_refuse)["episode"] for line in lines]


def _pandas(path: Path) -> list[Any]:
    return list(pandas.read_json(path, lines=True)["episode"])


def _polars(path: Path) -> list[Any]:
    types = {"episode": polars.String, "boundary": polars.Int64}
    return polars.read_ndjson(path, schema=types)["episode"].to_list()


def _pyarrow(path: Path) -> list[Any]:
    types = pyarrow.schema([("episode", pyarrow.string()), ("boundary", pyarrow.int64())])
    options = pyarrow.json.ParseOptions(explicit_schema=types, unexpected_field_behavior="ignore")
    episodes: list[Any] = pyarrow.json.read_json(path, parse_options=options)["episode"].to_pylist()
    return episodes


def _duckdb(path: Path) -> list[Any]:
    query = "SELECT episode FROM read_json(?, format = 'newline_delimited')"
    return [episode for (episode,) in duckdb.connect().execute(query, [str(path)]).fetchall()]


def _run(command: list[str], path: Path) -> list[Any]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    run = subprocess.run([*command, str(path)], capture_output=True, check=True, timeout=30)
    return [orjson.loads(line) for line in run.stdout.splitlines()]


def _jq(path: Path) -> list[Any]:
    return _run(["jq", "-c", ".episode"], path)


_NODE_READER: Final = """
const lines = require('fs').readFileSync(process.argv[1], 'utf8').split('\\n');
if (lines.pop() !== '') process.exit(1);
for (const line of lines) console.log(JSON.stringify(JSON.parse(line).episode));
"""


def _node(path: Path) -> list[Any]:
    return _run(["node", "-e", _NODE_READER], path)


@pytest.mark.req("FS10", "FS12")
@pytest.mark.parametrize("tool", [_json_module, _pandas, _polars, _pyarrow, _duckdb, _jq, _node])
def test_every_tool_reads_every_record(file: Path, tool: Callable[[Path], list[Any]]) -> None:
    expected = [f"r{number}-a{number % 3}" if number % 3 else f"r{number}" for number in range(_COUNT)]
    assert tool(file) == expected


@pytest.mark.req("FS10")
def test_a_tool_that_ignores_patches_sees_null_and_the_list_of_them(tmp_path: Path) -> None:
    manifest = write(tmp_path, _records(True), limits=ckptfmt.Limits())
    file = tmp_path / "agent-0" / manifest.segments[0].file
    frame = polars.read_ndjson(file, infer_schema_length=None, schema_overrides={"patches": polars.String})
    payloads = frame["payload"].to_list()
    assert payloads[1]["logprobs"] == [-0.5, None]
    assert payloads[7]["seed"] is None
    assert payloads[2]["logprobs"] == [-0.5, -1.5]
    assert payloads[3]["text"] == _SEPARATORS + "é😀" * 3
    assert [frame["patches"][number] for number in (1, 2)] == ['[[["logprobs"], [[1, "nan"]]]]', None]
    lines = file.read_bytes().split(b"\n")
    assert orjson.loads(lines[1])["patches"] == [[["logprobs"], [[1, "nan"]]]]
    assert "patches" not in orjson.loads(lines[2])

"""Other tools read records files as strict JSON Lines, and the examples of docs/tools.md run.

Patches are arrays of mixed types. polars and pyarrow, which have one type per column, need the types of the
columns to read. polars can also read the patches as text.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import orjson
import pandas
import polars
import pyarrow.json
import pytest
import zstandard

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
    manifest = write(tmp_path, _records(request.param), tuning=ckptfmt.Tuning())
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
def test_a_tool_that_ignores_patches_reads_null(tmp_path: Path) -> None:
    manifest = write(tmp_path, _records(True), tuning=ckptfmt.Tuning())
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


PAGE: Final = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")
EXAMPLES: Final = {
    section.splitlines()[0]: re.findall(r"^```(\w+)\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    for section in PAGE.split("\n## ")[1:]
}
"""The heading of each section, and its code blocks: language and text."""

_KEYS: Final = ["0-0", "1-0", "2-0"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the page describes. It is the working directory."""
    monkeypatch.chdir(tmp_path)
    cut = ckptfmt.create_cut("run/step-1", "step-1")
    payloads: dict[str, list[Any]] = {
        "agent-0": [{"messages": ["hi"], "logprobs": [-0.5, math.nan if n else 1.0]} for n in range(3)],
        "env": [{"count": n, "seed": n or 2**70, "text": "a\u2028b" * 999} for n in range(3)],
    }
    manifests = {
        name: write(
            cut.url,
            [Record(EpisodeId(key), each, 4) for key, each in zip(_KEYS, payloads[name], strict=True)],
            participant=name,
            compression="zstd" if name == "env" else "none",
            tuning=ckptfmt.Tuning(frame_bytes=1),
        ).digest
        for name in payloads
    }
    ckptfmt.publish("run/step-1", participants=manifests, sequence=1, cut=cut)
    return tmp_path


def _example(heading: str) -> dict[str, Any]:
    ((language, code),) = EXAMPLES[heading]
    assert language == "python"
    names: dict[str, Any] = {}
    exec(compile(code, f"docs/tools.md, {heading}", "exec"), names)
    return names


def _shell(heading: str, *commands: str) -> list[str]:
    ((language, code),) = EXAMPLES[heading]
    assert language == "sh"
    for command in commands:
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["sh", "-euc", code], capture_output=True, check=True, timeout=60, env={**os.environ, "PATH": path}
    )
    return run.stdout.decode().splitlines()


_TESTED: Final = {
    *("Checked first, in one file", "Which files", "jq and zstd", "DuckDB", "pandas", "polars"),
    *("pyarrow", "Python alone"),
}


def test_every_example_of_the_page_has_a_test() -> None:
    assert EXAMPLES.keys() == _TESTED
    assert PAGE.count("```") == 2 * len(EXAMPLES)


@pytest.mark.usefixtures("folder")
def test_the_export_is_read_without_type_hints() -> None:
    """Also by the strictest tools, because values of mixed types are text."""
    lines = _shell("Checked first, in one file")
    assert [line.split(",")[0] for line in lines] == ["records.jsonl: 6 records", "agent.parquet: 3 records"]
    frame = polars.read_ndjson("records.jsonl")
    assert frame["episode"].to_list() == _KEYS * 2
    assert frame["patches"].to_list()[:2] == [None, '[[["logprobs"],[[1,"nan"]]]]']
    assert frame["payload"].to_list()[1]["logprobs"] == [-0.5, None]
    table = pyarrow.json.read_json("records.jsonl")
    assert table["patches"].to_pylist() == frame["patches"].to_list()
    assert list(pandas.read_json("records.jsonl", lines=True, engine="pyarrow")["episode"]) == _KEYS * 2
    assert list(pandas.read_parquet("agent.parquet")["episode"]) == _KEYS


def test_only_files_that_manifests_name_are_read(folder: Path) -> None:
    orphan = next(folder.glob("run/*/*/env")) / f"records-{'0' * 64}.jsonl.zst"
    orphan.write_bytes(b"")
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("records-*") if path != orphan)
    assert sorted(_shell("Which files", "jq")) == found
    assert len(found) == 2


@pytest.mark.usefixtures("folder")
def test_the_jq_and_zstd_example() -> None:
    assert _shell("jq and zstd", "jq", "zstd") == [
        '["hi"]',
        '["0-0",[[[],[["seed",{"int":"400000000000000000"}]]]]]',
    ]


@pytest.mark.usefixtures("folder")
def test_the_duckdb_example() -> None:
    rows = _example("DuckDB")["rows"]
    assert sorted(row[:2] for row in rows) == sorted((key, 4) for key in _KEYS * 2)
    assert [-0.5, None] in [row[2]["logprobs"] for row in rows if row[0] == "1-0"]


@pytest.mark.usefixtures("folder")
def test_the_pandas_example_keeps_ids_as_text() -> None:
    frame = _example("pandas")["frame"]
    assert sorted(frame["episode"]) == sorted(_KEYS * 2)
    assert set(map(type, frame["payload"])) == {dict}
    Path("digits.jsonl").write_bytes(b'{"episode":"017"}\n{"episode":"18"}\n')
    assert list(pandas.read_json("digits.jsonl", lines=True, dtype=False)["episode"]) == ["017", "18"]


@pytest.mark.usefixtures("folder")
def test_the_polars_example() -> None:
    (frame,) = _example("polars")["frames"]
    assert frame["episode"].to_list() == _KEYS
    assert frame["patches"].to_list()[:2] == [None, '[[["logprobs"], [[1, "nan"]]]]']


@pytest.mark.usefixtures("folder")
def test_the_pyarrow_example() -> None:
    (table,) = _example("pyarrow")["tables"]
    assert table.to_pydict() == {"episode": _KEYS, "boundary": [4, 4, 4]}


@pytest.mark.req("FS10", "FS12")
def test_the_streaming_call_reads_all_frames_and_the_one_shot_call_only_one(folder: Path) -> None:
    records = _example("Python alone")["records"]
    assert [each["episode"] for each in records] == _KEYS
    assert records[1]["payload"]["text"] == "a\u2028b" * 999
    (file,) = folder.rglob("records-*.zst")
    first = zstandard.ZstdDecompressor().decompress(file.read_bytes())
    assert first.count(b"\n") == 1  # and there is no error


@pytest.mark.req("FS10", "FS12")
def test_the_streaming_call_reads_more_than_any_buffer(tmp_path: Path) -> None:
    records = [Record(EpisodeId(f"r{number}"), "é" * 500_000) for number in range(11)]
    manifest = write(tmp_path, records, compression="zstd", tuning=ckptfmt.Tuning())
    with open(tmp_path / "agent-0" / manifest.segments[0].file, "rb") as packed:
        plain = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        lines = list(io.BufferedReader(plain))
    assert [orjson.loads(line)["episode"] for line in lines] == [f"r{number}" for number in range(11)]
    assert sum(map(len, lines)) == manifest.segments[0].plain > 11_000_000

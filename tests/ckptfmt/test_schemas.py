"""The JSON Schemas of docs/schemas accept all written files and refuse malformed ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import ckptfmt
from ckptfmt import EpisodeId, InvalidId, Record
from ckptfmt.testing.strategies import records
from tests.ckptfmt.building import SMALL, build, many_records, write
from tools.schemas.__main__ import main
from tools.vectors import broken_bodies, broken_index, broken_lives

_ROOT: Final = Path(__file__).parents[2]
_VECTORS: Final = _ROOT / "tests" / "vectors"
NAMES: Final = ("checkpoint", "cut", "index-block", "index-head", "life", "manifest", "record")
SCHEMAS: Final[dict[str, Any]] = {
    name: orjson.loads((_ROOT / "docs" / "schemas" / f"{name}.schema.json").read_bytes()) for name in NAMES
}
_LIFE: Final = re.compile(r"(0|[1-9][0-9]{0,8})\.json")
_CHECKS: Final = {name: Draft202012Validator(schema) for name, schema in SCHEMAS.items()}


def parts_of(folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield the JSON values of the files below that have a schema, each with the name of its schema.

    Compressed records are left out.
    """
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        kind = path.name.partition("-")[0].removesuffix(".json")
        if kind in ("manifest", "checkpoint", "cut"):
            yield kind, orjson.loads(path.read_bytes())["body"]
        elif path.parent.name == "lives" and _LIFE.fullmatch(path.name):
            yield "life", orjson.loads(path.read_bytes())["body"]
        elif kind == "index":
            head, *blocks = map(orjson.loads, path.read_bytes().splitlines())
            yield "index-head", head["body"]
            yield from (("index-block", block) for block in blocks)
        elif path.suffix == ".jsonl":
            yield from (("record", orjson.loads(line)) for line in path.read_bytes().split(b"\n")[:-1])


def _lines_of(folder: Path) -> Iterator[Any]:
    for part in ckptfmt.open(folder).values():
        yield from map(orjson.loads, part.lines())


def test_every_schema_is_valid() -> None:
    assert sorted(path.name for path in (_ROOT / "docs" / "schemas").iterdir()) == [
        f"{name}.schema.json" for name in NAMES
    ]
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.req("FS10")
def test_the_stored_schemas_are_those_that_the_tool_writes(tmp_path: Path) -> None:
    main(tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in (_ROOT / "docs" / "schemas").iterdir()}


@pytest.mark.req("FS10")
def test_the_schema_of_a_capture_key_agrees_with_the_code() -> None:
    key = Draft202012Validator(SCHEMAS["record"]["$defs"]["captureKey"])
    longest = "r" * 256
    good = ("r", "r-a0", "r-a01", "r-a", longest, f"{longest}-a1", f"{longest}-a999999999", "r-a1-ax")
    bad = ("", ".r", "a/b", "-a1", "r-a1-a2", "r-a1000000000", f"{longest}r", f"{longest}r-a1")
    assert [text for text in good if not key.is_valid(text)] == []
    assert [text for text in bad if key.is_valid(text)] == []
    assert all(EpisodeId.from_capture_key(text) for text in good)
    for text in bad:
        with pytest.raises(InvalidId):
            EpisodeId.from_capture_key(text)


@pytest.mark.req("FS10")
@pytest.mark.parametrize("name", sorted(path.name for path in (_VECTORS / "valid").iterdir()))
def test_every_valid_vector_matches_its_schema(name: str) -> None:
    case = _VECTORS / "valid" / name
    found = [*parts_of(case), *(("record", line) for line in _lines_of(case / "checkpoint"))]
    for schema, value in found:
        assert [error.message[:200] for error in _CHECKS[schema].iter_errors(value)] == []
    assert {"checkpoint"} <= {schema for schema, _ in found}


@pytest.mark.req("FS10")
def test_the_code_writes_exactly_the_members_of_the_schemas(tmp_path: Path) -> None:
    build(tmp_path / "step-1", many_records(20))
    ckptfmt.start_life(tmp_path, "step-1")
    found = list(parts_of(tmp_path))
    assert {schema for schema, _ in found} == set(NAMES)
    for schema, value in found:
        _CHECKS[schema].validate(value)
        members = [name for name in SCHEMAS[schema]["properties"] if name in SCHEMAS[schema]["required"]]
        assert [name for name in value if name not in ("references", "patches")] == members


@settings(max_examples=40)
@given(st.lists(records(), max_size=4, unique_by=lambda record: record.episode.rollout_id))
@pytest.mark.req("FS10", "FS12")
def test_every_written_file_matches_its_schema(
    tmp_path_factory: pytest.TempPathFactory, written: list[Record]
) -> None:
    folder = tmp_path_factory.mktemp("written")
    write(folder, written, tuning=SMALL)
    for schema, value in parts_of(folder):
        _CHECKS[schema].validate(value)


_BEYOND_A_SCHEMA: Final = {
    # A reader compares one member with another, or with another file.
    *(
        "manifest-participant-other",
        "manifest-kind-other",
        "manifest-segment-twice",
        "manifest-segments-too-few",
    ),
    *(
        "manifest-stored-less",
        "manifest-plain-more",
        "manifest-segment-records-more",
        "manifest-records-not-the-sum",
    ),
    *(
        "manifest-body-checkpoint-id-other",
        "checkpoint-body-checkpoint-id-other",
        "cut-of-another-checkpoint",
    ),
    *(
        "checkpoint-manifest-digest-other",
        "checkpoint-cut-digest-other",
        "checkpoint-names-that-differ-in-case",
    ),
    *("checkpoint-episodes-unsorted", "checkpoint-episodes-too-few", "checkpoint-episodes-others"),
    *("checkpoint-restarts-unsorted", "checkpoint-restart-in-episodes"),
    *("checkpoint-state-patch-nowhere", "checkpoint-state-patch-not-to-null"),
    # Only the name of the file or its digest shows the fault.
    *("life-number-other", "life-changed"),
    *(
        "index-head-records-other",
        "index-head-first-other",
        "index-head-first-missing",
        "index-head-start-gap",
    ),
    *("index-head-length-less", "index-head-length-more", "index-head-digest-other"),
    # For a schema, 1.0 is an integer, and "$" in the patterns of this library allows a line feed.
    *("manifest-format-float", "checkpoint-format-float", "manifest-stored-float", "life-number-float"),
    *("manifest-records-name-line-feed", "cut-checkpoint-id-control"),
    # JSON libraries do not report these faults.
    *("manifest-body-member-twice", "manifest-body-member-twice-by-escape", "cut-member-twice"),
    *("manifest-body-unknown-member-twice-within", "manifest-body-unknown-integer-too-large"),
    *("checkpoint-body-member-twice", "checkpoint-body-member-twice-by-escape", "index-head-member-twice"),
    *("checkpoint-body-unknown-member-twice-within", "checkpoint-body-unknown-integer-too-large"),
    *("checkpoint-state-integer-too-large", "checkpoint-state-integer-too-small", "life-member-twice"),
    # Schemas do not limit nesting.
    *("checkpoint-state-251-deep", "checkpoint-state-251-deep-by-patches"),
}


@pytest.mark.req("FS10")
def test_the_schemas_refuse_every_malformed_vector() -> None:
    passed = set()
    modules = (broken_bodies, broken_index, broken_lives)
    names = [name for module in modules for name, _ in module.cases()]
    for name in names:
        kind = "index-head" if name.startswith("index-head-") else name.partition("-")[0]
        if kind not in SCHEMAS:
            continue
        try:
            found = [value for schema, value in parts_of(_VECTORS / "invalid" / name) if schema == kind]
        except orjson.JSONDecodeError:
            continue
        if all(map(_CHECKS[kind].is_valid, found)):
            passed.add(name)
    assert passed == _BEYOND_A_SCHEMA

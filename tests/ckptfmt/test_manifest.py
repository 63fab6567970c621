"""Manifests and checkpoint.json with correct digests and invalid content are refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

import ckptfmt
from ckptfmt import CheckpointError, Damaged, Unsupported
from tests.ckptfmt.building import Built, body_of, build, many_records, sealed, write
from tools.vectors.raw import drop, set_in

_HEX = "0" * 64


def _any(*values: Any) -> tuple[Any, ...]:
    return values


def _refused(folder: Path, file: Path, body: Any, error: type[CheckpointError] = Damaged) -> str:
    before = file.read_bytes()
    file.write_bytes(sealed(body))
    try:
        with pytest.raises(error) as refused:
            list(ckptfmt.open_participant(folder, "agent-0"))
        (problem, *_) = ckptfmt.verify(folder).problems
        assert problem.code == refused.value.code
        return str(refused.value)
    finally:
        file.write_bytes(before)


_SEGMENT = ("segments", 0)


@pytest.mark.req("RE3", "FS10")
@pytest.mark.parametrize(
    "change",
    [
        *(
            drop(name)
            for name in ("checkpoint_id", "participant", "segments", "index", "records", "features")
        ),
        *(drop(*_SEGMENT, name) for name in ("file", "stored", "plain", "records", "codec")),
        *(set_in("records", to=bad) for bad in _any(True, -1, 1.0, "3", 4, None, 2**64 - 1)),
        *(set_in("checkpoint_id", to=bad) for bad in _any(1, "", "a\nb", None)),
        *(set_in("participant", "name", to=bad) for bad in _any(1, "", "../x", "other")),
        *(set_in("participant", "kind", to=bad) for bad in _any(1, "", None)),
        *(set_in("participant", to=bad) for bad in _any("agent-0", [], None)),
        *(set_in("segments", to=bad) for bad in _any({}, None, "x", [1], [])),
        *(set_in("features", to=bad) for bad in _any(None, {}, [1])),
        *(set_in(*_SEGMENT, "stored", to=bad) for bad in _any(0, True, "1", 10**9)),
        *(set_in(*_SEGMENT, "records", to=bad) for bad in _any(0, 2, True)),
        *(set_in(*_SEGMENT, "codec", to=bad) for bad in _any("zstd", "gzip", 1, None)),
        set_in("index", to="index.json"),
    ],
)
def test_an_invalid_member_of_a_manifest_is_refused(tmp_path: Path, change: Callable[[Any], None]) -> None:
    write(tmp_path, many_records(3))
    file = tmp_path / "agent-0" / "manifest.json"
    body = body_of(file)
    change(body)
    assert "manifest.json" in _refused(tmp_path, file, body)


@pytest.mark.req("RE3")
@pytest.mark.parametrize(
    "name",
    [
        "../../etc/hostname",
        "/etc/hostname",
        "a/../../b",
        f"records-{_HEX}.jsonl/../x",
        f"../agent-0/records-{_HEX}.jsonl",
        f"./records-{_HEX}.jsonl",
        "s3://other/x",
        "memory://x",
        f"records-{_HEX}.jsonl\0",
        f"records-{_HEX}.jsonl\n",
        f"records-{_HEX.upper().replace('0', 'A')}.jsonl",
        f"records-{_HEX[:-1]}.jsonl",
        f"records-{_HEX}.jsonl.gz",
    ],
)
def test_no_file_outside_the_participants_folder_is_read(tmp_path: Path, name: str) -> None:
    write(tmp_path, many_records(3))
    file = tmp_path / "agent-0" / "manifest.json"
    for change in (set_in(*_SEGMENT, "file", to=name), set_in("index", to=name.replace("records", "index"))):
        body = body_of(file)
        change(body)
        message = _refused(tmp_path, file, body)
        assert "in the participant's folder" in message
        assert "hostname" not in message


@pytest.mark.req("FS10", "RE3")
@pytest.mark.parametrize(
    ("version", "expected"),
    [(2, "2"), (0, "0"), ("1", "a str"), (None, "none"), (True, "a bool"), (1.0, "a float")],
)
def test_another_format_version_is_refused_with_a_remedy(tmp_path: Path, version: Any, expected: str) -> None:
    write(tmp_path, many_records(3))
    file = tmp_path / "agent-0" / "manifest.json"
    message = _refused(tmp_path, file, {"format": version, "whatever": "it holds"}, Unsupported)
    assert f"its format version is {expected}, and this ckptfmt reads version 1" in message
    assert "read it with" in message


@pytest.mark.req("FS10")
def test_unknown_members_are_ignored_and_unknown_features_refused(tmp_path: Path) -> None:
    write(tmp_path, many_records(3))
    file = tmp_path / "agent-0" / "manifest.json"
    body = body_of(file)
    file.write_bytes(sealed({**body, "later": {"x": 1}}))
    assert len(list(ckptfmt.open(tmp_path)["agent-0"])) == 3
    message = _refused(tmp_path, file, {**body, "features": ["columns"]}, Unsupported)
    assert "'columns'" in message


@pytest.mark.req("RE3")
@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"1",
        b"null",
        b"not json",
        b"NaN",
        b"",
        b'{"format":1,"format":1}',
        b'{"format":1,"features":[],"participant":{"name":"agent-0","name":"agent-0"}}',
        b'{ "format":1, "a\\u0062":1, "ab" : 2}',
        b'{"x":' + b"[" * 600 + b"]" * 600 + b',"y":{"k":1,"k":1}}',
        b'{"x":' + b"[" * 2000 + b"]" * 2000 + b"}",
    ],
)
def test_a_body_that_is_not_an_object_or_names_a_member_twice_is_refused(tmp_path: Path, body: bytes) -> None:
    write(tmp_path, many_records(3))
    file = tmp_path / "agent-0" / "manifest.json"
    file.write_bytes(sealed(body))
    with pytest.raises(Damaged):
        ckptfmt.open_participant(tmp_path, "agent-0")


@pytest.mark.req("FS10")
def test_another_spelling_of_the_same_body_is_read(tmp_path: Path) -> None:
    write(tmp_path, many_records(3))
    file = tmp_path / "agent-0" / "manifest.json"
    file.write_bytes(sealed(orjson.dumps(body_of(file), option=orjson.OPT_INDENT_2)))
    assert len(list(ckptfmt.open(tmp_path)["agent-0"])) == 3


@pytest.mark.req("FS9", "RE3")
def test_the_records_of_each_segment_are_compared_with_the_manifest(tmp_path: Path) -> None:
    write(tmp_path, many_records(30))
    file = tmp_path / "agent-0" / "manifest.json"
    body = body_of(file)
    body["segments"][0]["records"] += 1
    body["segments"][1]["records"] -= 1
    assert "rows in segment 0" in _refused(tmp_path, file, body)


@pytest.fixture
def built(tmp_path: Path) -> Built:
    return build(tmp_path / "step-1")


@pytest.mark.req("CO11", "FS9")
@pytest.mark.parametrize(
    "change",
    [
        *(
            drop(name)
            for name in (
                *(
                    "checkpoint_id",
                    "sequence",
                    "cut",
                    "participants",
                    "episodes",
                    "restarts",
                    "marks",
                    "state",
                ),
                "features",
            )
        ),
        *(set_in("sequence", to=bad) for bad in _any(True, -1, "1", None, 1.0)),
        *(set_in("cut", to=bad) for bad in _any(1, [], {"name": "x"}, {"name": "../x", "sha256": _HEX})),
        *(set_in("cut", "name", to=bad) for bad in _any("a/b", "..", "", 1)),
        *(set_in("cut", "sha256", to=bad) for bad in _any("", _HEX.replace("0", "A"), 1)),
        *(
            set_in("participants", to=bad)
            for bad in _any([], None, {"../x": {"kind": "a", "manifest": _HEX}})
        ),
        *(
            set_in("participants", "agent-0", to=bad)
            for bad in _any([], {"kind": "agent"}, {"manifest": _HEX})
        ),
        *(set_in("episodes", to=bad) for bad in _any(["b", "a"], ["a", "a"], ["a-a1-a2"], [1], None)),
        *(set_in("restarts", to=bad) for bad in _any(["b", "a"], [1], None)),
        *(set_in("marks", to=bad) for bad in _any([], {"r-a1": 1}, {"r": -1}, {"r": True}, {"r": "1"})),
        *(set_in("patches", to=bad) for bad in _any({}, [[[], [["nothing", "nan"]]]])),
    ],
)
def test_an_invalid_member_of_checkpoint_json_is_refused(built: Built, change: Callable[[Any], None]) -> None:
    file = built.folder / "checkpoint.json"
    body = body_of(file)
    change(body)
    file.write_bytes(sealed(body))
    with pytest.raises(Damaged, match=r"checkpoint\.json"):
        ckptfmt.read_checkpoint(built.folder)
    assert [problem.file for problem in ckptfmt.verify(built.folder).problems] == ["checkpoint.json"]


@pytest.mark.req("CO11", "FS9")
@pytest.mark.parametrize(
    ("change", "file"),
    [
        (set_in("checkpoint_id", to="another"), "cut.json"),
        (set_in("cut", "sha256", to=_HEX), "cut.json"),
        (set_in("participants", "agent-0", "kind", to="resources"), "agent-0/manifest.json"),
        (set_in("participants", "agent-0", "manifest", to=_HEX), "agent-0/manifest.json"),
        (set_in("participants", "agent-7", to={"kind": "agent", "manifest": _HEX}), "agent-7/manifest.json"),
        (drop("participants", "agent-0"), None),
        (set_in("episodes", to=["r0"]), "checkpoint.json"),
        (set_in("cut", to=None), "agent-0/manifest.json"),
    ],
)
def test_checkpoint_json_is_compared_with_the_files_that_it_names(
    built: Built, change: Callable[[Any], None], file: str | None
) -> None:
    body = body_of(built.folder / "checkpoint.json")
    change(body)
    (built.folder / "checkpoint.json").write_bytes(sealed(body))
    files = [problem.file for problem in ckptfmt.verify(built.folder).problems]
    assert (not files) if file is None else any(each.endswith(file) for each in files)


@pytest.mark.req("FS10")
def test_the_version_of_checkpoint_json_is_checked_first(built: Built) -> None:
    (built.folder / "checkpoint.json").write_bytes(sealed({"format": 2}))
    with pytest.raises(Unsupported, match="format version is 2"):
        ckptfmt.open(built.folder)
    (problem,) = ckptfmt.verify(built.folder).problems
    assert (problem.file, problem.code) == ("checkpoint.json", "unsupported")


@pytest.mark.req("FS10")
def test_no_file_has_a_path_or_a_host_name(built: Built) -> None:
    for name in built.files():
        text = (built.folder / name).read_bytes().decode(errors="replace")
        assert str(built.folder) not in text
        assert os.uname().nodename not in text

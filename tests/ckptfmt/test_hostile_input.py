"""Malicious input costs bounded memory and time, and ends in a typed error.

Each case is built in this process and read in another process, whose peak memory is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

import ckptfmt
from ckptfmt import Damaged
from tests.ckptfmt.test_hostile_limits import put
from tools.vectors.raw import NAME, Body, Draft, Files, block, frame, sealed, set_in

_MILLION: Final = 1_000_000
_BRACKETS: Final = b"[" * (2 * _MILLION)
_OBJECTS: Final = b'{"a":' * _MILLION
_BOMB_BYTES: Final = 800 * 2**20

_READER: Final = """
import json, resource, sys, time
import ckptfmt

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

def outcome(call):
    try:
        call()
    except ckptfmt.CheckpointError as error:
        return error.code, len(str(error))
    return None, 0

def read(folder, limits):
    for part in ckptfmt.open(folder, limits=limits).values():
        for stored in part:
            stored.payload

folder, options = sys.argv[1], json.loads(sys.argv[2])
limits = ckptfmt.Limits(**options)
before, start = peak(), time.process_time()
codes = [problem.code for problem in ckptfmt.verify(folder, limits=limits).problems]
code, message = outcome(lambda: read(folder, limits))
print(json.dumps({
    "verify": codes, "read": code, "message": message,
    "memory": peak() - before, "seconds": time.process_time() - start,
}))
"""


def _read_in_another_process(folder: Path, **limits: int) -> Any:
    command = [sys.executable, "-c", _READER, str(folder), json.dumps(limits)]
    run = subprocess.run(command, capture_output=True, check=False, timeout=50)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout)


def _line(payload: bytes, before: bytes = b"") -> bytes:
    return b'{"episode":"r","boundary":1,"schema":1%b,"payload":%b}\n' % (before, payload)


def _one(line: bytes) -> Draft:
    return Draft(lines=(line,), rows=lambda rows: rows[0].update(episode="r", boundary=1))


def _body(text: bytes) -> Callable[[Any], bytes]:
    return lambda body: text


def _many_members(body: Any) -> bytes:
    """A body with a duplicate member, and a quarter of a million members between the two."""
    names = b",".join(b'"m%d":0' % number for number in range(_MILLION // 4))
    return b'{"format":1,"features":[],' + names + b',"m0":1}'


def _bomb(_: bytes) -> bytes:
    """A frame below 80 KB that expands to 800 MiB of zeros, without a line feed."""
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj(size=_BOMB_BYTES)
    zeros = bytes(2**23)
    packed = b"".join([packer.compress(zeros) for _ in range(_BOMB_BYTES // len(zeros))]) + packer.flush()
    assert len(packed) < 80_000
    return packed


def _row_of_the_bomb(rows: list[Body]) -> None:
    rows[0].update(episode="r", boundary=1, length=_BOMB_BYTES)


def _many_rows(rows: list[Body]) -> list[bytes]:
    """A block with more rows than the format allows, and fewer bytes than its limit."""
    row = {**rows[0], "offset": 0, "stored": 1, "length": 1}
    return [block([{**row, "episode": f"r{number}"} for number in range(5000)])]


_CASES: Final[dict[str, Draft]] = {
    "two million brackets in a payload": _one(_line(_BRACKETS)),
    "a million objects in a payload": _one(_line(_OBJECTS)),
    "brackets that close": _one(_line(_BRACKETS[:_MILLION] + b"]" * _MILLION)),
    "two million brackets in patches": _one(_line(b"null", b',"patches":' + _BRACKETS)),
    "patches that close": _one(_line(b"null", b',"patches":' + _BRACKETS[:_MILLION] + b"]" * _MILLION)),
    "patches of escapes and no end": _one(_line(b'"' + b'\\"' * _MILLION, b',"patches":[')),
    "patches of backslashes": _one(_line(b'"' + b"\\" * _MILLION, b',"patches":[')),
    "patches of the next member's name": _one(_line(b"1", b',"patches":["' + b',\\"payload\\":' * 200_000)),
    "patches of the bare name of the next member": _one(
        _line(b"1", b',"patches":[' + b',"payload":' * 200_000)
    ),
    "references of escapes": _one(_line(b"1", b',"references":["' + b'\\"' * _MILLION)),
    "a million references and no end": _one(_line(b"1", b',"references":[' + b'"a",' * _MILLION)),
    "brackets as references": _one(_line(b"1", b',"references":' + _BRACKETS)),
    "a key of a million letters": _one(b'{"episode":"' + b"r" * _MILLION + b'","boundary":1,"schema":1}\n'),
    "a boundary of a million digits": _one(b'{"episode":"r","boundary":' + b"1" * _MILLION + b"}\n"),
    "an integer of a million digits": _one(_line(b"1" * _MILLION)),
    "an exponent of a million digits": _one(_line(b"1e" + b"1" * _MILLION)),
    "a path of a million steps": _one(
        _line(b"[null]", b',"patches":[[[' + b"0," * _MILLION + b'0],[[0,"nan"]]]]')
    ),
    "two million brackets in a manifest": Draft(manifest=_body(_BRACKETS)),
    "a million objects in a manifest": Draft(manifest=_body(_OBJECTS)),
    "a member twice among many in a manifest": Draft(manifest=_many_members),
    "two million brackets in a checkpoint": Draft(checkpoint=_body(b'{"format":1,"state":' + _BRACKETS)),
    "a million nested objects in a state": Draft(
        checkpoint=_body(b'{"format":1,"features":[],"state":' + _OBJECTS + b"1" + b"}" * _MILLION + b"}")
    ),
    "two million brackets in a cut": Draft(with_cut=True, cut=_body(_BRACKETS)),
    "two million brackets in the head of an index": Draft(head=_body(_BRACKETS)),
    "two million brackets in a block": Draft(blocks=lambda rows: [_BRACKETS + b"\n"]),
    "a head of an index without end": Draft(index=lambda data: b'{"sha256":"' + b"a" * (20 * 2**20)),
    "an index that says a block of 4 GiB": Draft(head=set_in("blocks", "length", 0, to=2**32)),
    "an index that says 2^60 records": Draft(
        head=set_in("records", to=2**60), manifest=set_in("segments", 0, "records", to=2**60)
    ),
    "an index with a block of many rows": Draft(blocks=_many_rows, head=set_in("records", to=3)),
    "a manifest that says 2^60 bytes": Draft(manifest=set_in("segments", 0, "stored", to=2**60)),
    "a manifest that says 2^60 bytes unpacked": Draft(
        codec="zstd", manifest=set_in("segments", 0, "plain", to=2**60)
    ),
    "a row that says 1 GiB": Draft(rows=lambda rows: rows[2].update(stored=2**30, length=2**30)),
    "a row that says 2^60 bytes": Draft(rows=lambda rows: rows[2].update(stored=2**60, length=2**60)),
    "a bomb": Draft(codec="zstd", pack=_bomb),
    "a frame that says 1 GiB": Draft(
        lines=(_line(b"1"),),
        codec="zstd",
        pack=lambda plain: frame(plain)[:4] + b"\xa4" + (2**30).to_bytes(4, "little") + frame(plain)[6:],
        rows=lambda rows: rows[0].update(episode="r", boundary=1, length=2**30),
        manifest=set_in("segments", 0, "plain", to=2**30),
    ),
}


@pytest.mark.req("FS9", "RE3")
@pytest.mark.parametrize("name", _CASES)
def test_malicious_input_costs_little_and_is_refused(tmp_path: Path, name: str) -> None:
    found = _read_in_another_process(put(tmp_path, _CASES[name].build()))
    assert set(found["verify"]) == {"damaged"}
    assert found["read"] == "damaged"
    assert found["message"] < 1000
    assert found["seconds"] < 5  # of the processor
    assert found["memory"] < 96 * 2**20


@pytest.mark.req("FS9", "RE3")
def test_a_decompression_bomb_with_a_matching_index_is_bounded_by_the_limits(tmp_path: Path) -> None:
    """The default limits allow 800 MiB; a caller may set lower limits."""
    draft = Draft(
        lines=(_line(b"1"),),
        codec="zstd",
        pack=_bomb,
        rows=_row_of_the_bomb,
        manifest=set_in("segments", 0, "plain", to=_BOMB_BYTES),
    )
    folder = put(tmp_path, draft.build())
    for name in ("frame_plain_bytes", "record_bytes"):
        found = _read_in_another_process(folder, **{name: 16 * 2**20})
        assert (found["verify"], found["read"]) == (["damaged"], "damaged")
        assert found["memory"] < 64 * 2**20


@pytest.mark.req("FS9", "RE3")
def test_fetching_one_record_has_the_same_bounds(tmp_path: Path) -> None:
    folder = put(tmp_path, Draft(codec="zstd", pack=_bomb).build())
    with pytest.raises(Damaged, match="a frame states 838860800 bytes"):
        ckptfmt.open(folder)[NAME]["18-0"]


@pytest.mark.req("FS9")
def test_a_cut_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    def longer(files: Files) -> None:
        files["cut-0/cut.json"] = sealed({"checkpoint_id": "step-1", "word": "x" * (65 * 2**20)})

    folder = put(tmp_path, Draft(with_cut=True, files=longer).build())
    with pytest.raises(Damaged, match=r"cut\.json"):
        ckptfmt.open(folder)
    assert {problem.file for problem in ckptfmt.verify(folder).problems} == {"cut-0/cut.json"}

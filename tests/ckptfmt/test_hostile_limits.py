"""Every limit is exact, for writing and for reading: values at, below and above it, by the public names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
import zstandard

import ckptfmt
from ckptfmt import (
    CheckpointError,
    Damaged,
    EpisodeId,
    FormatLimits,
    InexactValue,
    InvalidId,
    JsonPayload,
    LimitExceeded,
    Limits,
    Tuning,
)
from ckptfmt._values.large_values import encode as encode_in_pieces
from tests.ckptfmt.building import body_of, index_of, many_records, record, sealed, write
from tools.vectors.raw import LINES, Draft, Files

WIDE: Final = Tuning(block_rows=8)
"""The sizes of the checkpoints in these tests: one segment and several blocks of the index."""


def put(folder: Path, files: Files) -> Path:
    """Write the files of a draft, and return the folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def _outcome(call: Callable[[], Any]) -> type[CheckpointError] | None:
    try:
        call()
    except CheckpointError as error:
        return type(error)
    return None


def _create(folder: Path, participant: str = "a", kind: str = "agent", checkpoint_id: str = "c") -> None:
    ckptfmt.create(folder, participant=participant, kind=kind, checkpoint_id=checkpoint_id).abort()


_NAMES: Final[dict[str, tuple[int, Callable[[Path, int], Any]]]] = {
    "rollout_id_bytes": (256, lambda _, size: EpisodeId("r" * size)),
    "rollout_id_bytes of a key": (256, lambda _, size: EpisodeId.from_capture_key("r" * size + "-a1")),
    "attempt_digits": (9, lambda _, size: EpisodeId("r", int("9" * size))),
    "attempt_digits of a key": (9, lambda _, size: EpisodeId.from_capture_key("r-a" + "9" * size)),
    "participant_name_characters": (128, lambda folder, size: _create(folder, participant="p" * size)),
    "a kind": (256, lambda folder, size: _create(folder, kind="k" * size)),
    "a checkpoint id": (256, lambda folder, size: _create(folder, checkpoint_id="ö" * size)),
}


@pytest.mark.req("ID10", "FS10")
@pytest.mark.parametrize("name", _NAMES)
def test_the_lengths_of_names_are_limited(tmp_path: Path, name: str) -> None:
    limit, make = _NAMES[name]
    outcomes = [_outcome(lambda size=size: make(tmp_path, size)) for size in (limit - 1, limit, limit + 1)]  # type: ignore[misc]
    assert outcomes == [None, None, InvalidId]


@pytest.mark.req("FS11")
@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_depth_of_payloads_and_states_is_limited(tmp_path: Path, over: int) -> None:
    value: Any = []
    for _ in range(FormatLimits.DEPTH + over - 1):
        value = [value]
    expected = InexactValue if over > 0 else None
    assert _outcome(lambda: JsonPayload.of(value)) is expected
    text = b"[" * (FormatLimits.DEPTH + over) + b"]" * (FormatLimits.DEPTH + over)
    assert _outcome(lambda: JsonPayload(text).value()) is (Damaged if over > 0 else None)
    digest = write(tmp_path, []).digest
    publish = lambda: ckptfmt.publish(tmp_path, participants={"agent-0": digest}, sequence=1, state=value)  # noqa: E731
    assert _outcome(publish) is expected
    assert (tmp_path / "checkpoint.json").exists() is (over <= 0)


@pytest.mark.req("FS2")
@pytest.mark.parametrize("patched", [False, True], ids=["plain", "patched"])
def test_the_bytes_and_values_of_a_record_are_limited(tmp_path: Path, patched: bool) -> None:
    each = record("r", {"a": [1, float("nan") if patched else 2.5, "x" * 50], "b": None})
    write(tmp_path / "whole", [each])
    (file,) = (tmp_path / "whole" / "agent-0").glob("records-*")
    size, values = file.stat().st_size, 5  # in containers

    def written(limits: Limits) -> type[CheckpointError] | None:
        folder = tmp_path / os.urandom(4).hex()
        return _outcome(lambda: write(folder, [each], limits=limits))

    outcomes = [written(Limits(record_bytes=size + more)) for more in (1, 0, -1)]
    assert outcomes == [None, None, LimitExceeded]
    outcomes = [written(Limits(record_values=values + more)) for more in (1, 0, -1)]
    assert outcomes == [None, None, LimitExceeded]
    # Refused records left no files.
    assert len(os.listdir(tmp_path)) == 5
    assert all((path / "agent-0" / "manifest.json").exists() for path in tmp_path.iterdir())


def _size_of(folder: Path, name: str) -> int:
    (path,) = folder.rglob(name)
    return path.stat().st_size


def _first_line(folder: Path) -> int:
    (path,) = folder.rglob("index-*")
    return len(path.read_bytes().splitlines(keepends=True)[0])


_SIZES: Final[dict[str, Callable[[Path], int]]] = {
    "manifest_bytes": lambda folder: _size_of(folder, "manifest.json"),
    "checkpoint_bytes": lambda folder: _size_of(folder, "checkpoint.json"),
    "index_bytes": lambda folder: _size_of(folder, "index-*"),
    "index_head_bytes": _first_line,
    "index_block_rows": lambda folder: WIDE.block_rows,
    "index_block_bytes": lambda folder: max(_head(folder)["blocks"]["length"]),
    "record_bytes": lambda folder: max(index_of(folder / "agent-0")["length"]),
    "frame_stored_bytes": lambda folder: max(index_of(folder / "agent-0")["stored"]),
    "frame_plain_bytes": lambda folder: sum(index_of(folder / "agent-0")["length"]),
    "window_bytes": lambda folder: zstandard.get_frame_parameters(_records(folder)).window_size,
}


def _records(folder: Path) -> bytes:
    (path,) = folder.rglob("records-*")
    return path.read_bytes()


def _head(folder: Path) -> Any:
    (path,) = folder.rglob("index-*")
    return orjson.loads(path.read_bytes().splitlines()[0])["body"]


@pytest.mark.req("FS9", "RE3")
@pytest.mark.parametrize("name", _SIZES)
def test_each_limit_of_a_reader_is_exact(tmp_path: Path, name: str) -> None:
    # All lines are in one zstd frame, so their sum is the plain size of the frame.
    manifest = write(tmp_path, many_records(30), compression="zstd", tuning=WIDE)
    ckptfmt.publish(tmp_path, participants={"agent-0": manifest.digest}, sequence=1)
    size = _SIZES[name](tmp_path)

    def read(limits: Limits) -> None:
        list(ckptfmt.open(tmp_path, limits=limits)["agent-0"])

    outcomes = [_outcome(lambda more=more: read(Limits(**{name: size + more}))) for more in (1, 0, -1)]  # type: ignore[misc]
    assert outcomes == [None, None, Damaged]
    problems = [ckptfmt.verify(tmp_path, limits=Limits(**{name: size + more})).ok for more in (1, 0, -1)]
    assert problems == [True, True, False]


@pytest.mark.req("CO11")
def test_a_checkpoint_file_beyond_the_limit_of_readers_is_not_published(tmp_path: Path) -> None:
    digest = write(tmp_path, many_records(2)).digest

    def publish(limits: Limits) -> str:
        return ckptfmt.publish(
            tmp_path, participants={"agent-0": digest}, sequence=1, state="x" * 500, limits=limits
        )

    publish(Limits())
    size = (tmp_path / "checkpoint.json").stat().st_size
    (tmp_path / "checkpoint.json").unlink()
    with pytest.raises(LimitExceeded, match=r"checkpoint\.json: it would have"):
        publish(Limits(checkpoint_bytes=size - 1))
    assert not (tmp_path / "checkpoint.json").exists()
    publish(Limits(checkpoint_bytes=size))


@pytest.mark.req("FS10", "RE3")
def test_the_lengths_of_names_in_files_are_limited(tmp_path: Path) -> None:
    for size, fits in ((127, True), (128, True), (129, False)):
        folder = tmp_path / str(size)
        write(folder, [], participant="p")
        name = "p" * size
        body = body_of(folder / "p" / "manifest.json")
        body["participant"]["name"] = name
        (folder / "p").rename(folder / name)
        (folder / name / "manifest.json").write_bytes(sealed(body))
        if fits:
            assert ckptfmt.open_participant(folder, name).name == name
        else:
            with pytest.raises(InvalidId):
                ckptfmt.open_participant(folder, name)
            with pytest.raises(ckptfmt.NotFound):
                ckptfmt.open(folder)


@pytest.mark.req("FS9")
@pytest.mark.parametrize("window_log", [26, 27, 28])
def test_the_window_of_a_frame_is_limited_by_default(tmp_path: Path, window_log: int) -> None:
    line = LINES[0][:-3] + b" " * 4000 + LINES[0][-3:]

    def pack(plain: bytes) -> bytes:
        parameters = zstandard.ZstdCompressionParameters(window_log=11, write_checksum=True)
        packed = zstandard.ZstdCompressor(compression_params=parameters).compress(plain)
        assert packed[4] & 0x20 == 0  # not a single segment, so the next byte is the window
        return packed[:5] + bytes([(window_log - 10) << 3]) + packed[6:]

    put(tmp_path, Draft(lines=(line,), codec="zstd", pack=pack).build())
    assert ckptfmt.verify(tmp_path).ok is (2**window_log <= Limits().window_bytes)


@pytest.mark.req("FS2", "FS11")
def test_the_digits_of_an_integer_are_bounded_by_the_bytes_of_its_record(tmp_path: Path) -> None:
    """An integer is stored in hex, one byte for each digit."""
    digits = 50_000
    write(tmp_path / "whole", [record("r", 16**digits - 1)])
    (file,) = (tmp_path / "whole" / "agent-0").glob("records-*")
    size = file.stat().st_size
    assert b'{"int":"' + b"f" * digits + b'"}' in file.read_bytes()
    limits = Limits(record_bytes=size)
    for sign in (1, -1):  # the minus is one of the bytes
        less = digits - (sign < 0)
        for more, expected in ((-1, None), (0, None), (1, LimitExceeded)):
            value = sign * (16 ** (less + more) - 1)
            folder = tmp_path / f"{sign}{more}"
            assert _outcome(lambda: write(folder, [record("r", value)], limits=limits)) is expected  # noqa: B023
            if expected is None:
                part = ckptfmt.open(folder, limits=limits)["agent-0"]
                assert part["r"].payload == value
                assert part.verify() == []
    read_by_less = ckptfmt.open(tmp_path / "whole", limits=Limits(record_bytes=size - 1))
    assert not read_by_less.verify().ok


def test_an_integer_of_any_size_can_be_shown_and_compared(tmp_path: Path) -> None:
    digest = write(tmp_path, [record("r", 10**6000)]).digest
    ckptfmt.publish(tmp_path, participants={"agent-0": digest}, sequence=1, state=-(10**6000))
    checkpoint = ckptfmt.open(tmp_path)
    for shown in (checkpoint, checkpoint.body, checkpoint["agent-0"], checkpoint["agent-0"]["r"]):
        assert len(repr(shown)) < 300
    assert len(repr(record("r", 10**6000))) < 100
    other = write(tmp_path / "other", [record("r", 10**6000 + 1)]).digest
    ckptfmt.publish(tmp_path / "other", participants={"agent-0": other}, sequence=1, state=0)
    assert "(from character" in str(ckptfmt.diff(checkpoint, tmp_path / "other"))


@pytest.mark.parametrize("kind", [Limits, Tuning])
@pytest.mark.parametrize("value", [0, -1])
def test_a_limit_below_one_is_refused(kind: type[Limits | Tuning], value: int) -> None:
    for each in fields(kind):
        with pytest.raises(
            ValueError, match=rf"{kind.__name__}\.{each.name} is {value}; it must be at least 1"
        ):
            kind(**{each.name: value})


@pytest.mark.parametrize("value", [1.5, True, "100", None, float("nan")])
def test_a_limit_that_is_not_an_int_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"Limits\.record_bytes takes an int, not a value of type"):
        Limits(record_bytes=value)


@pytest.mark.parametrize("large", [1, 3_000_000])
def test_the_depth_limit_holds_for_large_payloads(large: int) -> None:
    value: Any = "x" * large
    for depth in range(4):
        assert encode_in_pieces(value, episode="r", depth=depth)
        for deeper in ([value], {"a": value}, [[[value]]]):
            with pytest.raises(InexactValue, match=rf"episode r: \$.* nested deeper than {depth} cont"):
                encode_in_pieces(deeper, episode="r", depth=depth)
        value = {"a": value} if depth % 2 else [value]


def test_every_limit_has_a_test() -> None:
    assert {each.name for each in fields(Limits)} == {*_SIZES, "record_values"}
    names = {name.split()[0].upper() for name in _NAMES}
    fixed = {name for name in vars(FormatLimits) if not name.startswith("_")}
    assert fixed - names == {"DEPTH", "INTEGER", "LABEL_CHARACTERS"}

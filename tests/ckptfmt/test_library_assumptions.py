"""Behaviour of other libraries that the code relies on. If a test fails, the code has to be reviewed."""

from __future__ import annotations

import enum
import math
import uuid
from typing import Any

import orjson
import pytest
import zstandard


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_orjson_encodes_253_levels_and_decodes_at_most_1024() -> None:
    assert orjson.dumps(_nested(253))
    assert orjson.loads(b"[" * 1024 + b"]" * 1024)
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(b"[" * 1025 + b"]" * 1025)


@pytest.mark.parametrize(
    "value", [2**64, -(2**63) - 1, "\ud800", {"\ud800": 1}, {1: 1}, {None: 1}, {True: 1}]
)
def test_orjson_refuses_what_the_quick_check_leaves_to_it(value: Any) -> None:
    with pytest.raises(TypeError):
        orjson.dumps(value)


def test_orjson_refuses_keys_of_a_subclass() -> None:
    class Text(str):
        __slots__ = ()

    class Colour(enum.StrEnum):
        RED = "red"

    for key in (Text("a"), Colour.RED, uuid.UUID(int=1)):
        with pytest.raises(TypeError):
            orjson.dumps({key: 1})


def test_orjson_accepts_values_that_the_check_must_find() -> None:
    assert orjson.dumps([math.nan, math.inf]) == b"[null,null]"
    assert orjson.dumps((1, uuid.UUID(int=0))) == b'[1,"00000000-0000-0000-0000-000000000000"]'
    assert orjson.loads(b"[18446744073709551616]") == [2.0**64]


def test_orjson_does_not_report_duplicate_members() -> None:
    assert orjson.loads(b'{"a":1,"a":2}') == {"a": 2}


def test_zstd_frames_have_size_and_checksum_and_extra_data_is_refused() -> None:
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True, write_content_size=True)
    frame = compressor.compress(b"x" * 1000)
    header = zstandard.get_frame_parameters(frame)
    assert (header.content_size, header.has_checksum) == (1000, True)
    decompressor = zstandard.ZstdDecompressor()
    assert decompressor.decompress(frame, allow_extra_data=False) == b"x" * 1000
    for bad in (frame + frame, frame + b"x", frame[:-1], frame[:-1] + bytes([frame[-1] ^ 1])):
        with pytest.raises(zstandard.ZstdError):
            decompressor.decompress(bad, allow_extra_data=False)


def test_the_sum_of_floats_is_finite_only_if_all_are_finite() -> None:
    for special in (math.nan, math.inf, -math.inf):
        assert not math.isfinite(sum([1.0, special, -1.0, 1e308]))
    assert not math.isfinite(sum([math.inf, -math.inf]))

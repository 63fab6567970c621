"""Unpacking one zstd frame without trusting its header."""

from __future__ import annotations

from typing import Final

import zstandard

from ckptfmt._errors import Damaged
from ckptfmt._limits import DEFAULT_LIMITS, Limits

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


def unpack_frame(data: bytes, least: int, most: int, file: str, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """Unpack one zstd frame of ``least`` to ``most`` bytes.

    Raises :class:`Damaged`. The size and the window that the header states are compared with these bounds and
    with the limits before memory is allocated.
    """
    if not data.startswith(_ZSTD_MAGIC):
        raise Damaged(
            f"{file}: a frame begins with {data[:4].hex(' ')}, but a zstd frame begins "
            f"with {_ZSTD_MAGIC.hex(' ')}",
            file=file,
        )
    most = min(most, limits.frame_plain_bytes)
    try:
        header = zstandard.get_frame_parameters(data)
        if (
            not least <= header.content_size <= most
            or not header.has_checksum
            or header.window_size > limits.window_bytes
        ):
            raise Damaged(
                f"{file}: a frame states {header.content_size} bytes and a window of {header.window_size}; "
                f"required are {_range(least, most)} bytes, a window up to {limits.window_bytes}, "
                "and a checksum",
                file=file,
            )
        unpacked = zstandard.ZstdDecompressor(max_window_size=limits.window_bytes).decompress(
            data, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise Damaged(f"{file}: a frame was changed after writing ({error})", file=file) from None
    if len(unpacked) != header.content_size:
        raise Damaged(
            f"{file}: a frame holds {len(unpacked)} bytes, but states {header.content_size}", file=file
        )
    return unpacked


def _range(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} to {most}"

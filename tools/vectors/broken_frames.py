"""Invalid compressed segments whose digests are correct."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import zstandard

from tools.vectors.broken import Broken
from tools.vectors.raw import LINES, Draft, Files, frame, set_in

_PLAIN: Final = b"".join(LINES)
_HALF: Final = len(LINES[0])
_SKIPPABLE: Final = b"\x50\x2a\x4d\x18\x04\x00\x00\x00skip"


def _stated(size: int, plain: bytes, window: int | None = None) -> bytes:
    """A frame of ``plain`` whose header states the content size ``size`` and a window of 2^``window``."""
    packed = frame(plain, size=False)
    (descriptor,) = packed[4:5]
    assert descriptor & 0xE3 == 0  # no content size, no single segment, no dictionary: a window byte follows
    exponent = packed[5] if window is None else (window - 10) << 3
    return b"".join(
        (packed[:4], bytes([descriptor | 0xC0, exponent]), size.to_bytes(8, "little"), packed[6:])
    )


def _checksum_flipped(plain: bytes) -> bytes:
    packed = frame(plain)
    return packed[:-1] + bytes([packed[-1] ^ 1])


def _block_flipped(plain: bytes) -> bytes:
    """A frame with a changed byte of the content, which only the frame's checksum reveals."""
    packed = bytearray(frame(bytes(len(plain) - 1) + b"\n"))
    return bytes((*packed[:-5], packed[-5] ^ 1, *packed[-4:]))


_PACKERS: Final[dict[str, tuple[str, Callable[[bytes], bytes]]]] = {
    "frame-cut": ("the last frame is cut by a byte", lambda plain: frame(plain)[:-1]),
    "frame-cut-before-checksum": ("the checksum is missing at the end", lambda plain: frame(plain)[:-4]),
    "frame-cut-to-header": ("only the header is there", lambda plain: frame(plain)[:6]),
    "junk-after-frame": ("bytes follow the last frame", lambda plain: frame(plain) + b"junk"),
    "zeros-after-frame": ("zeros follow the last frame", lambda plain: frame(plain) + bytes(16)),
    "second-frame": (
        "a second frame within the range of the first",
        lambda plain: frame(plain[:_HALF]) + frame(plain[_HALF:]),
    ),
    "second-frame-more": ("a frame more after the last one", lambda plain: frame(plain) + frame(plain)),
    "empty-frame-after": ("an empty frame after the last one", lambda plain: frame(plain) + frame(b"")),
    "skippable-frame-before": ("a skippable frame first", lambda plain: _SKIPPABLE + frame(plain)),
    "skippable-frame-after": ("a skippable frame last", lambda plain: frame(plain) + _SKIPPABLE),
    "no-content-size": ("the frame does not state its size", lambda plain: frame(plain, size=False)),
    "no-checksum": ("the frame has no checksum", lambda plain: frame(plain, checksum=False)),
    "checksum-other": ("the frame's checksum is wrong", _checksum_flipped),
    "block-changed": ("a block was changed and the checksum not", _block_flipped),
    "size-less": ("the frame states a byte less", lambda plain: _stated(len(plain) - 1, plain)),
    "size-more": ("the frame states a byte more", lambda plain: _stated(len(plain) + 1, plain)),
    "size-2-60": ("the frame states 2^60 bytes", lambda plain: _stated(2**60, plain)),
    "holds-less": ("the frame holds less than it states", lambda plain: _stated(len(plain), plain[:-1])),
    "holds-more": ("the frame holds more than it states", lambda plain: _stated(len(plain), plain + b"\n")),
    "window-256-mib": ("a window beyond the limit", lambda plain: _stated(len(plain), plain, window=28)),
    "window-2-gib": ("a window beyond the limit", lambda plain: _stated(len(plain), plain, window=31)),
    "bomb": ("8 MiB in few bytes", lambda plain: frame(bytes(8 * 2**20))),
    "bomb-that-lies": (
        "8 MiB in a frame that states few",
        lambda plain: _stated(len(plain), bytes(8 * 2**20)),
    ),
    "plain-bytes": ("nothing is compressed", lambda plain: plain),
    "gzip": ("another compression", lambda plain: b"\x1f\x8b\x08\x00" + plain),
    "magic-of-version-0-7": ("a zstd frame of an old version", lambda plain: b"\x27" + frame(plain)[1:]),
    "line-feed-missing": ("a line without its line feed", lambda plain: frame(plain[:-1] + b" ")),
    "reserved-bit": ("a reserved bit of the header is set", lambda plain: _descriptor(frame(plain), 0x08)),
    "dictionary": (
        "the frame needs a dictionary",
        lambda plain: zstandard.ZstdCompressor(
            write_checksum=True, dict_data=zstandard.ZstdCompressionDict(_dictionary())
        ).compress(plain),
    ),
}


def _descriptor(packed: bytes, bit: int) -> bytes:
    return packed[:4] + bytes([packed[4] | bit]) + packed[5:]


def _dictionary() -> bytes:
    samples: list[bytes | bytearray | memoryview] = [
        b'{"episode":"%d-%d","boundary":%d}' % (n, n * 7, n % 9) * 3 for n in range(2000)
    ]
    return zstandard.train_dictionary(1024, samples, dict_id=7).as_bytes()


def cases() -> Iterator[tuple[str, Broken]]:
    """Yield the name and the fault of each case."""
    for name, (about, pack) in _PACKERS.items():
        yield f"zstd-{name}", Broken(Draft(codec="zstd", pack=pack), f"a compressed segment: {about}")
    yield (
        "zstd-under-a-plain-name",
        Broken(
            Draft(codec="zstd", manifest=_call_it_plain, files=_rename), "compressed bytes, said to be plain"
        ),
    )
    yield (
        "zstd-plain-total-other",
        Broken(
            Draft(codec="zstd", manifest=set_in("segments", 0, "plain", to=len(_PLAIN) - 1)),
            "the manifest states another size before compression",
        ),
    )


def _call_it_plain(manifest: Any) -> None:
    (segment,) = manifest["segments"]
    segment.update(file=segment["file"].removesuffix(".zst"), plain=segment["stored"], codec="none")


def _rename(files: Files) -> None:
    (name,) = (name for name in files if name.endswith(".zst"))
    files[name.removesuffix(".zst")] = files.pop(name)

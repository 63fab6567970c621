"""Every limit on what is read or written, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ckptfmt._errors import wrong_type

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB
MOST_LEVELS: Final = 250
"""Levels of containers that every reader takes."""


@dataclass(frozen=True)
class Limits:
    """Limits of the format (the same for writer and reader) and sizes that a writer aims at.

    The first group belongs to the format: another value makes other files. The rest bounds what untrusted
        input may cost, or sets the pace of a writer; tests make them small. Raises TypeError for a limit that
        is no int, ValueError for one below 1 (``depth``: 0, no container at all) and for a ``depth`` above
        250, which readers refuse.
    """

    depth: int = MOST_LEVELS
    """Nesting of a payload; its root container is 1. Below orjson's own limits for writing and reading."""

    rollout_id_bytes: int = 256
    attempt_digits: int = 9
    participant_name_characters: int = 128

    record_bytes: int = GIB
    """Bytes of one line. It bounds the digits of an integer too, and no limit of its own does: one beyond 64
    bits stands in a line as hex digits, a byte for each, which are read in linear time. (To write such an
    integer as a decimal takes quadratic time, so Python refuses it beyond 4,300 digits, and no text of ours
    does it.)"""

    record_values: int = 64 * MIB
    """Values in one payload, counted wherever they are reached: sub-objects shared many times cannot explode.
    """

    manifest_bytes: int = 64 * MIB
    """Bytes of a manifest, a ``cut.json`` or a ``lives/<n>.json``."""

    index_bytes: int = 4 * GIB
    index_head_bytes: int = 16 * MIB
    """Bytes of the first line of an index."""

    index_block_rows: int = 4096
    """Rows in one block of an index."""

    index_block_bytes: int = 2 * MIB
    """Bytes of one block: more than 4,096 rows of the longest ids and numbers can need."""

    checkpoint_bytes: int = GIB
    """Bytes of ``checkpoint.json``, which holds the controller's state."""

    window_bytes: int = 128 * MIB
    """Window that a zstd frame may ask for."""

    frame_plain_bytes: int = GIB
    """Bytes that one zstd frame may unpack to."""

    frame_stored_bytes: int = GIB + 16 * MIB
    """Bytes of one frame as stored: what does not compress grows a little."""

    segment_bytes: int = 64 * MIB
    """Stored bytes at which a segment closes; a record as large as this has a segment of its own."""

    unplaced_segments: int = 3
    """Segments that may exist before they are placed, the growing one not included."""

    batch_bytes: int = 2 * MIB
    """Plain bytes that are handed on together without compression: what a thread costs each time, a
    millisecond of waiting for the interpreter, is then little beside hashing and writing them."""

    waiting_bytes: int = 8 * MIB
    """Plain bytes that may wait to be packed (or one record that is larger): then the caller waits."""

    settle_bytes: int = 8 * MIB
    """New bytes of a growing segment at which it is synced, so that little is left when it is finished: to
    sync 64 MiB at the end took half as long as to encode them."""

    frame_bytes: int = 256 * KIB
    """Plain bytes at which a frame closes."""

    block_rows: int = 2048
    """Rows at which a block of the index closes: as many as are parsed to find one record, in about 2 ms. The
    head for a million records still comes with the first read."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is not int:
                raise wrong_type(f"the limit {name}", "an int", value)
            if value < 1 and (name != "depth" or value < 0):
                raise ValueError(f"the limit {name} is {value}; it is at least {int(name != 'depth')}")
        if self.depth > MOST_LEVELS:
            raise ValueError(f"the limit depth is {self.depth}; readers take at most {MOST_LEVELS}")


DEFAULT_LIMITS: Final = Limits()

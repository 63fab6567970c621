"""Limits of three kinds: what the format fixes, what protects a reader, and what sets a writer's pace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ckptfmt._errors import wrong_type

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB


class FormatLimits:
    """What FORMAT.md fixes. Every writer and every reader keeps these; no call can change them."""

    DEPTH: Final = 250
    """Levels of nested containers in a payload; its outermost container is level 1."""

    ROLLOUT_ID_BYTES: Final = 256
    ATTEMPT_DIGITS: Final = 9
    PARTICIPANT_NAME_CHARACTERS: Final = 128
    LABEL_CHARACTERS: Final = 256
    """Characters of a checkpoint id or of a participant's kind."""

    INTEGER: Final = 2**63 - 1
    """The largest integer of a file's own members, such as a sequence or a boundary."""


@dataclass(frozen=True)
class _Numbers:
    """Positive integers, checked."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is not int:
                raise wrong_type(f"{type(self).__name__}.{name}", "an int", value)
            if value < 1:
                raise ValueError(f"{type(self).__name__}.{name} is {value}; it is at least 1")


@dataclass(frozen=True)
class Limits(_Numbers):
    """How much a file may cost that somebody else wrote. A reader refuses what is beyond; a writer writes no
    such file.

    The defaults are the limits of FORMAT.md: a larger limit reads or writes what other readers refuse.

    Raises:
        TypeError: A limit is no int.
        ValueError: A limit is below 1.
    """

    record_bytes: int = GIB
    """Bytes of one line. It bounds the digits of an integer as well: one beyond 64 bits stands in a line as
    hex digits, a byte for each, which are read in linear time."""

    record_values: int = 64 * MIB
    """Values in one payload, counted wherever they are reached: a sub-object that is shared many times counts
    many times."""

    manifest_bytes: int = 64 * MIB
    """Bytes of a ``manifest.json``, a ``cut.json`` or a ``lives/<n>.json``."""

    checkpoint_bytes: int = GIB
    """Bytes of ``checkpoint.json``, which holds the controller's state."""

    index_bytes: int = 4 * GIB
    index_head_bytes: int = 16 * MIB
    """Bytes of the first line of an index."""

    index_block_rows: int = 4096
    """Rows in one block of an index."""

    index_block_bytes: int = 2 * MIB
    """Bytes of one block: more than 4,096 rows of the longest ids and numbers can need."""

    window_bytes: int = 128 * MIB
    """Bytes of the window that a zstd frame may ask for."""

    frame_plain_bytes: int = GIB
    """Bytes that one zstd frame may unpack to."""

    frame_stored_bytes: int = GIB + 16 * MIB
    """Bytes of one frame as stored: what cannot be compressed grows a little."""


@dataclass(frozen=True)
class Tuning(_Numbers):
    """Sizes at which a writer acts. They change how fast it is and how its files are cut, never what they
    mean.

    Raises:
        TypeError: A size is no int.
        ValueError: A size is below 1.
    """

    segment_bytes: int = 64 * MIB
    """Stored bytes at which a segment closes; a record as large as this has a segment of its own."""

    frame_bytes: int = 256 * KIB
    """Plain bytes at which a zstd frame closes."""

    block_rows: int = 2048
    """Rows at which a block of the index closes: as many as are parsed in about 2 ms to find one record. The
    head for a million records still comes with the first read."""

    unplaced_segments: int = 3
    """Finished segments that may wait to be placed."""

    batch_bytes: int = 2 * MIB
    """Plain bytes that are handed to the writing thread together when nothing is compressed. Each hand-over
    waits up to a millisecond for the interpreter's lock, which is then little beside hashing and writing."""

    waiting_bytes: int = 8 * MIB
    """Plain bytes that may wait for the writing thread (or one record that is larger); beyond, the caller
    waits."""

    sync_bytes: int = 8 * MIB
    """New bytes of a growing segment at which it is synced to disk, so that little is left to sync when it is
    finished: to sync 64 MiB at once took half as long as to encode them."""


DEFAULT_LIMITS: Final = Limits()
DEFAULT_TUNING: Final = Tuning()

"""Three kinds of limits: limits of the format, limits that protect a reader, and sizes of a writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ckptfmt._errors import wrong_type

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB


class FormatLimits:
    """The limits that FORMAT.md fixes.

    Every writer and every reader enforces them; no call can change them.

    Attributes:
        DEPTH: The most levels of nested containers in a payload; its outermost container is level 1.
        ROLLOUT_ID_BYTES: The most bytes of a rollout id.
        ATTEMPT_DIGITS: The most decimal digits of an attempt.
        PARTICIPANT_NAME_CHARACTERS: The most characters of a participant's name.
        LABEL_CHARACTERS: The most characters of a checkpoint id or of a participant's kind.
        INTEGER: The largest integer in a member of a file, such as a sequence or a boundary.
    """

    DEPTH: Final = 250
    ROLLOUT_ID_BYTES: Final = 256
    ATTEMPT_DIGITS: Final = 9
    PARTICIPANT_NAME_CHARACTERS: Final = 128
    LABEL_CHARACTERS: Final = 256
    INTEGER: Final = 2**63 - 1


@dataclass(frozen=True)
class _PositiveIntegers:
    """A base class whose fields are positive integers; it checks them."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if type(value) is not int:
                raise wrong_type(f"{type(self).__name__}.{name}", "an int", value)
            if value < 1:
                raise ValueError(f"{type(self).__name__}.{name} is {value}; it must be at least 1")


@dataclass(frozen=True)
class Limits(_PositiveIntegers):
    """The most that untrusted files may cost a reader, and that a writer writes.

    A reader refuses files beyond these limits, and a writer does not create them. The defaults are the limits
    of FORMAT.md: with a larger limit, files are read or written that other readers refuse.

    Attributes:
        record_bytes: Bytes of one line. This bounds the digits of an integer as well: an integer beyond 64
            bits is stored as hex digits, one byte for each, which are read in linear time.
        record_values: Values in one payload. An object that is reached several times counts each time.
        manifest_bytes: Bytes of ``manifest.json``, ``cut.json`` or ``lives/<n>.json``.
        checkpoint_bytes: Bytes of ``checkpoint.json``, which holds the controller's state.
        index_bytes: Bytes of an index.
        index_head_bytes: Bytes of the first line of an index.
        index_block_rows: Rows in one block of an index.
        index_block_bytes: Bytes of one block: more than 4,096 rows of the longest ids and numbers require.
        window_bytes: Bytes of the window that a zstd frame may require.
        frame_plain_bytes: Bytes of one zstd frame after decompression.
        frame_stored_bytes: Bytes of one frame as stored. Data that cannot be compressed grows slightly.

    Raises:
        TypeError: A limit is not an int.
        ValueError: A limit is below 1.

    Example:
        ::

            checkpoint = ckptfmt.open(url, limits=ckptfmt.Limits(checkpoint_bytes=64 * 2**20))
    """

    record_bytes: int = GIB
    record_values: int = 64 * MIB
    manifest_bytes: int = 64 * MIB
    checkpoint_bytes: int = GIB
    index_bytes: int = 4 * GIB
    index_head_bytes: int = 16 * MIB
    index_block_rows: int = 4096
    index_block_bytes: int = 2 * MIB
    window_bytes: int = 128 * MIB
    frame_plain_bytes: int = GIB
    frame_stored_bytes: int = GIB + 16 * MIB


@dataclass(frozen=True)
class Tuning(_PositiveIntegers):
    """Sizes of a writer's buffers and files.

    They affect its speed and the layout of its files, not the content.

    Attributes:
        segment_bytes: Stored bytes at which a segment is closed. A record of at least this size has a segment
            of its own.
        frame_bytes: Plain bytes at which a zstd frame is closed.
        block_rows: Rows at which a block of the index is closed. The default is the number of rows that are
            parsed in about 2 ms to find one record; the head for a million records is still read in one go.
        unplaced_segments: Finished segments that may wait to be placed.
        batch_bytes: Plain bytes that are handed to the writing thread at once when nothing is compressed.
            Each hand-over waits up to a millisecond for the interpreter's lock, which is little beside
            hashing and writing this much.
        waiting_bytes: Plain bytes (or one larger record) that may wait for the writing thread. The caller
            waits when there are more.
        sync_bytes: New bytes at which a growing segment is synced to disk, so that little is left to sync
            when it is finished: syncing 64 MiB at once took half as long as encoding them.

    Raises:
        TypeError: A size is not an int.
        ValueError: A size is below 1.
    """

    segment_bytes: int = 64 * MIB
    frame_bytes: int = 256 * KIB
    block_rows: int = 2048
    unplaced_segments: int = 3
    batch_bytes: int = 2 * MIB
    waiting_bytes: int = 8 * MIB
    sync_bytes: int = 8 * MIB


DEFAULT_LIMITS: Final = Limits()
DEFAULT_TUNING: Final = Tuning()

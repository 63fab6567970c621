"""The bytes of a participant's index, divided into blocks so that a reader finds a record in one block.

The file is JSON Lines: a self-checked head that names the blocks and their digests, then the blocks, each an
object of columns. Rows are sorted by capture key over the whole file. This module does not read a store.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate, islice
from operator import lt
from typing import Final, NamedTuple

import orjson

from ckptfmt._errors import Damaged, LimitExceeded
from ckptfmt._limits import DEFAULT_LIMITS, DEFAULT_TUNING, FormatLimits, Limits, Tuning
from ckptfmt._model.fields import Fields
from ckptfmt._model.index_rows import Rows, integers
from ckptfmt._model.manifest import Manifest
from ckptfmt._model.names import index_file_name
from ckptfmt._model.self_checked import parse_json, seal, unseal

_DIGESTS: Final = re.compile(r"(?:[0-9a-f]{64}\n)*+")


class SealedIndex(NamedTuple):
    """An index file: its name, and its bytes in pieces."""

    name: str
    pieces: list[bytes]


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of an index: the number of records, and the place of each block.

    Attributes:
        records: The number of records.
        first: The capture key of the first row of each block.
        start: The first byte of each block, counted from the end of the head.
        length: The bytes of each block, line feed included.
        sha256: The digest of each block.
        size: The bytes of the head, line feed included.
    """

    records: int
    first: list[str]
    start: list[int]
    length: list[int]
    sha256: list[str]
    size: int = field(default=0)

    @property
    def blocks_size(self) -> int:
        """The bytes of all blocks."""
        return self.start[-1] + self.length[-1] if self.start else 0

    def block_of(self, key: str) -> int | None:
        """The number of the only block that can contain ``key``; None when there is none."""
        number = bisect_right(self.first, key) - 1
        return number if number >= 0 else None


def seal_index(rows: Rows, limits: Limits = DEFAULT_LIMITS, tuning: Tuning = DEFAULT_TUNING) -> SealedIndex:
    """The index file of ``rows``, which may be in any order.

    Raises :class:`LimitExceeded` when the file would exceed the limits of readers.
    """
    rows = rows.by_key()
    step = min(tuning.block_rows, limits.index_block_rows)
    starts = range(0, len(rows), step)
    blocks = [_encode_block(rows.cut(start, start + step)) for start in starts]
    lengths = list(map(len, blocks))
    head = {
        "records": len(rows),
        "blocks": {
            "first": [rows.episode[start] for start in starts],
            "start": list(accumulate(lengths[:-1], initial=0)) if blocks else [],
            "length": lengths,
            "sha256": [hashlib.sha256(block).hexdigest() for block in blocks],
        },
    }
    sealed = seal(orjson.dumps(head))
    size = len(sealed.data) + sum(lengths)
    if len(sealed.data) > limits.index_head_bytes or size > limits.index_bytes:
        raise LimitExceeded(
            f"the index of {len(rows)} records would have {size} bytes, {len(sealed.data)} of them in its "
            f"head; readers accept at most {limits.index_bytes} and {limits.index_head_bytes}; "
            "write fewer records for one participant"
        )
    return SealedIndex(index_file_name(sealed.digest), [sealed.data, *blocks])


def _encode_block(rows: Rows) -> bytes:
    columns = {
        name: column if isinstance(column, list) else column.tolist() for name, column in rows.columns()
    }
    return orjson.dumps(columns, option=orjson.OPT_APPEND_NEWLINE)


def parse_head(data: bytes, file: str, manifest: Manifest, limits: Limits = DEFAULT_LIMITS) -> Head:
    """Parse and check the first line of the index that ``manifest`` names. Raises :class:`Damaged`.

    After the check, the blocks follow one another without gaps, are within the limits, and are sorted by
    their first keys.
    """
    fields, _ = unseal(data, file, required=manifest.index_digest)
    blocks = fields.object("blocks")
    head = Head(
        records=fields.integer("records"),
        first=blocks.strings("first"),
        start=blocks.integers("start"),
        length=blocks.integers("length", 1, limits.index_block_bytes),
        sha256=blocks.strings("sha256"),
        size=len(data),
    )
    if head.records != manifest.records:
        raise fields.damaged(f"is not {manifest.records}, as in the manifest", "records")
    count = len(head.first)
    if {len(head.start), len(head.length), len(head.sha256)} != {count}:
        raise blocks.damaged("has columns of different lengths")
    if not count <= head.records <= count * limits.index_block_rows:
        raise blocks.damaged(f"has {count} blocks, which cannot hold {head.records} records")
    if not _is_ascending(head.first):
        raise blocks.damaged("is not sorted, or has a duplicate key", "first")
    if head.start != list(accumulate(head.length[:-1], initial=0))[:count]:
        raise blocks.damaged("has gaps or overlaps between blocks", "start")
    if _DIGESTS.fullmatch("".join(f"{digest}\n" for digest in head.sha256)) is None:
        raise blocks.damaged("has items other than 64 lower-case hex digits", "sha256")
    if head.size + head.blocks_size > limits.index_bytes:
        raise blocks.damaged(f"makes the file larger than {limits.index_bytes} bytes")
    return head


def _is_ascending(keys: list[str]) -> bool:
    return all(map(lt, keys, islice(keys, 1, None)))


def parse_block(data: bytes, number: int, head: Head, file: str, limits: Limits = DEFAULT_LIMITS) -> Rows:
    """Parse and check block ``number``. Raises :class:`Damaged`.

    After the check, the bytes have the digest that the head names, and the rows are sorted and lie between
    the first key of this block and that of the next block. The caller checks the places that the rows refer
    to.
    """
    place = f"block {number}"
    if len(data) != head.length[number]:
        raise Damaged(f"{file}: {place} is cut short", file=file)
    if hashlib.sha256(data).hexdigest() != head.sha256[number]:
        raise Damaged(f"{file}: {place} was changed after writing", file=file)
    if data.find(b"\n") != len(data) - 1:
        raise Damaged(f"{file}: {place} is not one line", file=file)
    fields = Fields(parse_json(data[:-1], file, place), file, place)
    rows = Rows(
        episode=fields.strings("episode"),
        boundary=_boundaries(fields),
        segment=integers(fields.integers("segment")),
        offset=integers(fields.integers("offset")),
        stored=integers(fields.integers("stored", 1, limits.frame_stored_bytes)),
        start=integers(fields.integers("start", 0, limits.frame_plain_bytes)),
        length=integers(fields.integers("length", 1, limits.record_bytes)),
        crc32=integers(fields.integers("crc32", 0, 2**32 - 1)),
    )
    count = len(rows)
    if not 1 <= count <= limits.index_block_rows or {len(column) for _, column in rows.columns()} != {count}:
        raise fields.damaged(f"does not have 1 to {limits.index_block_rows} rows in columns of one length")
    end = head.first[number + 1 : number + 2]
    if rows.episode[0] != head.first[number] or not _is_ascending(rows.episode + end):
        raise fields.damaged("is not sorted, or is not where the head says", "episode")
    return rows


def _boundaries(fields: Fields) -> list[int | None]:
    column = fields.array("boundary")
    kinds = set(map(type, column))
    if not kinds <= {int, type(None)}:
        raise fields.damaged("has items other than null and integers", "boundary")
    numbers = [each for each in column if each is not None] if type(None) in kinds else column
    if numbers and not 0 <= min(numbers) <= max(numbers) <= FormatLimits.INTEGER:
        raise fields.damaged("has an integer out of range", "boundary")
    return column

"""Reading an index: the whole index in one pass, or only the block that can hold one record."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from ckptfmt._errors import Damaged
from ckptfmt._limits import KIB, Limits
from ckptfmt._model.index_check import check_layout
from ckptfmt._model.index_file import Head, parse_block, parse_head
from ckptfmt._model.index_rows import Rows
from ckptfmt._model.layout import ParticipantLayout
from ckptfmt._model.manifest import Manifest

_FIRST_READ: Final = 64 * KIB
_CACHED_BLOCKS: Final = 4
_IF_MISSING: Final = "the index file is missing"


def read_index(layout: ParticipantLayout, manifest: Manifest, limits: Limits) -> Rows:
    """Read the whole index of a participant, check every byte, and compare it with the manifest.

    The rows are returned in the order in which the records were written. Raises :class:`Incomplete`,
    :class:`Damaged`, :class:`StoreError`.
    """
    file = layout.file(manifest.index)
    rows = Rows()
    with layout.open(manifest.index, _IF_MISSING) as stored:

        def read_next(start: int, length: int) -> bytes:
            return stored.read(length)

        head, buffered = _read_head(read_next, file, manifest, limits)
        expected = head.size + head.blocks_size
        if stored.size != expected:
            how = "is cut short" if stored.size < expected else "has bytes added"
            raise Damaged(f"{file}: the file {how}: {stored.size} bytes, not {expected}", file=file)
        for number, length in enumerate(head.length):
            if len(buffered) < length:
                buffered += stored.read(length - len(buffered))
            rows.extend(parse_block(buffered[:length], number, head, file, limits))
            buffered = buffered[length:]
    rows = rows.by_place()
    check_layout(rows, manifest, file)
    return rows


class RowFinder:
    """Finds the index row of one episode.

    It caches the head and the most recently used blocks, and can be used by several threads.
    """

    def __init__(self, layout: ParticipantLayout, manifest: Manifest, limits: Limits) -> None:
        self._layout = layout
        self._manifest = manifest
        self._file = layout.file(manifest.index)
        self._limits = limits
        self._head: Head | None = None
        self._after_head = b""  # bytes of the first blocks that were read together with the head
        self._blocks: OrderedDict[int, Rows] = OrderedDict()
        self._lock = threading.Lock()  # guards _blocks

    def find(self, key: str) -> tuple[Rows, int] | None:
        """Find the row of a capture key: its block, and the number of the row in it.

        Returns None when there is no such row. Raises :class:`Incomplete`, :class:`Damaged`,
        :class:`StoreError`.
        """
        head = self._load_head()
        number = head.block_of(key)
        if number is None:
            return None
        rows = self._load_block(number, head)
        row = bisect_left(rows.episode, key)
        return (rows, row) if row < len(rows) and rows.episode[row] == key else None

    def _read(self, start: int, length: int) -> bytes:
        return self._layout.read_range(self._manifest.index, start, length, _IF_MISSING)

    def _load_head(self) -> Head:
        if self._head is None:
            self._head, self._after_head = _read_head(self._read, self._file, self._manifest, self._limits)
        return self._head

    def _load_block(self, number: int, head: Head) -> Rows:
        with self._lock:
            if number in self._blocks:
                self._blocks.move_to_end(number)
                return self._blocks[number]
        start, length = head.start[number], head.length[number]
        data = self._after_head[start : start + length]
        if len(data) < length:
            data = self._read(head.size + start, length)
        rows = parse_block(data, number, head, self._file, self._limits)
        with self._lock:
            self._blocks[number] = rows
            if len(self._blocks) > _CACHED_BLOCKS:
                self._blocks.popitem(last=False)
        return rows


def _read_head(
    read_range: Callable[[int, int], bytes], file: str, manifest: Manifest, limits: Limits
) -> tuple[Head, bytes]:
    """Read the head.

    Returns the head, and the bytes after it that were read with it. ``read_range`` takes a start and a
    length; the ranges follow one another from 0.
    """
    limit = limits.index_head_bytes
    data, size = b"", _FIRST_READ
    while True:
        length = min(size, limit + 1) - len(data)
        piece = read_range(len(data), length)
        data += piece
        if b"\n" in piece or len(piece) < length or len(data) > limit:
            break
        size *= 16
    end = data.find(b"\n") + 1 or len(data)  # no line feed: the file is cut short, and parsing reports it
    if end > limit:
        raise Damaged(f"{file}: its first line is longer than {limit} bytes", file=file)
    return parse_head(data[:end], file, manifest, limits), data[end:]

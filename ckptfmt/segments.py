"""Packing lines into frames and segments, and noting in the index where each record lies. No threads, no
store."""

from __future__ import annotations

import hashlib
import tempfile
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, repeat
from typing import Protocol

import zstandard

from ckptfmt.errors import SnapshotChanged, StoreError
from ckptfmt.limits import Limits
from ckptfmt.manifest import Codec, Segment
from ckptfmt.rows import Rows

_ZSTD_LEVEL = 1
_COPY_BYTES = 1024 * 1024
_JOINED_BYTES = 1024 * 1024


@dataclass(slots=True)
class Batch:
    """Whole lines that become one frame, with what the index says of them. Large lines are in pieces."""

    lines: list[list[bytes]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    episodes: list[str] = field(default_factory=list)
    boundaries: list[int | None] = field(default_factory=list)
    size: int = 0
    alone: bool = False
    """Whether this is one record that has a segment of its own."""
    full: bool = False
    """Whether it waits to be handed over."""

    def add(self, line: list[bytes], length: int, episode: str, boundary: int | None) -> None:
        self.lines.append(line)
        self.lengths.append(length)
        self.episodes.append(episode)
        self.boundaries.append(boundary)
        self.size += length

    def chunks(self) -> list[bytes]:
        """The bytes of all lines: joined, but for large pieces, which are never copied."""
        pieces = list(chain.from_iterable(self.lines))
        return pieces if self.size >= _JOINED_BYTES else [b"".join(pieces)]


class Holder(Protocol):
    """Where the bytes of an unplaced segment wait."""

    def append(self, chunks: Sequence[bytes]) -> None:
        """Add bytes; a failure adds none. Raises StoreError."""

    def __iter__(self) -> Iterator[bytes]: ...

    def discard(self) -> None: ...


class MemoryHolder:
    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def append(self, chunks: Sequence[bytes]) -> None:
        self._chunks += chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)

    def discard(self) -> None:
        self._chunks = []


class SpoolHolder:
    """A file without a name in a folder of the caller's choice: nothing is left of it, even after SIGKILL."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._size = 0
        try:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  # closed by discard
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(
            f"cannot spool into {self._folder} after {self._size} bytes: {error.strerror}; "
            "make room, or choose another",
            errno=error.errno,
            path=self._folder,
            written=self._size,
        )

    def append(self, chunks: Sequence[bytes]) -> None:
        try:
            self._file.seek(self._size)
            for chunk in chunks:
                rest = memoryview(chunk)
                while rest:
                    rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise self._failed(error) from error  # what was written lies beyond _size and is written over
        self._size += sum(map(len, chunks))

    def __iter__(self) -> Iterator[bytes]:
        try:
            self._file.seek(0)
            left = self._size
            while left:
                data = self._file.read(min(left, _COPY_BYTES))
                left -= len(data)
                yield data
        except OSError as error:
            raise self._failed(error) from error

    def discard(self) -> None:
        self._file.close()


@dataclass(slots=True)
class ClosedSegment:
    """A finished segment that is not placed yet."""

    segment: Segment
    holder: Holder


class _OpenSegment:
    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        self.hash = hashlib.sha256()
        self.stored = 0
        self.plain = 0
        self.records = 0


class Packer:
    """Turns batches into closed segments. What it does depends on the batches alone, never on time.

    ``expected`` are digests that the first segments had when the same records were written before; another
        one raises :class:`SnapshotChanged`.
    """

    def __init__(self, codec: Codec, limits: Limits, spool: str | None, expected: Sequence[str] = ()) -> None:
        self.rows = Rows()
        self.closed: deque[ClosedSegment] = deque()
        self.digests: list[str] = []
        self._codec = codec
        self._limits = limits
        self._spool = spool
        self._expected = expected
        self._open: _OpenSegment | None = None
        self._compressor = zstandard.ZstdCompressor(
            level=_ZSTD_LEVEL, write_checksum=True, write_content_size=True, threads=0
        )

    def add(self, batch: Batch) -> None:
        """Pack one batch. After a StoreError (spool) the same batch can be added again."""
        if batch.alone:
            self.finish()
        if self._open is None:
            self._open = _OpenSegment(MemoryHolder() if self._spool is None else SpoolHolder(self._spool))
        segment = self._open
        chunks = batch.chunks()
        if self._codec == "zstd":
            chunks = self._compress(chunks, batch.size)
        stored = sum(map(len, chunks))
        segment.holder.append(chunks)
        for chunk in chunks:
            segment.hash.update(chunk)
        self._note(batch, segment, stored)
        segment.stored += stored
        segment.plain += batch.size
        segment.records += len(batch.lines)
        if batch.alone or segment.stored >= self._limits.segment_bytes:
            self.finish()

    def _compress(self, chunks: Sequence[bytes], size: int) -> list[bytes]:
        """One frame. The same chunks give the same bytes."""
        if len(chunks) == 1:
            # The compressor's own object keeps the memory of the worst case: hold a copy of the real size.
            return [bytes(memoryview(self._compressor.compress(chunks[0])))]
        stream = self._compressor.compressobj(size=size)
        return [*filter(None, map(stream.compress, chunks)), stream.flush()]

    def _note(self, batch: Batch, segment: _OpenSegment, stored: int) -> None:
        """The batch's rows of the index."""
        rows, count = self.rows, len(batch.lines)
        lengths = batch.lengths
        starts = accumulate(lengths[:-1], initial=0)
        if self._codec == "none":  # each line is its own frame
            rows.offset.extend(map(segment.stored.__add__, starts))
            rows.stored.extend(lengths)
            rows.start.extend(repeat(0, count))
        else:
            rows.offset.extend(repeat(segment.stored, count))
            rows.stored.extend(repeat(stored, count))
            rows.start.extend(starts)
        rows.episode += batch.episodes
        rows.boundary += batch.boundaries
        rows.segment.extend(repeat(len(self.digests), count))
        rows.length.extend(lengths)
        rows.crc32.extend(map(_crc32, batch.lines))

    def finish(self) -> None:
        """Close the open segment, if there is one. Raises :class:`SnapshotChanged`."""
        segment = self._open
        if segment is None:
            return
        number, digest = len(self.digests), segment.hash.hexdigest()
        if number < len(self._expected) and self._expected[number] != digest:
            raise SnapshotChanged(
                f"segment {number} was written a second time with other bytes: a record changed after it was "
                "handed over; this checkpoint cannot be finished"
            )
        self._open = None
        self.digests.append(digest)
        file = Segment.file_name(digest, self._codec)
        row = Segment(file, segment.stored, segment.plain, segment.records, self._codec)
        self.closed.append(ClosedSegment(row, segment.holder))

    def discard(self) -> None:
        """Free everything that waits."""
        if self._open is not None:
            self._open.holder.discard()
            self._open = None
        while self.closed:
            self.closed.pop().holder.discard()


def _crc32(line: list[bytes]) -> int:
    crc = 0
    for piece in line:
        crc = zlib.crc32(piece, crc)
    return crc

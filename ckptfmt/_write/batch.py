"""Batches: whole lines that are packed together, with their columns of the index."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from ckptfmt._limits import MIB
from ckptfmt.stores import Buffer

LARGE_LINE: Final = MIB
"""Lines of at least this many bytes are a batch of their own and are never copied."""


class BatchLine(NamedTuple):
    """One line: its end in the batch, and its values for the index."""

    end: int
    length: int
    crc32: int
    episode: str
    boundary: int | None


class Batch:
    """Consecutive lines in a buffer that is reused.

    Reuse pays: writing to memory that the process has touched before takes half as long. A large line is not
    copied to the buffer; its pieces are kept as they are.
    """

    def __init__(self) -> None:
        self.lines: list[BatchLine] = []
        self.has_own_segment = False
        """Whether the batch is one record that gets a segment of its own."""
        self.full = False
        """Whether the batch takes no more lines and must be enqueued."""
        self._buffer = io.BytesIO()
        self._large: Sequence[bytes] | None = None

    @property
    def size(self) -> int:
        """Bytes of all lines."""
        return self.lines[-1].end if self.lines else 0

    def add(self, line: Sequence[bytes], length: int, episode: str, boundary: int | None) -> None:
        """Add one line, given in pieces. A large line must be the first one, and fills the batch."""
        start = self.size
        crc = 0
        for piece in line:
            crc = zlib.crc32(piece, crc)  # releases the GIL for a long piece, so other threads can run
        if length >= LARGE_LINE:
            self._large = line
            self.full = True
        else:
            self._buffer.seek(start)
            self._buffer.writelines(line)
        self.lines.append(BatchLine(start + length, length, crc, episode, boundary))

    def chunks(self) -> Sequence[Buffer]:
        """The bytes of all lines: views of the buffer, to be released before :meth:`clear`."""
        return [self._buffer.getbuffer()[: self.size]] if self._large is None else self._large

    def clear(self) -> None:
        """Empty the batch, so that it can be reused."""
        self.lines.clear()
        self.has_own_segment = self.full = False
        self._large = None
        try:
            self._buffer.write(b"")
        except BufferError:  # an error that is still referenced holds a view in its traceback
            self._buffer = io.BytesIO()

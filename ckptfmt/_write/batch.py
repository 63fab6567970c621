"""Whole lines that are packed together, with what the index says of them."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from ckptfmt._limits import MIB
from ckptfmt.stores import Buffer

LARGE_LINE: Final = MIB
"""Bytes from which a line is a batch of its own, which is never copied."""


class Added(NamedTuple):
    """One line: where it ends in the batch, and its row of the index."""

    end: int
    length: int
    crc32: int
    episode: str
    boundary: int | None


class Batch:
    """Lines one after the other, in a buffer that is used again: to write to memory that the process has
    touched before takes half as long. A large line stays in its pieces."""

    def __init__(self) -> None:
        self.lines: list[Added] = []
        self.alone = False
        """Whether this is one record that has a segment of its own."""
        self.full = False
        """Whether it waits to be handed over."""
        self._buffer = io.BytesIO()
        self._large: Sequence[bytes] | None = None

    @property
    def size(self) -> int:
        """Bytes of all lines."""
        return self.lines[-1].end if self.lines else 0

    def add(self, line: Sequence[bytes], length: int, episode: str, boundary: int | None) -> None:
        """Take one line, given in pieces. A large one must come first, and fills the batch."""
        start = self.size
        crc = 0
        for piece in line:
            crc = zlib.crc32(piece, crc)  # of a long piece without the GIL, so other threads get their turn
        if length >= LARGE_LINE:
            self._large = line
            self.full = True
        else:
            self._buffer.seek(start)
            self._buffer.writelines(line)
        self.lines.append(Added(start + length, length, crc, episode, boundary))

    def chunks(self) -> Sequence[Buffer]:
        """The bytes of all lines; views of the buffer, to be dropped before :meth:`clear`."""
        return [self._buffer.getbuffer()[: self.size]] if self._large is None else self._large

    def clear(self) -> None:
        """Make it empty, to be used again."""
        self.lines.clear()
        self.alone = self.full = False
        self._large = None
        try:
            self._buffer.write(b"")
        except BufferError:  # somebody keeps an error whose traceback keeps a view
            self._buffer = io.BytesIO()

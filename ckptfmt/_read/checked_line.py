"""One line of a records file, compared with its row of the index."""

from __future__ import annotations

import zlib

from ckptfmt._errors import Damaged
from ckptfmt._identity import EpisodeId
from ckptfmt._model.record_line import Line, decode_line
from ckptfmt._values.json_payload import JsonPayload


class CheckedLine:
    """One line in a larger buffer, compared with its row of the index. Nothing is copied before it is asked
    for: most lines of a restore are only checked."""

    __slots__ = ("_boundary", "_buffer", "_end", "_key", "_payload", "_start", "_unusual")

    def __init__(
        self, buffer: bytes, start: int, end: int, payload: int, key: str, boundary: int | None
    ) -> None:
        self._buffer = buffer
        self._start = start
        self._end = end
        self._payload = payload
        self._key = key
        self._boundary = boundary
        self._unusual: Line | None = None

    @classmethod
    def of_unusual(cls, buffer: bytes, start: int, end: int, line: Line) -> CheckedLine:
        """One whose envelope had to be decoded."""
        checked = cls(buffer, start, end, 0, "", None)
        checked._unusual = line
        return checked

    @property
    def data(self) -> bytes:
        """The stored line, line feed included."""
        return self._buffer[self._start : self._end]

    @property
    def line(self) -> Line:
        """What it holds: bytes of its own."""
        if self._unusual is not None:
            return self._unusual
        payload = JsonPayload(self._buffer[self._payload : self._end - 2])
        return Line(EpisodeId.from_checked_key(self._key), self._boundary, 1, (), payload)


def check_line(
    buffer: bytes, start: int, length: int, crc32: int, key: str, boundary: int | None, file: str
) -> CheckedLine:
    """The line of one row of the index, compared with that row. ``key`` was checked before.

    Raises :class:`Damaged`.
    """
    end = start + length
    if (
        zlib.crc32(memoryview(buffer)[start:end]) != crc32
        or buffer.find(b"\n", start, end) != end - 1
        or len(buffer) < end
    ):
        raise Damaged(
            f"{file}: the record of episode {key} was changed after writing", file=file, episode=key
        )
    # Nearly every envelope is this: no references, no patches. To compare is far cheaper than to decode.
    usual = b'{"episode":"%b","boundary":%b,"schema":1,"payload":' % (
        key.encode(),
        b"null" if boundary is None else b"%d" % boundary,
    )
    if buffer.startswith(usual, start) and buffer.endswith(b"}\n", start, end):
        return CheckedLine(buffer, start, end, start + len(usual), key, boundary)
    try:
        line = decode_line(buffer[start:end])
    except Damaged as error:
        raise Damaged(f"{file}: episode {key}: {error}", file=file, episode=key) from None
    if line.episode.capture_key != key or line.boundary != boundary:
        raise Damaged(
            f"{file}: the record of episode {key} is not the one of the index", file=file, episode=key
        )
    return CheckedLine.of_unusual(buffer, start, end, line)

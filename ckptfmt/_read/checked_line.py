"""One line of a records file, compared with its row of the index."""

from __future__ import annotations

import zlib

from ckptfmt._errors import Damaged
from ckptfmt._identity import EpisodeId
from ckptfmt._model.record_line import Line, decode_line
from ckptfmt._values.json_payload import JsonPayload


class CheckedLine:
    """One line in a larger buffer, compared with its row of the index.

    The bytes are copied on access only: most lines of a restore are checked and never used.
    """

    __slots__ = ("_boundary", "_buffer", "_decoded", "_end", "_key", "_payload_start", "_start")

    def __init__(
        self, buffer: bytes, start: int, end: int, payload_start: int, key: str, boundary: int | None
    ) -> None:
        self._buffer = buffer
        self._start = start
        self._end = end
        self._payload_start = payload_start
        self._key = key
        self._boundary = boundary
        self._decoded: Line | None = None

    @classmethod
    def from_decoded(cls, buffer: bytes, start: int, end: int, line: Line) -> CheckedLine:
        """A line whose envelope was decoded."""
        checked = cls(buffer, start, end, 0, "", None)
        checked._decoded = line
        return checked

    @property
    def data(self) -> bytes:
        """The stored line, line feed included."""
        return self._buffer[self._start : self._end]

    @property
    def line(self) -> Line:
        """The record in the line. It holds a copy of its bytes, not the buffer."""
        if self._decoded is not None:
            return self._decoded
        payload = JsonPayload(self._buffer[self._payload_start : self._end - 2])
        return Line(EpisodeId.from_checked_key(self._key), self._boundary, 1, (), payload)


def check_line(
    buffer: bytes, start: int, length: int, crc32: int, key: str, boundary: int | None, file: str
) -> CheckedLine:
    """Compare the line at ``start`` in ``buffer`` with its row of the index.

    ``key`` must be a valid capture key; ``file`` is the path for error messages. Raises :class:`Damaged`.
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
    # Nearly all envelopes have no references and no patches. Comparing is far cheaper than decoding.
    common = b'{"episode":"%b","boundary":%b,"schema":1,"payload":' % (
        key.encode(),
        b"null" if boundary is None else b"%d" % boundary,
    )
    if buffer.startswith(common, start) and buffer.endswith(b"}\n", start, end):
        return CheckedLine(buffer, start, end, start + len(common), key, boundary)
    try:
        line = decode_line(buffer[start:end])
    except Damaged as error:
        raise Damaged(f"{file}: episode {key}: {error}", file=file, episode=key) from None
    if line.episode.capture_key != key or line.boundary != boundary:
        raise Damaged(
            f"{file}: the record of episode {key} is not the one that the index names", file=file, episode=key
        )
    return CheckedLine.from_decoded(buffer, start, end, line)

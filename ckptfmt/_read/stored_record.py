"""A record as it is read back: its payload stays bytes until somebody asks for it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import zstandard

from ckptfmt._errors import Damaged, Incomplete, NotFound
from ckptfmt._identity import EpisodeId
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.index_rows import Rows
from ckptfmt._model.manifest import Codec, Manifest
from ckptfmt._model.record_line import Line, decode_line
from ckptfmt._values.json_payload import JsonPayload
from ckptfmt._values.patches import Exact
from ckptfmt.stores import choose_store

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def unpack_frame(data: bytes, least: int, most: int, file: str, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """What one zstd frame holds: ``least`` to ``most`` bytes. Raises :class:`Damaged`.

    Nothing is allocated on the word of the frame alone: the size that it states must be within these bounds
        and the limit, and its window within the limit.
    """
    if not data.startswith(_ZSTD_MAGIC):
        raise Damaged(
            f"{file}: a frame begins with {data[:4].hex(' ')} where a zstd frame begins "
            f"with {_ZSTD_MAGIC.hex(' ')}",
            file=file,
        )
    most = min(most, limits.frame_plain_bytes)
    try:
        header = zstandard.get_frame_parameters(data)
        if (
            not least <= header.content_size <= most
            or not header.has_checksum
            or header.window_size > limits.window_bytes
        ):
            raise Damaged(
                f"{file}: a frame states {header.content_size} bytes and a window of {header.window_size}; "
                f"it needs {_range(least, most)} bytes, a window up to {limits.window_bytes}, and a checksum",
                file=file,
            )
        unpacked = zstandard.ZstdDecompressor(max_window_size=limits.window_bytes).decompress(
            data, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise Damaged(f"{file}: a frame was changed after writing ({error})", file=file) from None
    if len(unpacked) != header.content_size:
        raise Damaged(
            f"{file}: a frame holds {len(unpacked)} bytes, not {header.content_size} as it states", file=file
        )
    return unpacked


def _range(least: int, most: int) -> str:
    return f"{least}" if least == most else f"{least} to {most}"


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


@dataclass(frozen=True, slots=True)
class Place:
    """Where one record lies: enough to fetch it alone, in any process that reaches the store.

    The numbers are those of its row in the index; ``plain`` are the bytes of the whole segment, unpacked.
    """

    folder: str
    file: str
    label: str
    codec: Codec
    plain: int
    offset: int
    stored: int
    start: int
    length: int
    crc32: int
    key: str
    boundary: int | None

    def fetch(self, limits: Limits = DEFAULT_LIMITS) -> CheckedLine:
        """The record, checked. Raises :class:`Damaged`, :class:`Incomplete`, :class:`StoreError`."""
        data = self._read(limits)
        return check_line(data, 0, self.length, self.crc32, self.key, self.boundary, self._shown)

    @property
    def _shown(self) -> str:
        return self.label + self.file

    def _read(self, limits: Limits) -> bytes:
        try:
            data = choose_store(self.folder).read_range(self.file, self.offset, self.stored)
        except NotFound as error:
            raise Incomplete(f"{self._shown}: the records file is missing", file=self._shown) from error
        except Damaged as error:
            raise Damaged(f"{self._shown}: {error}", file=self._shown) from error
        if self.codec == "none":
            return data
        end = self.start + self.length
        return unpack_frame(data, end, self.plain, self._shown, limits)[self.start : end]


def place_of(rows: Rows, row: int, manifest: Manifest, folder: str, label: str) -> Place:
    """The place that a row of the index names. Raises :class:`Damaged` when it is none in the segments.

    ``folder`` is the participant's; ``label`` is put before the names of files in errors.
    """
    number, offset, stored = rows.segment[row], rows.offset[row], rows.stored[row]
    start, length, key = rows.start[row], rows.length[row], rows.episode[row]
    segment = manifest.segments[number] if number < len(manifest.segments) else None
    if (
        segment is None
        or offset + stored > segment.stored
        or start + length > segment.plain
        or (segment.codec == "none" and (start, length) != (0, stored))
    ):
        file = label + manifest.index
        raise Damaged(f"{file}: the row of episode {key} leads outside its segment", file=file, episode=key)
    return Place(
        folder=folder,
        file=segment.file,
        label=label,
        codec=segment.codec,
        plain=segment.plain,
        offset=offset,
        stored=stored,
        start=start,
        length=length,
        crc32=rows.crc32[row],
        key=key,
        boundary=rows.boundary[row],
    )


class StoredRecord:
    """One record read back: ``episode``, ``boundary``, ``schema``, ``references``, and ``size`` in bytes of
    the payload's text. It holds its own bytes, or only the place to read them from again; it pickles either
    way."""

    __slots__ = ("_payload", "boundary", "episode", "references", "schema", "size")

    def __init__(self, line: Line, place: Place | None = None) -> None:
        self.episode: EpisodeId = line.episode
        self.boundary: int | None = line.boundary
        self.schema: int = line.schema
        self.references: tuple[str, ...] = line.references
        self.size: int = line.payload.size
        self._payload: JsonPayload | Place = line.payload if place is None else place

    @property
    def json_payload(self) -> JsonPayload:
        """The payload as stored, to hand on or write again without a check. May read the store."""
        if isinstance(self._payload, Place):
            return self._payload.fetch().line.payload
        return self._payload

    @property
    def payload(self) -> Exact:
        """The payload's value, decoded each time. Raises :class:`Damaged` (and what the store raises)."""
        try:
            return self.json_payload.value()
        except Damaged as error:
            if error.episode is not None:
                raise
            raise Damaged(f"episode {self.episode}: {error}", episode=self.episode.capture_key) from None

    def __repr__(self) -> str:
        return f"<StoredRecord {self.episode} at boundary {self.boundary}: {self.size} bytes>"

    def _repr_html_(self) -> str:
        """For notebooks: the envelope, and the size of the payload."""
        from ckptfmt._show.notebook import record_html

        return record_html(self)

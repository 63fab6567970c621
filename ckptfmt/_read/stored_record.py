"""A record that was read back. Its payload is decoded on access only."""

from __future__ import annotations

from dataclasses import dataclass

from ckptfmt._display import NotebookDisplay
from ckptfmt._errors import Damaged
from ckptfmt._identity import EpisodeId
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.index_rows import Rows
from ckptfmt._model.layout import ParticipantLayout
from ckptfmt._model.manifest import Manifest, Segment
from ckptfmt._model.record_line import Line
from ckptfmt._read.checked_line import CheckedLine, check_line
from ckptfmt._read.zstd_frame import unpack_frame
from ckptfmt._values.json_payload import JsonPayload
from ckptfmt._values.patches import Exact


@dataclass(frozen=True, slots=True)
class Place:
    """The place of one record: enough to fetch it alone, in any process that reaches the store.

    The numbers are the values of its row in the index.
    """

    layout: ParticipantLayout
    segment: Segment
    offset: int
    stored: int
    start: int
    length: int
    crc32: int
    key: str
    boundary: int | None

    def fetch(self, limits: Limits = DEFAULT_LIMITS) -> CheckedLine:
        """Read and check the record. Raises :class:`Damaged`, :class:`Incomplete`, :class:`StoreError`."""
        segment, file = self.segment, self.layout.file(self.segment.file)
        data = self.layout.read_range(segment.file, self.offset, self.stored, "the records file is missing")
        if segment.codec == "zstd":
            end = self.start + self.length
            data = unpack_frame(data, end, segment.plain, file, limits)[self.start : end]
        return check_line(data, 0, self.length, self.crc32, self.key, self.boundary, file)


def place_of(rows: Rows, row: int, manifest: Manifest, layout: ParticipantLayout) -> Place:
    """The place of the record of one row. Raises :class:`Damaged` when it is outside of its segment."""
    number, offset, stored = rows.segment[row], rows.offset[row], rows.stored[row]
    start, length, key = rows.start[row], rows.length[row], rows.episode[row]
    segment = manifest.segments[number] if number < len(manifest.segments) else None
    if (
        segment is None
        or offset + stored > segment.stored
        or start + length > segment.plain
        or (segment.codec == "none" and (start, length) != (0, stored))
    ):
        file = layout.file(manifest.index)
        raise Damaged(f"{file}: the row of episode {key} leads outside its segment", file=file, episode=key)
    return Place(
        layout=layout,
        segment=segment,
        offset=offset,
        stored=stored,
        start=start,
        length=length,
        crc32=rows.crc32[row],
        key=key,
        boundary=rows.boundary[row],
    )


class StoredRecord(NotebookDisplay):
    """One record that was read back.

    It can be pickled. It holds the bytes of its payload, or only the place to read them from again (see
    :meth:`ckptfmt.ParticipantCheckpoint.restore`).

    Attributes:
        episode: The episode.
        boundary: The step after which the episode can continue; None: from its input.
        schema: The version of the payload's layout.
        references: What the controller must find in its own state.
        size: Bytes of the payload's JSON text.
    """

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
        """The payload as stored, to pass on or write again without decoding.

        The access may read the store.

        Raises:
            BadCheckpoint: The record is damaged or missing.
            StoreError: The store failed.
        """
        if isinstance(self._payload, Place):
            return self._payload.fetch().line.payload
        return self._payload

    @property
    def payload(self) -> Exact:
        """The value of the payload, decoded on each access, so that the caller may change it.

        Raises:
            BadCheckpoint: The record is damaged or missing.
            StoreError: The store failed.
        """
        try:
            return self.json_payload.value()
        except Damaged as error:
            if error.episode is not None:
                raise
            raise Damaged(f"episode {self.episode}: {error}", episode=self.episode.capture_key) from None

    def __repr__(self) -> str:
        return f"<StoredRecord {self.episode} at boundary {self.boundary}: {self.size} bytes>"

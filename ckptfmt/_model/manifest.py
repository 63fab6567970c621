"""The manifest of one participant: the list of the files that it published, and their digests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import orjson

from ckptfmt._errors import Damaged
from ckptfmt._model.fields import FORMAT, Fields
from ckptfmt._model.names import INDEX_FILE, RECORDS_FILE, is_participant_name
from ckptfmt._model.self_checked import Sealed, seal, unseal

Codec = Literal["none", "zstd"]
CODECS: Final[dict[str, tuple[Codec, str]]] = {"none": ("none", ".jsonl"), "zstd": ("zstd", ".jsonl.zst")}
"""For each codec its name and the suffix of a segment's file."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One records file.

    Attributes:
        file: The name of the file.
        stored: The bytes as stored.
        plain: The bytes before compression.
        records: The number of records.
        codec: ``none`` or ``zstd``.
    """

    file: str
    stored: int
    plain: int
    records: int
    codec: Codec

    @property
    def digest(self) -> str:
        """SHA-256 of the stored bytes in hex, as the file's name states it."""
        return self.file[len("records-") :][:64]

    @staticmethod
    def file_name(digest: str, codec: Codec) -> str:
        """The name of a records file.

        Args:
            digest: SHA-256 of the stored bytes, in hex.
            codec: The codec of the segment.

        Returns:
            The name.
        """
        return f"records-{digest}{CODECS[codec][1]}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a ``manifest.json``.

    A participant has committed when the file exists. The content depends only on the records: it has no time,
    no host and no path.

    Attributes:
        checkpoint_id: The id of the checkpoint.
        participant: The participant's name.
        kind: The participant's kind.
        segments: The records files, in order.
        index: The name of the index file.
        records: The number of records.
        digest: The inner digest of ``manifest.json``; it is set when the manifest is published or read.
    """

    checkpoint_id: str
    participant: str
    kind: str
    segments: tuple[Segment, ...]
    index: str
    records: int
    digest: str = ""

    @property
    def bytes(self) -> int:
        """The stored bytes of all segments."""
        return sum(segment.stored for segment in self.segments)

    @property
    def files(self) -> frozenset[str]:
        """The names of all files that the manifest names."""
        return frozenset((self.index, *(segment.file for segment in self.segments)))

    @property
    def index_digest(self) -> str:
        """The digest of the index, as its name states it."""
        return self.index[len("index-") :][:64]


def seal_manifest(manifest: Manifest) -> Sealed:
    """The bytes of ``manifest.json`` and their digest."""
    body = {
        "format": FORMAT,
        "features": [],
        "checkpoint_id": manifest.checkpoint_id,
        "participant": {"name": manifest.participant, "kind": manifest.kind},
        "segments": [
            {
                "file": segment.file,
                "stored": segment.stored,
                "plain": segment.plain,
                "records": segment.records,
                "codec": segment.codec,
            }
            for segment in manifest.segments
        ],
        "index": manifest.index,
        "records": manifest.records,
    }
    return seal(orjson.dumps(body))


def parse_manifest(data: bytes, file: str, *, digest: str | None = None) -> Manifest:
    """Parse and check ``manifest.json``. Raises :class:`Damaged`, :class:`Unsupported`.

    ``file`` is the path for errors; ``digest``, when given, is the required digest.
    """
    fields, found = unseal(data, file, required=digest)
    fields.check_format()
    participant = fields.object("participant")
    name = participant.text("name")
    if not is_participant_name(name):
        raise fields.damaged("is not a participant's name", "participant.name")
    segments = tuple(_parse_segment(each) for each in fields.objects("segments"))
    if len({segment.file for segment in segments}) != len(segments):
        raise fields.damaged("names a file twice", "segments")
    index = fields.text("index")
    if INDEX_FILE.fullmatch(index) is None:
        raise fields.damaged("is not index-<64 hex>.json in the participant's folder", "index")
    records = fields.integer("records")
    if records != sum(segment.records for segment in segments):
        raise fields.damaged("is not the sum of the segments' records", "records")
    return Manifest(
        checkpoint_id=fields.label("checkpoint_id"),
        participant=name,
        kind=participant.label("kind"),
        segments=segments,
        index=index,
        records=records,
        digest=found,
    )


def _parse_segment(fields: Fields) -> Segment:
    file, codec_name = fields.text("file"), fields.text("codec")
    match = RECORDS_FILE.fullmatch(file)
    if match is None:
        raise fields.damaged(
            "is not records-<64 hex>.jsonl or .jsonl.zst in the participant's folder", "file"
        )
    if codec_name not in CODECS:
        raise fields.damaged("is neither none nor zstd", "codec")
    codec, ending = CODECS[codec_name]
    if match[2] != ending:
        raise fields.damaged(f"is {codec}, but the file's name ends in {match[2]}", "codec")
    segment = Segment(
        file=file,
        stored=fields.integer("stored", 1),
        plain=fields.integer("plain", 1),
        records=fields.integer("records", 1),
        codec=codec,
    )
    if codec == "none" and segment.stored != segment.plain:
        raise fields.damaged("is not the plain size, although the segment is not compressed", "stored")
    return segment


def check_manifest_is_for(manifest: Manifest, name: str, file: str) -> None:
    """Raise :class:`Damaged` unless the manifest states the name of the participant's folder."""
    if manifest.participant != name:
        raise Damaged(
            f"{file}: it is the manifest of participant {manifest.participant!a}, not of {name!a}; "
            "the folder was renamed or copied to another name",
            file=file,
        )

"""The manifest of one participant: what it published, and the proof of it."""

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
"""Codec name: the name and the ending of a segment's file."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One records file: bytes as stored and before compression, and the number of records."""

    file: str
    stored: int
    plain: int
    records: int
    codec: Codec

    @property
    def digest(self) -> str:
        """SHA-256 of the stored bytes, in hex: it is the file's name."""
        return self.file[len("records-") :][:64]

    @staticmethod
    def file_name(digest: str, codec: Codec) -> str:
        return f"records-{digest}{CODECS[codec][1]}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A pure function of what was written: no clock, no host, no path. Its existence is the commit."""

    checkpoint_id: str
    participant: str
    kind: str
    segments: tuple[Segment, ...]
    index: str
    records: int
    digest: str = ""
    """Inner digest of ``manifest.json``; set by publishing and by reading."""

    @property
    def bytes(self) -> int:
        """Bytes of all segments as stored."""
        return sum(segment.stored for segment in self.segments)

    @property
    def files(self) -> frozenset[str]:
        """Every file that the manifest names."""
        return frozenset((self.index, *(segment.file for segment in self.segments)))

    @property
    def index_digest(self) -> str:
        return self.index[len("index-") :][:64]


def seal_manifest(manifest: Manifest) -> Sealed:
    """The bytes of ``manifest.json``, and their digest."""
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
    """Read ``manifest.json``. Raises :class:`Damaged`, :class:`Unsupported`.

    ``file`` is for the errors; ``digest``, when given, is the one that it must have.
    """
    fields, found = unseal(data, file, required=digest)
    fields.check_format()
    participant = fields.object("participant")
    name = participant.text("name")
    if not is_participant_name(name):
        raise fields.damaged("is no participant's name", "participant.name")
    segments = tuple(_parse_segment(each) for each in fields.objects("segments"))
    if len({segment.file for segment in segments}) != len(segments):
        raise fields.damaged("names one file twice", "segments")
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
        raise fields.damaged("is not the plain size, though nothing is compressed", "stored")
    return segment


def check_manifest_is_for(manifest: Manifest, name: str, file: str) -> None:
    """Raise :class:`Damaged` unless the manifest says the name of the folder that it lies in."""
    if manifest.participant != name:
        raise Damaged(
            f"{file}: it is the manifest of participant {manifest.participant!a}, not of {name!a}; "
            "the folder was renamed or copied to another name",
            file=file,
        )

"""The parts of a valid vector, which the package writes or which is built byte by byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import ckptfmt
from ckptfmt import EpisodeId, Record, Tuning
from tools.vectors.raw import NAME, Draft, Files
from tools.vectors.twin import record_twin, tagged

CODECS: Final[tuple[Literal["none", "zstd"], ...]] = ("none", "zstd")
_SMALL: Final = Tuning(segment_bytes=600, frame_bytes=200, block_rows=3)
"""Sizes at which a few records already need several segments, frames and blocks of the index."""


def record(key: str, payload: Any = None, boundary: int | None = None, **fields: Any) -> Record:
    """A record of the episode with this capture key."""
    return Record(EpisodeId.from_capture_key(key), payload, boundary, **fields)


@dataclass(frozen=True)
class Part:
    """The content of one participant."""

    records: Sequence[Record]
    codec: Literal["none", "zstd"] = "none"
    kind: str = "agent"
    small: bool = False
    """Whether it has several segments, frames and blocks if there are enough records."""


@dataclass(frozen=True)
class Good:
    """A checkpoint that the package writes."""

    about: str
    parts: Mapping[str, Part]
    checkpoint_id: str = "step-1"
    sequence: int = 1
    cut: bool = False
    restarts: Sequence[str] = ()
    marks: Mapping[str, int] = field(default_factory=dict)
    state: Any = None
    lives: Sequence[str | None] = ()

    def build(self) -> tuple[Files, Any]:
        """Build the files and the twin."""
        with TemporaryDirectory() as root:
            folder = Path(root) / "checkpoint"
            lives = [
                {"life": ckptfmt.start_life(root, source), "source_checkpoint_id": source}
                for source in self.lives
            ]
            cut = ckptfmt.create_cut(folder, self.checkpoint_id) if self.cut else None
            manifests = {
                name: self._write(folder if cut is None else Path(cut.url), name, part)
                for name, part in self.parts.items()
            }
            ckptfmt.publish(
                folder,
                participants=manifests,
                sequence=self.sequence,
                state=self.state,
                cut=cut,
                restarts=self.restarts,
                marks=self.marks,
            )
            paths = [path for path in Path(root).rglob("*") if path.is_file()]
            files = {str(path.relative_to(root)): path.read_bytes() for path in paths}
        return files, self._twin(None if cut is None else cut.name, lives)

    def _write(self, folder: Path, name: str, part: Part) -> str:
        with ckptfmt.create(
            folder,
            participant=name,
            kind=part.kind,
            checkpoint_id=self.checkpoint_id,
            compression=part.codec,
            tuning=_SMALL if part.small else Tuning(),
        ) as writer:
            for each in part.records:
                writer.write(each)
        return writer.manifest.digest

    def _twin(self, cut: str | None, lives: list[Any]) -> Any:
        keys = {each.episode.capture_key for part in self.parts.values() for each in part.records}
        return {
            "about": self.about,
            "checkpoint": {
                "id": self.checkpoint_id,
                "sequence": self.sequence,
                "cut": cut,
                "episodes": sorted(keys),
                "restarts": sorted(self.restarts),
                "marks": dict(self.marks),
                "state": tagged(self.state),
            },
            "participants": {
                name: {"kind": part.kind, "records": list(map(record_twin, part.records))}
                for name, part in self.parts.items()
            },
            "lives": lives,
        }


@dataclass(frozen=True)
class NonCanonical:
    """A valid checkpoint whose bytes the package would not write. ``records`` is the content of its lines."""

    about: str
    draft: Draft
    records: Sequence[Record]
    state: Any = field(default_factory=lambda: {"step": 1})
    restarts: Sequence[str] = ("19-0",)
    lives: Sequence[Any] = ()
    lives_files: Files = field(default_factory=dict)

    def build(self) -> tuple[Files, Any]:
        """Build the files and the twin."""
        files = {f"checkpoint/{name}": data for name, data in self.draft.build().items()}
        files |= {f"lives/{name}": data for name, data in self.lives_files.items()}
        twin = {
            "about": self.about,
            "checkpoint": {
                "id": "step-1",
                "sequence": 1,
                "cut": "cut-0" if self.draft.with_cut else None,
                "episodes": sorted(each.episode.capture_key for each in self.records),
                "restarts": list(self.restarts),
                "marks": {"17-0": 0},
                "state": tagged(self.state),
            },
            "participants": {NAME: {"kind": "agent", "records": list(map(record_twin, self.records))}},
            "lives": list(self.lives),
        }
        return files, twin

"""Orphans: files and folders of the format that belong to no checkpoint.

Orphans are cuts that were never completed, files that no manifest names, and temporary files of killed
processes. Only files with names of the format can be orphans; other files are ignored and never deleted. If a
damaged file makes it unknown which files belong to a checkpoint, none of them is an orphan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ckptfmt._errors import BadCheckpoint
from ckptfmt._limits import DEFAULT_LIMITS
from ckptfmt._model.checkpoint_file import CheckpointBody
from ckptfmt._model.layout import CheckpointLayout, ParticipantLayout
from ckptfmt._model.manifest import Manifest, parse_manifest
from ckptfmt._model.names import (
    CHECKPOINT_FILE,
    CUT_FILE,
    MANIFEST_FILE,
    is_cut_name,
    is_temporary,
    is_written_in_a_cut,
)
from ckptfmt.stores import Entry, Store

Kind = Literal["cut", "participant", "file", "temporary"]


@dataclass(frozen=True, slots=True)
class Orphan:
    """A cut, a participant's folder or a file that no checkpoint names.

    Attributes:
        path: Its path, relative to the run.
        kind: ``cut``, ``participant``, ``file`` or ``temporary``.
        reason: Why it belongs to no checkpoint.
        files: The paths of its files, relative to the run, in the order of their deletion.
        size: Bytes of all files.
        modified: When a file of it was last written, in seconds since 1970 by the store's clock. A recent
            orphan may still be written to.
    """

    path: str
    kind: Kind
    reason: str
    files: tuple[str, ...]
    size: int
    modified: float


class _CheckpointFolder:
    """The entries of a checkpoint's folder at one time, by their paths relative to it."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self.entries = {each.path: each for each in store.walk("")}

    def manifest(self, participant: str) -> Manifest | None:
        """The manifest in the folder of a participant; None when it is missing or damaged."""
        layout = ParticipantLayout(self._store, participant)
        if layout.manifest_file not in self.entries:
            return None
        try:
            data = layout.read(MANIFEST_FILE, DEFAULT_LIMITS.manifest_bytes)
            return parse_manifest(data, layout.manifest_file)
        except BadCheckpoint:
            return None

    def orphan(self, path: str, kind: Kind, reason: str, files: Iterable[Entry]) -> Orphan:
        """An orphan of this folder; ``path`` is relative to the folder."""
        listed = sorted(files, key=_deletion_order)
        folder = self.entries.get(path)
        times = [each.modified for each in listed] + ([] if folder is None else [folder.modified])
        prefix = f"{self._name}/" if self._name else ""
        return Orphan(
            path=prefix + path,
            kind=kind,
            reason=reason,
            files=tuple(prefix + each.path for each in listed),
            size=sum(each.size for each in listed),
            modified=max(times, default=0.0),
        )

    def below(self, folder: str) -> Iterator[Entry]:
        """All entries below ``folder``."""
        return (each for path, each in self.entries.items() if path.startswith(f"{folder}/"))

    def cuts(self) -> list[str]:
        """The folders that are cuts: they hold a ``cut.json``, or have a name as cuts have."""
        return [
            path
            for path, each in self.entries.items()
            if each.is_folder
            and not each.is_link
            and "/" not in path
            and (f"{path}/{CUT_FILE}" in self.entries or is_cut_name(path))
        ]


def orphans_of_checkpoint(
    store: Store, name: str, body: CheckpointBody | None, *, readable: bool
) -> list[Orphan]:
    """The orphans in the folder of one checkpoint. ``name`` is the name of the folder in the run.

    ``body`` is the contents of ``checkpoint.json``, or None without one. ``readable`` is false when
    ``checkpoint.json`` exists but cannot be read. Raises :class:`StoreError`.
    """
    folder = _CheckpointFolder(store, name)
    orphans = _temporary_files(folder)
    if not readable:
        return orphans
    layout = CheckpointLayout(store, None if body is None or body.cut is None else body.cut.name)
    cuts = folder.cuts()
    for cut in cuts:
        if cut != layout.cut:
            reason = (
                "no checkpoint.json names this cut" if body is None else "checkpoint.json names another cut"
            )
            orphans.append(folder.orphan(cut, "cut", reason, _format_files(folder.below(cut))))
    manifests = (
        None
        if body is None
        else {layout.participant(name).folder: each.manifest for name, each in body.participants.items()}
    )
    for path in _find_participant_folders(folder, layout.folder, [] if layout.cut else cuts):
        orphans += _orphans_in_participant(folder, path, manifests)
    return sorted(orphans, key=lambda each: each.path)


def temporary_files(entries: Iterable[Entry]) -> list[Orphan]:
    """The temporary files among entries of the run's folder or of the folder of its lives."""
    return [
        Orphan(each.path, "temporary", _TEMPORARY_REASON, (each.path,), each.size, each.modified)
        for each in entries
        if each.is_file and is_temporary(each.name)
    ]


_TEMPORARY_REASON: Final = "a temporary file of a process that was killed, or is still running"


def _temporary_files(folder: _CheckpointFolder) -> list[Orphan]:
    return [
        folder.orphan(path, "temporary", _TEMPORARY_REASON, [each])
        for path, each in folder.entries.items()
        if each.is_file and is_temporary(each.name)
    ]


def _find_participant_folders(folder: _CheckpointFolder, place: str, cuts: Collection[str]) -> list[str]:
    """The folders below ``place`` that hold files of a participant.

    Folders in ``cuts``, and in nested runs and checkpoints, are excluded.
    """
    holding, excluded = set(), {*cuts}
    for path, each in folder.entries.items():
        within = path.rpartition("/")[0]
        if each.name in (CHECKPOINT_FILE, CUT_FILE) and within not in ("", place):
            excluded.add(within)
        elif (not place or path.startswith(f"{place}/")) and each.is_file and is_written_in_a_cut(each.name):
            holding.add(within)
    return sorted(
        path
        for path in holding
        if path != place and not any(f"{path}/".startswith(f"{each}/") for each in excluded)
    )


def _orphans_in_participant(
    folder: _CheckpointFolder, path: str, manifests: Mapping[str, str] | None
) -> list[Orphan]:
    """The orphans in the folder of one participant.

    ``manifests`` maps the folders of all participants to the digests of their manifests; None without
    ``checkpoint.json``.
    """
    files = [each for each in _format_files(folder.below(path)) if each.path.rpartition("/")[0] == path]
    manifest = folder.manifest(path)
    if manifests is not None and path not in manifests:
        reason = "checkpoint.json does not name this participant"
        return [folder.orphan(path, "participant", reason, files)]
    if manifest is None:
        if manifests is None and not any(each.name == MANIFEST_FILE for each in folder.below(path)):
            reason = "there is no manifest: it was not committed"
            return [folder.orphan(path, "participant", reason, files)]
        return []  # the manifest is damaged, so its files are unknown
    if manifests is not None and manifest.digest != manifests[path]:
        return []
    kept = {*manifest.files, MANIFEST_FILE}
    return [
        folder.orphan(each.path, "file", "the manifest beside it does not name it", [each])
        for each in files
        if each.name not in kept
    ]


def _format_files(entries: Iterable[Entry]) -> list[Entry]:
    return [each for each in entries if each.is_file and is_written_in_a_cut(each.name)]


def _deletion_order(entry: Entry) -> tuple[int, str]:
    """A sort key: manifests before the files that they name, and ``cut.json`` last.

    So the rest of an interrupted deletion is never mistaken for a committed participant, and is still
    recognized as an orphan cut.
    """
    return ({MANIFEST_FILE: 0, CUT_FILE: 2}.get(entry.name, 1), entry.path)

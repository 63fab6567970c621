"""Orphans: what a writer left in a run and no checkpoint names. Cuts that were never completed, files that no
manifest names, and temporary files of killed processes.

Only files with the names of the format count; every other file belongs to somebody else and is never named or
touched. Where a damaged file leaves it open what belongs to the checkpoint, nothing is an orphan.
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
        path: Where it lies, relative to the run.
        kind: ``cut``, ``participant``, ``file`` or ``temporary``.
        reason: Why it belongs to no checkpoint.
        files: Its files, relative to the run, in the order in which they are deleted.
        size: Bytes of all files.
        modified: When any of it was last written, in seconds since 1970 by the store's clock: it may still be
            written to.
    """

    path: str
    kind: Kind
    reason: str
    files: tuple[str, ...]
    size: int
    modified: float


class _Folder:
    """A checkpoint's folder as it was found: what lies in it, by path relative to it."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self.found = {each.path: each for each in store.walk("")}

    def manifest(self, participant: str) -> Manifest | None:
        """The manifest in this folder, None when there is none that can be read."""
        layout = ParticipantLayout(self._store, participant)
        if layout.manifest_file not in self.found:
            return None
        try:
            data = layout.read(MANIFEST_FILE, DEFAULT_LIMITS.manifest_bytes)
            return parse_manifest(data, layout.manifest_file)
        except BadCheckpoint:
            return None

    def orphan(self, path: str, kind: Kind, reason: str, files: Iterable[Entry]) -> Orphan:
        listed = sorted(files, key=_deletion_order)
        folder = self.found.get(path)
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
        return (each for path, each in self.found.items() if path.startswith(f"{folder}/"))

    def cuts(self) -> list[str]:
        """The folders that are cuts: they hold a ``cut.json``, or have the name that cuts are given."""
        return [
            path
            for path, each in self.found.items()
            if each.is_folder
            and not each.is_link
            and "/" not in path
            and (f"{path}/{CUT_FILE}" in self.found or is_cut_name(path))
        ]


def orphans_of_checkpoint(
    store: Store, name: str, body: CheckpointBody | None, *, readable: bool
) -> list[Orphan]:
    """What belongs to nothing in the folder of one checkpoint, which lies in the run under ``name``.

    ``body`` is its ``checkpoint.json``; None when it has none or when, not ``readable``, it cannot be read.
    Raises :class:`StoreError`.
    """
    folder = _Folder(store, name)
    orphans = _temporary_files(folder)
    if not readable:
        return orphans
    layout = CheckpointLayout(store, None if body is None or body.cut is None else body.cut.name)
    cuts = folder.cuts()
    for cut in cuts:
        if cut != layout.cut:
            reason = "no checkpoint.json names this cut" if body is None else "the checkpoint is another cut"
            orphans.append(folder.orphan(cut, "cut", reason, _ours(folder.below(cut))))
    manifests = (
        None
        if body is None
        else {layout.participant(name).folder: each.manifest for name, each in body.participants.items()}
    )
    for path in _participants(folder, layout.folder, [] if layout.cut else cuts):
        orphans += _in_participant(folder, path, manifests)
    return sorted(orphans, key=lambda each: each.path)


def temporary_files(found: Iterable[Entry]) -> list[Orphan]:
    """The temporary files among these, which lie in the run's own folder or in that of its lives."""
    return [
        Orphan(each.path, "temporary", _KILLED, (each.path,), each.size, each.modified)
        for each in found
        if each.is_file and is_temporary(each.name)
    ]


_KILLED: Final = "a temporary file of a process that was killed, or is at work"


def _temporary_files(folder: _Folder) -> list[Orphan]:
    return [
        folder.orphan(path, "temporary", _KILLED, [each])
        for path, each in folder.found.items()
        if each.is_file and is_temporary(each.name)
    ]


def _participants(folder: _Folder, place: str, cuts: Collection[str]) -> list[str]:
    """The folders below ``place`` that hold files of a participant; not those in ``cuts``, nor what belongs
    to a run or checkpoint further down.
    """
    holding, others = set(), {*cuts}
    for path, each in folder.found.items():
        within = path.rpartition("/")[0]
        if each.name in (CHECKPOINT_FILE, CUT_FILE) and within not in ("", place):
            others.add(within)
        elif (not place or path.startswith(f"{place}/")) and each.is_file and is_written_in_a_cut(each.name):
            holding.add(within)
    return sorted(
        path
        for path in holding
        if path != place and not any(f"{path}/".startswith(f"{each}/") for each in others)
    )


def _in_participant(folder: _Folder, path: str, manifests: Mapping[str, str] | None) -> list[Orphan]:
    """``manifests``: folder to digest of its manifest, for all participants; None when nothing names them."""
    ours = [each for each in _ours(folder.below(path)) if each.path.rpartition("/")[0] == path]
    manifest = folder.manifest(path)
    if manifests is not None and path not in manifests:
        reason = "checkpoint.json does not name this participant"
        return [folder.orphan(path, "participant", reason, ours)]
    if manifest is None:
        if manifests is None and not any(each.name == MANIFEST_FILE for each in folder.below(path)):
            reason = "there is no manifest: it was not committed"
            return [folder.orphan(path, "participant", reason, ours)]
        return []  # damage: what belongs to it cannot be told
    if manifests is not None and manifest.digest != manifests[path]:
        return []
    kept = {*manifest.files, MANIFEST_FILE}
    return [
        folder.orphan(each.path, "file", "the manifest beside it does not name it", [each])
        for each in ours
        if each.name not in kept
    ]


def _ours(found: Iterable[Entry]) -> list[Entry]:
    return [each for each in found if each.is_file and is_written_in_a_cut(each.name)]


def _deletion_order(found: Entry) -> tuple[int, str]:
    """A manifest goes before the files that it names, ``cut.json`` last: what an interrupted deletion leaves
    is then never taken for something whole, and is still known as an orphan cut.
    """
    return ({MANIFEST_FILE: 0, CUT_FILE: 2}.get(found.name, 1), found.path)

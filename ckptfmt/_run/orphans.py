"""What lies in a run and belongs to no checkpoint: leftover cuts, files that no manifest names, and
temporary files of killed processes.

Only files that a writer of ours can have made count; everything else in the folders is somebody's own and is
never named or touched. Nor is anything named where a damaged file leaves it open what belongs to the
checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from ckptfmt._errors import CheckpointError
from ckptfmt._limits import DEFAULT_LIMITS
from ckptfmt._model.checkpoint_file import CHECKPOINT_FILE, CheckpointBody
from ckptfmt._model.cut_file import CUT_FILE
from ckptfmt._model.manifest import MANIFEST_FILE, Manifest, parse_manifest
from ckptfmt.stores._interface import Store
from ckptfmt.stores._upkeep import Found, walk

_HEX64: Final = "[0-9a-f]{64}"
_RECORDS: Final = re.compile(rf"records-{_HEX64}\.jsonl(\.zst)?|index-{_HEX64}\.json")
_OURS: Final = re.compile(rf"{_RECORDS.pattern}|scope-{_HEX64}\.json|manifest\.json|cut\.json")
_TEMPORARY: Final = re.compile(r"\.ckptfmt-[0-9a-f]+\.tmp")
_CUT_NAME: Final = re.compile(r"cut-[0-9a-f]{16}")

Kind = Literal["cut", "participant", "file", "temporary"]


def is_ours(name: str) -> bool:
    """Whether a file of this name can be one that a writer made in a participant's folder or a cut's."""
    return _OURS.fullmatch(name) is not None


def is_of_records(name: str) -> bool:
    """Whether a file of this name can hold records, or be the index of some."""
    return _RECORDS.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that nothing names. ``path`` and ``files`` are relative to the run; the files stand in the
    order in which they are deleted. ``size`` is in bytes; ``modified``, in seconds since 1970 by the store's
    clock, is when anything of it was last written: it may still be in the making."""

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
        self.found = {each.path: each for each in walk(store)}

    def manifest(self, participant: str) -> Manifest | None:
        """The manifest in this folder, None when there is none that can be read."""
        path = f"{participant}/{MANIFEST_FILE}"
        if path not in self.found:
            return None
        try:
            return parse_manifest(self._store.read(path, DEFAULT_LIMITS.manifest_bytes), path)
        except CheckpointError:
            return None

    def leftover(self, path: str, kind: Kind, reason: str, files: Iterable[Found]) -> Leftover:
        listed = sorted(files, key=_deletion_order)
        folder = self.found.get(path)
        times = [each.modified for each in listed] + ([] if folder is None else [folder.modified])
        prefix = f"{self._name}/" if self._name else ""
        return Leftover(
            path=prefix + path,
            kind=kind,
            reason=reason,
            files=tuple(prefix + each.path for each in listed),
            size=sum(each.size for each in listed),
            modified=max(times, default=0.0),
        )

    def below(self, folder: str) -> Iterator[Found]:
        return (each for path, each in self.found.items() if path.startswith(f"{folder}/"))

    def cuts(self) -> list[str]:
        """The folders that are cuts: they hold a ``cut.json``, or have the name that cuts are given."""
        return [
            path
            for path, each in self.found.items()
            if each.is_folder
            and "/" not in path
            and (f"{path}/{CUT_FILE}" in self.found or _CUT_NAME.fullmatch(path))
        ]


def leftovers_of_checkpoint(
    store: Store, name: str, body: CheckpointBody | None, *, readable: bool
) -> list[Leftover]:
    """What belongs to nothing in the folder of one checkpoint, which lies in the run under ``name``.

    ``body`` is its ``checkpoint.json``; None when it has none or when, not ``readable``, it cannot be read.
    """
    folder = _Folder(store, name)
    leftovers = _temporary_files(folder)
    if not readable:
        return leftovers
    named_cut = None if body is None or body.cut is None else body.cut.name
    cuts = folder.cuts()
    for cut in cuts:
        if cut != named_cut:
            reason = "no checkpoint.json names this cut" if body is None else "the checkpoint is another cut"
            leftovers.append(folder.leftover(cut, "cut", reason, _ours(folder.below(cut))))
    place = f"{named_cut}/" if named_cut else ""
    names = None if body is None else {place + each: reference for each, reference in _named(body).items()}
    for path in _participants(folder, place, [] if named_cut else cuts):
        leftovers += _in_participant(folder, path, names)
    return sorted(leftovers, key=lambda each: each.path)


def temporary_files(found: Iterable[Found]) -> list[Leftover]:
    """The temporary files among these, which lie in the run's own folder or in ``lives``."""
    return [
        Leftover(each.path, "temporary", _KILLED, (each.path,), each.size, each.modified)
        for each in found
        if each.is_regular and _TEMPORARY.fullmatch(each.name)
    ]


_KILLED: Final = "a temporary file of a process that was killed, or is at work"


def _temporary_files(folder: _Folder) -> list[Leftover]:
    return [
        folder.leftover(path, "temporary", _KILLED, [each])
        for path, each in folder.found.items()
        if each.is_regular and _TEMPORARY.fullmatch(each.name)
    ]


def _named(body: CheckpointBody) -> Mapping[str, str]:
    return {name: reference.manifest for name, reference in body.participants.items()}


def _participants(folder: _Folder, place: str, cuts: list[str]) -> list[str]:
    """The folders that hold files of a participant, in the folder ``place``; not those in ``cuts``, nor what
    belongs to a run or checkpoint further down."""
    holding, others = set(), {*cuts}
    for path, each in folder.found.items():
        within, _, name = path.rpartition("/")
        if name in (CHECKPOINT_FILE, CUT_FILE) and within not in ("", place.rstrip("/")):
            others.add(within)
        elif path.startswith(place) and each.is_regular and is_ours(name):
            holding.add(within)
    return sorted(
        path
        for path in holding
        if path != place.rstrip("/") and not any(f"{path}/".startswith(f"{each}/") for each in others)
    )


def _in_participant(folder: _Folder, path: str, names: Mapping[str, str] | None) -> list[Leftover]:
    """``names``: folder → digest of the manifest, of all participants; None when nothing says which there
    are."""
    ours = [each for each in _ours(folder.below(path)) if each.path.rpartition("/")[0] == path]
    manifest = folder.manifest(path)
    if names is not None and path not in names:
        reason = "checkpoint.json does not name this participant"
        return [folder.leftover(path, "participant", reason, ours)]
    if manifest is None:
        if names is None and f"{path}/{MANIFEST_FILE}" not in folder.found:
            reason = "there is no manifest: it was not committed"
            return [folder.leftover(path, "participant", reason, ours)]
        return []  # damage: what belongs to it cannot be told
    if names is not None and manifest.digest != names[path]:
        return []
    kept = {*manifest.files, MANIFEST_FILE}
    return [
        folder.leftover(each.path, "file", "the manifest beside it does not name it", [each])
        for each in ours
        if each.name not in kept
    ]


def _ours(found: Iterable[Found]) -> list[Found]:
    return [each for each in found if each.is_regular and is_ours(each.name)]


def _deletion_order(found: Found) -> tuple[int, str]:
    """A manifest goes before the files that it names, ``cut.json`` last: so what an interrupted deletion
    leaves is never taken for something whole, and is still known as a leftover cut."""
    return ({MANIFEST_FILE: 0, CUT_FILE: 2}.get(found.name, 1), found.path)

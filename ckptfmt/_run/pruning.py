"""Removing old checkpoints, and what belongs to none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from ckptfmt._errors import BadCheckpoint, NotFound
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.checkpoint_file import load_checkpoint_body
from ckptfmt._model.layout import RunLayout
from ckptfmt._model.names import CHECKPOINT_FILE
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.listed import Listed
from ckptfmt._read.opening import find_checkpoint
from ckptfmt._run.listing import Listing, list_store
from ckptfmt._run.orphans import Orphan
from ckptfmt.stores import Store, Url, choose_store

DAY_SECONDS: Final = 24 * 60 * 60.0


@dataclass(frozen=True, slots=True)
class Pruned:
    """One thing that was removed, or with ``dry_run`` would be. ``path`` is relative to the run, ``size`` in
    bytes."""

    path: str
    kind: Literal["checkpoint", "cut", "participant", "file", "temporary"]
    reason: str
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Kept:
    """One thing that a reader might expect to be removed, and why it was not."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What :func:`prune` did, or would do."""

    removed: tuple[Pruned, ...]
    kept: tuple[Kept, ...]
    dry_run: bool

    @property
    def size(self) -> int:
        """Bytes removed."""
        return sum(each.size for each in self.removed)


def prune(
    url: Url,
    *,
    keep: int | None = None,
    keep_seconds: float | None = None,
    minimum_age: float = DAY_SECONDS,
    verify: bool = False,
    dry_run: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> PruneResult:
    """Remove from the run's folder ``url`` what it no longer needs.

    Checkpoints: the ``keep`` complete ones of the highest sequence stay, and those whose ``checkpoint.json``
    is younger than ``keep_seconds``; with neither, all of them. The last complete one always stays. A broken
    one goes only when its sequence is below all that stay.

    Orphans (cuts that no ``checkpoint.json`` names, files that no manifest names, temporary files): those
    go of which nothing was written for ``minimum_age`` seconds, by the store's clock: a younger cut may
    still be written. It must be longer than the longest time between two writes of a commit, and from the
    last write to ``checkpoint.json``. Files that are not ours are never touched, nor what lies behind a
    link.

    ``verify``: a checkpoint counts as complete only when every byte of it is what was written: the newest
    ones are read until ``keep`` good ones were found. Raises :class:`NotFound`, :class:`StoreError` (what
    was removed until then is gone; call it again), :class:`Unsupported`, ValueError.
    """
    return prune_store(
        choose_store(url),
        keep=keep,
        keep_seconds=keep_seconds,
        minimum_age=minimum_age,
        verify=verify,
        dry_run=dry_run,
        limits=limits,
    )


def prune_store(
    store: Store,
    *,
    keep: int | None = None,
    keep_seconds: float | None = None,
    minimum_age: float = DAY_SECONDS,
    verify: bool = False,
    dry_run: bool = False,
    read: Callable[[Store], Store] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> PruneResult:
    """Like :func:`prune`. ``read`` gives the store through which a checkpoint's folder is verified."""
    if keep is not None and (type(keep) is not int or keep < 1):
        raise ValueError("keep is an int of at least 1: the last complete checkpoint always stays")
    ages = {"minimum_age": minimum_age} | ({} if keep_seconds is None else {"keep_seconds": keep_seconds})
    for name, age in ages.items():
        if not _is_age(age):
            raise ValueError(f"{name} is a finite number of seconds, not negative")
    listing = list_store(store, limits)
    pruning = _Pruning(store, listing, store.server_time(), minimum_age, dry_run, read, limits)
    return pruning.run(keep, keep_seconds, verify)


def _is_age(value: float) -> bool:
    """NaN is neither young nor old, so with it nothing would be protected."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf


class _Pruning:
    def __init__(
        self,
        store: Store,
        listing: Listing,
        at: float,
        minimum_age: float,
        dry_run: bool,
        read: Callable[[Store], Store] | None,
        limits: Limits,
    ) -> None:
        self._store = store
        self._listing = listing
        self._now = at
        self._minimum_age = minimum_age
        self._dry_run = dry_run
        self._read = read
        self._limits = limits
        self._removed: list[Pruned] = []
        self._kept: list[Kept] = []

    def run(self, keep: int | None, keep_seconds: float | None, verify: bool) -> PruneResult:
        if keep is not None or keep_seconds is not None:
            self._prune_checkpoints(keep, keep_seconds, verify)
        gone = {each.path for each in self._removed}
        for orphan in self._listing.orphans:
            if orphan.path.partition("/")[0] not in gone:
                self._prune_orphan(orphan)
        return PruneResult(tuple(self._removed), tuple(self._kept), self._dry_run)

    def _prune_checkpoints(self, keep: int | None, keep_seconds: float | None, verify: bool) -> None:
        good = 0
        lowest: int | None = None
        old: list[Listed] = []
        for each in reversed(self._listing.complete()):
            young = (
                keep_seconds is not None
                and each.modified is not None
                and self._now - each.modified < keep_seconds
            )
            if young or good < (keep or 1):
                if verify and not self._is_good(each):
                    continue
                good += 1
                lowest = each.sequence
            else:
                old.append(each)
        if lowest is None:
            return  # nothing is known to be good: nothing goes
        broken = [each for each in self._listing if each.state == "broken"]
        for each in broken:
            if each.sequence is not None and each.sequence < lowest:
                old.append(each)
            else:
                self._kept.append(
                    Kept(each.name, f"it is broken, and not older than what stays: {each.reason}")
                )
        for each in sorted(old, key=lambda listed: (listed.sequence, listed.name)):
            self._prune_checkpoint(each)

    def _is_good(self, listed: Listed) -> bool:
        folder = self._store.at(listed.name)
        store = folder if self._read is None else self._read(folder)
        report = find_checkpoint(store, self._limits).verify()
        if not report.ok:
            self._kept.append(Kept(listed.name, f"it is damaged: {report.problems[0].message}"))
        return report.ok

    def _prune_checkpoint(self, listed: Listed) -> None:
        if listed.is_link:
            self._kept.append(Kept(listed.name, "it is a link; remove it by hand"))
            return
        folder = self._store.at(listed.name)
        checkpoint = find_checkpoint(folder, self._limits)
        files, size = _files_of(folder, checkpoint)
        reason = f"sequence {listed.sequence} is older than what stays"
        left = [each for each in self._listing.orphans if each.path.startswith(f"{listed.name}/")]
        young = [each for each in left if self._is_young(each)]
        for each in left:
            if each not in young:
                files += [path.partition("/")[2] for path in each.files]
                size += each.size
        self._kept += [self._too_young(each) for each in young]
        self._removed.append(Pruned(listed.name, "checkpoint", reason, len(files), size))
        if not self._dry_run:
            self._delete(folder, files)
            self._store.remove_empty_folder(listed.name)

    def _prune_orphan(self, orphan: Orphan) -> None:
        if self._is_young(orphan):
            self._kept.append(self._too_young(orphan))
            return
        if self._was_named_meanwhile(orphan):
            self._kept.append(Kept(orphan.path, "checkpoint.json names it by now"))
            return
        self._removed.append(Pruned(orphan.path, orphan.kind, orphan.reason, len(orphan.files), orphan.size))
        if not self._dry_run:
            self._delete(self._store, list(orphan.files))
            if orphan.kind in ("cut", "participant"):
                self._remove_empty_folders(orphan.path)

    def _is_young(self, orphan: Orphan) -> bool:
        return self._now - orphan.modified < self._minimum_age

    def _too_young(self, orphan: Orphan) -> Kept:
        age = max(0, round(self._now - orphan.modified))
        return Kept(
            orphan.path,
            f"it was written {age} seconds ago and may still be in the making ({orphan.reason}); "
            f"it goes when it is {round(self._minimum_age)} seconds old",
        )

    def _was_named_meanwhile(self, orphan: Orphan) -> bool:
        """A cut that took longer than anybody thought: its ``checkpoint.json`` may just have appeared."""
        if orphan.kind not in ("cut", "participant"):
            return False
        name, _, rest = orphan.path.partition("/")
        try:
            body = load_checkpoint_body(RunLayout(self._store).checkpoint(name), self._limits)
        except (NotFound, BadCheckpoint):
            return False
        listed = next((each for each in self._listing if each.name == name), None)
        was_there = listed is not None and listed.sequence is not None
        return not was_there and (body.cut is None or body.cut.name == rest.partition("/")[0])

    def _delete(self, folder: Store, files: list[str]) -> None:
        """Delete files in this order, then the folders that are empty."""
        folders: set[str] = set()
        for file in files:
            folder.delete(file)
            folders.update(_folders_up(file.rpartition("/")[0]))
        for each in sorted(folders, key=len, reverse=True):
            folder.remove_empty_folder(each)

    def _remove_empty_folders(self, path: str) -> None:
        below = [each.path for each in self._store.walk(path) if each.is_folder]
        for folder in [*reversed(below), *_folders_up(path)]:
            self._store.remove_empty_folder(folder)


def _folders_up(folder: str) -> list[str]:
    """A folder and those above it, innermost first; not the place itself."""
    parts = folder.split("/") if folder else []
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _files_of(folder: Store, checkpoint: Checkpoint) -> tuple[list[str], int]:
    """The files of a checkpoint in the order of their deletion, and their bytes.

    ``checkpoint.json`` goes first, ``cut.json`` last: from then on the cut is one that nothing names, and the
    next ``prune`` finishes what a killed one began. Without a cut it is the other way round: each file goes
    before the one that names it, and what is left in between is a broken checkpoint of the same sequence.
    """
    body, layout = checkpoint.body, checkpoint.layout
    assert body is not None
    manifests, rest, size = [], [], 0
    for name in body.participants:
        files = layout.participant(name)
        manifests.append(files.manifest_file)
        try:
            manifest = checkpoint[name].manifest
        except BadCheckpoint:
            continue  # what it held is not known; it is removed once nothing names the cut any more
        rest += [files.file(each) for each in sorted(manifest.files)]
        size += manifest.bytes
    if layout.cut is None:
        return [*rest, *manifests, CHECKPOINT_FILE], size
    return [CHECKPOINT_FILE, *manifests, *rest, layout.cut_file], size

"""Removing old checkpoints and orphans."""

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
    """A checkpoint or an orphan that was removed, or would be with ``dry_run``.

    Attributes:
        path: Its path, relative to the run.
        kind: ``checkpoint``, or the kind of the orphan.
        reason: Why it was removed.
        files: The number of files.
        size: Bytes of these files.
    """

    path: str
    kind: Literal["checkpoint", "cut", "participant", "file", "temporary"]
    reason: str
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint or an orphan that was not removed, although it is old, damaged or unnamed.

    Attributes:
        path: Its path, relative to the run.
        reason: Why it was kept.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What :func:`ckptfmt.prune` did, or would do.

    Attributes:
        removed: What was removed.
        kept: What was kept for a reason that may surprise.
        dry_run: Whether nothing was deleted.
    """

    removed: tuple[Pruned, ...]
    kept: tuple[Kept, ...]
    dry_run: bool

    @property
    def size(self) -> int:
        """Bytes of all removed files."""
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
    """Remove old checkpoints and orphans from a run.

    Without ``keep`` and ``keep_seconds``, all checkpoints are kept. With both, a checkpoint is kept if either
    applies. The latest complete checkpoint is always kept. A broken checkpoint is removed only if its
    sequence is lower than that of every kept one.

    An orphan (a cut that no ``checkpoint.json`` names, a file that no manifest names, a temporary file) is
    removed once nothing of it was written for ``minimum_age`` seconds, because a younger one may still be in
    use. Files that are not of the format are never deleted, and links are never followed.

    Args:
        url: The folder of the run.
        keep: How many complete checkpoints to keep, those with the highest sequences. At least 1.
        keep_seconds: Keep complete checkpoints whose ``checkpoint.json`` is younger than this.
        minimum_age: The age in seconds, by the store's clock, from which orphans are removed. It must exceed
            the longest time between two writes of a commit, and from the last one to ``checkpoint.json``.
        verify: Count a checkpoint as complete only if every byte is what was written. Reads the latest
            checkpoints until ``keep`` undamaged ones were found.
        dry_run: Only report what would be removed.
        limits: Limits for reading files that others wrote.

    Returns:
        What was removed, and what was kept.

    Raises:
        NotFound: There is no such folder, or it is not the folder of a run.
        StoreError: The store failed. Part of the files may be deleted; repeat the call.
        ValueError: ``keep``, ``keep_seconds`` or ``minimum_age`` is not a valid number.

    Example:
        ::

            result = ckptfmt.prune("run", keep=3)
            print(len(result.removed), result.size)
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
    """Like :func:`prune`. ``read`` replaces the store through which a checkpoint's folder is verified."""
    if keep is not None and (type(keep) is not int or keep < 1):
        raise ValueError("keep must be an int of at least 1: the latest complete checkpoint is always kept")
    ages = {"minimum_age": minimum_age} | ({} if keep_seconds is None else {"keep_seconds": keep_seconds})
    for name, age in ages.items():
        if not _is_valid_age(age):
            raise ValueError(f"{name} must be a finite number of seconds, not negative")
    listing = list_store(store, limits)
    pruning = _Pruning(store, listing, store.server_time(), minimum_age, dry_run, read, limits)
    return pruning.run(keep, keep_seconds, verify)


def _is_valid_age(value: float) -> bool:
    """Whether ``value`` is an age in seconds. NaN is not: it compares as neither young nor old."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value < math.inf


class _Pruning:
    """One call of :func:`prune`."""

    def __init__(
        self,
        store: Store,
        listing: Listing,
        now: float,
        minimum_age: float,
        dry_run: bool,
        read: Callable[[Store], Store] | None,
        limits: Limits,
    ) -> None:
        self._store = store
        self._listing = listing
        self._now = now
        self._minimum_age = minimum_age
        self._dry_run = dry_run
        self._read = read
        self._limits = limits
        self._removed: list[Pruned] = []
        self._kept: list[Kept] = []

    def run(self, keep: int | None, keep_seconds: float | None, verify: bool) -> PruneResult:
        if keep is not None or keep_seconds is not None:
            self._prune_checkpoints(keep, keep_seconds, verify)
        removed_checkpoints = {each.path for each in self._removed}
        for orphan in self._listing.orphans:
            if orphan.path.partition("/")[0] not in removed_checkpoints:
                self._prune_orphan(orphan)
        return PruneResult(tuple(self._removed), tuple(self._kept), self._dry_run)

    def _prune_checkpoints(self, keep: int | None, keep_seconds: float | None, verify: bool) -> None:
        kept = 0
        lowest_kept: int | None = None
        old: list[Listed] = []
        for each in reversed(self._listing.complete()):
            young = (
                keep_seconds is not None
                and each.modified is not None
                and self._now - each.modified < keep_seconds
            )
            if young or kept < (keep or 1):
                if verify and not self._is_undamaged(each):
                    continue
                kept += 1
                lowest_kept = each.sequence
            else:
                old.append(each)
        if lowest_kept is None:
            return  # no checkpoint is known to be undamaged: keep all
        broken = [each for each in self._listing if each.state == "broken"]
        for each in broken:
            if each.sequence is not None and each.sequence < lowest_kept:
                old.append(each)
            else:
                self._kept.append(
                    Kept(each.name, f"it is broken, but not older than the kept checkpoints: {each.reason}")
                )
        for each in sorted(old, key=lambda listed: (listed.sequence, listed.name)):
            self._prune_checkpoint(each)

    def _is_undamaged(self, listed: Listed) -> bool:
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
        files, size = _files_to_delete(folder, checkpoint)
        reason = f"sequence {listed.sequence} is older than the kept checkpoints"
        orphans = [each for each in self._listing.orphans if each.path.startswith(f"{listed.name}/")]
        young = [each for each in orphans if self._is_young(each)]
        for each in orphans:
            if each not in young:
                files += [path.partition("/")[2] for path in each.files]
                size += each.size
        self._kept += [self._keep_as_young(each) for each in young]
        self._removed.append(Pruned(listed.name, "checkpoint", reason, len(files), size))
        if not self._dry_run:
            self._delete(folder, files)
            self._store.remove_empty_folder(listed.name)

    def _prune_orphan(self, orphan: Orphan) -> None:
        if self._is_young(orphan):
            self._kept.append(self._keep_as_young(orphan))
            return
        if self._is_named_now(orphan):
            self._kept.append(Kept(orphan.path, "checkpoint.json names it now"))
            return
        self._removed.append(Pruned(orphan.path, orphan.kind, orphan.reason, len(orphan.files), orphan.size))
        if not self._dry_run:
            self._delete(self._store, list(orphan.files))
            if orphan.kind in ("cut", "participant"):
                self._remove_empty_folders(orphan.path)

    def _is_young(self, orphan: Orphan) -> bool:
        return self._now - orphan.modified < self._minimum_age

    def _keep_as_young(self, orphan: Orphan) -> Kept:
        age = max(0, round(self._now - orphan.modified))
        return Kept(
            orphan.path,
            f"it was written {age} seconds ago and may still be in use ({orphan.reason}); "
            f"it is removed when it is {round(self._minimum_age)} seconds old",
        )

    def _is_named_now(self, orphan: Orphan) -> bool:
        """Whether ``checkpoint.json`` was created after the listing and names this cut or participant."""
        if orphan.kind not in ("cut", "participant"):
            return False
        name, _, rest = orphan.path.partition("/")
        try:
            body = load_checkpoint_body(RunLayout(self._store).checkpoint(name), self._limits)
        except (NotFound, BadCheckpoint):
            return False
        listed = next((each for each in self._listing if each.name == name), None)
        was_listed = listed is not None and listed.sequence is not None
        return not was_listed and (body.cut is None or body.cut.name == rest.partition("/")[0])

    def _delete(self, folder: Store, files: list[str]) -> None:
        """Delete files in this order, then the folders that are empty, innermost first."""
        folders: set[str] = set()
        for file in files:
            folder.delete(file)
            folders.update(_folder_and_parents(file.rpartition("/")[0]))
        for each in sorted(folders, key=len, reverse=True):
            folder.remove_empty_folder(each)

    def _remove_empty_folders(self, path: str) -> None:
        below = [each.path for each in self._store.walk(path) if each.is_folder]
        for folder in [*reversed(below), *_folder_and_parents(path)]:
            self._store.remove_empty_folder(folder)


def _folder_and_parents(folder: str) -> list[str]:
    """A folder and its parents, innermost first, without the folder of the store."""
    parts = folder.split("/") if folder else []
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _files_to_delete(folder: Store, checkpoint: Checkpoint) -> tuple[list[str], int]:
    """The files of a checkpoint in the order of their deletion, and their bytes.

    With a cut, ``checkpoint.json`` is deleted first and ``cut.json`` last: the rest of an interrupted
    deletion is an orphan cut, which the next ``prune`` removes. Without a cut, each file is deleted before
    the one that names it: the rest is a broken checkpoint with the same sequence.
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
            continue  # its files are unknown; prune removes them once the cut is an orphan
        rest += [files.file(each) for each in sorted(manifest.files)]
        size += manifest.bytes
    if layout.cut is None:
        return [*rest, *manifests, CHECKPOINT_FILE], size
    return [CHECKPOINT_FILE, *manifests, *rest, layout.cut_file], size

"""Listing the folder of a run: its checkpoints, its lives and its orphans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, overload

from ckptfmt._display import NotebookDisplay, text_of
from ckptfmt._errors import BadCheckpoint, Damaged, Incomplete, NotFound, StoreError
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.checkpoint_file import CheckpointBody
from ckptfmt._model.layout import ParticipantLayout, RunLayout
from ckptfmt._model.manifest import Manifest
from ckptfmt._model.names import CHECKPOINT_FILE, CUT_FILE, LIVES_FOLDER, MANIFEST_FILE, life_number
from ckptfmt._read.listed import Listed, State
from ckptfmt._read.opening import find_checkpoint
from ckptfmt._run.lives import Life, read_life
from ckptfmt._run.orphans import Orphan, orphans_of_checkpoint, temporary_files
from ckptfmt.stores import Store, Url, choose_store

_DIGITS: Final = re.compile(r"([0-9]+)")


class Listing(Sequence[Listed], NotebookDisplay):
    """The checkpoints of a run: a sequence, sorted by name (``step-9`` before ``step-10``).

    Attributes:
        url: The folder of the run.
        lives: The lives of the run, sorted by number.
        orphans: Files and folders that belong to no checkpoint. :func:`ckptfmt.prune` removes old ones.
    """

    def __init__(
        self,
        url: str,
        checkpoints: Sequence[Listed],
        lives: Sequence[Life],
        orphans: Sequence[Orphan],
    ) -> None:
        self.url = url
        self.lives = tuple(lives)
        self.orphans = tuple(orphans)
        self._checkpoints = tuple(checkpoints)

    @overload
    def __getitem__(self, place: int) -> Listed: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Listed, ...]: ...
    def __getitem__(self, place: int | slice) -> Listed | tuple[Listed, ...]:
        return self._checkpoints[place]

    def __len__(self) -> int:
        return len(self._checkpoints)

    def complete(self) -> list[Listed]:
        """The complete checkpoints of the run.

        Returns:
            The checkpoints, sorted by sequence, then by name.
        """
        return sorted(
            (each for each in self if each.state == "complete"),
            key=lambda each: (each.sequence, _natural_order(each.name)),
        )

    def __repr__(self) -> str:
        return text_of(self)


def list_run(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Listing:
    """List the checkpoints directly below a folder, complete or not.

    The listing reads ``checkpoint.json``, cuts and manifests, and compares the names and sizes of the other
    files. It reads no records. Other folders are ignored.

    Args:
        url: The folder of the run.
        limits: Limits for reading files that others wrote.

    Returns:
        The listing.

    Raises:
        NotFound: There is no such folder, or it is not the folder of a run.
        StoreError: The store failed.

    Example:
        ::

            for listed in ckptfmt.list("run"):
                print(listed.name, listed.state, listed.size)
    """
    return list_store(choose_store(url), limits)


def list_store(
    store: Store,
    limits: Limits = DEFAULT_LIMITS,
    *,
    with_unreadable: bool = False,
    with_orphans: bool = True,
) -> Listing:
    """Like :func:`list_run`, for a store.

    ``with_unreadable``: list a checkpoint that the store cannot read as unreadable instead of raising.
    Without ``with_orphans``, the folders of complete checkpoints are not searched.
    """
    checkpoints: list[Listed] = []
    found = store.entries("")
    for each in found:
        if each.name in (CHECKPOINT_FILE, CUT_FILE, MANIFEST_FILE):
            raise _not_a_run(store, each.name)
    orphans = temporary_files(found)
    run = RunLayout(store)
    for entry in found:
        if not entry.is_folder or entry.name == LIVES_FOLDER:
            continue
        try:
            listed, found_orphans = _FolderInspection(
                run, entry.name, entry.is_link, limits, with_orphans
            ).result()
        except NotFound:
            continue
        except StoreError as error:
            if not with_unreadable:
                raise
            listed = Listed(entry.name, store.at(entry.name).url, "unreadable", reason=str(error))
            found_orphans = []
        checkpoints.append(listed)
        orphans += found_orphans
    lives, temporary = _read_lives(run, limits)
    checkpoints.sort(key=lambda each: _natural_order(each.name))
    return Listing(store.url, checkpoints, lives, orphans + temporary)


def _not_a_run(store: Store, file: str) -> NotFound:
    if file == MANIFEST_FILE:
        return NotFound(
            f"{store.url}: this is not the folder of a run: it holds the {file} of one participant; "
            "use a folder above it"
        )
    return NotFound(f"{store.url}: this is not the folder of a run: it holds a {file}; use a folder above it")


class _FolderInspection:
    """Determines the state and the orphans of one folder of a run."""

    def __init__(self, run: RunLayout, name: str, is_link: bool, limits: Limits, with_orphans: bool) -> None:
        self._name = name
        self._is_link = is_link
        self._store = run.checkpoint(name).store
        self._limits = limits
        self._with_orphans = with_orphans
        self._body: CheckpointBody | None = None
        self._size: int | None = None
        self._participants: int | None = None

    def result(self) -> tuple[Listed, list[Orphan]]:
        """The checkpoint and its orphans. Raises :class:`NotFound` when the folder is not a checkpoint."""
        state: State = "complete"
        reason: str | None = None
        readable = True
        try:
            checkpoint = find_checkpoint(self._store, self._limits)
            self._body = checkpoint.body
            self._participants = len(checkpoint)
            if self._body is None:
                state, reason = "incomplete", _NOT_COMPLETED
            else:
                checkpoint.check_cut()
                size = 0
                for name, part in checkpoint.items():
                    check_files(checkpoint.layout.participant(name), part.manifest)
                    size += part.manifest.bytes
                self._size = size
        except NotFound:
            if not self._holds_orphans():
                raise
            state, reason = "incomplete", _NOT_COMPLETED
        except BadCheckpoint as error:
            not_completed = isinstance(error, Incomplete) and self._body is None
            state, reason = "incomplete" if not_completed else "broken", str(error)
            readable = not_completed or self._body is not None
        orphans = self._orphans(readable)
        return self._make_listed(state, reason, orphans), orphans

    def _orphans(self, readable: bool) -> list[Orphan]:
        if self._is_link or (self._body is not None and not self._with_orphans):
            return []
        return orphans_of_checkpoint(self._store, self._name, self._body, readable=readable)

    def _holds_orphans(self) -> bool:
        """Whether a folder without a checkpoint holds files of the format.

        These are a cut whose ``cut.json`` is not written yet, or the rest of an interrupted ``prune``.
        """
        return not self._is_link and any(
            each.kind in ("cut", "participant")
            for each in orphans_of_checkpoint(self._store, self._name, None, readable=True)
        )

    def _make_listed(self, state: State, reason: str | None, orphans: list[Orphan]) -> Listed:
        body = self._body
        if body is None:
            times = [each.modified for each in self._store.entries("")]
            times += [each.modified for each in orphans]
        else:
            times = [self._store.stat(CHECKPOINT_FILE).modified]
        return Listed(
            name=self._name,
            url=self._store.url,
            state=state,
            checkpoint_id=None if body is None else body.checkpoint_id,
            sequence=None if body is None else body.sequence,
            participants=self._participants,
            episodes=None if body is None else len(body.episodes),
            size=self._size,
            reason=reason,
            modified=max(times, default=None),
            is_link=self._is_link,
        )


_NOT_COMPLETED: Final = f"there is no {CHECKPOINT_FILE}: it was never completed"


def check_files(layout: ParticipantLayout, manifest: Manifest) -> None:
    """Compare names and sizes of the files in a participant's folder with its manifest.

    No file is read. Raises :class:`Incomplete` (a file is missing), :class:`Damaged`, :class:`StoreError`.
    """
    try:
        found = {each.name: each for each in layout.store.entries(layout.folder)}
    except NotFound:
        found = {}
    for name in sorted(manifest.files):
        file = layout.file(name)
        if name not in found:
            raise Incomplete(f"{file}: it is missing", file=file)
        if not found[name].is_file:
            raise Damaged(f"{file}: it is not a regular file; it was replaced after writing", file=file)
    for segment in manifest.segments:
        stored = found[segment.file].size
        if stored != segment.stored:
            file = layout.file(segment.file)
            raise Damaged(f"{file}: it has {stored} bytes, not {segment.stored}", file=file)


def _read_lives(run: RunLayout, limits: Limits) -> tuple[list[Life], list[Orphan]]:
    try:
        found = run.store.entries(LIVES_FOLDER)
    except NotFound:
        return [], []
    numbers = [life_number(each.name) for each in found if each.is_file]
    lives = [read_life(run, number, limits) for number in numbers if number is not None]
    return sorted(lives, key=lambda life: life.number), temporary_files(found)


def _natural_order(name: str) -> list[Any]:
    """A sort key that compares the numbers in a name by value."""
    parts = enumerate(_DIGITS.split(name))
    return [(len(part.lstrip("0")), part) if place % 2 else part for place, part in parts]

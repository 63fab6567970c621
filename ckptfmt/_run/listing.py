"""What lies in the folder of a run: its checkpoints, its lives, and what belongs to nothing."""

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
    """The checkpoints of a run, by name (``step-9`` before ``step-10``).

    Attributes:
        url: The run's folder.
        lives: The lives of the run, by number.
        orphans: What belongs to no checkpoint; :func:`ckptfmt.prune` removes what is old of it.
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
        """The complete checkpoints.

        Returns:
            They, by sequence, then by name.
        """
        return sorted(
            (each for each in self if each.state == "complete"),
            key=lambda each: (each.sequence, _natural(each.name)),
        )

    def __repr__(self) -> str:
        return text_of(self)


def list_run(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Listing:
    """List every checkpoint directly below a folder, complete or not. Other folders are left out.

    Reads ``checkpoint.json``, cuts and manifests, and compares names and sizes of the files; no record is
    read.

    Args:
        url: The run's folder.
        limits: The most that reading may cost.

    Returns:
        The listing.

    Raises:
        NotFound: There is no such folder, or it is no run.
        StoreError: The store failed.
    """
    return list_store(choose_store(url), limits)


def list_store(
    store: Store,
    limits: Limits = DEFAULT_LIMITS,
    *,
    with_unreadable: bool = False,
    with_orphans: bool = True,
) -> Listing:
    """Like :func:`list_run`. ``with_unreadable`` names a checkpoint that the store cannot read, instead of
    raising; without ``with_orphans`` the folders of complete checkpoints are not walked through.
    """
    checkpoints: list[Listed] = []
    found = store.entries("")
    for each in found:
        if each.name in (CHECKPOINT_FILE, CUT_FILE, MANIFEST_FILE):
            raise _no_run(store, each.name)
    orphans = temporary_files(found)
    run = RunLayout(store)
    for entry in found:
        if not entry.is_folder or entry.name == LIVES_FOLDER:
            continue
        try:
            listed, left = _Look(run, entry.name, entry.is_link, limits, with_orphans).result()
        except NotFound:
            continue
        except StoreError as error:
            if not with_unreadable:
                raise
            listed, left = Listed(entry.name, store.at(entry.name).url, "unreadable", reason=str(error)), []
        checkpoints.append(listed)
        orphans += left
    lives, left = _lives(run, limits)
    checkpoints.sort(key=lambda each: _natural(each.name))
    return Listing(store.url, checkpoints, lives, orphans + left)


def _no_run(store: Store, file: str) -> NotFound:
    if file == MANIFEST_FILE:
        return NotFound(
            f"{store.url}: this is no run, it holds the {file} of one participant; "
            "name the checkpoint's folder above it"
        )
    return NotFound(f"{store.url}: this is no run, it holds a {file}; name the run's folder above it")


class _Look:
    """Looks at one folder of the run. Raises NotFound when it is no checkpoint."""

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
        state: State = "complete"
        reason: str | None = None
        readable = True
        try:
            checkpoint = find_checkpoint(self._store, self._limits)
            self._body = checkpoint.body
            self._participants = len(checkpoint)
            if self._body is None:
                state, reason = "incomplete", _NEVER_COMPLETED
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
            state, reason = "incomplete", _NEVER_COMPLETED
        except BadCheckpoint as error:
            never = isinstance(error, Incomplete) and self._body is None
            state, reason = "incomplete" if never else "broken", str(error)
            readable = never or self._body is not None
        orphans = self._orphans(readable)
        return self._listed(state, reason, orphans), orphans

    def _orphans(self, readable: bool) -> list[Orphan]:
        if self._is_link or (self._body is not None and not self._with_orphans):
            return []
        return orphans_of_checkpoint(self._store, self._name, self._body, readable=readable)

    def _holds_orphans(self) -> bool:
        """Whether something of the format lies here all the same: a cut whose ``cut.json`` was not written
        yet, or what an interrupted ``prune`` left.
        """
        return not self._is_link and any(
            each.kind in ("cut", "participant")
            for each in orphans_of_checkpoint(self._store, self._name, None, readable=True)
        )

    def _listed(self, state: State, reason: str | None, orphans: list[Orphan]) -> Listed:
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


_NEVER_COMPLETED: Final = f"it has no {CHECKPOINT_FILE}: never completed"


def check_files(layout: ParticipantLayout, manifest: Manifest) -> None:
    """Compare names and sizes of the files in a participant's folder with its manifest; no file is read.

    Raises :class:`Incomplete` (one is missing), :class:`Damaged`, :class:`StoreError`.
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
            raise Damaged(f"{file}: it is no regular file; it was put there later", file=file)
    for segment in manifest.segments:
        stored = found[segment.file].size
        if stored != segment.stored:
            file = layout.file(segment.file)
            raise Damaged(f"{file}: it has {stored} bytes, not {segment.stored}", file=file)


def _lives(run: RunLayout, limits: Limits) -> tuple[list[Life], list[Orphan]]:
    try:
        found = run.store.entries(LIVES_FOLDER)
    except NotFound:
        return [], []
    numbers = [life_number(each.name) for each in found if each.is_file]
    lives = [read_life(run, number, limits) for number in numbers if number is not None]
    return sorted(lives, key=lambda life: life.number), temporary_files(found)


def _natural(name: str) -> list[Any]:
    """Sorts numbers in a name by value."""
    parts = enumerate(_DIGITS.split(name))
    return [(len(part.lstrip("0")), part) if place % 2 else part for place, part in parts]

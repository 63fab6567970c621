"""What lies in the folder of a run: its checkpoints, its lives, and what belongs to nothing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, overload

from ckptfmt._errors import CheckpointError, Damaged, Incomplete, NotFound, StoreError
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.checkpoint_file import CHECKPOINT_FILE, CheckpointBody
from ckptfmt._model.cut_file import CUT_FILE
from ckptfmt._model.life_file import LIVES_FOLDER
from ckptfmt._model.manifest import MANIFEST_FILE, Manifest
from ckptfmt._model.self_checked import unseal
from ckptfmt._read.checkpoint import Checkpoint, find_checkpoint
from ckptfmt._read.participant import ParticipantCheckpoint
from ckptfmt._run.orphans import Leftover, leftovers_of_checkpoint, temporary_files
from ckptfmt.stores import Url, choose_store
from ckptfmt.stores._interface import Store
from ckptfmt.stores._upkeep import look

State = Literal["complete", "incomplete", "broken", "unreadable"]

_LIFE: Final = re.compile(r"(0|[1-9][0-9]{0,8})\.json")
_DIGITS: Final = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class Listed:
    """One checkpoint of a run; what is not known of an incomplete or broken one is None.

    ``complete``: ``checkpoint.json`` is there, and every file that it leads to has its right name and size;
    only :func:`ckptfmt.verify` reads them. ``broken``: something of it is damaged or gone. ``incomplete``:
    it was never finished, or is being written now. ``unreadable``: the store failed; only ``ckptfmt ls``
    says that of one among others, elsewhere the error is raised. ``reason`` says why it is not complete.
    ``size`` is in bytes of records as stored; ``modified``, in seconds since 1970 by the store's clock, is
    when ``checkpoint.json`` was written, else the newest file of it. ``is_link``: the folder is a link to it.
    """

    name: str
    url: str
    state: State
    checkpoint_id: str | None = None
    sequence: int | None = None
    participants: int | None = None
    episodes: int | None = None
    size: int | None = None
    reason: str | None = None
    modified: float | None = None
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class Life:
    """One life of the run, and the checkpoint that it restored; ``problem`` says what is wrong with its
    file."""

    number: int
    source_checkpoint_id: str | None = None
    problem: str | None = None


class Listing(Sequence[Listed]):
    """The checkpoints of a run, by name (``step-9`` before ``step-10``); besides ``lives``, by number, and
    ``leftovers``: what belongs to no checkpoint, and :func:`ckptfmt.prune` removes."""

    def __init__(
        self,
        url: str,
        checkpoints: Sequence[Listed],
        lives: Sequence[Life],
        leftovers: Sequence[Leftover],
    ) -> None:
        self.url = url
        self.lives = tuple(lives)
        self.leftovers = tuple(leftovers)
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
        """The complete ones, by sequence (then by name)."""
        return sorted(
            (each for each in self if each.state == "complete"),
            key=lambda each: (each.sequence, _natural(each.name)),
        )

    def __repr__(self) -> str:
        from ckptfmt._text import listing_text

        return listing_text(self)

    def _repr_html_(self) -> str:
        from ckptfmt._show.notebook import listing_html

        return listing_html(self)


class LaterCheckpointUnusable(UserWarning):
    """A checkpoint later than the one that :func:`ckptfmt.latest` returned is broken or incomplete."""


def list_run(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Listing:
    """Every checkpoint directly below the folder ``url``, complete or not; what is none is left out.

    Reads ``checkpoint.json``, cuts and manifests, and compares names and sizes of the files; no record is
    read. Raises :class:`NotFound` (no such folder, or no run), :class:`StoreError`, :class:`Unsupported`.
    """
    return list_store(choose_store(url), limits)


def list_store(store: Store, limits: Limits = DEFAULT_LIMITS, *, with_unreadable: bool = False) -> Listing:
    """Like :func:`list_run`; ``with_unreadable`` names a checkpoint that the store cannot read."""
    checkpoints: list[Listed] = []
    leftovers: list[Leftover] = []
    found = look(store)
    for each in found:
        if each.name in (CHECKPOINT_FILE, CUT_FILE, MANIFEST_FILE):
            raise _no_run(store, each.name)
    leftovers += temporary_files(found)
    links = {each.name for each in found if not each.is_folder}
    for entry in store.entries(""):
        if not entry.is_folder or entry.name == LIVES_FOLDER:
            continue
        try:
            listed, left = _Look(store, entry.name, entry.name in links, limits).result()
        except NotFound:
            continue
        except StoreError as error:
            if not with_unreadable:
                raise
            listed, left = Listed(entry.name, store.at(entry.name).url, "unreadable", reason=str(error)), []
        checkpoints.append(listed)
        leftovers += left
    lives, left = _lives(store, limits)
    checkpoints.sort(key=lambda each: _natural(each.name))
    return Listing(store.url, checkpoints, lives, leftovers + left)


def _no_run(store: Store, file: str) -> NotFound:
    if file == MANIFEST_FILE:
        return NotFound(
            f"{store.url}: this is no run, it holds the {file} of one participant; "
            "name the checkpoint's folder above it"
        )
    return NotFound(f"{store.url}: this is no run, it holds a {file}; name the run's folder above it")


def latest(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Checkpoint:
    """Open the complete checkpoint of the highest sequence (of several, the last by name) below ``url``.

    It never passes over a later one in silence: those that are broken or incomplete and later, or not known
    to be earlier, are its ``passed_over``, and the warning :class:`ckptfmt.LaterCheckpointUnusable` names
    them. Raises :class:`NotFound` (there is no checkpoint), :class:`Incomplete` (none was ever completed),
    :class:`Damaged` (none is complete, and some are broken), :class:`StoreError`, :class:`Unsupported`.
    """
    store = choose_store(url)
    listing = list_store(store, limits)
    complete = listing.complete()
    if not complete:
        raise _none_complete(listing)
    best = complete[-1]
    checkpoint = find_checkpoint(store.at(best.name), limits)
    checkpoint.check_cut()
    checkpoint.passed_over = tuple(each for each in listing if _may_be_later(each, best))
    if checkpoint.passed_over:
        told = "; ".join(f"{each.name} is {each.state} ({each.reason})" for each in checkpoint.passed_over)
        warnings.warn(
            LaterCheckpointUnusable(f"{best.name} is the latest complete checkpoint, but {told}"),
            stacklevel=2,
        )
    return checkpoint


def _none_complete(listing: Listing) -> CheckpointError:
    if not listing:
        return NotFound(f"{listing.url}: there is no checkpoint")
    told = "; ".join(f"{each.name} is {each.state}: {each.reason}" for each in listing)
    kind = Damaged if any(each.state == "broken" for each in listing) else Incomplete
    return kind(f"{listing.url}: no checkpoint there is complete: {told}"[:2000])


def _may_be_later(listed: Listed, best: Listed) -> bool:
    if listed.state == "complete":
        return False
    if listed.sequence is not None and best.sequence is not None:
        return listed.sequence >= best.sequence
    if listed.state == "broken":
        return True  # nothing trustworthy says when it was
    return listed.modified is None or best.modified is None or listed.modified >= best.modified


class _Look:
    """Looks at one folder of the run. Raises NotFound when it is no checkpoint."""

    def __init__(self, run: Store, name: str, is_link: bool, limits: Limits) -> None:
        self._run = run
        self._name = name
        self._is_link = is_link
        self._store = run.at(name)
        self._limits = limits
        self._body: CheckpointBody | None = None
        self._size: int | None = None
        self._participants: int | None = None

    def result(self) -> tuple[Listed, list[Leftover]]:
        state: State = "complete"
        reason: str | None = None
        readable = True
        try:
            checkpoint = find_checkpoint(self._store, self._limits)
            self._body = checkpoint.body
            self._participants = len(checkpoint)
            if self._body is None:
                state, reason = "incomplete", f"it has no {CHECKPOINT_FILE}: never completed"
            else:
                checkpoint.check_cut()
                self._size = sum(self._size_of(part) for part in checkpoint.values())
        except NotFound:
            if not self._holds_leftovers():
                raise
            state, reason = "incomplete", f"it has no {CHECKPOINT_FILE}: never completed"
        except StoreError:
            raise
        except CheckpointError as error:
            never = isinstance(error, Incomplete) and self._body is None
            state, reason = "incomplete" if never else "broken", str(error)
            readable = never or self._body is not None
        left = (
            []
            if self._is_link
            else leftovers_of_checkpoint(self._store, self._name, self._body, readable=readable)
        )
        return self._listed(state, reason, left), left

    def _holds_leftovers(self) -> bool:
        """Whether something of ours lies here all the same: a cut whose ``cut.json`` was not written yet, or
        what an interrupted ``prune`` left."""
        return not self._is_link and any(
            each.kind in ("cut", "participant")
            for each in leftovers_of_checkpoint(self._store, self._name, None, readable=True)
        )

    def _size_of(self, part: ParticipantCheckpoint) -> int:
        place = "" if self._body is None or self._body.cut is None else f"{self._body.cut.name}/"
        check_files(self._store, place + part.name, part.manifest)
        return part.manifest.bytes

    def _listed(self, state: State, reason: str | None, left: list[Leftover]) -> Listed:
        body = self._body
        times = [each.modified for each in look(self._store)]
        if body is not None:
            times = [each.modified for each in look(self._store) if each.name == CHECKPOINT_FILE]
        else:
            times += [each.modified for each in left]
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


def check_files(store: Store, folder: str, manifest: Manifest) -> None:
    """Compare names and sizes of the files in a participant's folder with its manifest; none is read.

    Raises :class:`Incomplete` (one is missing), :class:`Damaged`, :class:`StoreError`.
    """
    found = {each.name: each for each in look(store, folder)}
    for file in sorted(manifest.files):
        if file not in found:
            raise Incomplete(f"{folder}/{file}: it is missing", file=f"{folder}/{file}")
        if not found[file].is_regular:
            raise Damaged(
                f"{folder}/{file}: it is no regular file; it was put there later", file=f"{folder}/{file}"
            )
    for segment in manifest.segments:
        stored = found[segment.file].size
        if stored != segment.stored:
            file = f"{folder}/{segment.file}"
            raise Damaged(f"{file}: it has {stored} bytes, not {segment.stored}", file=file)


def _lives(store: Store, limits: Limits) -> tuple[list[Life], list[Leftover]]:
    try:
        found = look(store, LIVES_FOLDER)
    except NotFound:
        return [], []
    lives = []
    for each in found:
        match = _LIFE.fullmatch(each.name)
        if match is not None and each.is_regular:
            lives.append(_life(store, each.path, int(match[1]), limits))
    return sorted(lives, key=lambda life: life.number), temporary_files(found)


def _life(store: Store, path: str, number: int, limits: Limits) -> Life:
    try:
        fields, _ = unseal(store.read(path, limits.manifest_bytes), path)
        if fields.integer("life") != number:
            raise fields.damaged(f"is not {number}", "life")
        source = fields.value("source_checkpoint_id")
        return Life(number, None if source is None else fields.label("source_checkpoint_id"))
    except StoreError:
        raise
    except CheckpointError as error:
        return Life(number, problem=str(error))


def _natural(name: str) -> list[Any]:
    """Sorts numbers in a name by value."""
    parts = enumerate(_DIGITS.split(name))
    return [(len(part.lstrip("0")), part) if place % 2 else part for place, part in parts]

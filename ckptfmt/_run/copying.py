"""Copying a complete checkpoint to another folder, checked on both sides, ``checkpoint.json`` last."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ckptfmt._errors import Conflict, Damaged, Incomplete, NotFound, StoreError
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.checkpoint_file import CHECKPOINT_FILE
from ckptfmt._model.cut_file import CUT_FILE
from ckptfmt._model.manifest import MANIFEST_FILE, Segment
from ckptfmt._model.self_checked import unseal
from ckptfmt._model.smallfiles import read_or_damaged
from ckptfmt._read.checkpoint import Checkpoint, find_checkpoint
from ckptfmt._read.participant import ParticipantCheckpoint, load_participant
from ckptfmt._write.manifest_publication import create_once
from ckptfmt.stores import Url, choose_store
from ckptfmt.stores._interface import Store

_PIECE: Final = 1024 * 1024

Progress = Callable[[int], None]
"""Is told of bytes that were moved or checked; over a whole copy they add up to twice the records' bytes."""


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What :func:`copy` did. ``digest`` is that of ``checkpoint.json``; of the records files, ``copied`` were
    moved (``copied_bytes``), and ``present`` were there already, whole."""

    digest: str
    copied: int
    copied_bytes: int
    present: int


def copy(
    source: Url, target: Url, *, progress: Progress | None = None, limits: Limits = DEFAULT_LIMITS
) -> CopyResult:
    """Copy the complete checkpoint in the folder ``source`` to the folder ``target``, byte for byte.

    First every participant's records and index, then its manifest; then ``cut.json``; ``checkpoint.json``
    last, when everything was read back at the target and found right. What a checkpoint does not name is
    left behind. A copy that was interrupted goes on when it is called again; one that is there already is
    success (and damaged or missing records in it are repaired).

    Raises :class:`Conflict` (another checkpoint, or a part of another one, is there: nothing of it is
    replaced), :class:`Incomplete`, :class:`Damaged` (the source; nothing damaged is placed under a good
    name), :class:`NotFound`, :class:`Unsupported`, :class:`OutcomeUnknown`, :class:`StoreError`.
    """
    copying = _Copying(choose_store(source), choose_store(target), progress or _ignore, limits)
    return copying.run()


class _Copying:
    def __init__(self, source: Store, target: Store, progress: Progress, limits: Limits) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._limits = limits
        self._copied = self._copied_bytes = self._present = 0

    def run(self) -> CopyResult:
        checkpoint = find_checkpoint(self._source, self._limits)
        checkpoint.check_cut()
        body = checkpoint.body
        if body is None:
            raise Incomplete(
                f"{CHECKPOINT_FILE}: there is none in {self._source.url}; "
                "only complete checkpoints are copied",
                file=CHECKPOINT_FILE,
            )
        self._refuse_inside()
        with _damage_in(self._source):
            data = self._self_checked(CHECKPOINT_FILE, body.digest, self._limits.checkpoint_bytes)
        self._refuse_another(data)
        place = "" if body.cut is None else f"{body.cut.name}/"
        for name in checkpoint:
            self._copy_participant(checkpoint, name, place)
        if body.cut is not None:
            cut = place + CUT_FILE
            with _damage_in(self._source):
                bytes_of_cut = self._self_checked(cut, body.cut.digest, self._limits.manifest_bytes)
            self._create(cut, bytes_of_cut, self._limits.manifest_bytes)
        self._target.make_durable(place.rstrip("/"))
        self._create(CHECKPOINT_FILE, data, self._limits.checkpoint_bytes)
        self._target.make_durable("")
        return CopyResult(body.digest, self._copied, self._copied_bytes, self._present)

    def _self_checked(self, file: str, digest: str, limit: int) -> bytes:
        data = read_or_damaged(self._source, file, limit, file)
        unseal(data, file, required=digest)
        return data

    def _refuse_inside(self) -> None:
        source, target = os.path.realpath(self._source.url), os.path.realpath(self._target.url)
        if target.startswith(f"{source}/"):
            raise Conflict(f"{self._target.url}: it lies inside the checkpoint; copy to a folder beside it")

    def _refuse_another(self, data: bytes) -> None:
        """Before anything is written: a folder that holds another checkpoint stays as it is."""
        try:
            found = self._target.read(CHECKPOINT_FILE, self._limits.checkpoint_bytes)
        except NotFound:
            return
        if found != data:
            raise self._conflict(CHECKPOINT_FILE)

    def _conflict(self, file: str) -> Conflict:
        return Conflict(
            f"{self._target.url}/{file}: another one is there; it was not replaced; copy to a new folder"
        )

    def _create(self, file: str, data: bytes, limit: int) -> None:
        if create_once(self._target, file, data, limit) is not None:
            raise self._conflict(file)

    def _copy_participant(self, checkpoint: Checkpoint, name: str, place: str) -> None:
        folder = place + name
        manifest = f"{folder}/{MANIFEST_FILE}"
        with _damage_in(self._source):
            part = checkpoint[name]
            part.episodes  # noqa: B018  # reads the index: every byte of it is checked
            data = self._self_checked(manifest, part.digest, self._limits.manifest_bytes)
            for segment in part.manifest.segments:
                self._copy_segment(folder, segment)
            index = f"{folder}/{part.manifest.index}"
            index_data = read_or_damaged(self._source, index, self._limits.index_bytes, index)
        self._target.place(index, (index_data,), _never)
        self._target.make_durable(folder)
        self._create(manifest, data, self._limits.manifest_bytes)
        self._target.make_durable_only(folder)
        self._check_target(part, place)

    def _copy_segment(self, folder: str, segment: Segment) -> None:
        file = f"{folder}/{segment.file}"
        if self._is_whole(file, segment):
            self._present += 1
            self._progress(segment.stored)
            return
        self._target.place(file, self._pieces(file, segment), _never)
        if not self._is_whole(file, segment):
            raise StoreError(
                f"{self._target.url}/{file}: it does not read back as it was written; "
                "see whether the disk is sound, then copy again",
                path=f"{self._target.url}/{file}",
            )
        self._copied += 1
        self._copied_bytes += segment.stored

    def _is_whole(self, file: str, segment: Segment) -> bool:
        """Whether the target has this file, with the bytes of its name."""
        digest = hashlib.sha256()
        try:
            with self._target.open(file) as stored:
                if stored.size != segment.stored:
                    return False
                while piece := stored.read(_PIECE):
                    digest.update(piece)
                    self._progress(len(piece))
        except (NotFound, Damaged):
            return False
        return digest.hexdigest() == segment.digest

    def _pieces(self, file: str, segment: Segment) -> Iterator[bytes]:
        """The source's bytes; raises before the last of them would make a damaged file complete."""
        digest, size = hashlib.sha256(), 0
        try:
            with self._source.open(file) as stored:
                while piece := stored.read(_PIECE):
                    digest.update(piece)
                    size += len(piece)
                    yield piece
                    self._progress(len(piece))
        except NotFound as error:
            raise Incomplete(f"{file}: the records file is missing", file=file) from error
        except Damaged as error:
            raise Damaged(f"{file}: {error}", file=file) from error
        if digest.hexdigest() != segment.digest:
            raise Damaged(
                f"{file}: it was changed after writing: its bytes are not those of its name", file=file
            )

    def _check_target(self, part: ParticipantCheckpoint, place: str) -> None:
        folder = self._target.at(place.rstrip("/")) if place else self._target
        label = f"{place}{part.name}/"
        with _damage_in(self._target):
            copied = load_participant(folder, part.name, label, digest=part.digest, limits=self._limits)
            if copied.episodes != part.episodes:
                file = label + part.manifest.index
                raise Damaged(f"{file}: it does not read back as it was", file=file)


@contextmanager
def _damage_in(store: Store) -> Iterator[None]:
    """Damage is said of the checkpoint that has it: there are two."""
    try:
        yield
    except Damaged as error:
        raise type(error)(f"{store.url}: {error}", file=error.file, episode=error.episode) from error


def _never() -> bool:
    return False


def _ignore(_: int) -> None:
    pass

"""Copying a complete checkpoint: checked at the source and at the target, ``checkpoint.json`` last."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from ckptfmt._errors import BadCheckpoint, Conflict, Damaged, Incomplete, NotFound, StoreError
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.layout import CheckpointLayout, ParticipantLayout, reading
from ckptfmt._model.manifest import Segment
from ckptfmt._model.names import CHECKPOINT_FILE
from ckptfmt._model.self_checked import unseal
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.opening import find_checkpoint
from ckptfmt._read.participant import ParticipantCheckpoint, load_participant
from ckptfmt._write.manifest_publication import create_once
from ckptfmt.stores import Store, Url, choose_store

_PIECE_BYTES: Final = 1024 * 1024

Progress: TypeAlias = Callable[[int], None]
"""Called with a number of bytes that were copied or checked: over a copy, twice the bytes of the records."""


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What :func:`ckptfmt.copy` did.

    Attributes:
        digest: The inner digest of ``checkpoint.json``.
        copied: The number of records files that were copied.
        copied_bytes: The bytes of these files.
        present: The number of records files that the target already had, undamaged.
    """

    digest: str
    copied: int
    copied_bytes: int
    present: int


def copy(
    source: Url, target: Url, *, progress: Progress | None = None, limits: Limits = DEFAULT_LIMITS
) -> CopyResult:
    """Copy a complete checkpoint to another folder, byte for byte.

    Copies the records, the index and then the manifest of each participant, then ``cut.json``, and creates
    ``checkpoint.json`` last, after everything was read back at the target and compared. Files that the
    checkpoint does not name are not copied. Repeating an interrupted copy continues it. Repeating a finished
    copy is success, and repairs damaged or missing records.

    Args:
        source: The folder of the checkpoint.
        target: The folder of the copy. It must not lie inside the source.
        progress: Called with a number of bytes whenever so many were copied or checked. Over a whole copy
            the numbers add up to twice the bytes of the records.
        limits: Limits for reading files that others wrote.

    Returns:
        What was copied.

    Raises:
        Conflict: The target has another checkpoint, or files of another one. They are not replaced.
        Incomplete: The source is not complete.
        Damaged: The source is damaged. Damaged records are never placed at the target.
        Unsupported: The source needs another version of ckptfmt.
        NotFound: There is no source.
        OutcomeUnknown: The store did not say whether a file was created.
        StoreError: A store failed, or cannot be used.

    Example:
        ::

            ckptfmt.copy("run/step-1200", "archive/step-1200")
    """
    return _Copy(choose_store(source), choose_store(target), progress or _no_progress, limits).run()


class _Copy:
    """One call of :func:`copy`."""

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
                "only complete checkpoints can be copied",
                file=CHECKPOINT_FILE,
            )
        if self._source.contains(self._target):
            raise Conflict(
                f"{self._target.url}: the target lies inside the checkpoint; copy to another folder"
            )
        layout = checkpoint.layout
        with _errors_naming(self._source):
            data = self._read_self_checked(CHECKPOINT_FILE, body.digest, self._limits.checkpoint_bytes)
        self._check_target(data)
        target = CheckpointLayout(self._target, layout.cut)
        for name in checkpoint:
            self._copy_participant(checkpoint, name, target.participant(name))
        if body.cut is not None:
            with _errors_naming(self._source):
                cut = self._read_self_checked(layout.cut_file, body.cut.digest, self._limits.manifest_bytes)
            self._create(layout.cut_file, cut, self._limits.manifest_bytes)
        self._target.make_durable(layout.folder)
        self._create(CHECKPOINT_FILE, data, self._limits.checkpoint_bytes)
        self._target.make_durable("")
        return CopyResult(body.digest, self._copied, self._copied_bytes, self._present)

    def _read_self_checked(self, file: str, digest: str, limit: int) -> bytes:
        with reading(file, "it is missing"):
            data = self._source.read(file, limit)
        unseal(data, file, required=digest)
        return data

    def _check_target(self, data: bytes) -> None:
        """Refuse a target that holds another checkpoint, before anything is written."""
        try:
            found = self._target.read(CHECKPOINT_FILE, self._limits.checkpoint_bytes)
        except NotFound:
            return
        if found != data:
            raise self._conflict(CHECKPOINT_FILE)

    def _conflict(self, file: str) -> Conflict:
        return Conflict(
            f"{self._target.url}/{file}: another file is there; it was not replaced; copy to a new folder"
        )

    def _create(self, file: str, data: bytes, limit: int) -> None:
        if create_once(self._target, file, data, limit) is not None:
            raise self._conflict(file)

    def _copy_participant(self, checkpoint: Checkpoint, name: str, target: ParticipantLayout) -> None:
        source = checkpoint.layout.participant(name)
        with _errors_naming(self._source):
            part = checkpoint[name]
            part.episodes  # noqa: B018  # reads and checks the whole index
            data = self._read_self_checked(source.manifest_file, part.digest, self._limits.manifest_bytes)
            for segment in part.manifest.segments:
                self._copy_segment(source.file(segment.file), segment)
            index = source.read(part.manifest.index, self._limits.index_bytes)
        self._target.place(source.file(part.manifest.index), (index,), _never_stopped)
        self._target.make_durable(target.folder)
        self._create(target.manifest_file, data, self._limits.manifest_bytes)
        self._target.make_folder_durable(target.folder)
        self._check_copied(part, target)

    def _copy_segment(self, file: str, segment: Segment) -> None:
        if self._is_whole(file, segment):
            self._present += 1
            self._progress(segment.stored)
            return
        self._target.place(file, self._pieces(file, segment), _never_stopped)
        if not self._is_whole(file, segment):
            raise StoreError(
                f"{self._target.url}/{file}: the bytes read back are not those written; "
                "check the disk, then copy again",
                path=f"{self._target.url}/{file}",
            )
        self._copied += 1
        self._copied_bytes += segment.stored

    def _is_whole(self, file: str, segment: Segment) -> bool:
        """Whether the target has this file with the right size and digest."""
        digest = hashlib.sha256()
        try:
            with self._target.open(file) as stored:
                if stored.size != segment.stored:
                    return False
                while piece := stored.read(_PIECE_BYTES):
                    digest.update(piece)
                    self._progress(len(piece))
        except (NotFound, Damaged):
            return False
        return digest.hexdigest() == segment.digest

    def _pieces(self, file: str, segment: Segment) -> Iterator[bytes]:
        """The bytes of the source. Raises after the last piece if the digest is wrong: nothing is placed."""
        digest = hashlib.sha256()
        with ParticipantLayout(self._source, "").open(file, "the records file is missing") as stored:
            while piece := stored.read(_PIECE_BYTES):
                digest.update(piece)
                yield piece
                self._progress(len(piece))
        if digest.hexdigest() != segment.digest:
            raise Damaged(
                f"{file}: it was changed after writing: its digest is not the one in its name", file=file
            )

    def _check_copied(self, part: ParticipantCheckpoint, target: ParticipantLayout) -> None:
        with _errors_naming(self._target):
            copied = load_participant(target, part.name, digest=part.digest, limits=self._limits)
            if copied.episodes != part.episodes:
                file = target.file(part.manifest.index)
                raise Damaged(f"{file}: the bytes read back are not those written", file=file)


@contextmanager
def _errors_naming(store: Store) -> Iterator[None]:
    """Errors about a checkpoint begin with the URL of its folder: the source's or the target's."""
    try:
        yield
    except BadCheckpoint as error:
        raise type(error)(f"{store.url}: {error}", file=error.file, episode=error.episode) from error


def _never_stopped() -> bool:
    return False


def _no_progress(_: int) -> None:
    pass

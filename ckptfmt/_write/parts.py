"""One participant written by several workers: each writes a part, and one of them commits all parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ckptfmt._errors import BadCheckpoint, Conflict, Incomplete, StoreError, wrong_type
from ckptfmt._identity import rollouts_of
from ckptfmt._limits import DEFAULT_LIMITS, DEFAULT_TUNING, FormatLimits, Limits, Tuning
from ckptfmt._model.index_file import seal_index
from ckptfmt._model.index_rows import Rows, integers
from ckptfmt._model.layout import ParticipantLayout
from ckptfmt._model.manifest import Manifest, Segment, parse_manifest
from ckptfmt._model.names import MANIFEST_FILE
from ckptfmt._read.index_reader import read_index
from ckptfmt._write.gate import Gate
from ckptfmt._write.manifest_publication import publish_participant
from ckptfmt._write.record_writer import Compression, RecordWriter, is_placed
from ckptfmt.stores import LocalPath, Store, Url, choose_store


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a participant that one worker wrote.

    It is small and can be pickled, to be sent to the worker that commits. The records and their index are
    durable, but belong to no checkpoint before :func:`ckptfmt.commit`.

    Attributes:
        url: The directory below which the part was written.
        participant: The participant name.
        kind: The kind of the participant.
        checkpoint_id: The id of the checkpoint.
        number: The number of the part, from 0.
        segments: The records files of the part, in order.
        index: The name of the part's own index file.
        records: The number of records.
    """

    url: str
    participant: str
    kind: str
    checkpoint_id: str
    number: int
    segments: tuple[Segment, ...]
    index: str
    records: int

    def as_manifest(self) -> Manifest:
        """The manifest of a participant that consists of this part alone.

        Returns:
            The manifest. It is not stored anywhere.
        """
        return Manifest(
            self.checkpoint_id, self.participant, self.kind, self.segments, self.index, self.records
        )


def part(
    url: Url,
    *,
    participant: str,
    kind: str,
    checkpoint_id: str,
    number: int,
    compression: Compression = "auto",
    spool: LocalPath | None = None,
    gate: Gate | None = None,
    limits: Limits = DEFAULT_LIMITS,
    tuning: Tuning = DEFAULT_TUNING,
) -> PartWriter:
    """Start writing one part of a participant, for a participant that several workers write.

    Args:
        url: The directory that holds the folders of the participants.
        participant: The participant name.
        kind: The kind of the participant, such as ``agent``.
        checkpoint_id: The id of the checkpoint.
        number: The number of the part: from 0, without gaps, and another one for each worker.
        compression: ``none``, ``zstd`` or ``auto``; ``auto`` does not compress on the local disk.
        spool: A local folder for segments that are not placed yet. None: the store stages them.
        gate: A gate that can stop the writer.
        limits: Limits for the files that are written.
        tuning: Sizes at which segments, frames and blocks close.

    Returns:
        The writer, a context manager.

    Raises:
        InvalidId: ``participant``, ``kind`` or ``checkpoint_id`` is invalid.
        UnsupportedStore: The URL is of a store that is not supported.
        UnusableDirectory: The URL or ``spool`` cannot be a path.
        ValueError: ``number`` or ``compression`` is invalid.

    Example:
        ::

            with ckptfmt.part(
                cut.url, participant="agent-0", kind="agent", checkpoint_id="step-1", number=rank
            ) as writer:
                for record in records:
                    writer.write(record)
            # One worker receives the parts of all workers and commits them:
            manifest = ckptfmt.commit(parts=parts)
    """
    if type(number) is not int or not 0 <= number <= FormatLimits.INTEGER:
        raise ValueError(f"the number of a part is an int from 0 to {FormatLimits.INTEGER}")
    writer = PartWriter(
        url,
        participant=participant,
        kind=kind,
        checkpoint_id=checkpoint_id,
        compression=compression,
        spool=spool,
        gate=gate,
        limits=limits,
        tuning=tuning,
    )
    writer.number = number
    return writer


class PartWriter(RecordWriter):
    """Writes the records of one part. :func:`ckptfmt.part` returns one.

    As a context manager it calls :meth:`finish` at the end of the block, or :meth:`abort` when the block
    raises. Only one thread at a time may use it.

    Attributes:
        accepted: The number of records taken so far. After an error, continue with this record.
        number: The number of the part.
    """

    number = 0
    _part: Part | None = None

    @property
    def part(self) -> Part:
        """The finished part, to be sent to the worker that commits.

        Raises:
            ValueError: The part is not finished.
        """
        if self._part is None:
            raise ValueError("this part is not finished yet")
        return self._part

    def finish(self) -> Part:
        """Place the remaining records and the index of the part.

        The call is idempotent. Everything is durable when it returns.

        Returns:
            The part.

        Raises:
            Stopped: The gate was stopped.
            SnapshotChanged: Records that were written again differ from the first time.
            StoreError: The store failed. Call :meth:`retry`, then this again.
            ValueError: The writer was aborted, or must be retried after an interrupt.
        """
        if self._part is not None:
            return self._part
        segments, rows = self._place_all()
        index = seal_index(rows, self._limits, self._tuning)
        self._folder.place(index.name, index.pieces, lambda: self._gate.stopped)
        self._folder.make_durable("")
        self._part = Part(
            url=self._store.url,
            participant=self._participant,
            kind=self._kind,
            checkpoint_id=self._checkpoint_id,
            number=self.number,
            segments=segments,
            index=index.name,
            records=self.accepted,
        )
        self._close()
        return self._part

    @property
    def _is_complete(self) -> bool:
        return self._part is not None

    def _complete(self) -> None:
        self.finish()


def commit(
    url: Url | None = None,
    *,
    parts: Iterable[Part],
    gate: Gate | None = None,
    limits: Limits = DEFAULT_LIMITS,
    tuning: Tuning = DEFAULT_TUNING,
) -> Manifest:
    """Publish parts as one participant, all or nothing.

    The call is idempotent for the same parts. The records are in the order of the part numbers. Everything is
    durable when the call returns.

    Args:
        url: The directory below which the parts were written, as this process reaches it. None: the URL that
            the workers used.
        parts: All parts of the participant, in any order.
        gate: A gate that can stop the commit.
        limits: Limits for the files that are read and written.
        tuning: Sizes at which blocks of the index close.

    Returns:
        The manifest of the participant.

    Raises:
        Conflict: The parts are of different checkpoints or participants, a number is missing or used twice,
            two parts hold the same rollout, or another manifest exists.
        BadCheckpoint: A file of a part is damaged or missing.
        Stopped: The gate was stopped.
        OutcomeUnknown: The store did not say whether the manifest was created.
        StoreError: The store failed, or cannot be used.
        TypeError: ``parts`` is not an iterable of parts.
        ValueError: ``parts`` is empty.
    """
    ordered = sorted(_check_parts_type(parts), key=lambda each: each.number)
    _check_parts_fit(ordered, with_url=url is None)
    first = ordered[0]
    folder = choose_store(first.url if url is None else url).at(first.participant)
    gate = Gate() if gate is None else gate
    gate.check()
    manifest = _read_published(folder, ordered, limits)
    if manifest is None:
        rows = _all_rows(folder, ordered, limits)
        index = seal_index(rows, limits, tuning)
        manifest = Manifest(
            checkpoint_id=first.checkpoint_id,
            participant=first.participant,
            kind=first.kind,
            segments=_all_segments(ordered),
            index=index.name,
            records=len(rows),
        )
        manifest = publish_participant(folder, manifest, index, gate, limits)
    else:
        folder.make_durable("")
    _delete_part_indexes(folder, ordered, manifest)
    return manifest


def _check_parts_type(parts: Iterable[Part]) -> list[Part]:
    if not isinstance(parts, Iterable):
        raise wrong_type("parts", "several Part", parts)
    listed = list(parts)
    for each in listed:
        if not isinstance(each, Part):
            raise wrong_type("parts", "several Part", each)
    return listed


def _check_parts_fit(parts: Sequence[Part], *, with_url: bool) -> None:
    if not parts:
        raise ValueError("there is no part; for a participant without records, write a part without records")
    origins = {
        (each.url if with_url else "", each.participant, each.kind, each.checkpoint_id) for each in parts
    }
    if len(origins) > 1:
        one, other = sorted(origins)[:2]
        differing = next(pair for pair in zip(one, other, strict=True) if pair[0] != pair[1])
        raise Conflict(
            f"the parts do not belong together: one is of {differing[0]}, another one of {differing[1]}"
        )
    for expected, each in enumerate(parts):
        if each.number < expected:
            raise Conflict(f"there are two parts of number {each.number}; give each worker its own number")
        if each.number > expected:
            raise Conflict(f"part {expected} is missing: part numbers start at 0 and have no gaps")


def _all_segments(parts: Sequence[Part]) -> tuple[Segment, ...]:
    return tuple(segment for each in parts for segment in each.segments)


def _read_published(folder: Store, parts: Sequence[Part], limits: Limits) -> Manifest | None:
    """The published manifest, if it is the one of these parts.

    Equal segments suffice: their names are digests, and the index is a function of the segments.
    """
    try:
        data = ParticipantLayout(folder, "").read(MANIFEST_FILE, limits.manifest_bytes)
        found = parse_manifest(data, MANIFEST_FILE)
    except BadCheckpoint:
        return None  # there is none, or publishing reports it as a conflict
    expected = parts[0].as_manifest()
    same = (found.checkpoint_id, found.participant, found.kind, found.segments) == (
        expected.checkpoint_id,
        expected.participant,
        expected.kind,
        _all_segments(parts),
    )
    return found if same else None


def _all_rows(folder: Store, parts: Sequence[Part], limits: Limits) -> Rows:
    """The rows of all parts, with segment numbers that count over all parts.

    Checks that the index and the segments of each part exist, and that no two parts hold the same rollout.
    """
    rows, segments = Rows(), 0
    owners: dict[str, int] = {}
    for each in parts:
        part_rows = read_index(ParticipantLayout(folder, ""), each.as_manifest(), limits)
        for segment in each.segments:
            if not is_placed(folder, segment):
                raise Incomplete(
                    f"{segment.file}: a records file of part {each.number} is missing or has another size; "
                    "write that part again",
                    file=segment.file,
                )
        for rollout in rollouts_of(part_rows.episode):
            owner = owners.setdefault(rollout, each.number)
            if owner != each.number:
                raise Conflict(f"parts {owner} and {each.number} both hold a record of rollout {rollout}")
        part_rows.segment = integers(map(segments.__add__, part_rows.segment))
        rows.extend(part_rows)
        segments += len(each.segments)
    return rows


def _delete_part_indexes(folder: Store, parts: Sequence[Part], manifest: Manifest) -> None:
    """Delete the indexes of the parts, which the published manifest does not name."""
    for each in parts:
        if each.index not in manifest.files:
            with suppress(StoreError):  # prune deletes it later
                folder.delete(each.index)

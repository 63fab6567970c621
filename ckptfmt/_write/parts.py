"""One participant written by several workers: each writes a part, one of them commits all parts."""

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
    """What one worker wrote: small, and it pickles. Its records and an index of them are durable, and no
    checkpoint holds them before :func:`commit`."""

    url: str
    participant: str
    kind: str
    checkpoint_id: str
    number: int
    segments: tuple[Segment, ...]
    index: str
    records: int

    def as_manifest(self) -> Manifest:
        """The manifest that this part alone would have."""
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
    """Start writing part ``number`` (from 0, a different one for each worker) of ``participant``.

    The other arguments are those of :func:`create`, and so are the errors; ValueError for another number.
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
    """Takes the records of one part; :meth:`finish`, or the end of the ``with`` block, makes it a
    :class:`Part`. Make one with :func:`part`."""

    number = 0
    _part: Part | None = None

    @property
    def part(self) -> Part:
        """What was finished: send it to whoever commits. Raises ValueError before."""
        if self._part is None:
            raise ValueError("this part is not finished yet")
        return self._part

    def finish(self) -> Part:
        """Place what is left, and the index of it; returns when all of it is durable. Harmless when repeated.

        Raises :class:`Stopped`, :class:`StoreError` and its kinds (call :meth:`retry` and then this again).
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
    """Publish these parts as one participant, all or nothing; the records come in the order of their numbers.

    ``url`` is the directory that the parts were written below, as it is called here; None: as they did.
    Returns when everything is durable; the same parts a second time are success.

    Raises :class:`Conflict` (parts of different checkpoints or participants, a number missing or twice, a
        rollout in two parts, another manifest is there), :class:`Incomplete` and :class:`Damaged` (what a
        part wrote is not there any more), :class:`Stopped`, :class:`OutcomeUnknown`, and what the store
        raises. ValueError without any part.
    """
    listed = sorted(_listed(parts), key=lambda each: each.number)
    _check_parts(listed, with_url=url is None)
    first = listed[0]
    folder = choose_store(first.url if url is None else url).at(first.participant)
    gate = Gate() if gate is None else gate
    gate.check()
    manifest = _published(folder, listed, limits)
    if manifest is None:
        rows = _all_rows(folder, listed, limits)
        index = seal_index(rows, limits, tuning)
        manifest = Manifest(
            checkpoint_id=first.checkpoint_id,
            participant=first.participant,
            kind=first.kind,
            segments=_segments(listed),
            index=index.name,
            records=len(rows),
        )
        manifest = publish_participant(folder, manifest, index, gate, limits)
    else:
        folder.make_durable("")
    _remove_indexes(folder, listed, manifest)
    return manifest


def _listed(parts: Iterable[Part]) -> list[Part]:
    if not isinstance(parts, Iterable):
        raise wrong_type("parts", "several Part", parts)
    listed = list(parts)
    for each in listed:
        if not isinstance(each, Part):
            raise wrong_type("parts", "several Part", each)
    return listed


def _check_parts(parts: Sequence[Part], *, with_url: bool) -> None:
    if not parts:
        raise ValueError("there is no part; a participant without records is a part without records")
    belongings = {
        (each.url if with_url else "", each.participant, each.kind, each.checkpoint_id) for each in parts
    }
    if len(belongings) > 1:
        one, other = sorted(belongings)[:2]
        differing = next(pair for pair in zip(one, other, strict=True) if pair[0] != pair[1])
        raise Conflict(f"the parts do not belong together: one is of {differing[0]}, one of {differing[1]}")
    for expected, each in enumerate(parts):
        if each.number < expected:
            raise Conflict(f"there are two parts of number {each.number}; give each worker its own")
        if each.number > expected:
            raise Conflict(f"part {expected} is missing: the parts are numbered from 0 without a gap")


def _segments(parts: Sequence[Part]) -> tuple[Segment, ...]:
    return tuple(segment for each in parts for segment in each.segments)


def _published(folder: Store, parts: Sequence[Part], limits: Limits) -> Manifest | None:
    """The manifest that is there, if it is that of these parts: segments are named by digest, and the index
    is a function of them."""
    try:
        data = ParticipantLayout(folder, "").read(MANIFEST_FILE, limits.manifest_bytes)
        found = parse_manifest(data, MANIFEST_FILE)
    except BadCheckpoint:
        return None  # none, or one that publishing will find to be another
    expected = parts[0].as_manifest()
    same = (found.checkpoint_id, found.participant, found.kind, found.segments) == (
        expected.checkpoint_id,
        expected.participant,
        expected.kind,
        _segments(parts),
    )
    return found if same else None


def _all_rows(folder: Store, parts: Sequence[Part], limits: Limits) -> Rows:
    """The rows of all parts, their segments numbered through. Everything that they name is there."""
    rows, segments = Rows(), 0
    owners: dict[str, int] = {}
    for each in parts:
        more = read_index(ParticipantLayout(folder, ""), each.as_manifest(), limits)
        for segment in each.segments:
            if not is_placed(folder, segment):
                raise Incomplete(
                    f"{segment.file}: a records file of part {each.number} is missing, or was cut; "
                    "write that part again",
                    file=segment.file,
                )
        for rollout in rollouts_of(more.episode):
            owner = owners.setdefault(rollout, each.number)
            if owner != each.number:
                raise Conflict(f"parts {owner} and {each.number} both hold a record of rollout {rollout}")
        more.segment = integers(map(segments.__add__, more.segment))
        rows.extend(more)
        segments += len(each.segments)
    return rows


def _remove_indexes(folder: Store, parts: Sequence[Part], manifest: Manifest) -> None:
    """The parts' own indexes have done their service: the published manifest does not name them."""
    for each in parts:
        if each.index not in manifest.files:
            with suppress(StoreError):  # nothing names it: prune removes it
                folder.delete(each.index)

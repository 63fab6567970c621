"""Comparing two checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from ckptfmt._errors import CheckpointError
from ckptfmt._identity import rollouts_of
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.opening import open_checkpoint
from ckptfmt._read.participant import ParticipantCheckpoint
from ckptfmt._read.stored_record import StoredRecord
from ckptfmt._show.differences import CheckpointDiff, EpisodeDiff, ParticipantDiff
from ckptfmt._values.comparison import Difference, compare
from ckptfmt._values.patches import Exact
from ckptfmt.stores import Url, choose_store

_MAX_PLACES: Final = 20


def diff(
    left: Checkpoint | Url, right: Checkpoint | Url, *, most_places: int = _MAX_PLACES
) -> CheckpointDiff:
    """Compare two checkpoints record by record.

    The comparison is exact: types, values, the sign of zero and the order of keys. NaN equals NaN. Records
    are matched by participant and rollout. Participants with the same digest are not read, payloads with the
    same bytes are not decoded, and at most two records are in memory.

    Args:
        left: The first checkpoint, or its URL.
        right: The second checkpoint, or its URL.
        most_places: The most differences to list for one payload, and for the state.

    Returns:
        The differences. Printing them gives one line for each.

    Raises:
        BadCheckpoint: A file is damaged or missing. The message names the checkpoint.
        NotFound: There is no such checkpoint.
        StoreError: A store failed.
        ValueError: ``most_places`` is not an int of 0 or more.

    Example:
        ::

            print(ckptfmt.diff("run/step-1200", "run/step-1210"))
    """
    if type(most_places) is not int or most_places < 0:
        raise ValueError("most_places must be an int of 0 or more")
    one, other = _as_checkpoint(left), _as_checkpoint(right)
    return CheckpointDiff(
        one.url,
        other.url,
        _compare_headers(one, other),
        ()
        if one.body is None or other.body is None
        else tuple(islice(compare(one.state, other.state), most_places)),
        tuple(_compare_participants(one, other, name, most_places) for name in sorted({*one, *other})),
    )


def _as_checkpoint(checkpoint: Checkpoint | Url) -> Checkpoint:
    if isinstance(checkpoint, Checkpoint):
        return checkpoint
    with _errors_naming(choose_store(checkpoint).url):
        return open_checkpoint(checkpoint)


@contextmanager
def _errors_naming(url: str) -> Iterator[None]:
    """Errors raised in the block name the checkpoint: their messages contain ``url``."""
    try:
        yield
    except CheckpointError as error:
        if url not in error.message:
            error.args = (f"{url}: {error}",)
        raise


def _compare_headers(one: Checkpoint, other: Checkpoint) -> dict[str, tuple[Any, Any]]:
    pairs: dict[str, tuple[Any, Any]] = {"id": (one.id, other.id)}
    if one.body is not None and other.body is not None:
        pairs |= {
            "sequence": (one.sequence, other.sequence),
            "restarts": (list(one.restarts), list(other.restarts)),
            "marks": (dict(one.marks), dict(other.marks)),
        }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _compare_participants(one: Checkpoint, other: Checkpoint, name: str, most: int) -> ParticipantDiff:
    if name not in one:
        with _errors_naming(other.url):
            part = other[name]
            return ParticipantDiff(name, (None, part.kind), added=tuple(sorted(part.episodes)))
    if name not in other:
        with _errors_naming(one.url):
            part = one[name]
            return ParticipantDiff(name, (part.kind, None), removed=tuple(sorted(part.episodes)))
    left, right = _ComparedParticipant(one, name), _ComparedParticipant(other, name)
    kind = (left.part.kind, right.part.kind)
    if left.part.digest == right.part.digest or _same_records(left.part, right.part):
        return ParticipantDiff(name, kind, same=len(left.part))
    left_keys, right_keys = left.keys(), right.keys()
    changed = [
        found
        for left_record, right_record in _matched_records(left, right, left_keys, right_keys)
        if (found := _compare_records(left_record, right_record, left.value, right.value, most)) is not None
    ]
    return ParticipantDiff(
        name,
        kind,
        added=tuple(sorted(key for rollout, key in right_keys.items() if rollout not in left_keys)),
        removed=tuple(sorted(key for rollout, key in left_keys.items() if rollout not in right_keys)),
        changed=tuple(changed),
        same=len(left_keys.keys() & right_keys.keys()) - len(changed),
    )


def _same_records(left: ParticipantCheckpoint, right: ParticipantCheckpoint) -> bool:
    """Whether both name the same records files. The names are digests, so the records are the same."""
    return left.manifest.segments == right.manifest.segments


class _ComparedParticipant:
    """One of the two participants. Errors while reading it name its checkpoint."""

    def __init__(self, checkpoint: Checkpoint, name: str) -> None:
        self._url = checkpoint.url
        with _errors_naming(self._url):
            self.part = checkpoint[name]

    def keys(self) -> dict[str, str]:
        """The capture key of each rollout."""
        with _errors_naming(self._url):
            return dict(zip(rollouts_of(self.part.episodes), self.part.episodes, strict=True))

    def read(self) -> Iterator[StoredRecord]:
        """All records, in the order written."""
        with _errors_naming(self._url):
            yield from self.part.read()

    def fetch(self, key: str) -> StoredRecord:
        """One record."""
        with _errors_naming(self._url):
            return self.part[key]

    def value(self, record: StoredRecord) -> Exact:
        """The decoded payload of a record of this participant."""
        with _errors_naming(self._url):
            return record.payload


def _matched_records(
    left: _ComparedParticipant,
    right: _ComparedParticipant,
    left_keys: Mapping[str, str],
    right_keys: Mapping[str, str],
) -> Iterator[tuple[StoredRecord, StoredRecord]]:
    """The two records of each rollout that both participants hold, in the order of ``left``.

    Writers mostly keep the order of the records, so ``right`` is read in parallel. A record that is not the
    next one there is fetched alone.
    """
    right_records = (record for record in right.read() if record.episode.rollout_id in left_keys)
    right_record = next(right_records, None)
    for record in left.read():
        rollout = record.episode.rollout_id
        if rollout not in right_keys:
            continue
        if right_record is not None and right_record.episode.rollout_id == rollout:
            yield record, right_record
            right_record = next(right_records, None)
        else:
            yield record, right.fetch(right_keys[rollout])


def _compare_records(
    left: StoredRecord,
    right: StoredRecord,
    left_value: Callable[[StoredRecord], Exact],
    right_value: Callable[[StoredRecord], Exact],
    most: int,
) -> EpisodeDiff | None:
    envelope: dict[str, tuple[Any, Any]] = {}
    for name in ("boundary", "schema", "references"):
        pair = (getattr(left, name), getattr(right, name))
        if pair[0] != pair[1]:
            envelope[name] = pair if name != "references" else (list(pair[0]), list(pair[1]))
    places: list[Difference] = []
    if left.json_payload != right.json_payload:
        places = list(islice(compare(left_value(left), right_value(right)), most + 1))
    if left.episode == right.episode and not envelope and not places:
        return None
    return EpisodeDiff(
        left.episode.rollout_id,
        left.episode.capture_key,
        right.episode.capture_key,
        envelope,
        tuple(places[:most]),
        len(places) > most,
    )

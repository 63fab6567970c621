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

MOST_PLACES: Final = 20


def diff(
    left: Checkpoint | Url, right: Checkpoint | Url, *, most_places: int = MOST_PLACES
) -> CheckpointDiff:
    """Compare two checkpoints record by record, exactly: type, value, sign of zero, order of keys. NaN equals
    NaN.

    Records are matched by participant and rollout. Participants of one digest are not read at all, payloads
    of the same bytes are not decoded, and no more than two records are in memory.

    Args:
        left: The first checkpoint, or its URL.
        right: The second checkpoint, or its URL.
        most_places: The most differences that are listed of one payload.

    Returns:
        The difference. It prints as text, a line for each difference.

    Raises:
        BadCheckpoint: What had to be read is damaged or missing; the message says of which checkpoint.
        NotFound: There is no such checkpoint.
        StoreError: A store failed.

    Example:
        ::

            print(ckptfmt.diff("run/step-1200", "run/step-1210"))
    """
    if type(most_places) is not int or most_places < 0:
        raise ValueError("most_places is an int of 0 or more")
    one, other = _opened(left), _opened(right)
    return CheckpointDiff(
        one.url,
        other.url,
        _header(one, other),
        ()
        if one.body is None or other.body is None
        else tuple(islice(compare(one.state, other.state), most_places)),
        tuple(_participant(one, other, name, most_places) for name in sorted({*one, *other})),
    )


def _opened(checkpoint: Checkpoint | Url) -> Checkpoint:
    if isinstance(checkpoint, Checkpoint):
        return checkpoint
    with _named(choose_store(checkpoint).url):
        return open_checkpoint(checkpoint)


@contextmanager
def _named(url: str) -> Iterator[None]:
    """What is raised within says of which checkpoint it is."""
    try:
        yield
    except CheckpointError as error:
        if url not in error.message:
            error.args = (f"{url}: {error}",)
        raise


def _header(one: Checkpoint, other: Checkpoint) -> dict[str, tuple[Any, Any]]:
    pairs: dict[str, tuple[Any, Any]] = {"id": (one.id, other.id)}
    if one.body is not None and other.body is not None:
        pairs |= {
            "sequence": (one.sequence, other.sequence),
            "restarts": (list(one.restarts), list(other.restarts)),
            "marks": (dict(one.marks), dict(other.marks)),
        }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _participant(one: Checkpoint, other: Checkpoint, name: str, most: int) -> ParticipantDiff:
    if name not in one:
        with _named(other.url):
            part = other[name]
            return ParticipantDiff(name, (None, part.kind), added=tuple(sorted(part.episodes)))
    if name not in other:
        with _named(one.url):
            part = one[name]
            return ParticipantDiff(name, (part.kind, None), removed=tuple(sorted(part.episodes)))
    left, right = _Side(one, name), _Side(other, name)
    kind = (left.part.kind, right.part.kind)
    if left.part.digest == right.part.digest or _same_records(left.part, right.part):
        return ParticipantDiff(name, kind, same=len(left.part))
    here, there = left.keys(), right.keys()
    changed = [
        found
        for mine, theirs in _pairs(left, right, here, there)
        if (found := _episode(mine, theirs, left.value, right.value, most)) is not None
    ]
    return ParticipantDiff(
        name,
        kind,
        added=tuple(sorted(key for rollout, key in there.items() if rollout not in here)),
        removed=tuple(sorted(key for rollout, key in here.items() if rollout not in there)),
        changed=tuple(changed),
        same=len(here.keys() & there.keys()) - len(changed),
    )


def _same_records(left: ParticipantCheckpoint, right: ParticipantCheckpoint) -> bool:
    """The files are named by their bytes: manifests of two checkpoints may name the same ones."""
    return left.manifest.segments == right.manifest.segments


class _Side:
    """A participant in one of the two checkpoints."""

    def __init__(self, checkpoint: Checkpoint, name: str) -> None:
        self._url = checkpoint.url
        with _named(self._url):
            self.part = checkpoint[name]

    def keys(self) -> dict[str, str]:
        """The capture key of each rollout."""
        with _named(self._url):
            return dict(zip(rollouts_of(self.part.episodes), self.part.episodes, strict=True))

    def read(self) -> Iterator[StoredRecord]:
        with _named(self._url):
            yield from self.part.read()

    def fetch(self, key: str) -> StoredRecord:
        with _named(self._url):
            return self.part[key]

    def value(self, record: StoredRecord) -> Exact:
        with _named(self._url):
            return record.payload


def _pairs(
    left: _Side,
    right: _Side,
    here: Mapping[str, str],
    there: Mapping[str, str],
) -> Iterator[tuple[StoredRecord, StoredRecord]]:
    """The records of each rollout that both have, in the order of ``left``.

    Writers keep their order mostly, so the other side is read along; what is not next there is fetched alone.
    """
    along = (record for record in right.read() if record.episode.rollout_id in here)
    following = next(along, None)
    for record in left.read():
        rollout = record.episode.rollout_id
        if rollout not in there:
            continue
        if following is not None and following.episode.rollout_id == rollout:
            yield record, following
            following = next(along, None)
        else:
            yield record, right.fetch(there[rollout])


def _episode(
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

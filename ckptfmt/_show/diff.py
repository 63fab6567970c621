"""What changed from one checkpoint to another, record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from ckptfmt._errors import CheckpointError
from ckptfmt._identity import rollouts_of
from ckptfmt._read.checkpoint import Checkpoint, open_checkpoint
from ckptfmt._read.participant import ParticipantCheckpoint
from ckptfmt._read.stored_record import StoredRecord
from ckptfmt._show.diff_text import counts_text, diff_text
from ckptfmt._text import printable
from ckptfmt._values.comparison import Difference, compare
from ckptfmt._values.patches import Exact
from ckptfmt.stores import Url, choose_store

MOST_PLACES: Final = 20


@dataclass(frozen=True, slots=True)
class EpisodeDiff:
    """One rollout that both checkpoints hold, and not in the same state.

    ``left`` and ``right`` are the capture keys (the attempt may differ). ``envelope`` holds what changed
    there: ``boundary``, ``schema``, ``references`` → the two values. ``places`` are the first differences of
    the payloads; ``more``: there are others.
    """

    rollout_id: str
    left: str
    right: str
    envelope: Mapping[str, tuple[Any, Any]]
    places: tuple[Difference, ...]
    more: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "rollout_id": self.rollout_id,
            "left": self.left,
            "right": self.right,
            "envelope": {name: list(pair) for name, pair in self.envelope.items()},
            "places": [each._asdict() for each in self.places],
            "more": self.more,
        }


@dataclass(frozen=True, slots=True)
class ParticipantDiff:
    """What changed in one participant. ``added`` and ``removed`` are capture keys, sorted; ``same`` counts
    the records that are equal. ``kind`` holds the two kinds, None where there is no such participant."""

    name: str
    kind: tuple[str | None, str | None]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[EpisodeDiff, ...] = ()
    same: int = 0

    def __repr__(self) -> str:
        return f"<ParticipantDiff {printable(self.name)}: {counts_text(self)}>"

    @property
    def is_same(self) -> bool:
        return self.kind[0] == self.kind[1] and not (self.added or self.removed or self.changed)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": list(self.kind),
            "added": list(self.added),
            "removed": list(self.removed),
            "changed": [each.to_json() for each in self.changed],
            "same": self.same,
        }


@dataclass(frozen=True, slots=True)
class CheckpointDiff:
    """What changed from ``left`` to ``right`` (their URLs): ``header`` for what ``checkpoint.json`` alone
    says (sequence, restarts, marks), ``state`` for the controller's state, then participant by
    participant, by name."""

    left: str
    right: str
    header: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    state: tuple[Difference, ...] = ()
    participants: tuple[ParticipantDiff, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether the records, restarts, marks and state are the same (sequence and id may differ)."""
        named = {"restarts", "marks"}.intersection(self.header)
        return not named and not self.state and all(each.is_same for each in self.participants)

    def to_json(self) -> dict[str, Any]:
        return {
            "left": self.left,
            "right": self.right,
            "same": self.is_same,
            "header": {name: list(pair) for name, pair in self.header.items()},
            "state": [each._asdict() for each in self.state],
            "participants": [each.to_json() for each in self.participants],
        }

    def __str__(self) -> str:
        """Every episode that changed, a line for each difference."""
        return diff_text(self)

    def __repr__(self) -> str:
        """The same, cut where a participant has many of them."""
        return diff_text(self, whole=False)

    def _repr_html_(self) -> str:
        from ckptfmt._show.notebook import preformatted

        return preformatted(repr(self))


def diff(
    left: Checkpoint | Url, right: Checkpoint | Url, *, most_places: int = MOST_PLACES
) -> CheckpointDiff:
    """Compare two checkpoints, record by record, exactly: type, value, sign of zero, order of keys; NaN is
    equal to NaN.

    Records are matched by participant and rollout. Participants of one digest are not read at all, payloads
    of the same bytes not decoded, and no more than two records are in memory. ``most_places`` bounds the
    differences that are listed of one payload. Raises what reading raises; the message says of which
    checkpoint.
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

"""What changed from one checkpoint to another, as values and as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ckptfmt._display import NotebookDisplay
from ckptfmt._text import count_text, printable
from ckptfmt._values.comparison import Difference, place_text

_MOST_KEYS: Final = 10
_MOST_EPISODES: Final = 20
_SHOWN_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class EpisodeDiff:
    """One rollout that both checkpoints hold, and not in the same state.

    Attributes:
        rollout_id: The rollout.
        left: Its capture key in the first checkpoint.
        right: Its capture key in the second one; the attempt may differ.
        envelope: What changed besides the payload: ``boundary``, ``schema`` or ``references`` to the two
            values.
        places: The first differences of the payloads.
        more: Whether there are more of them.
    """

    rollout_id: str
    left: str
    right: str
    envelope: Mapping[str, tuple[Any, Any]]
    places: tuple[Difference, ...]
    more: bool = False

    def to_json(self) -> dict[str, Any]:
        """The difference as a value that JSON can hold.

        Returns:
            Its members by name.
        """
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
    """What changed in one participant.

    Attributes:
        name: The participant.
        kind: Its kind in the two checkpoints, None where there is no such participant.
        added: Capture keys that only the second checkpoint holds, sorted.
        removed: Capture keys that only the first one holds, sorted.
        changed: The rollouts that both hold, and not in the same state.
        same: How many records are equal.
    """

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
        """Whether nothing changed."""
        return self.kind[0] == self.kind[1] and not (self.added or self.removed or self.changed)

    def to_json(self) -> dict[str, Any]:
        """The difference as a value that JSON can hold.

        Returns:
            Its members by name.
        """
        return {
            "name": self.name,
            "kind": list(self.kind),
            "added": list(self.added),
            "removed": list(self.removed),
            "changed": [each.to_json() for each in self.changed],
            "same": self.same,
        }


@dataclass(frozen=True, slots=True)
class CheckpointDiff(NotebookDisplay):
    """What changed from one checkpoint to another. As text it is a line for each difference.

    Attributes:
        left: The URL of the first checkpoint.
        right: The URL of the second one.
        header: What changed of the id, sequence, restarts and marks in ``checkpoint.json``: name to the two
            values.
        state: The first differences of the controller's state.
        participants: What changed in each participant, by name.
    """

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
        """The difference as a value that JSON can hold.

        Returns:
            Its members by name.
        """
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


def diff_text(diff: CheckpointDiff, *, whole: bool = True) -> str:
    """The difference, ending without a line feed; not ``whole``: of each participant the first episodes."""
    return "\n".join(map(printable, _lines(diff, None if whole else _MOST_EPISODES)))


def _lines(diff: CheckpointDiff, most: int | None) -> Iterator[str]:
    yield f"--- {diff.left}"
    yield f"+++ {diff.right}"
    if diff.is_same:
        yield "the same records, restarts, marks and state"
    yield from _pairs(diff.header, "")
    if diff.state:
        yield "state"
        yield from _places(diff.state, "  ")
    for part in diff.participants:
        if not part.is_same:
            yield from _participant(part, most)


def _participant(part: ParticipantDiff, most: int | None) -> Iterator[str]:
    before, after = part.kind
    if before is None:
        yield f"{part.name} ({after}): added, with {count_text(len(part.added), 'episode')}"
        return
    if after is None:
        yield f"{part.name} ({before}): removed, with {count_text(len(part.removed), 'episode')}"
        return
    kind = before if before == after else f"{before} -> {after}"
    yield f"{part.name} ({kind}): {counts_text(part)}"
    yield from _keys("+", part.added)
    yield from _keys("-", part.removed)
    for each in part.changed[:most]:
        yield from _episode(each)
    if most is not None and len(part.changed) > most:
        yield f"  ~ and {len(part.changed) - most} more; print() shows all of them"


def counts_text(part: ParticipantDiff) -> str:
    """How many episodes of a participant changed, and how many did not."""
    return (
        f"{len(part.added)} added, {len(part.removed)} removed, {len(part.changed)} changed, "
        f"{part.same} the same"
    )


def _keys(sign: str, keys: Sequence[str]) -> Iterator[str]:
    for key in keys[:_MOST_KEYS]:
        yield f"  {sign} {key}"
    if len(keys) > _MOST_KEYS:
        yield f"  {sign} and {len(keys) - _MOST_KEYS} more"


def _episode(changed: EpisodeDiff) -> Iterator[str]:
    key = changed.left if changed.left == changed.right else f"{changed.left} -> {changed.right}"
    yield f"  ~ {key}"
    yield from _pairs(changed.envelope, "      ")
    yield from _places(changed.places, "      ")
    if changed.more:
        yield "      and more"


def _pairs(pairs: Mapping[str, tuple[Any, Any]], indent: str) -> Iterator[str]:
    for name, (before, after) in pairs.items():
        yield f"{indent}{name}: {_shown(before)} -> {_shown(after)}"


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}..."


def _places(places: Sequence[Difference], indent: str) -> Iterator[str]:
    for each in places:
        if each.kind == "added":
            yield f"{indent}{each.path}: added {each.right}"
        elif each.kind == "removed":
            yield f"{indent}{each.path}: removed {each.left}"
        elif each.kind == "order":
            yield f"{indent}{each.path}: keys in another order, {each.left} -> {each.right} comes first"
        else:
            yield f"{indent}{each.path}: {each.left} -> {each.right}{place_text(each)}"

"""The differences between two checkpoints, as values and as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ckptfmt._display import NotebookDisplay
from ckptfmt._text import count_text, printable
from ckptfmt._values.comparison import Difference, position_text

_MAX_KEYS: Final = 10
_MAX_EPISODES: Final = 20
_MAX_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class EpisodeDiff:
    """The differences of one rollout that both checkpoints hold.

    Attributes:
        rollout_id: The rollout id.
        left: Its capture key in the first checkpoint.
        right: Its capture key in the second one. The attempt may differ.
        envelope: Those of ``boundary``, ``schema`` and ``references`` that differ, to their two values.
        places: The first differences of the payloads.
        more: Whether the payloads have more differences.
    """

    rollout_id: str
    left: str
    right: str
    envelope: Mapping[str, tuple[Any, Any]]
    places: tuple[Difference, ...]
    more: bool = False

    def to_json(self) -> dict[str, Any]:
        """The differences as a value that JSON can hold.

        Returns:
            The attributes by name.
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
    """The differences of one participant.

    Attributes:
        name: The participant name.
        kind: The kinds in the two checkpoints. None: the checkpoint has no such participant.
        added: The capture keys that only the second checkpoint holds, sorted.
        removed: The capture keys that only the first checkpoint holds, sorted.
        changed: The rollouts that both checkpoints hold with differences.
        same: The number of equal records.
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
        """Whether there are no differences."""
        return self.kind[0] == self.kind[1] and not (self.added or self.removed or self.changed)

    def to_json(self) -> dict[str, Any]:
        """The differences as a value that JSON can hold.

        Returns:
            The attributes by name.
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
    """The differences between two checkpoints, which print as one line for each.

    Attributes:
        left: The URL of the first checkpoint.
        right: The URL of the second one.
        header: Those of ``id``, ``sequence``, ``restarts`` and ``marks`` that differ, to their two values.
        state: The first differences of the controller's state.
        participants: The differences of each participant, sorted by name.
    """

    left: str
    right: str
    header: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    state: tuple[Difference, ...] = ()
    participants: tuple[ParticipantDiff, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether records, restarts, marks and state are the same, while sequence and id may differ."""
        named = {"restarts", "marks"}.intersection(self.header)
        return not named and not self.state and all(each.is_same for each in self.participants)

    def to_json(self) -> dict[str, Any]:
        """The differences as a value that JSON can hold.

        Returns:
            The attributes by name.
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
        """All changed episodes, with a line for each difference."""
        return diff_text(self)

    def __repr__(self) -> str:
        """The text, with only the first changed episodes of each participant."""
        return diff_text(self, whole=False)


def diff_text(diff: CheckpointDiff, *, whole: bool = True) -> str:
    """The differences as text, without a final line feed. Without ``whole``: only the first episodes."""
    return "\n".join(map(printable, _lines(diff, None if whole else _MAX_EPISODES)))


def _lines(diff: CheckpointDiff, most: int | None) -> Iterator[str]:
    yield f"--- {diff.left}"
    yield f"+++ {diff.right}"
    if diff.is_same:
        yield "the same records, restarts, marks and state"
    yield from _pair_lines(diff.header, "")
    if diff.state:
        yield "state"
        yield from _place_lines(diff.state, "  ")
    for part in diff.participants:
        if not part.is_same:
            yield from _participant_lines(part, most)


def _participant_lines(part: ParticipantDiff, most: int | None) -> Iterator[str]:
    before, after = part.kind
    if before is None:
        yield f"{part.name} ({after}): added, with {count_text(len(part.added), 'episode')}"
        return
    if after is None:
        yield f"{part.name} ({before}): removed, with {count_text(len(part.removed), 'episode')}"
        return
    kind = before if before == after else f"{before} -> {after}"
    yield f"{part.name} ({kind}): {counts_text(part)}"
    yield from _key_lines("+", part.added)
    yield from _key_lines("-", part.removed)
    for each in part.changed[:most]:
        yield from _episode_lines(each)
    if most is not None and len(part.changed) > most:
        yield f"  ~ and {len(part.changed) - most} more; print() shows all of them"


def counts_text(part: ParticipantDiff) -> str:
    """The numbers of added, removed, changed and equal records of a participant."""
    return (
        f"{len(part.added)} added, {len(part.removed)} removed, {len(part.changed)} changed, "
        f"{part.same} the same"
    )


def _key_lines(sign: str, keys: Sequence[str]) -> Iterator[str]:
    for key in keys[:_MAX_KEYS]:
        yield f"  {sign} {key}"
    if len(keys) > _MAX_KEYS:
        yield f"  {sign} and {len(keys) - _MAX_KEYS} more"


def _episode_lines(changed: EpisodeDiff) -> Iterator[str]:
    key = changed.left if changed.left == changed.right else f"{changed.left} -> {changed.right}"
    yield f"  ~ {key}"
    yield from _pair_lines(changed.envelope, "      ")
    yield from _place_lines(changed.places, "      ")
    if changed.more:
        yield "      and more"


def _pair_lines(pairs: Mapping[str, tuple[Any, Any]], indent: str) -> Iterator[str]:
    for name, (before, after) in pairs.items():
        yield f"{indent}{name}: {_shortened(before)} -> {_shortened(after)}"


def _shortened(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 3]}..."


def _place_lines(places: Sequence[Difference], indent: str) -> Iterator[str]:
    for each in places:
        if each.kind == "added":
            yield f"{indent}{each.path}: added {each.right}"
        elif each.kind == "removed":
            yield f"{indent}{each.path}: removed {each.left}"
        elif each.kind == "order":
            yield f"{indent}{each.path}: keys in another order, {each.left} -> {each.right} comes first"
        else:
            yield f"{indent}{each.path}: {each.left} -> {each.right}{position_text(each)}"

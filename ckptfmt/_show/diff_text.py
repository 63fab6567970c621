"""A difference as text for people: one line a fact, nothing in it may act on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ckptfmt._text import count_text, printable
from ckptfmt._values.comparison import Difference, place_text

if TYPE_CHECKING:
    from ckptfmt._show.diff import CheckpointDiff, EpisodeDiff, ParticipantDiff

_MOST_KEYS: Final = 10
_MOST_EPISODES: Final = 20
_SHOWN_CHARACTERS: Final = 100


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

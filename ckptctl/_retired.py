"""Retire marks: a participant's memory that a rollout is retired up to some attempt. Pure state.

A mark never goes down (RT5). It ends only when the controller forgets the rollout, so the number of
marks is bounded by what the controller has retired or restored and not yet forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping

from ckptctl._errors import ControlError
from ckptfmt import EpisodeId


class Marks:
    """Rollout id to the highest retired attempt."""

    def __init__(self, marks: Mapping[str, int] | None = None) -> None:
        self._marks = dict(marks or {})

    def __len__(self) -> int:
        return len(self._marks)

    def retire(self, rollout_id: str, attempt: int) -> None:
        """Refuse attempts of this rollout up to ``attempt`` from now on; a lower one changes nothing."""
        self._marks[rollout_id] = max(attempt, self._marks.get(rollout_id, -1))

    def refuses(self, episode: EpisodeId) -> bool:
        return episode.attempt <= self._marks.get(episode.rollout_id, -1)

    def check(self, episode: EpisodeId) -> None:
        """Raise ``stale_attempt`` when this attempt is retired."""
        if self.refuses(episode):
            raise stale_attempt(episode)

    def forget(self, rollout_id: str) -> None:
        self._marks.pop(rollout_id, None)

    def as_dict(self) -> dict[str, int]:
        """Rollout id to attempt, sorted by id."""
        return dict(sorted(self._marks.items()))


def stale_attempt(episode: EpisodeId) -> ControlError:
    """The refusal of a retired attempt."""
    return ControlError(
        "stale_attempt",
        f"attempt {episode.attempt} of rollout {episode.rollout_id} is retired",
        details={"episode": episode.capture_key},
    )

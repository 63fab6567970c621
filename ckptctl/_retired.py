"""Which attempts are retired: of each rollout, all up to some attempt. Pure state, no I/O.

The highest retired attempt of a rollout never goes down (RT5). It is removed only when the controller
forgets the rollout, so the number of entries is bounded by what the controller has retired or restored
and not yet forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ckptctl._errors import ControlError
from ckptfmt import EpisodeId


class RetiredAttempts:
    """The highest retired attempt of each rollout.

    Args:
        marks: Rollout id to highest retired attempt, to begin with.
    """

    def __init__(self, marks: Mapping[str, int] | None = None) -> None:
        self._attempts = dict(marks or {})

    def __len__(self) -> int:
        return len(self._attempts)

    def retire(self, rollout_id: str, attempt: int) -> None:
        """Retire the attempts of a rollout up to and including ``attempt``.

        Args:
            rollout_id: The rollout.
            attempt: The highest attempt to retire. A lower one than before changes nothing.
        """
        self._attempts[rollout_id] = max(attempt, self._attempts.get(rollout_id, -1))

    def retire_all(self, marks: Mapping[str, int]) -> None:
        """Retire the attempts of many rollouts.

        Args:
            marks: Rollout id to the highest attempt to retire.
        """
        for rollout_id, attempt in marks.items():
            self.retire(rollout_id, attempt)

    def retire_before(self, episodes: Collection[EpisodeId]) -> None:
        """Retire every attempt before the given ones.

        Args:
            episodes: The attempts that replace the earlier ones of their rollouts.
        """
        for episode in episodes:
            if episode.attempt:
                self.retire(episode.rollout_id, episode.attempt - 1)

    def is_retired(self, episode: EpisodeId) -> bool:
        """Tell whether this attempt is retired.

        Args:
            episode: The attempt.

        Returns:
            True when the attempt, or a later one of its rollout, was retired.
        """
        return episode.attempt <= self._attempts.get(episode.rollout_id, -1)

    def check(self, episode: EpisodeId) -> None:
        """Refuse an attempt that is retired.

        Args:
            episode: The attempt.

        Raises:
            ControlError: ``stale_attempt``, when the attempt is retired.
        """
        if self.is_retired(episode):
            raise stale_attempt(episode)

    def forget(self, rollout_id: str) -> None:
        """Remove what is known of a rollout: none of its attempts is retired any more.

        Args:
            rollout_id: The rollout. An unknown one changes nothing.
        """
        self._attempts.pop(rollout_id, None)

    def as_dict(self) -> dict[str, int]:
        """Return all entries.

        Returns:
            Rollout id to highest retired attempt, sorted by rollout id. A copy.
        """
        return dict(sorted(self._attempts.items()))


def latest_attempts(episodes: Collection[EpisodeId]) -> dict[str, int]:
    """Rollout id to the highest attempt named, so that each rollout is stopped once (RT6)."""
    last: dict[str, int] = {}
    for episode in episodes:
        last[episode.rollout_id] = max(episode.attempt, last.get(episode.rollout_id, -1))
    return last


def stale_attempt(episode: EpisodeId) -> ControlError:
    """The error that refuses a retired attempt."""
    return ControlError(
        "stale_attempt",
        f"attempt {episode.attempt} of rollout {episode.rollout_id} is retired",
        details={"episode": episode.capture_key},
    )

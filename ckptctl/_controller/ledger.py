"""The controller's ledger of rollouts: which are in flight, which are settled. Pure state, no clock.

Each rollout is *in flight* under one attempt from its dispatch, then *settled* with a result, or
*dropped*. Its `value` is an exact JSON value, made to be the controller's state in ``checkpoint.json``.
"""

from __future__ import annotations

from typing import Any

from ckptfmt import EpisodeId


class Ledger:
    """Rollout id to where it stands."""

    def __init__(self) -> None:
        self._in_flight: dict[str, int] = {}
        self._settled: dict[str, Any] = {}
        self._dropped: dict[str, None] = {}

    def dispatch(self, episode: EpisodeId) -> None:
        """This attempt is sent. Raises ValueError when its rollout is over, or the attempt is not later."""
        rollout_id = episode.rollout_id
        if rollout_id in self._settled or rollout_id in self._dropped:
            raise ValueError(f"rollout {rollout_id} is over")
        if episode.attempt <= self._in_flight.get(rollout_id, -1):
            raise ValueError(f"attempt {episode.attempt} of rollout {rollout_id} was sent before")
        self._in_flight[rollout_id] = episode.attempt

    def settle(self, episode: EpisodeId, result: Any) -> bool:
        """The result of this attempt has come. False, and nothing kept, when another attempt is in flight."""
        if self._in_flight.get(episode.rollout_id) != episode.attempt:
            return False
        del self._in_flight[episode.rollout_id]
        self._settled[episode.rollout_id] = result
        return True

    def drop(self, rollout_id: str) -> None:
        """This rollout is given up for good, and its result, if it has one, with it."""
        self._in_flight.pop(rollout_id, None)
        self._settled.pop(rollout_id, None)
        self._dropped[rollout_id] = None

    def in_flight(self) -> list[EpisodeId]:
        """The attempts in flight, in the order of their dispatch."""
        return [EpisodeId(rollout_id, attempt) for rollout_id, attempt in self._in_flight.items()]

    @property
    def settled(self) -> dict[str, Any]:
        """Rollout id to result, in the order in which they came. A copy."""
        return dict(self._settled)

    def value(self) -> dict[str, Any]:
        """The whole ledger as an exact JSON value: a snapshot, as long as results do not change."""
        return {
            "in_flight": dict(self._in_flight),
            "settled": dict(self._settled),
            "dropped": list(self._dropped),
        }

    @classmethod
    def from_value(cls, value: Any) -> Ledger:
        """The ledger that `value` described. Raises KeyError or TypeError when it is no such value."""
        ledger = cls()
        ledger._in_flight.update(value["in_flight"])
        ledger._settled.update(value["settled"])
        ledger._dropped.update(dict.fromkeys(value["dropped"]))
        return ledger

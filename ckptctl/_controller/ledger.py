"""The controller's ledger of rollouts: which are in flight, and which have a result. Pure state, no clock."""

from __future__ import annotations

from typing import Any

from ckptfmt import EpisodeId


class Ledger:
    """The state of each rollout of a controller.

    A rollout is *in flight* under one attempt from its dispatch on, then *settled* with a result, or
    *dropped*. The `value` of the ledger is an exact JSON value, to be the controller's state in
    ``checkpoint.json``.

    Example:
        A rollout from its dispatch to its result::

            ledger = Ledger()
            ledger.dispatch(EpisodeId("r"))
            ledger.settle(EpisodeId("r"), {"reward": 1.0})
            assert ledger.settled == {"r": {"reward": 1.0}}
    """

    def __init__(self) -> None:
        self._in_flight: dict[str, int] = {}
        self._settled: dict[str, Any] = {}
        self._dropped: dict[str, None] = {}

    def dispatch(self, episode: EpisodeId) -> None:
        """Note that an attempt is sent.

        Args:
            episode: The attempt.

        Raises:
            ValueError: Its rollout is settled or dropped, or this attempt or a later one was sent before.
        """
        rollout_id = episode.rollout_id
        if rollout_id in self._settled or rollout_id in self._dropped:
            raise ValueError(f"rollout {rollout_id} is over")
        if episode.attempt <= self._in_flight.get(rollout_id, -1):
            raise ValueError(f"attempt {episode.attempt} of rollout {rollout_id} was sent before")
        self._in_flight[rollout_id] = episode.attempt

    def settle(self, episode: EpisodeId, result: Any) -> bool:
        """Note that the result of an attempt has come.

        Args:
            episode: The attempt.
            result: An exact JSON value, which must not change afterwards.

        Returns:
            False when this attempt is not in flight: the result is ignored.
        """
        if self._in_flight.get(episode.rollout_id) != episode.attempt:
            return False
        del self._in_flight[episode.rollout_id]
        self._settled[episode.rollout_id] = result
        return True

    def drop(self, rollout_id: str) -> None:
        """Give up a rollout for good, and remove its result, if it has one.

        Args:
            rollout_id: The rollout.
        """
        self._in_flight.pop(rollout_id, None)
        self._settled.pop(rollout_id, None)
        self._dropped[rollout_id] = None

    def in_flight(self) -> list[EpisodeId]:
        """Return the attempts in flight.

        Returns:
            Attempts, in the order of their dispatch.
        """
        return [EpisodeId(rollout_id, attempt) for rollout_id, attempt in self._in_flight.items()]

    @property
    def settled(self) -> dict[str, Any]:
        """Rollout id to result, in the order in which the results came.

        A copy.
        """
        return dict(self._settled)

    def value(self) -> dict[str, Any]:
        """Return the whole ledger as an exact JSON value.

        Returns:
            A snapshot, as long as no result is changed.
        """
        return {
            "in_flight": dict(self._in_flight),
            "settled": dict(self._settled),
            "dropped": list(self._dropped),
        }

    @classmethod
    def from_value(cls, value: Any) -> Ledger:
        """Make a ledger again from its value.

        Args:
            value: What `value` returned.

        Returns:
            An equal ledger.

        Raises:
            KeyError: The value lacks a member.
            TypeError: The value, or a member, has another type.
        """
        ledger = cls()
        ledger._in_flight.update(value["in_flight"])
        ledger._settled.update(value["settled"])
        ledger._dropped.update(dict.fromkeys(value["dropped"]))
        return ledger

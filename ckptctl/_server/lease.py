"""The lease that frees a participant whose controller stopped calling. Pure state: the time is an argument.

It runs in every phase except idle, from the end of the last accepted call that names the open id, and
not while such a call is in progress (CP8). Times are seconds of one monotonic clock.
"""

from __future__ import annotations


class Lease:
    """A deadline that accepted calls extend."""

    def __init__(self, grace_seconds: float) -> None:
        self.grace_seconds = grace_seconds
        self._ends_at: float | None = None
        self._calls = 0

    def start(self, now: float) -> None:
        self._ends_at = now + self.grace_seconds

    def stop(self) -> None:
        self._ends_at = None

    def enter_call(self) -> None:
        self._calls += 1

    def leave_call(self, now: float) -> None:
        self._calls -= 1
        if self._ends_at is not None:
            self._ends_at = now + self.grace_seconds

    def expired(self, now: float) -> bool:
        return self._ends_at is not None and not self._calls and now >= self._ends_at

    def seconds_left(self, now: float) -> float | None:
        """Seconds until expiry, the whole grace while a call is in progress, None when no lease runs."""
        if self._ends_at is None:
            return None
        return self.grace_seconds if self._calls else max(0.0, self._ends_at - now)

"""Waiting for what another process, the kernel or a library does, where no event tells of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

MOST_SECONDS = 30.0
"""How long the tests wait before they fail. Far longer than anything takes."""
PAUSE_SECONDS = 0.002


async def until(condition: Callable[[], object]) -> None:
    """Wait on a real event loop until the condition is true. Fails after `MOST_SECONDS`."""
    ends_at = time.monotonic() + MOST_SECONDS
    while not condition():
        assert time.monotonic() < ends_at, "the condition did not become true"
        await asyncio.sleep(PAUSE_SECONDS)


def block_until(condition: Callable[[], object]) -> None:
    """Wait outside of an event loop until the condition is true. Fails after `MOST_SECONDS`."""
    ends_at = time.monotonic() + MOST_SECONDS
    while not condition():
        assert time.monotonic() < ends_at, "the condition did not become true"
        time.sleep(PAUSE_SECONDS)

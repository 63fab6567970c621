"""Renewing the leases of the servers in the background (CO2).

Each server has a loop of its own: when one never replies, another must not lose its lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ckptctl._controller.fleet import Fleet, Server

RENEW_SECONDS = 10.0
"""The longest pause between two renewals of a lease; a shorter lease is renewed three times in its time."""
SHORTEST_SECONDS = 0.1
FIRST_SECONDS = 1.0
"""The pause until a server has accepted a renewal and so told how long its lease is."""


@asynccontextmanager
async def renewing(fleet: Fleet, checkpoint_id: str) -> AsyncIterator[None]:
    """While the block runs, renew the lease of every server that has this id open."""
    loops = [asyncio.create_task(_renew(fleet, each, checkpoint_id)) for each in fleet.servers]
    try:
        yield
    finally:
        for each in loops:
            each.cancel()


async def _renew(fleet: Fleet, server: Server, checkpoint_id: str) -> None:
    body = {"checkpoint_id": checkpoint_id}
    pause = FIRST_SECONDS
    while True:
        await asyncio.sleep(pause)
        ends_at = asyncio.get_running_loop().time() + RENEW_SECONDS
        # Failures are ignored: the calls that need the server report them.
        found = await fleet.call("renew", body, deadline=ends_at, servers=[server])
        for reply in found.replies.values():
            left = reply["lease_seconds_left"]
            pause = RENEW_SECONDS if left is None else max(SHORTEST_SECONDS, min(RENEW_SECONDS, left / 3))

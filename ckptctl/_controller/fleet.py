"""Calling many servers at once, through their transports, by rank, with one deadline for all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from ckptctl._controller.replies import check_reply
from ckptctl._errors import ControlError, control_error
from ckptctl._protocol import Call, Transport
from ckptfmt import check_participant_name

PREPARE_RANKS: Mapping[str, int] = {"environment": 0, "policy_model": 1, "agent": 2, "resources": 3}
"""Callers close before the servers that they call (CO1). A server of another kind states its rank."""
RETIRE_RANKS: Mapping[str, int] = {"environment": 0, "agent": 1, "policy_model": 2, "resources": 2}
LATE_SECONDS = 10.0
"""How long after the deadline a transport may take to report it, before the call is given up."""


@dataclass(frozen=True)
class Server:
    """One participant of a run, as its controller knows it.

    Attributes:
        name: The name of the participant, unique in the run.
        kind: ``environment``, ``policy_model``, ``agent``, ``resources``, or another word.
        transport: How calls reach the server.
        rank: Its place in prepare, lowest first: callers before the servers that they call. None for that
            of its kind.
        retire_rank: Its place in retire and forget, lowest first. None for that of its kind.

    Raises:
        ValueError: The name is not one of a participant (CO12), or the kind has no rank of its own and
            none is given.

    Example:
        Over HTTP, and in the same process::

            Server("agent-0", "agent", client.transport("http://agent-0:8080"))
            Server("judge-0", "judge", plane.call, rank=2, retire_rank=2)
    """

    name: str
    kind: str
    transport: Transport = field(repr=False, compare=False)
    rank: int | None = None
    retire_rank: int | None = None

    def __post_init__(self) -> None:
        check_participant_name(self.name)
        if self.kind not in PREPARE_RANKS and (self.rank is None or self.retire_rank is None):
            raise ValueError(
                f"server {self.name!r}: kind {self.kind!r} has no rank of its own: give rank and retire_rank"
            )

    @property
    def prepare_rank(self) -> int:
        """Its place in prepare: `rank`, or that of its kind.

        Resume goes in the reverse order.
        """
        return PREPARE_RANKS[self.kind] if self.rank is None else self.rank

    @property
    def retiring_rank(self) -> int:
        """Its place in retire and forget: `retire_rank`, or that of its kind."""
        return RETIRE_RANKS[self.kind] if self.retire_rank is None else self.retire_rank


@dataclass(frozen=True)
class Replies:
    """A reply or an error of each server that was called.

    Attributes:
        replies: Server name to reply, in the order in which they came.
        failures: Server name to error, in the order in which they came.
    """

    replies: Mapping[str, dict[str, Any]]
    failures: Mapping[str, ControlError]


class Fleet:
    """The servers of a run, and which process of each has replied (CP18)."""

    def __init__(self, servers: Iterable[Server]) -> None:
        self.servers = tuple(servers)
        names = [server.name.lower() for server in self.servers]
        if len(set(names)) != len(names):
            raise ValueError("participant names must be unique, ignoring case")
        self._instances: dict[str, str] = {}

    def forget_instances(self) -> None:
        """Accept whatever processes reply next: a restore begins in new ones."""
        self._instances.clear()

    def by_rank(self, rank: Callable[[Server], int]) -> list[list[Server]]:
        """The servers grouped by rank, lowest first."""
        ranks: dict[int, list[Server]] = {}
        for server in self.servers:
            ranks.setdefault(rank(server), []).append(server)
        return [ranks[each] for each in sorted(ranks)]

    async def call(
        self, verb: str, body: Mapping[str, Any] | None, *, deadline: float, servers: Sequence[Server]
    ) -> Replies:
        """Send one call to these servers at once, the same bytes to each (CO6).

        ``deadline``: a time of the running loop. Failures are collected, none is raised.
        """
        encoded = b"" if body is None else orjson.dumps(body)
        tasks = {
            asyncio.create_task(self._call_one(server, verb, encoded, deadline)): server.name
            for server in servers
        }
        replies: dict[str, dict[str, Any]] = {}
        failures: dict[str, ControlError] = {}
        try:
            for done in asyncio.as_completed(tasks, timeout=_left(deadline) + LATE_SECONDS):
                name, outcome = await done
                if isinstance(outcome, ControlError):
                    failures[name] = outcome
                else:
                    replies[name] = outcome
        except TimeoutError:
            for task, name in tasks.items():
                if not task.done():
                    failures[name] = ControlError("no_reply", f"{name}: no reply to {verb} by the deadline")
        finally:
            for task in tasks:
                task.cancel()
        return Replies(replies, failures)

    async def _call_one(
        self, server: Server, verb: str, body: bytes, deadline: float
    ) -> tuple[str, dict[str, Any] | ControlError]:
        call = Call(verb, body, _left(deadline), self._instances.get(server.name))
        try:
            reply = await server.transport(call)
            self._remember_instance(server, check_reply(verb, reply))
        except ControlError as error:
            # A refusal comes from a process, too: from now on no other may reply in its place.
            self._remember_instance(server, error.details.get("instance_id"))
            return server.name, error
        except OSError as error:
            return server.name, ControlError("no_reply", f"{type(error).__name__}: {error}")
        except asyncio.CancelledError:
            if _task_is_cancelled():
                raise
            return server.name, ControlError("no_reply", "the transport cancelled the call")
        except Exception as error:  # A transport of a user may raise anything.
            return server.name, control_error(error)
        return server.name, reply

    def _remember_instance(self, server: Server, instance_id: object) -> None:
        if isinstance(instance_id, str):
            self._instances.setdefault(server.name, instance_id)


def _task_is_cancelled() -> bool:
    """Whether this task was cancelled, in contrast to a CancelledError from what it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _left(deadline: float) -> float:
    return max(0.0, deadline - asyncio.get_running_loop().time())

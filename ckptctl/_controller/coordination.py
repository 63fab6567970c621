"""The controller's side: one consistent cut over many servers, and its restore.

The controller of a user need not order any calls: ranks, renewals, clean-up and resume are done here (CO1,
CO2, CO4).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import ckptfmt
from ckptctl._controller.clean_up import always_ended, failure_of
from ckptctl._controller.fleet import Fleet, Replies, Server
from ckptctl._controller.lease_renewal import renewing
from ckptctl._controller.lives import begin_life, check_attempts, first_attempt
from ckptctl._controller.restore_source import read_restore_source
from ckptctl._controller.results import (
    CommitResult,
    PrepareResult,
    RestoreResult,
    as_episode,
    commit_result,
)
from ckptctl._errors import ControlError, CoordinationError, NotPrepared
from ckptctl._retired import RetiredAttempts
from ckptctl._threads import in_thread
from ckptfmt import EpisodeId

RESUME_SECONDS = 60.0
"""How long the resume that ends every checkpoint and restore may take."""
LEAST_RANK_SECONDS = 5.0
"""The least time for each rank of a resume or retire, also when one before it used up the deadline."""


class Coordination:
    """The calls of a training controller to its servers.

    Deadlines are seconds, one for all servers.

    It has memory: it keeps which attempts were retired and not yet forgotten, and stores them as ``marks``
    in the checkpoints that it commits.

    Args:
        servers: The participants of the run.

    Attributes:
        marks: The attempts that were retired and not yet forgotten.

    Raises:
        ValueError: Two servers have the same name, ignoring case.

    Example:
        A checkpoint, and its restore in new processes::

            coordination = Coordination(servers)
            async with coordination.prepared("step-1200", "/runs/7/step-1200", deadline=60) as cut:
                committed = await cut.commit(cut.continued(ledger.in_flight()))
                unstarted = await committed.wait_for_replies(outstanding_runs, timeout=5)
                state = ledger.value()                # the controller's own part of the cut
            # Every server runs again, whatever happened above.
            await asyncio.to_thread(committed.publish, sequence=1200, state=state, unstarted=unstarted)

            async with coordination.restored("/runs/7/step-1200") as restored:
                ledger = Ledger.from_value(restored.state)
            for episode in restored.episodes.values():
                ...                                   # send its rollout again, under this attempt
    """

    def __init__(self, servers: Iterable[Server]) -> None:
        self._fleet = Fleet(servers)
        self.marks = RetiredAttempts()
        self._cut: tuple[tuple[str, str], ckptfmt.Cut] | None = None

    @property
    def servers(self) -> tuple[Server, ...]:
        """The participants of the run, in the given order."""
        return self._fleet.servers

    @asynccontextmanager
    async def prepared(
        self, checkpoint_id: str, directory: str, *, deadline: float = 60.0
    ) -> AsyncIterator[PrepareResult]:
        """Prepare every server, renew the leases while the block runs, and resume at its end, always.

        Args:
            checkpoint_id: A new id, such as ``step-1200``.
            directory: The folder of the checkpoint, ``<run>/<checkpoint>``: an absolute path or URL. The
                folder of the cut is created in it.
            deadline: Seconds for the prepare.

        Yields:
            The prepared cut, to be committed.

        Raises:
            NotPrepared: Executions were not at a boundary at the deadline.
            CoordinationError: A server failed. Errors of the resume are notes of the error that the block
                raised, if there is one.
            ckptfmt.CheckpointError: The folder of the cut cannot be created.
        """
        await self._create_cut(checkpoint_id, directory)  # Where it fails, there is nothing to resume yet.
        async with self._open(checkpoint_id, ()):
            yield await self.prepare(checkpoint_id, directory, deadline=deadline)

    async def prepare(self, checkpoint_id: str, directory: str, *, deadline: float = 60.0) -> PrepareResult:
        """Close the servers rank by rank.

        May be called again with the same id after `NotPrepared`.

        For callers that cannot use `prepared`: they must renew the leases, and resume in any case.

        Args:
            checkpoint_id: A new id, such as ``step-1200``.
            directory: The folder of the checkpoint, ``<run>/<checkpoint>``: an absolute path or URL.
            deadline: Seconds.

        Returns:
            The prepared cut, to be committed.

        Raises:
            NotPrepared: Executions were not at a boundary at the deadline.
            CoordinationError: A server failed.
            ckptfmt.CheckpointError: The folder of the cut cannot be created.
        """
        ends_at = asyncio.get_running_loop().time() + deadline
        cut = await self._create_cut(checkpoint_id, directory)
        restarts: set[str] = set()
        episodes: dict[str, list[str]] = {}
        for rank in self._fleet.by_rank(lambda server: server.prepare_rank):
            body = {
                "checkpoint_id": checkpoint_id,
                "directory": cut.url,
                "cut_digest": cut.digest,
                # A later rank must not wait for the calls of a rollout that no server saves (RS2).
                "restarts": sorted(restarts),
            }
            found = await self._fleet.call("prepare", body, deadline=ends_at, servers=rank)
            _raise_failures("prepare", found)
            late = {name: reply for name, reply in found.replies.items() if reply["phase"] != "prepared"}
            if late:
                raise NotPrepared(
                    {name: reply["blockers"] for name, reply in late.items()},
                    {name: reply["blocker_count"] for name, reply in late.items()},
                )
            for name, reply in found.replies.items():
                restarts.update(reply["restarts"])
                episodes[name] = reply["episodes"]
        return PrepareResult(
            checkpoint_id,
            directory,
            cut,
            frozenset(map(as_episode, restarts)),
            episodes,
            self.commit,
        )

    async def _create_cut(self, checkpoint_id: str, directory: str) -> ckptfmt.Cut:
        """The cut of this attempt to save. It is durable up to the run's folder before any server closes."""
        wanted = (checkpoint_id, directory)
        if self._cut is None or self._cut[0] != wanted:
            self._cut = wanted, await in_thread(lambda: ckptfmt.create_cut(directory, checkpoint_id))
        return self._cut[1]

    async def commit(
        self, prepared: PrepareResult, scope: Collection[EpisodeId], *, deadline: float
    ) -> CommitResult:
        """Commit on every server at once. `PrepareResult.commit` is a shorter way to call it.

        May be called again with the same scope after a retryable error.

        Args:
            prepared: What `prepare` returned.
            scope: The episodes to save.
            deadline: Seconds.

        Returns:
            What every server has saved, to be published.

        Raises:
            ControlError: ``restart_in_scope``, when the scope names a restart. Nothing was sent then.
            CoordinationError: A server failed.
        """
        named = sorted(each.capture_key for each in prepared.restarts.intersection(scope))
        if named:
            # Only the server that reported it would refuse it: the others would have committed by then.
            raise ControlError(
                "restart_in_scope",
                f"{len(named)} episode(s) of the scope are restarts: {', '.join(named[:5])}: use continued()",
                details={"episodes": named},
            )
        body = {
            "checkpoint_id": prepared.checkpoint_id,
            "directory": prepared.cut.url,
            "episodes": sorted(episode.capture_key for episode in scope),
        }
        found = await self._everywhere("commit", body, deadline)
        return commit_result(prepared, scope, found.replies, self.marks.as_dict())

    async def renew(self, checkpoint_id: str, *, deadline: float = 30.0) -> None:
        """Renew the lease of every server. `prepared` and `restored` do it while their block runs.

        Args:
            checkpoint_id: The open id.
            deadline: Seconds.

        Raises:
            CoordinationError: A server failed.
        """
        await self._everywhere("renew", {"checkpoint_id": checkpoint_id}, deadline)

    async def resume(self, checkpoint_id: str, *, deadline: float = RESUME_SECONDS) -> None:
        """Resume every server, in the reverse order of prepare, also when one of them fails.

        A server whose process was replaced counts as resumed.

        Args:
            checkpoint_id: The open id.
            deadline: Seconds.

        Raises:
            CoordinationError: A server failed. The others are resumed.
        """
        if self._cut is not None and self._cut[0][0] == checkpoint_id:
            self._cut = None  # A later prepare under this id needs a cut of its own.
        ends_at = asyncio.get_running_loop().time() + deadline
        failures: dict[str, ControlError] = {}
        for rank in reversed(self._fleet.by_rank(lambda server: server.prepare_rank)):
            found = await self._fleet.call(
                "resume",
                {"checkpoint_id": checkpoint_id},
                deadline=_at_least(ends_at, deadline),
                servers=rank,
            )
            failures |= {
                name: error for name, error in found.failures.items() if error.code != "wrong_instance"
            }
        if failures:
            raise CoordinationError("resume", failures)

    @asynccontextmanager
    async def restored(
        self,
        directory: str,
        scope: Collection[EpisodeId | str] | None = None,
        *,
        attempts: Mapping[str, int] | None = None,
        deadline: float = 600.0,
    ) -> AsyncIterator[RestoreResult]:
        """Begin the run's next life from a complete checkpoint, in new processes, all or nothing.

        Every server is resumed at the end of the block; on an error in the restore or the block, the
        replacement attempts are retired first.

        Args:
            directory: The folder of the checkpoint, ``<run>/<checkpoint>``: an absolute path or URL.
            scope: The saved episodes to continue. All of them by default.
            attempts: Rollout id to replacement attempt, where it is not to be the first one of the life.
            deadline: Seconds for the restore.

        Yields:
            What was restored. Admission opens at the end of the block: send requests after it.

        Raises:
            CoordinationError: A server failed. Errors of the clean-up are notes of the error that the
                block raised, if there is one.
            ValueError: The scope or the attempts do not fit the checkpoint.
            ckptfmt.CheckpointError: The checkpoint cannot be read, no server is given for one of its
                participants, or the life cannot be created.
        """
        source = await in_thread(
            lambda: read_restore_source(directory, [server.name for server in self.servers])
        )
        checkpoint, saved = source.checkpoint, source.chosen(scope)
        given = dict(attempts or {})
        check_attempts(saved, given)
        life = await in_thread(lambda: begin_life(source.run, checkpoint, given))
        numbers = dict.fromkeys((each.rollout_id for each in saved), first_attempt(life)) | given
        episodes = {each: EpisodeId(each.rollout_id, numbers[each.rollout_id]) for each in saved}
        restore_id = f"restore-{life}-{uuid.uuid4().hex[:8]}"
        self.marks.retire_all(checkpoint.marks)
        self.marks.retire_before(episodes.values())
        self._fleet.forget_instances()
        body = {
            "checkpoint_id": restore_id,
            "directory": source.cut.url,
            "episodes": sorted(each.capture_key for each in episodes.values()),
            "checkpoint_digest": checkpoint.digest,
            "marks": dict(checkpoint.marks),
        }
        async with self._open(restore_id, episodes.values()):
            found = await self._everywhere("restore", body, deadline)
            yield RestoreResult(
                checkpoint_id=restore_id,
                source_checkpoint_id=checkpoint.checkpoint_id,
                life=life,
                episodes=episodes,
                restarts=tuple(map(as_episode, checkpoint.restarts)),
                restored={
                    name: tuple(map(as_episode, found.replies[name]["restored"])) for name in found.replies
                },
                state=checkpoint.state,
            )

    async def retire(self, episodes: Collection[EpisodeId], *, deadline: float = 60.0) -> None:
        """Refuse, stop and free attempts and their earlier ones, callers before the servers they call (CO1).

        Every rank is called, also after a failure of one before it: the attempts are refused in any case.

        Args:
            episodes: The attempts to retire.
            deadline: Seconds.

        Raises:
            CoordinationError: A server failed. May be called again.
        """
        for episode in episodes:
            self.marks.retire(episode.rollout_id, episode.attempt)
        await self._callers_first(
            "retire", {"episodes": sorted(each.capture_key for each in episodes)}, deadline
        )

    async def forget(self, rollouts: Collection[str], *, deadline: float = 60.0) -> list[str]:
        """Remove what the servers know of rollouts that are over: their attempts are not refused any more.

        Args:
            rollouts: Rollout ids.
            deadline: Seconds.

        Returns:
            The rollouts that a server kept, because a retire of them has not ended (RT10). Sorted.

        Raises:
            CoordinationError: A server failed. May be called again.
        """
        found = await self._callers_first("forget", {"rollouts": sorted(set(rollouts))}, deadline)
        kept = {rollout for reply in found.values() for rollout in reply["kept"]}
        for rollout_id in set(rollouts) - kept:
            self.marks.forget(rollout_id)
        return sorted(kept)

    async def status(self, *, deadline: float = 5.0) -> Replies:
        """Ask every server for its status.

        Args:
            deadline: Seconds.

        Returns:
            The status of each server, or its error. No error is raised.
        """
        ends_at = asyncio.get_running_loop().time() + deadline
        return await self._fleet.call("status", None, deadline=ends_at, servers=self._fleet.servers)

    async def _callers_first(
        self, verb: str, body: Mapping[str, Any], deadline: float
    ) -> dict[str, dict[str, Any]]:
        ends_at = asyncio.get_running_loop().time() + deadline
        replies: dict[str, dict[str, Any]] = {}
        failures: dict[str, Exception] = {}
        for rank in self._fleet.by_rank(lambda server: server.retiring_rank):
            found = await self._fleet.call(verb, body, deadline=_at_least(ends_at, deadline), servers=rank)
            replies.update(found.replies)
            failures.update(found.failures)
        if failures:
            raise CoordinationError(verb, failures)
        return replies

    async def _everywhere(self, verb: str, body: Mapping[str, Any], deadline: float) -> Replies:
        ends_at = asyncio.get_running_loop().time() + deadline
        found = await self._fleet.call(verb, body, deadline=ends_at, servers=self._fleet.servers)
        _raise_failures(verb, found)
        return found

    @asynccontextmanager
    async def _open(self, checkpoint_id: str, replacements: Collection[EpisodeId]) -> AsyncIterator[None]:
        """Renew while the block runs; at its end resume, after retiring the replacements if it raised."""

        async def clean_up(failed: bool) -> list[CoordinationError]:
            retired = await failure_of(self.retire(replacements)) if failed and replacements else None
            resumed = await failure_of(self.resume(checkpoint_id))
            if retired is not None and retired.has("wrong_phase"):
                # A server was still restoring for a caller that had given up. Since the resume it is not.
                retired = await failure_of(self.retire(replacements))
            return [each for each in (retired, resumed) if each is not None]

        async with renewing(self._fleet, checkpoint_id), always_ended(clean_up):
            yield


def _at_least(ends_at: float, deadline: float) -> float:
    """This time of the running loop, or a little later when it is over."""
    return max(ends_at, asyncio.get_running_loop().time() + min(deadline, LEAST_RANK_SECONDS))


def _raise_failures(verb: str, found: Replies) -> None:
    if found.failures:
        raise CoordinationError(verb, found.failures)

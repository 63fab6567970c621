"""The controller's side: one consistent cut over many servers, and its restore.

::

    coordination = Coordination(servers)
    async with coordination.prepared("step-1200", "/runs/7/step-1200", deadline=60) as cut:
        committed = await cut.commit(cut.continued(ledger.in_flight()))
        await committed.settle(outstanding_runs, timeout=5)
        state = ledger.value()                       # the controller's own cut
    # every server runs again, whatever happened above
    await asyncio.to_thread(committed.publish, sequence=1200, state=state)

    async with coordination.restored("/runs/7/step-1200") as back:
        ...                                          # dispatch back.episodes after this block

The controller sequences nothing itself: ranks, renewals, clean-up and resume are here (CO1, CO2, CO4).
A `Coordination` has memory: it keeps which rollouts were retired and not yet forgotten, and puts them
as marks into the checkpoints that it commits.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Collection, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import ckptfmt
from ckptctl._controller.fleet import Fleet, Replies, Server
from ckptctl._controller.lives import begin_life, check_attempts, first_attempt
from ckptctl._controller.renewal import renewing
from ckptctl._controller.results import CommitResult, PrepareResult, RestoreResult, as_episode
from ckptctl._controller.source import read_source
from ckptctl._errors import ControlError, CoordinationError, NotPrepared
from ckptctl._retired import Marks
from ckptctl._threads import in_thread
from ckptfmt import EpisodeId

T = TypeVar("T")

RESUME_SECONDS = 60.0
"""How long the resume that ends every checkpoint and restore may take."""
LAST_CHANCE_SECONDS = 5.0
"""What each rank of a resume or retire has of its deadline, also when one before it used up the time."""


class Coordination:
    """The calls of a training controller over its servers. Deadlines are seconds, one for all servers."""

    def __init__(self, servers: Iterable[Server]) -> None:
        self._fleet = Fleet(servers)
        self.marks = Marks()
        self._cut: tuple[tuple[str, str], ckptfmt.Cut] | None = None

    @property
    def servers(self) -> tuple[Server, ...]:
        return self._fleet.servers

    # A checkpoint

    @asynccontextmanager
    async def prepared(
        self, checkpoint_id: str, directory: str, *, deadline: float = 60.0
    ) -> AsyncIterator[PrepareResult]:
        """Prepare every server, renew in the background, and always resume.

        ``directory``: the checkpoint's folder ``<run>/<checkpoint>``, absolute path or URL; the cut folder
        in it is drawn here. Raises `NotPrepared` with the blockers at the deadline, `CoordinationError`
        when a server fails; whatever raises inside, every server is resumed and errors of that are notes.
        """
        await self._draw_cut(checkpoint_id, directory)  # Where it fails, there is nobody to resume yet.
        async with self._open(checkpoint_id, ()):
            yield await self.prepare(checkpoint_id, directory, deadline=deadline)

    async def prepare(self, checkpoint_id: str, directory: str, *, deadline: float = 60.0) -> PrepareResult:
        """Close the servers rank by rank. May be called again with the same id after `NotPrepared`.

        For callers that cannot use `prepared`: they must renew, and resume whatever happens.
        """
        ends_at = asyncio.get_running_loop().time() + deadline
        cut = await self._draw_cut(checkpoint_id, directory)
        restarts: set[str] = set()
        episodes: dict[str, list[str]] = {}
        for rank in self._fleet.by_rank(lambda server: server.prepare_rank):
            body = {
                "checkpoint_id": checkpoint_id,
                "directory": cut.url,
                "cut_digest": cut.digest,
                # A later rank must not wait for the calls of a rollout that nobody saves (RS2).
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
            self, checkpoint_id, directory, cut, frozenset(map(as_episode, restarts)), episodes
        )

    async def _draw_cut(self, checkpoint_id: str, directory: str) -> ckptfmt.Cut:
        """The cut of this try. Durable up to the run's folder before anybody closes."""
        wanted = (checkpoint_id, directory)
        if self._cut is None or self._cut[0] != wanted:
            self._cut = wanted, await in_thread(lambda: ckptfmt.create_cut(directory, checkpoint_id))
        return self._cut[1]

    async def commit(
        self, prepared: PrepareResult, scope: Collection[EpisodeId], *, deadline: float
    ) -> CommitResult:
        """Commit everywhere at once. May be called again with the same scope after a retryable error."""
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
        references: dict[str, list[str]] = {}
        owners: dict[str, list[str]] = {}
        for name in sorted(found.replies):
            reply = found.replies[name]
            for key in reply["episode_ids"]:
                owners.setdefault(key, []).append(name)
            for key, named in reply["references"].items():
                references.setdefault(key, []).extend(named)
        return CommitResult(
            checkpoint_id=prepared.checkpoint_id,
            directory=prepared.directory,
            cut=prepared.cut.name,
            manifests={name: reply["manifest"]["sha256"] for name, reply in sorted(found.replies.items())},
            bytes=sum(reply["manifest"]["bytes"] for reply in found.replies.values()),
            scope=frozenset(scope),
            owners={as_episode(key): tuple(names) for key, names in sorted(owners.items())},
            restarts=prepared.restarts,
            references={as_episode(key): tuple(named) for key, named in sorted(references.items())},
            marks=self.marks.as_dict(),
        )

    async def renew(self, checkpoint_id: str, *, deadline: float = 30.0) -> None:
        """Extend every lease, when publishing takes longer than expected."""
        await self._everywhere("renew", {"checkpoint_id": checkpoint_id}, deadline)

    async def resume(self, checkpoint_id: str, *, deadline: float = RESUME_SECONDS) -> None:
        """Resume every server, in the reverse of prepare's order, also after one of them failed.

        A server whose process was replaced counts as resumed. Raises `CoordinationError` at the end.
        """
        if self._cut is not None and self._cut[0][0] == checkpoint_id:
            self._cut = None  # What comes next under this id is another try, so another cut.
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

    # A restore

    @asynccontextmanager
    async def restored(
        self,
        directory: str,
        scope: Collection[EpisodeId | str] | None = None,
        *,
        attempts: Mapping[str, int] | None = None,
        deadline: float = 600.0,
    ) -> AsyncIterator[RestoreResult]:
        """Begin the run's next life from a complete checkpoint, in fresh servers, all or nothing.

        ``directory``: ``<run>/<checkpoint>``. ``scope``: which of its episodes to continue, all by default.
        ``attempts``: replacement attempts by rollout, where the caller knows better than the life's first
        one. Every server is resumed at the end; on an error here or inside, the replacement attempts are
        retired first. Raises the restore's error, with those of the clean-up as notes; ValueError for a scope
        or attempts that do not fit the checkpoint.
        """
        source = await in_thread(
            lambda: read_source(directory, [server.name for server in self._fleet.servers])
        )
        checkpoint, saved = source.checkpoint, source.chosen(scope)
        given = dict(attempts or {})
        check_attempts(saved, given)
        life = await in_thread(lambda: begin_life(source.run, checkpoint, given))
        numbers = dict.fromkeys((each.rollout_id for each in saved), first_attempt(life)) | given
        episodes = {each: EpisodeId(each.rollout_id, numbers[each.rollout_id]) for each in saved}
        restore_id = f"restore-{life}-{uuid.uuid4().hex[:8]}"
        for rollout_id, marked in checkpoint.marks.items():
            self.marks.retire(rollout_id, marked)
        for each in episodes.values():
            self.marks.retire(each.rollout_id, each.attempt - 1)
        self._fleet.meet_again()
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

    # Rollouts

    async def retire(self, episodes: Collection[EpisodeId], *, deadline: float = 60.0) -> None:
        """Refuse, stop and free attempts, callers before the servers they call (CO1).

        Every rank is called, also after a failure before it: a late call leaves at least the mark.
        """
        for episode in episodes:
            self.marks.retire(episode.rollout_id, episode.attempt)
        await self._callers_first(
            "retire", {"episodes": sorted(each.capture_key for each in episodes)}, deadline
        )

    async def forget(self, rollouts: Collection[str], *, deadline: float = 60.0) -> list[str]:
        """End the refusal of rollouts that are done for good. Returns those that some server kept (RT10)."""
        found = await self._callers_first("forget", {"rollouts": sorted(set(rollouts))}, deadline)
        kept = {rollout for reply in found.values() for rollout in reply["kept"]}
        for rollout_id in set(rollouts) - kept:
            self.marks.forget(rollout_id)
        return sorted(kept)

    async def status(self, *, deadline: float = 5.0) -> Replies:
        """The status of every server, or its error."""
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
        first: BaseException | None = None
        async with renewing(self._fleet, checkpoint_id):
            try:
                yield
            except BaseException as error:
                first = error
                raise
            finally:
                failed, cancelled = await _to_the_end(
                    self._clean_up(checkpoint_id, replacements if first is not None else ())
                )
                leaving = cancelled or first
                for failure in failed:
                    if leaving is None:
                        raise failure
                    leaving.add_note(f"and while cleaning up: {failure}")
                if cancelled is not None:
                    raise cancelled

    async def _clean_up(
        self, checkpoint_id: str, replacements: Collection[EpisodeId]
    ) -> list[CoordinationError]:
        """Retire what a failed restore installed, then resume, also when that failed (CO4)."""
        retired = await _failure(self.retire(replacements)) if replacements else None
        resumed = await _failure(self.resume(checkpoint_id))
        if retired is not None and retired.has("wrong_phase"):
            # It was still restoring, for a caller that had given up. It is not any more.
            retired = await _failure(self.retire(replacements))
        return [each for each in (retired, resumed) if each is not None]


def _at_least(ends_at: float, deadline: float) -> float:
    """This time of the running loop, or a little later when it is over."""
    return max(ends_at, asyncio.get_running_loop().time() + min(deadline, LAST_CHANCE_SECONDS))


async def _failure(work: Awaitable[None]) -> CoordinationError | None:
    try:
        await work
    except CoordinationError as error:
        return error
    return None


async def _to_the_end(work: Coroutine[Any, Any, T]) -> tuple[T, asyncio.CancelledError | None]:
    """Await ``work`` to its end even when this task is cancelled meanwhile: its result, and the cancellation
    that the caller must raise."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    return task.result(), cancelled


def _raise_failures(verb: str, found: Replies) -> None:
    if found.failures:
        raise CoordinationError(verb, found.failures)

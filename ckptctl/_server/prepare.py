"""One participant's prepare: check the directory, close admission, then report (CP6, CM11)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import ckptfmt
from ckptctl import _protocol as protocol
from ckptctl._errors import ControlError, reading_error
from ckptctl._participants.interface import Participant, PrepareReport
from ckptctl._server.admission import Admission
from ckptctl._server.tasks import await_participant, done_by, mark_retrieved
from ckptctl._threads import in_thread
from ckptfmt import Damaged, EpisodeId


class PrepareOperation:
    """The closing for one checkpoint id, and what was reported. ``task`` ends when all is closed."""

    def __init__(
        self, participant: Participant, admission: Admission, request: protocol.PrepareRequest
    ) -> None:
        self.arguments = self.arguments_of(request)
        self.closing = False
        """Whether closing has begun: from then on there is something to reopen."""
        self._participant = participant
        self._admission = admission
        self._request = request
        self._restarts = frozenset(request.restarts)
        self._report: dict[str, Any] | None = None
        self._asking: asyncio.Task[PrepareReport] | None = None
        self.task = asyncio.create_task(self._close(), name="ckptctl-prepare")
        self.task.add_done_callback(mark_retrieved)

    @staticmethod
    def arguments_of(request: protocol.PrepareRequest) -> tuple[Any, ...]:
        """What a repeat of this prepare must have in common with it (CP16)."""
        # Not the restarts: a repeat lacks those that ended meanwhile. Those of the first call stay in force.
        return request.directory, request.cut_digest

    async def _close(self) -> None:
        # Before anything is parked: this finds a directory that is not the same one for all servers.
        await in_thread(self._check_directory, name="ckptctl-prepare")
        self.closing = True
        self._admission.close(self._restarts)
        await await_participant(self._participant.close(self._restarts))

    def _check_directory(self) -> None:
        request = self._request
        try:
            if request.cut_digest is not None:
                cut = ckptfmt.read_cut(request.directory)
                if (cut.digest, cut.checkpoint_id) != (request.cut_digest, request.checkpoint_id):
                    raise Damaged(f"{request.directory} is another cut than the one that prepare names")
            ckptfmt.check_directory(request.directory)
        except ckptfmt.CheckpointError as error:
            raise reading_error(error) from error

    async def stop(self) -> None:
        """Stop closing, since the checkpoint ends."""
        tasks = [task for task in (self.task, self._asking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def report(self, ready: bool, deadline: float) -> dict[str, Any]:
        """The reply of prepare, without its phase.

        Once the participant was ready it stays the same (CP16).

        Raises ``deadline_exceeded`` when the participant is ready but has not reported what it can save.
        """
        if self._report is not None:
            return self._report
        blockers, count = ([], 0) if ready else self._participant.blockers(protocol.MAX_BLOCKERS)
        # Before all is closed there is nothing to report yet.
        found = await self._ask(deadline) if self.task.done() else None
        if self._report is not None:
            return self._report  # Another call got the report meanwhile.
        if found is None:
            if ready:
                raise ControlError("deadline_exceeded", "the participant has not reported yet")
            found = PrepareReport()  # The blockers are enough; the next prepare asks again.
        restarts = self._restarts | frozenset(found.restarts)
        report = {
            "blockers": [blocker.to_wire() for blocker in blockers],
            "blocker_count": count,
            "restarts": _keys(found.restarts),
            "episodes": _keys(frozenset(found.episodes) - restarts),
            "unattributed": self._admission.unattributed,
        }
        if ready:
            self._restarts, self._report = restarts, report
        return report

    async def _ask(self, deadline: float) -> PrepareReport | None:
        """What the participant reports now; None when it does not by the deadline."""
        while self._asking is not None and not self._asking.done():
            # A report that was asked for earlier may be outdated.
            if not await done_by([self._asking], deadline):
                return None
        self._asking = asking = asyncio.create_task(await_participant(self._participant.prepare()))
        asking.add_done_callback(mark_retrieved)
        if not await done_by([asking], deadline):
            return None
        if asking.cancelled():
            raise ControlError("checkpoint_conflict", "the checkpoint was resumed while it prepared")
        return asking.result()

    def check_scope(self, request: protocol.CommitRequest) -> None:
        """Refuse a commit whose scope names a restart (RS3).

        Raises ``restart_in_scope``.
        """
        named = [each.capture_key for each in request.episodes if each in self._restarts]
        if named:
            raise ControlError(
                "restart_in_scope",
                f"{len(named)} episode(s) of the scope are restarts, which a server cannot save: "
                f"{', '.join(named[:5])}",
                details={"episodes": named},
            )


def _keys(episodes: Collection[EpisodeId]) -> list[str]:
    return sorted({episode.capture_key for episode in episodes})

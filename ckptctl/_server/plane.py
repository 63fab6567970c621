"""The control plane of one server: the verbs, as a story told in `phases`, `lease`, `marks` and the work.

`ControlPlane.handle` is all that a host needs: it takes a verb and a body and returns a reply, or raises
a `ControlError`. The order of its checks is instance, body, checkpoint id, phase, readiness and scope;
token and path come before, in the host. A refusal by any of them changes nothing (CP17).

What takes long is a task that the plane owns. A call waits for it until its own deadline and replies in
time, whatever the work below is doing (CP9); a call that comes again finds the same task (CP16).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from ckptctl import _protocol as protocol
from ckptctl._errors import ControlError, control_error
from ckptctl._participants.interface import Participant
from ckptctl._retired import Marks
from ckptctl._server.admission import Admission
from ckptctl._server.commit import CommitWork
from ckptctl._server.lease_timer import LeaseWatch
from ckptctl._server.phases import Phase, PhaseMachine
from ckptctl._server.prepare import PrepareWork
from ckptctl._server.restore import RestoreWork
from ckptctl._server.retire import Retiring
from ckptctl._server.waiting import failing, finished, now, uncancelled, within
from ckptctl._settings import Settings
from ckptfmt import Compression


class ControlPlane:
    """Drives one `Participant` through checkpoints, in the event loop in which it is first used."""

    def __init__(
        self, participant: Participant, settings: Settings, *, compression: Compression = "auto"
    ) -> None:
        self.participant = participant
        self.settings = settings
        self.instance_id = uuid.uuid4().hex
        self.marks = Marks()
        self.admission = Admission(self.marks)
        self._compression = compression
        self._phases = PhaseMachine()
        self._lease = LeaseWatch(
            settings.lease_grace_seconds, end=self._ending, reopen_pending=lambda: self._reopen_pending
        )
        self._changed = asyncio.Event()
        self._prepare: PrepareWork | None = None
        self._commit: CommitWork | None = None
        self._restore: RestoreWork | None = None
        self._installed: RestoreWork | None = None  # An ended restore: its install may run, or be unclaimed.
        self._retiring = Retiring(participant)
        self._end: asyncio.Task[None] | None = None  # The resume or expiry under way.
        self._reopen_pending = False
        self._last_error: ControlError | None = None
        self._verbs: dict[str, Callable[[Any, float], Coroutine[Any, Any, dict[str, Any]]]] = {
            "prepare": self._on_prepare,
            "renew": self._on_renew,
            "commit": self._on_commit,
            "resume": self._on_resume,
            "restore": self._on_restore,
            "retire": self._on_retire,
            "forget": self._on_forget,
        }
        participant.changed = self._changed.set

    async def close(self) -> None:
        """The server is going away: stop the lease, and a write so that it leaves no temporary file."""
        self._lease.close()
        if self._commit is not None:
            await self._commit.stop()

    async def handle(
        self,
        verb: str,
        body: bytes = b"",
        *,
        instance: str | None = None,
        deadline_seconds: float | None = None,
    ) -> dict[str, Any]:
        """Serve one authenticated call. ``deadline_seconds``: from now; the settings' default if None.

        Raises `ControlError`, and nothing else.
        """
        try:
            if verb != "status" and verb not in self._verbs:
                raise protocol.invalid(f"there is no control call {verb[:64]!a}", status=404)
            self.check_instance(instance)
            if verb == "status":
                reply = self.status()
            else:
                deadline = self._deadline(deadline_seconds)
                request = protocol.parse(verb, body)
                if self._lease.expired:
                    # This process may have been stopped past its lease: judge it before the call (CP8).
                    await finished([self._ending()], deadline)
                self._phases.check(verb, request.open_id)
                reply = await self._verbs[verb](request, deadline)
        except ControlError:
            raise
        except Exception as error:
            raise control_error(error) from error
        return {**reply, "instance_id": self.instance_id}

    def check_instance(self, instance: str | None) -> None:
        """Raise ``wrong_instance`` when a call names another process than this one (CP18)."""
        if instance is not None and instance != self.instance_id:
            raise ControlError("wrong_instance", "this is another process than the one that was called")

    async def call(self, call: protocol.Call) -> dict[str, Any]:
        """This control plane as a transport, for a controller in the same event loop."""
        return await self.handle(
            call.verb, call.body, instance=call.instance, deadline_seconds=call.deadline_seconds
        )

    def status(self) -> dict[str, Any]:
        """The reply of ``status``: never waits, in any phase (CP10)."""
        participant, phases = self.participant, self._phases
        error = self._last_error or (self._commit.last_error if self._commit else None)
        return {
            "participant": {"name": participant.name, "kind": participant.kind},
            "phase": phases.phase,
            "checkpoint_id": phases.checkpoint_id,
            "lease_seconds_left": self._lease.seconds_left,
            "episodes": participant.episode_count(),
            "blockers": participant.blockers(0)[1],
            "restarts": participant.restart_count(),
            "unattributed": self.admission.unattributed,
            "retired_rollouts": len(self.marks),
            "reopen_pending": self._reopen_pending,
            "last_error": None if error is None else {"code": error.code, "message": error.message},
        }

    def _deadline(self, seconds: float | None) -> float:
        """The time of the loop by which a call must be answered."""
        if seconds is None:
            seconds = self.settings.default_deadline_seconds
        return now() + min(seconds, self.settings.maximum_deadline_seconds)

    # prepare, renew, commit

    async def _on_prepare(self, request: protocol.Prepare, deadline: float) -> dict[str, Any]:
        while self._phases.phase is Phase.IDLE and self._end is not None and not self._end.done():
            # A reopening under way (one that failed is tried again) must not open what this prepare closes.
            if not await finished([self._end], deadline):
                raise ControlError("deadline_exceeded", "an earlier reopening has not finished")
            self._phases.check("prepare", request.checkpoint_id)
        work = self._prepare
        if work is None:
            work = self._begin_prepare(request)
        elif work.arguments != PrepareWork.arguments_of(request):
            raise ControlError("checkpoint_conflict", "this checkpoint was prepared with other arguments")
        with self._lease.held():
            try:
                return await self._report_prepared(work, deadline)
            except ControlError:
                raise
            except Exception as error:
                self._prepare_failed(work, error)
                if self._end is not None:
                    await finished([self._end], deadline)
                raise

    async def _report_prepared(self, work: PrepareWork, deadline: float) -> dict[str, Any]:
        ready = await finished([work.task], deadline)
        if ready and not work.task.cancelled():
            work.task.result()
            ready = await self._until_ready(work, deadline)
        self._check_still_prepares(work)
        reply = await work.report(ready, deadline)
        self._check_still_prepares(work)
        if ready and self._phases.phase is Phase.PREPARING:
            self._phases.prepared()
        return {"phase": self._phases.phase, **reply}

    def _check_still_prepares(self, work: PrepareWork) -> None:
        if self._prepare is not work or self._phases.ending:
            raise ControlError("checkpoint_conflict", "the checkpoint was resumed while it prepared")

    def _prepare_failed(self, work: PrepareWork, error: BaseException) -> None:
        """Its own failure ends a prepare: what it closed opens again (CP2, CP14)."""
        # Not when a resume is under way: that reopens, and remembers the id. Nor while it still closes.
        if self._prepare is work and work.task.done() and self._still(Phase.PREPARING):
            self._prepare = None
            self._fail(control_error(error), reopen=work.closing)

    def _begin_prepare(self, request: protocol.Prepare) -> PrepareWork:
        self._phases.begin_prepare(request.checkpoint_id)
        self._start_lease()
        work = self._prepare = PrepareWork(self.participant, self.admission, request)
        work.task.add_done_callback(failing(lambda error: self._prepare_failed(work, error)))
        return work

    async def _until_ready(self, work: PrepareWork, deadline: float) -> bool:
        """Whether the participant is ready by the deadline, or the checkpoint ended meanwhile."""
        while (
            self._prepare is work
            and self._phases.phase is Phase.PREPARING
            and not self._phases.ending
            and not self.participant.ready()
        ):
            self._changed.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
            except TimeoutError:
                return self.participant.ready()
        return True

    async def _on_renew(self, request: protocol.Renew, deadline: float) -> dict[str, Any]:
        with self._lease.held():
            pass
        return {"lease_seconds_left": self._lease.seconds_left}

    async def _on_commit(self, request: protocol.Commit, deadline: float) -> dict[str, Any]:
        work = self._commit
        if work is None:
            work = self._begin_commit(request)
        else:
            work.check_repeat(request)
        task = work.task()  # Raises, before the lease is extended, when the export failed for good.
        with self._lease.held():
            reply = await within(task, deadline)
            if self._commit is not work or self._phases.ending:
                raise ControlError("checkpoint_conflict", "the checkpoint was resumed while it committed")
            if self._phases.phase is Phase.PREPARED:
                self._phases.committed()
            return reply

    def _begin_commit(self, request: protocol.Commit) -> CommitWork:
        assert self._prepare is not None
        self._prepare.check_scope(request)
        work = self._commit = CommitWork(self.participant, request, compression=self._compression)
        if not self.participant.ready():
            work.refuse_export(ControlError("export_failed", "an execution left its boundary after prepare"))
        return work

    # resume, expiry, and the end of a failed prepare or restore

    async def _on_resume(self, request: protocol.Resume, deadline: float) -> dict[str, Any]:
        if self._phases.phase is not Phase.IDLE:
            with self._lease.held():
                await within(self._ending(), deadline)
        else:
            if self._reopen_pending:
                await within(self._ending(), deadline)
            self._phases.remember(request.checkpoint_id)
        return {"phase": self._phases.phase}

    def _ending(self) -> asyncio.Task[None]:
        """The task that ends what is open and reopens admission: one at a time, joined by who comes again."""
        if self._end is None or self._end.done():
            if self._phases.phase is not Phase.IDLE:
                self._phases.begin_end()
            self._reopen_pending = True
            self._changed.set()  # A prepare that waits must notice.
            self._end = asyncio.create_task(self._end_open(), name="ckptctl-resume")
            self._end.add_done_callback(self._ended)
        return self._end

    async def _end_open(self) -> None:
        if self._prepare is not None:
            await self._prepare.stop()
        if self._commit is not None:
            await self._commit.stop()
        installed = self._restore or self._installed
        if installed is not None:
            await asyncio.wait([installed.task])
        await uncancelled(self.participant.reopen())
        if self._end is not asyncio.current_task():
            return  # A restore has taken over meanwhile, and has closed what this would open.
        self.admission.reopen()
        self._reopen_pending = False
        self._prepare = self._commit = self._restore = None
        self._installed = installed
        self._lease.stop()
        if self._phases.phase is not Phase.IDLE:
            self._phases.end()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._last_error = control_error(error)
            self._lease.retry()

    def _fail(self, error: ControlError, *, reopen: bool) -> None:
        """A prepare or restore failed by itself: idle; what it closed opens again."""
        self._last_error = error
        self._phases.failed()
        self._lease.stop()
        if reopen:
            self._end = self._ending()

    def _still(self, phase: Phase) -> bool:
        return self._phases.phase is phase and not self._phases.ending

    def _start_lease(self) -> None:
        self._last_error = None
        self._lease.start()

    # restore, retire, forget

    async def _on_restore(self, request: protocol.Restore, deadline: float) -> dict[str, Any]:
        work = self._restore
        if work is None:
            work = self._begin_restore(request)
        elif work.arguments != RestoreWork.arguments_of(request):
            raise ControlError("checkpoint_conflict", "this restore began with other arguments")
        with self._lease.held():
            try:
                reply = await within(work.task, deadline)
            except Exception as error:
                self._restore_failed(work, error)
                if self._end is not None:
                    await finished([self._end], deadline)
                raise
            if self._restore is not work or self._phases.ending:
                raise ControlError("checkpoint_conflict", "the restore was resumed while it ran")
            if self._phases.phase is Phase.RESTORING:
                self._phases.restored()
            return reply

    def _restore_failed(self, work: RestoreWork, error: BaseException) -> None:
        if self._restore is work and self._still(Phase.RESTORING):
            # Its install may still run: whoever comes next waits for it (RE5).
            self._restore, self._installed = None, work
            self._fail(control_error(error), reopen=True)

    def _begin_restore(self, request: protocol.Restore) -> RestoreWork:
        if self.admission.admitted_any:
            raise ControlError("not_fresh", "this process has admitted an execution: restore a fresh one")
        self._phases.begin_restore(request.checkpoint_id)
        self._start_lease()
        # Refuse the attempts that are replaced before any work that a deadline limits (RT7).
        for rollout_id, attempt in request.marks.items():
            self.marks.retire(rollout_id, attempt)
        for episode in request.episodes:
            if episode.attempt:
                self.marks.retire(episode.rollout_id, episode.attempt - 1)
        reopening, self._end = self._end, None
        if reopening is not None:
            reopening.cancel()
        self._reopen_pending = False
        self.admission.close()
        work = self._restore = RestoreWork(
            self.participant, request, before=self._installed, reopening=reopening
        )
        self._installed = None
        work.task.add_done_callback(failing(lambda error: self._restore_failed(work, error)))
        return work

    async def _on_retire(self, request: protocol.Retire, deadline: float) -> dict[str, Any]:
        for episode in request.episodes:
            self.marks.retire(episode.rollout_id, episode.attempt)
        installing = self._restore or self._installed
        if installing is not None and not await finished([installing.task], deadline):
            raise ControlError("deadline_exceeded", "an install has not finished; the marks are set")
        tasks = self._retiring.begin(request.episodes)
        if not await finished(tasks, deadline):
            raise ControlError("deadline_exceeded", "a retired attempt has not ended yet; the marks are set")
        for task in tasks:
            task.result()
        return {"retired_count": len(set(request.episodes))}

    async def _on_forget(self, request: protocol.Forget, deadline: float) -> dict[str, Any]:
        rollouts = set(request.rollouts)
        kept = sorted(rollout_id for rollout_id in rollouts if self._retiring.busy(rollout_id))
        for rollout_id in rollouts.difference(kept):
            self.marks.forget(rollout_id)
        return {"forgotten_count": len(rollouts) - len(kept), "kept": kept}

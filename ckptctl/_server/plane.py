"""The control plane of one server: it carries out the calls of a controller, over the parts in this room.

`ControlPlane.handle` is all that a host needs: it takes a verb and a body and returns a reply, or raises
a `ControlError`. The order of its checks is instance, body, checkpoint id, phase, readiness and scope;
token and path are checked before, by the host. A refusal by any of them changes nothing (CP17).

Long work runs in tasks that the control plane owns. A call waits for its task until its own deadline and
replies in time, whatever the task does (CP9); a repeated call finds the same task (CP16).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from ckptctl import _protocol as protocol
from ckptctl._errors import ControlError, control_error
from ckptctl._participants.interface import Participant
from ckptctl._retired import RetiredAttempts
from ckptctl._server.admission import Admission
from ckptctl._server.commit import CommitOperation
from ckptctl._server.lease_timer import LeaseTimer
from ckptctl._server.phases import Phase, PhaseMachine
from ckptctl._server.prepare import PrepareOperation
from ckptctl._server.restore import RestoreOperation
from ckptctl._server.retire import RetireOperations
from ckptctl._server.tasks import await_participant, done_by, loop_time, on_failure, result_by, true_by
from ckptctl._settings import Settings
from ckptfmt import Compression


class ControlPlane:
    """Drives one participant through checkpoints, on the event loop on which it is first used.

    Args:
        participant: The participant of this server.
        settings: Token, lease and deadlines.
        compression: How records are stored: ``"auto"``, ``"none"`` or ``"zstd"``.

    Attributes:
        participant: The participant of this server.
        settings: Token, lease and deadlines.
        instance_id: A random id of this control plane, and so of its process. Every reply carries it.
        marks: The retired attempts of this server.
        admission: What every request of the data plane passes before it begins an execution.

    Example:
        A server with aiohttp::

            plane = ControlPlane(EpisodeParticipant("agent-0", "agent"), Settings.from_block(block))
            app = web.Application()
            ckptctl.hosts.aiohttp.install(app, plane)
    """

    def __init__(
        self, participant: Participant, settings: Settings, *, compression: Compression = "auto"
    ) -> None:
        self.participant = participant
        self.settings = settings
        self.instance_id = uuid.uuid4().hex
        self.marks = RetiredAttempts()
        self.admission = Admission(self.marks)
        self._compression = compression
        self._phases = PhaseMachine()
        self._lease = LeaseTimer(
            settings.lease_grace_seconds, end=self._ending, reopen_pending=lambda: self._reopen_pending
        )
        self._changed = asyncio.Event()
        self._prepare: PrepareOperation | None = None
        self._commit: CommitOperation | None = None
        self._restore: RestoreOperation | None = None
        # A restore that has ended: its install may still run, or nothing has used what it installed.
        self._installed: RestoreOperation | None = None
        self._retires = RetireOperations(participant, self.marks)
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
        """Stop the lease and any write, when the server stops: no temporary file is left."""
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
        """Serve one authenticated call.

        Args:
            verb: Which call.
            body: The body of the request, JSON; ignored for ``status``.
            instance: The ``instance_id`` of the process that is meant; None for any.
            deadline_seconds: Seconds from now by which to reply; None for the default of the settings. At
                most the maximum of the settings is used.

        Returns:
            The reply, a JSON object with ``instance_id``.

        Raises:
            ControlError: With one of the codes in ``docs/protocol.md``. Nothing else is raised.
        """
        try:
            if verb != "status" and verb not in self._verbs:
                raise protocol.invalid_request(f"there is no control call {verb[:64]!a}", status=404)
            self.check_instance(instance)
            if verb == "status":
                reply = self.status()
            else:
                deadline = self._deadline(deadline_seconds)
                request = protocol.parse_request(verb, body)
                if self._lease.expired:
                    # This process may have been suspended past its lease: end that before the call (CP8).
                    await done_by([self._ending()], deadline)
                self._phases.check(verb, request.open_id)
                reply = await self._verbs[verb](request, deadline)
        except Exception as error:  # A participant may raise anything; every reply has a code.
            failure = control_error(error)
            if failure is error:
                raise
            raise failure from error
        return {**reply, "instance_id": self.instance_id}

    def check_instance(self, instance: str | None) -> None:
        """Refuse a call that names another process than this one (CP18).

        Args:
            instance: The ``instance_id`` that the call names; None for any.

        Raises:
            ControlError: ``wrong_instance``, when it is not that of this control plane.
        """
        if instance is not None and instance != self.instance_id:
            raise ControlError("wrong_instance", "this is another process than the one that was called")

    async def call(self, call: protocol.Call) -> dict[str, Any]:
        """Serve one call: this method is a :class:`Transport` for a controller on the same event loop.

        Args:
            call: The call.

        Returns:
            The reply, a JSON object with ``instance_id``.

        Raises:
            ControlError: With one of the codes in ``docs/protocol.md``. Nothing else is raised.
        """
        return await self.handle(
            call.verb, call.body, instance=call.instance, deadline_seconds=call.deadline_seconds
        )

    def status(self) -> dict[str, Any]:
        """Return the reply of ``status``, without waiting, in any phase (CP10).

        Returns:
            The members that ``docs/protocol.md`` lists for it, without ``instance_id``.

        Raises:
            Exception: What the participant raises when it is asked for counts.
        """
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
        """The time of the loop by which to reply to a call."""
        if seconds is None:
            seconds = self.settings.default_deadline_seconds
        return loop_time() + min(seconds, self.settings.maximum_deadline_seconds)

    async def _on_prepare(self, request: protocol.PrepareRequest, deadline: float) -> dict[str, Any]:
        while self._phases.phase is Phase.IDLE and self._end is not None and not self._end.done():
            # A reopening under way, such as a retry of a failed one, must not open what this prepare closes.
            if not await done_by([self._end], deadline):
                raise ControlError("deadline_exceeded", "an earlier reopening has not finished")
            self._phases.check("prepare", request.checkpoint_id)
        work = self._prepare
        if work is None:
            work = self._begin_prepare(request)
        elif work.arguments != PrepareOperation.arguments_of(request):
            raise ControlError("checkpoint_conflict", "this checkpoint was prepared with other arguments")
        with self._lease.call_in_progress():
            try:
                return await self._report_prepared(work, deadline)
            except ControlError:
                raise  # A refusal or the deadline: the prepare goes on. Its own task notes its own failure.
            except Exception as error:  # The participant failed while it was asked what it can save.
                self._prepare_failed(work, error)
                if self._end is not None:
                    await done_by([self._end], deadline)
                raise

    async def _report_prepared(self, work: PrepareOperation, deadline: float) -> dict[str, Any]:
        ready = await done_by([work.task], deadline)
        if ready and not work.task.cancelled():
            work.task.result()

            def ready_or_ended() -> bool:
                ended = self._prepare is not work or not self._still(Phase.PREPARING)
                return ended or self.participant.ready()

            ready = await true_by(ready_or_ended, self._changed, deadline)
        self._check_open(self._prepare is work, "prepared")
        reply = await work.report(ready, deadline)
        self._check_open(self._prepare is work, "prepared")
        if ready and self._phases.phase is Phase.PREPARING:
            self._phases.prepared()
        return {"phase": self._phases.phase, **reply}

    def _check_open(self, is_open: bool, doing: str) -> None:
        if not is_open or self._phases.ending:
            raise ControlError("checkpoint_conflict", f"the checkpoint was resumed while it {doing}")

    def _prepare_failed(self, work: PrepareOperation, error: BaseException) -> None:
        """A prepare ends by its own failure: what it closed opens again (CP2, CP14)."""
        # Not when a resume is under way, which reopens and remembers the id. Nor while it still closes.
        if self._prepare is work and work.task.done() and self._still(Phase.PREPARING):
            self._prepare = None
            self._fail(control_error(error), reopen=work.closing)

    def _begin_prepare(self, request: protocol.PrepareRequest) -> PrepareOperation:
        self._phases.begin_prepare(request.checkpoint_id)
        self._start_lease()
        work = self._prepare = PrepareOperation(self.participant, self.admission, request)
        work.task.add_done_callback(on_failure(lambda error: self._prepare_failed(work, error)))
        return work

    async def _on_renew(self, request: protocol.RenewRequest, deadline: float) -> dict[str, Any]:
        with self._lease.call_in_progress():
            pass
        return {"lease_seconds_left": self._lease.seconds_left}

    async def _on_commit(self, request: protocol.CommitRequest, deadline: float) -> dict[str, Any]:
        work = self._commit
        if work is None:
            work = self._begin_commit(request)
        else:
            work.check_repeat(request)
        task = work.task()  # Raises, before the lease is extended, when the export failed for good.
        with self._lease.call_in_progress():
            reply = await result_by(task, deadline)
            self._check_open(self._commit is work, "committed")
            if self._phases.phase is Phase.PREPARED:
                self._phases.committed()
            return reply

    def _begin_commit(self, request: protocol.CommitRequest) -> CommitOperation:
        assert self._prepare is not None
        self._prepare.check_scope(request)
        work = self._commit = CommitOperation(self.participant, request, compression=self._compression)
        if not self.participant.ready():
            work.refuse_export(ControlError("export_failed", "an execution left its boundary after prepare"))
        return work

    async def _on_resume(self, request: protocol.ResumeRequest, deadline: float) -> dict[str, Any]:
        if self._phases.phase is not Phase.IDLE:
            with self._lease.call_in_progress():
                await result_by(self._ending(), deadline)
        else:
            if self._reopen_pending:
                await result_by(self._ending(), deadline)
            self._phases.remember(request.checkpoint_id)
        return {"phase": self._phases.phase}

    def _ending(self) -> asyncio.Task[None]:
        """The task that ends what is open and reopens admission. There is one at a time: it is shared."""
        if self._end is None or self._end.done():
            if self._phases.phase is not Phase.IDLE:
                self._phases.begin_end()
            self._reopen_pending = True
            self._changed.set()  # Wakes a prepare that waits.
            self._end = asyncio.create_task(self._end_open(), name="ckptctl-resume")
            self._end.add_done_callback(on_failure(self._ending_failed))
        return self._end

    async def _end_open(self) -> None:
        if self._prepare is not None:
            await self._prepare.stop()
        if self._commit is not None:
            await self._commit.stop()
        installed = self._restore or self._installed
        if installed is not None:
            await asyncio.wait([installed.task])
        await await_participant(self.participant.reopen())
        if self._end is not asyncio.current_task():
            return  # A restore has begun meanwhile, and has closed what this would open.
        self.admission.reopen()
        self._reopen_pending = False
        self._prepare = self._commit = self._restore = None
        self._installed = installed
        self._lease.stop()
        if self._phases.phase is not Phase.IDLE:
            self._phases.end()

    def _ending_failed(self, error: BaseException) -> None:
        self._last_error = control_error(error)
        self._lease.retry()

    def _fail(self, error: ControlError, *, reopen: bool) -> None:
        """A prepare or restore ends by its own failure: idle; ``reopen``: what it closed opens again."""
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

    async def _on_restore(self, request: protocol.RestoreRequest, deadline: float) -> dict[str, Any]:
        work = self._restore
        if work is None:
            work = self._begin_restore(request)
        elif work.arguments != RestoreOperation.arguments_of(request):
            raise ControlError("checkpoint_conflict", "this restore began with other arguments")
        with self._lease.call_in_progress():
            try:
                reply = await result_by(work.task, deadline)
            except Exception as error:  # Also the deadline: a restore that is not done by then has failed.
                self._restore_failed(work, error)
                if self._end is not None:
                    await done_by([self._end], deadline)
                raise
            self._check_open(self._restore is work, "restored")
            if self._phases.phase is Phase.RESTORING:
                self._phases.restored()
            return reply

    def _restore_failed(self, work: RestoreOperation, error: BaseException) -> None:
        if self._restore is work and self._still(Phase.RESTORING):
            # Its install may still run: the next restore or retire waits for it (RE5).
            self._restore, self._installed = None, work
            self._fail(control_error(error), reopen=True)

    def _begin_restore(self, request: protocol.RestoreRequest) -> RestoreOperation:
        if self.admission.admitted_any:
            raise ControlError("not_fresh", "this process has admitted an execution: restore a fresh one")
        self._phases.begin_restore(request.checkpoint_id)
        self._start_lease()
        # Refuse the attempts that are replaced before any work that a deadline limits (RT7).
        self.marks.retire_all(request.marks)
        self.marks.retire_before(request.episodes)
        reopening, self._end = self._end, None
        if reopening is not None:
            reopening.cancel()
        self._reopen_pending = False
        self.admission.close()
        work = self._restore = RestoreOperation(
            self.participant, request, before=self._installed, reopening=reopening
        )
        self._installed = None
        work.task.add_done_callback(on_failure(lambda error: self._restore_failed(work, error)))
        return work

    async def _on_retire(self, request: protocol.RetireRequest, deadline: float) -> dict[str, Any]:
        installing = self._restore or self._installed
        task = None if installing is None else installing.task
        await self._retires.retire(request.episodes, task, deadline)
        return {"retired_count": len(set(request.episodes))}

    async def _on_forget(self, request: protocol.ForgetRequest, deadline: float) -> dict[str, Any]:
        rollouts = set(request.rollouts)
        kept = self._retires.forget(rollouts)
        return {"forgotten_count": len(rollouts) - len(kept), "kept": kept}

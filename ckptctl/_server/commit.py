"""One participant's commit: one export and one write, however often the call is repeated (CM4).

The export and the write run in a task of their own, which a caller's deadline does not stop. A write that
failed to store continues where it stopped, with the same snapshots and so the same bytes. An export that
failed is final, since a later one could belong to a later cut than that of the other participants (CM5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ckptfmt
from ckptctl import _protocol as protocol
from ckptctl._errors import ControlError, control_error
from ckptctl._participants.interface import Participant
from ckptctl._server.tasks import await_participant, on_failure
from ckptctl._threads import in_thread
from ckptfmt import Compression, EpisodeId, Manifest, OutcomeUnknown, Record, StoreError, Writer

STOP_SECONDS = 1.0
"""How long a stop waits for a stopped write to remove its temporary files. Past it the write may still be in
one file operation, which publishes nothing: its last check before the manifest refuses."""


class CommitOperation:
    """The export and write of one checkpoint id."""

    def __init__(
        self, participant: Participant, request: protocol.CommitRequest, *, compression: Compression
    ) -> None:
        self._arguments = self._arguments_of(request)
        self.last_error: ControlError | None = None
        self._participant = participant
        self._scope = frozenset(request.episodes)
        self._gate = ckptfmt.Gate()
        self._records: Sequence[Record] | None = None
        self._open_writer: Callable[[], Writer] = lambda: ckptfmt.create(
            request.directory,
            participant=participant.name,
            kind=participant.kind,
            checkpoint_id=request.checkpoint_id,
            compression=compression,
            gate=self._gate,
        )
        self._writer: Writer | None = None
        self._manifest: Manifest | None = None
        self._export_error: ControlError | None = None
        self._task: asyncio.Task[dict[str, Any]] | None = None

    def check_repeat(self, request: protocol.CommitRequest) -> None:
        """Refuse a repeat with other arguments (CM6), and every one once the export has failed (CM5)."""
        if self._export_error is not None:
            raise self._export_error
        if self._arguments != self._arguments_of(request):
            raise ControlError("checkpoint_conflict", "this checkpoint was committed with other arguments")

    @staticmethod
    def _arguments_of(request: protocol.CommitRequest) -> tuple[str, tuple[EpisodeId, ...]]:
        return request.directory, tuple(sorted(request.episodes))

    def task(self) -> asyncio.Task[dict[str, Any]]:
        """The running or finished work.

        If storing failed, it begins again where it stopped.

        Raises `ControlError` ``export_failed`` when the export failed before.
        """
        if self._export_error is not None:
            raise self._export_error
        if self._task is None or (self._task.done() and self._failed(self._task)):
            self._task = asyncio.create_task(self._run(), name="ckptctl-commit")
            self._task.add_done_callback(on_failure(self._note))
        return self._task

    def refuse_export(self, error: ControlError) -> ControlError:
        """Let every further commit of this id fail with this error, and return it."""
        self._export_error = error
        return error

    async def stop(self) -> None:
        """Cancel a running export, stop a write, wait for a publication under way.

        When it returns, no manifest of this commit can appear any more (CM8). May be cancelled and
        called again.
        """
        self._gate.stop()
        if self._task is not None and not self._task.done():
            if self._records is None:
                self._task.cancel()
            await asyncio.wait([self._task], timeout=STOP_SECONDS)
            if not self._task.done():
                await in_thread(lambda: self._gate.wait_published(None), name="ckptctl-stop")
        elif self._writer is not None:
            # A write that failed to store was kept for a retry, which cannot come any more.
            await in_thread(self._writer.abort, name="ckptctl-abort")

    async def _run(self) -> dict[str, Any]:
        if self._records is None:
            self._records = await self._export()
        try:
            await in_thread(self._store, name="ckptctl-commit")
        except ckptfmt.CheckpointError as error:
            failure = control_error(error)
            if failure.code == "export_failed":
                self.refuse_export(failure)
            raise failure from error
        reply = self._reply(self._records)
        self._records = ()  # Published: the snapshots may be large, and a repeat needs only the reply.
        return reply

    async def _export(self) -> Sequence[Record]:
        try:
            records = await await_participant(self._participant.export(self._scope))
            self._check(records)
        except Exception as error:  # A participant may raise anything; whatever it is, the export is over.
            reason = str(error) if isinstance(error, ControlError) else f"{type(error).__name__}: {error}"
            failure = ControlError("export_failed", f"the export failed: {reason}")
            raise self.refuse_export(failure) from error
        return records

    def _check(self, records: Iterable[Record]) -> None:
        seen: set[EpisodeId] = set()
        for record in records:
            if record.episode not in self._scope or record.episode in seen:
                why = "twice" if record.episode in seen else "though it is not in the scope"
                raise ControlError("export_failed", f"{record.episode.capture_key} was exported {why}")
            seen.add(record.episode)

    def _store(self) -> None:
        """In a thread: write what is not written yet, then publish."""
        assert self._records is not None
        if self._writer is None:
            self._writer = self._open_writer()
        else:
            self._writer.retry()
        try:
            for record in self._records[self._writer.accepted :]:
                self._writer.write(record)
            self._manifest = self._writer.publish()
        except (StoreError, OutcomeUnknown):
            raise  # The writer keeps what is not stored, for a retry.
        except BaseException:  # Re-raised: whatever it is, no retry follows, so nothing may stay behind.
            self._writer.abort()
            self._writer = None
            raise

    def _reply(self, records: Iterable[Record]) -> dict[str, Any]:
        manifest = self._manifest
        assert manifest is not None
        references: dict[str, list[str]] = {}
        keys = []
        for record in records:
            keys.append(record.episode.capture_key)
            if record.references:
                references[record.episode.capture_key] = list(record.references)
        return {
            "manifest": {
                "sha256": manifest.digest,
                "records": manifest.records,
                "bytes": sum(segment.stored for segment in manifest.segments),
            },
            "episode_ids": sorted(keys),
            "references": dict(sorted(references.items())),
        }

    def _note(self, error: BaseException) -> None:
        # Also when no caller waits any more: status shows the error.
        self.last_error = control_error(error)

    @staticmethod
    def _failed(task: asyncio.Task[dict[str, Any]]) -> bool:
        return task.cancelled() or task.exception() is not None

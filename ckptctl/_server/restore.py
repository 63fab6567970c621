"""One participant's restore: read and verify in a thread, then install (RE1-RE4, RE7)."""

from __future__ import annotations

import asyncio
from typing import Any

import ckptfmt
from ckptctl import _protocol as protocol
from ckptctl._errors import ControlError, control_error, reading_error
from ckptctl._participants.interface import Participant, RestoredRecord
from ckptctl._server.tasks import await_participant, mark_retrieved
from ckptctl._threads import in_thread
from ckptfmt import CheckpointError, CutReference, Damaged, EpisodeId

MEMORY_BUDGET_BYTES = 256 * 1024 * 1024
"""How many bytes of payloads a restore holds: a record beyond it is read again when it is needed."""


class RestoreOperation:
    """The reading and install of one restore. ``task`` goes on when its call's deadline passes (RE5)."""

    def __init__(
        self,
        participant: Participant,
        request: protocol.RestoreRequest,
        *,
        before: RestoreOperation | None,
        reopening: asyncio.Task[None] | None,
    ) -> None:
        """Begin in a task.

        ``before``: an earlier restore whose install may still run, or whose episodes were not freed (CP4).
        ``reopening``: one under way, already cancelled, that must not open what this restore closes.
        """
        self.arguments = self.arguments_of(request)
        self._participant = participant
        self._request = request
        self._wanted = {episode.rollout_id: episode for episode in request.episodes}
        self._before = before
        self._reopening = reopening
        self._to_delete: set[EpisodeId] = set()
        self.task: asyncio.Task[dict[str, Any]] = asyncio.create_task(self._run(), name="ckptctl-restore")
        self.task.add_done_callback(mark_retrieved)

    @staticmethod
    def arguments_of(request: protocol.RestoreRequest) -> tuple[Any, ...]:
        """What a repeat of this restore must have in common with it (CM6)."""
        marks = tuple(sorted(request.marks.items()))
        return request.directory, tuple(sorted(request.episodes)), request.checkpoint_digest, marks

    @property
    def possibly_installed(self) -> set[EpisodeId]:
        """What this restore, and those before it, may have installed and was not freed."""
        return self._to_delete | set(self._wanted.values())

    async def _run(self) -> dict[str, Any]:
        if self._reopening is not None:
            await asyncio.wait([self._reopening])
        if self._before is not None:
            await asyncio.wait([self._before.task])
            self._to_delete = self._before.possibly_installed
            self._before = None
            await await_participant(self._participant.delete_restored(sorted(self._to_delete)))
            self._to_delete = set()
        await await_participant(self._participant.close(()))
        try:
            source, records = await in_thread(self._read, name="ckptctl-restore")
        except CheckpointError as error:
            raise reading_error(error) from error
        try:
            await await_participant(self._participant.install(records, sorted(self._wanted.values())))
        except CheckpointError as error:
            raise reading_error(error) from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            # The participant's own validation of a record (RE2).
            message = f"the install refused a record: {error!r}"
            raise ControlError("invalid_checkpoint_state", message) from error
        except Exception as error:  # A participant may raise anything.
            raise control_error(error) from error
        return {
            "restored": sorted(record.episode.capture_key for record in records),
            "source_checkpoint_id": source,
        }

    def _read(self) -> tuple[str, list[RestoredRecord]]:
        """In a thread: one pass over this participant's part, which keeps what is in scope."""
        name = self._participant.name
        part = ckptfmt.open_participant(self._request.directory, name, digest=self._named_manifest(name))
        stored = part.restore(self._wanted, memory_budget=MEMORY_BUDGET_BYTES)
        records = [RestoredRecord(self._wanted[each.episode.rollout_id], each) for each in stored]
        for record in records:
            if record.episode.attempt <= record.saved_as.attempt:
                raise protocol.invalid_request(
                    f"{record.episode.capture_key} is no later attempt than the saved "
                    f"{record.saved_as.capture_key}"
                )
        return part.manifest.checkpoint_id, records

    def _named_manifest(self, name: str) -> str | None:
        """The digest that ``checkpoint.json`` beside the cut names for this participant (CO11)."""
        if self._request.checkpoint_digest is None:
            return None
        cut = ckptfmt.read_cut(self._request.directory)
        checkpoint = ckptfmt.read_checkpoint(cut.checkpoint_url)
        where = f"{cut.checkpoint_url}: checkpoint.json"
        if checkpoint.digest != self._request.checkpoint_digest:
            raise Damaged(f"{where} is not the one that the restore names")
        if checkpoint.cut != CutReference(cut.name, cut.digest):
            raise Damaged(f"{where} does not name the cut {cut.name!r}, or another one of this name")
        if name not in checkpoint.participants:
            raise Damaged(f"{where} has no participant {name!r}")
        return checkpoint.participants[name].manifest

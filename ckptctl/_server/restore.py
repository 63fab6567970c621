"""One participant's restore: read and verify in a thread, then install (RE1-RE4, RE7)."""

from __future__ import annotations

import asyncio
import posixpath
from typing import Any

import ckptfmt
from ckptctl import _protocol as protocol
from ckptctl._errors import ControlError, control_error, reading_error
from ckptctl._participants.interface import Participant, RestoredRecord
from ckptctl._server.waiting import observe, uncancelled
from ckptctl._threads import in_thread
from ckptfmt import CheckpointError, Damaged, EpisodeId

MEMORY_BUDGET_BYTES = 256 * 1024 * 1024
"""How many bytes of payloads a restore holds: beyond it a record keeps its place and is read again."""


class RestoreWork:
    """The reading and install of one restore. ``task`` goes on when its call's deadline passes (RE5)."""

    def __init__(
        self,
        participant: Participant,
        request: protocol.Restore,
        *,
        before: RestoreWork | None,
        reopening: asyncio.Task[None] | None,
    ) -> None:
        """``before``: an earlier restore whose install may still run, or left something to free (CP4).
        ``reopening``: one under way, already cancelled, that must not open what this restore closes."""
        self.arguments = self.arguments_of(request)
        self._participant = participant
        self._request = request
        self._wanted = {episode.rollout_id: episode for episode in request.episodes}
        self._before = before
        self._reopening = reopening
        self._leftovers: set[EpisodeId] = set()
        """What earlier restores may have installed and nobody has freed."""
        self.task: asyncio.Task[dict[str, Any]] = asyncio.create_task(self._run(), name="ckptctl-restore")
        self.task.add_done_callback(observe)

    @staticmethod
    def arguments_of(request: protocol.Restore) -> tuple[Any, ...]:
        """What a repeat of this restore must have in common with it (CM6)."""
        marks = tuple(sorted(request.marks.items()))
        return request.directory, tuple(sorted(request.episodes)), request.checkpoint_digest, marks

    async def _run(self) -> dict[str, Any]:
        if self._reopening is not None:
            await asyncio.wait([self._reopening])
        if self._before is not None:
            await asyncio.wait([self._before.task])
            self._leftovers = self._before._leftovers | set(self._before._wanted.values())
            self._before = None
            await uncancelled(self._participant.delete_restored(sorted(self._leftovers)))
            self._leftovers = set()
        await uncancelled(self._participant.close(()))
        try:
            source, records = await in_thread(self._read, name="ckptctl-restore")
        except CheckpointError as error:
            raise reading_error(error) from error
        try:
            await uncancelled(self._participant.install(records, sorted(self._wanted.values())))
        except Exception as error:
            raise _install_error(error) from error
        return {
            "restored": sorted(record.episode.capture_key for record in records),
            "source_checkpoint_id": source,
        }

    def _read(self) -> tuple[str, list[RestoredRecord]]:
        """In a thread: one streaming pass over this participant's part, keeping what is in scope."""
        name = self._participant.name
        part = ckptfmt.open_participant(self._request.directory, name, digest=self._named_manifest(name))
        stored = part.restore(self._wanted, memory_budget=MEMORY_BUDGET_BYTES)
        records = [RestoredRecord(self._wanted[each.episode.rollout_id], each) for each in stored]
        for record in records:
            if record.episode.attempt <= record.saved_as.attempt:
                raise protocol.invalid(
                    f"{record.episode.capture_key} is no later attempt than the saved "
                    f"{record.saved_as.capture_key}"
                )
        return part.manifest.checkpoint_id, records

    def _named_manifest(self, name: str) -> str | None:
        """The digest that ``checkpoint.json`` beside the cut names for this participant (CO11)."""
        if self._request.checkpoint_digest is None:
            return None
        above, cut = posixpath.split(self._request.directory.rstrip("/"))
        checkpoint = ckptfmt.read_checkpoint(above)
        if checkpoint.digest != self._request.checkpoint_digest:
            raise Damaged(f"{above}/checkpoint.json is not the one that the restore names")
        if checkpoint.cut is None or checkpoint.cut.name != cut:
            raise Damaged(f"{above}/checkpoint.json does not name the cut {cut!r}")
        if name not in checkpoint.participants:
            raise Damaged(f"{above}/checkpoint.json has no participant {name!r}")
        return checkpoint.participants[name].manifest


def _install_error(error: Exception) -> ControlError:
    if isinstance(error, CheckpointError):
        return reading_error(error)
    if isinstance(error, (ValueError, TypeError, LookupError, AttributeError)):
        # The participant's own validation of a record (RE2).
        return ControlError("invalid_checkpoint_state", f"the install refused a record: {error!r}")
    return control_error(error)

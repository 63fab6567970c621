"""The complete checkpoint that a restore begins from (CO11)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import ckptfmt
from ckptctl._controller.results import as_episode
from ckptfmt import CheckpointBody, Cut, EpisodeId
from ckptfmt.stores import choose_store


@dataclass(frozen=True)
class RestoreSource:
    """``checkpoint.json`` and the cut that it names."""

    checkpoint: CheckpointBody
    cut: Cut

    @property
    def run(self) -> str:
        """The run's folder, also after the checkpoint was moved to another run."""
        return self.cut.run_url

    def chosen(self, scope: Collection[EpisodeId | str] | None) -> list[EpisodeId]:
        """The saved episodes to continue, all for None.

        Raises ValueError for one that was not saved.
        """
        saved = list(map(EpisodeId.from_capture_key, self.checkpoint.episodes))
        if scope is None:
            return saved
        wanted = set(map(as_episode, scope))
        unknown = sorted(wanted.difference(saved))
        if unknown:
            raise ValueError(f"the checkpoint has no episode {unknown[0]} ({len(unknown)} of the scope)")
        return [each for each in saved if each in wanted]


def read_restore_source(directory: str, participants: Collection[str]) -> RestoreSource:
    """Read and check ``checkpoint.json`` and its cut in ``directory``, for a run with these participants.

    Blocking. Raises what `ckptfmt.read_checkpoint` and `ckptfmt.read_cut` raise, `ckptfmt.Damaged` when the
    two do not belong together, `ckptfmt.NotFound` when a participant of the checkpoint is missing.
    """
    checkpoint = ckptfmt.read_checkpoint(directory)
    if checkpoint.cut is None:
        raise ckptfmt.Damaged(f"{directory}: checkpoint.json names no cut, so no controller wrote it")
    cut = ckptfmt.read_cut(choose_store(directory).at(checkpoint.cut.name))
    if cut.digest != checkpoint.cut.digest or cut.checkpoint_id != checkpoint.checkpoint_id:
        raise ckptfmt.Damaged(f"{cut.url}/cut.json is not the one that checkpoint.json names")
    missing = checkpoint.participants.keys() - set(participants)
    if missing:
        raise ckptfmt.NotFound(
            f"{directory}: no server is given for participant(s) {', '.join(sorted(missing))}"
        )
    return RestoreSource(checkpoint, cut)

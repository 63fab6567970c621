"""Which attempts a life of a run owns, and which of them continue what a checkpoint saved (CO13)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import ckptfmt
from ckptfmt import CheckpointBody, EpisodeId

ATTEMPTS_PER_LIFE = 100
"""Life n of a run owns the attempts n*100 … n*100+99 of every rollout."""
MAX_SKIPPED_LIVES = 1000


def first_attempt(life: int) -> int:
    """Return the first attempt of a rollout in a life of its run.

    Args:
        life: The number of the life, counted from 0.

    Returns:
        ``life * 100``: a life owns a hundred attempts of every rollout.
    """
    return life * ATTEMPTS_PER_LIFE


def check_attempts(saved: Collection[EpisodeId], attempts: Mapping[str, int]) -> None:
    """Raise ValueError for replacement attempts that are not above the saved ones, or replace none."""
    of = {each.rollout_id: each.attempt for each in saved}
    for rollout_id, attempt in attempts.items():
        if rollout_id not in of:
            raise ValueError(f"attempts names {rollout_id!r}, which is not in the restore's scope")
        if attempt <= of[rollout_id]:
            raise ValueError(
                f"attempt {attempt} of rollout {rollout_id!r} is not above the saved {of[rollout_id]}"
            )


def begin_life(run: str, checkpoint: CheckpointBody, attempts: Mapping[str, int]) -> int:
    """Create the next life of ``run`` that owns only attempts above those that the checkpoint knows.

    Rollouts with a number in ``attempts`` are not looked at: their number is up to the caller.

    Usually one life is created. When the checkpoint was copied into another run, or the run created no life
    at its start, lives that own used attempts are created and skipped. Blocking. Raises what
    `ckptfmt.start_life` raises, and ValueError when the attempts of the checkpoint are far above any life.
    """
    known = [EpisodeId.from_capture_key(key) for key in (*checkpoint.episodes, *checkpoint.restarts)]
    known += [EpisodeId(rollout_id, attempt) for rollout_id, attempt in checkpoint.marks.items()]
    used = max((each.attempt for each in known if each.rollout_id not in attempts), default=-1)
    life = ckptfmt.start_life(run, checkpoint.checkpoint_id)
    if used - first_attempt(life) > MAX_SKIPPED_LIVES * ATTEMPTS_PER_LIFE:
        raise ValueError(
            f"the checkpoint knows attempt {used}, far above those of life {life}: give attempts"
        )
    while first_attempt(life) <= used:
        life = ckptfmt.start_life(run, checkpoint.checkpoint_id)
    return life

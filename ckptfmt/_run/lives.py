"""Lives: each start and each restore of a run gets the next number, so that no attempt is used twice."""

from __future__ import annotations

from dataclasses import dataclass

from ckptfmt._errors import BadCheckpoint, Conflict, NotFound
from ckptfmt._limits import Limits
from ckptfmt._model.layout import RunLayout
from ckptfmt._model.life_file import parse_life, seal_life
from ckptfmt._model.names import check_label, life_file_name, life_number
from ckptfmt.stores import Url, choose_store


@dataclass(frozen=True, slots=True)
class Life:
    """One life of a run.

    Attributes:
        number: The number of the life, from 0.
        source_checkpoint_id: The id of the checkpoint that the life restored; None when it restored none.
        problem: Why the file of the life cannot be read; None when it can.
    """

    number: int
    source_checkpoint_id: str | None = None
    problem: str | None = None


def start_life(run_url: Url, source_checkpoint_id: str | None = None) -> int:
    """Start the next life of a run.

    Two processes never get the same number. The file of the life is durable when this returns.

    Args:
        run_url: The folder of the run. It need not exist.
        source_checkpoint_id: The id of the checkpoint that the life restores; None when it restores none.

    Returns:
        The number of the life. The first is 0.

    Raises:
        InvalidId: ``source_checkpoint_id`` is not a valid label.
        UnsupportedStore: The store cannot create a file only if it does not exist.
        OutcomeUnknown: The store did not say whether the file was created.
        StoreError: The store failed, or cannot be used (:class:`ckptfmt.UnusableDirectory`).

    Example:
        ::

            life = ckptfmt.start_life("run")
            first_attempt = 100 * life
    """
    if source_checkpoint_id is not None:
        check_label(source_checkpoint_id, "checkpoint id")
    lives = RunLayout(choose_store(run_url)).lives
    try:
        names = [entry.name for entry in lives.entries("")]
    except NotFound:
        names = []
    life = max((number for name in names if (number := life_number(name)) is not None), default=-1) + 1
    while True:
        try:
            lives.create(life_file_name(life), seal_life(life, source_checkpoint_id).data)
        except Conflict:
            life += 1
        else:
            lives.make_durable("")
            return life


def read_life(run: RunLayout, number: int, limits: Limits) -> Life:
    """Read one life of a run. Damage is returned as its ``problem``. Raises :class:`StoreError`."""
    try:
        data = run.read_life_file(number, limits.manifest_bytes)
        return Life(number, parse_life(data, number, run.life_file(number)))
    except BadCheckpoint as error:
        return Life(number, problem=str(error))

"""Creating the folder of a cut."""

from __future__ import annotations

import secrets

from ckptfmt._model.cut_file import Cut, seal_cut
from ckptfmt._model.names import CUT_FILE, check_label, new_cut_name
from ckptfmt.stores import Url, choose_store


def create_cut(checkpoint_url: Url, checkpoint_id: str) -> Cut:
    """Create a new cut: a folder with a random name in the checkpoint's folder, and its ``cut.json``.

    The cut is durable when this returns, including the names of the folders up to the run's folder.

    Args:
        checkpoint_url: The folder of the checkpoint. It need not exist.
        checkpoint_id: The id of the checkpoint.

    Returns:
        The cut.

    Raises:
        InvalidId: ``checkpoint_id`` is not a valid label.
        OutcomeUnknown: The store did not say whether ``cut.json`` was created.
        UnsupportedStore: The store cannot create a file only if it does not exist.
        StoreError: The store failed, or cannot be used (:class:`ckptfmt.UnusableDirectory`).

    Example:
        ::

            cut = ckptfmt.create_cut("run/step-1200", "step-1200")
            with ckptfmt.create(
                cut.url, participant="agent-0", kind="agent", checkpoint_id="step-1200"
            ) as writer:
                writer.write(ckptfmt.Record(ckptfmt.EpisodeId("17-0"), {"messages": []}, boundary=4))
    """
    check_label(checkpoint_id, "checkpoint id")
    name = new_cut_name()
    word = secrets.token_hex(16)
    folder = choose_store(checkpoint_url).at(name)
    sealed = seal_cut(checkpoint_id, word)
    try:
        folder.create(CUT_FILE, sealed.data)
        folder.make_durable("")
    except BaseException:
        folder.remove_created_folders()
        raise
    return Cut(folder.url, name, sealed.digest, checkpoint_id, word)

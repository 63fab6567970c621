"""Creating the folder of a cut."""

from __future__ import annotations

import secrets

from ckptfmt._model.cut_file import Cut, seal_cut
from ckptfmt._model.names import CUT_FILE, check_label, new_cut_name
from ckptfmt.stores import Url, choose_store


def create_cut(checkpoint_url: Url, checkpoint_id: str) -> Cut:
    """Make a new cut folder, under a random name, in the checkpoint's folder; durable up to the run's folder.

    Args:
        checkpoint_url: The checkpoint's folder, which need not exist yet.
        checkpoint_id: The id of the checkpoint.

    Returns:
        The cut.

    Raises:
        InvalidId: The id cannot be one.
        UnsupportedStore: The store cannot create a file only once.
        StoreError: The store failed, or cannot be used.
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

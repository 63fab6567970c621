"""``cut.json``: one try at a checkpoint. All that participants commit in one cut folder belongs together."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from ckptfmt._limits import DEFAULT_LIMITS
from ckptfmt._model.layout import CheckpointLayout, name_of, parent_url
from ckptfmt._model.self_checked import Sealed, seal, unseal
from ckptfmt.stores import Url, choose_store


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut folder: one try at a checkpoint.

    Attributes:
        url: The directory that participants are given.
        name: The name of the folder.
        digest: The inner digest of ``cut.json``.
        checkpoint_id: The id of the checkpoint that it is a try at.
        word: Random, so that no two cuts have one digest.
    """

    url: str
    name: str
    digest: str
    checkpoint_id: str
    word: str

    @property
    def checkpoint_url(self) -> str:
        """The folder of the checkpoint, in which the cut's folder lies."""
        return parent_url(self.url)

    @property
    def run_url(self) -> str:
        """The folder of the run, in which the checkpoint's folder lies."""
        return parent_url(self.checkpoint_url)


def seal_cut(checkpoint_id: str, word: str) -> Sealed:
    """The bytes of ``cut.json``, and their digest."""
    return seal(orjson.dumps({"checkpoint_id": checkpoint_id, "word": word}))


def read_cut(cut_url: Url) -> Cut:
    """Read and check ``cut.json``.

    Args:
        cut_url: The cut's folder.

    Returns:
        The cut.

    Raises:
        NotFound: There is no such folder.
        Incomplete: The folder has no ``cut.json``.
        Damaged: The file is not what was written.
        StoreError: The store failed.
    """
    return load_cut(CheckpointLayout(choose_store(cut_url)))


def load_cut(layout: CheckpointLayout, *, digest: str | None = None) -> Cut:
    """The cut of a checkpoint, or of the cut folder that ``layout`` is for. ``digest``: the one that it must
    have.

    Raises like :func:`read_cut`.
    """
    data = layout.read_cut_file(DEFAULT_LIMITS.manifest_bytes, is_named=digest is not None)
    fields, found = unseal(data, layout.cut_file, required=digest)
    store = layout.store.at(layout.cut) if layout.cut else layout.store
    return Cut(store.url, name_of(store), found, fields.label("checkpoint_id"), fields.text("word"))

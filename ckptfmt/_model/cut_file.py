"""``cut.json``: the file of a cut, one attempt to take a checkpoint.

All that participants commit in one cut folder belongs together.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from ckptfmt._limits import DEFAULT_LIMITS
from ckptfmt._model.layout import CheckpointLayout, name_of, parent_url
from ckptfmt._model.self_checked import Sealed, seal, unseal
from ckptfmt.stores import Url, choose_store


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut folder: one attempt to take a checkpoint.

    Attributes:
        url: The folder's URL: the directory that participants commit into.
        name: The name of the folder.
        digest: The inner digest of ``cut.json``.
        checkpoint_id: The id of the checkpoint.
        word: A random string that makes the digest of each cut unique.
    """

    url: str
    name: str
    digest: str
    checkpoint_id: str
    word: str

    @property
    def checkpoint_url(self) -> str:
        """The URL of the checkpoint's folder, which contains the cut's folder."""
        return parent_url(self.url)

    @property
    def run_url(self) -> str:
        """The URL of the run's folder, which contains the checkpoint's folder."""
        return parent_url(self.checkpoint_url)


def seal_cut(checkpoint_id: str, word: str) -> Sealed:
    """The bytes of ``cut.json`` and their digest."""
    return seal(orjson.dumps({"checkpoint_id": checkpoint_id, "word": word}))


def read_cut(cut_url: Url) -> Cut:
    """Read and check ``cut.json``.

    Args:
        cut_url: The cut's folder.

    Returns:
        The cut.

    Raises:
        NotFound: The folder does not exist.
        Incomplete: The folder has no ``cut.json``.
        Damaged: The file differs from what was written.
        StoreError: The store failed.
    """
    return load_cut(CheckpointLayout(choose_store(cut_url)))


def load_cut(layout: CheckpointLayout, *, digest: str | None = None) -> Cut:
    """The cut of a checkpoint, or of the cut folder that ``layout`` describes.

    ``digest`` is the required digest of ``cut.json``. The errors are those of :func:`read_cut`.
    """
    data = layout.read_cut_file(DEFAULT_LIMITS.manifest_bytes, is_named=digest is not None)
    fields, found = unseal(data, layout.cut_file, required=digest)
    store = layout.store.at(layout.cut) if layout.cut else layout.store
    return Cut(store.url, name_of(store), found, fields.label("checkpoint_id"), fields.text("word"))

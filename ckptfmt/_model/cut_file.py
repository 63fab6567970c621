"""Cuts: one try at a checkpoint. All that participants commit in one cut folder belongs together."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

import orjson

from ckptfmt._errors import Incomplete, NotFound
from ckptfmt._limits import DEFAULT_LIMITS
from ckptfmt._model.fields import check_label
from ckptfmt._model.self_checked import seal, unseal
from ckptfmt._model.smallfiles import read_or_damaged
from ckptfmt.stores import Url, choose_store
from ckptfmt.stores._interface import Store

CUT_FILE: Final = "cut.json"


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut folder. ``url`` is the directory that participants are given, ``digest`` the inner one of
    ``cut.json``; ``word`` is random, so that no two cuts are the same."""

    url: str
    name: str
    digest: str
    checkpoint_id: str
    word: str


def create_cut(checkpoint_url: Url, checkpoint_id: str) -> Cut:
    """Make a new cut folder, under a random name, in the checkpoint's folder; durable up to the run's folder.

    Raises :class:`InvalidId` for what can be no checkpoint id, and what the store raises.
    """
    check_label(checkpoint_id, "checkpoint id")
    name = f"cut-{secrets.token_hex(8)}"
    word = secrets.token_hex(16)
    checkpoint = choose_store(checkpoint_url)
    folder = checkpoint.at(name)
    sealed = seal(orjson.dumps({"checkpoint_id": checkpoint_id, "word": word}))
    try:
        folder.create(CUT_FILE, sealed.data)
        folder.make_durable("")
    except BaseException:
        folder.forget_empty_folders()
        raise
    return Cut(folder.url, name, sealed.digest, checkpoint_id, word)


def read_cut(cut_url: Url) -> Cut:
    """Read and check ``cut.json``. Raises :class:`NotFound` (no such folder), :class:`Incomplete` (the
    folder has no ``cut.json``), :class:`Damaged`, :class:`StoreError`."""
    return load_cut(choose_store(cut_url), CUT_FILE)


def load_cut(folder: Store, file: str, *, digest: str | None = None) -> Cut:
    """Like :func:`read_cut`; ``file`` is for the errors, ``digest`` the one that it must have."""
    try:
        data = read_or_damaged(folder, CUT_FILE, DEFAULT_LIMITS.manifest_bytes, file)
    except NotFound as error:
        if digest is None:
            folder.entries("")  # raises NotFound for the folder itself
        raise Incomplete(
            f"{file}: there is none in {folder.url}; this is not the folder of the cut", file=file
        ) from error
    fields, found = unseal(data, file, required=digest)
    name = folder.url.rstrip("/").rpartition("/")[2]
    return Cut(folder.url, name, found, fields.label("checkpoint_id"), fields.text("word"))

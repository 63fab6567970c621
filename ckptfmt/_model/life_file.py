"""``lives/<n>.json``: the file of one life of a run."""

from __future__ import annotations

import orjson

from ckptfmt._model.self_checked import Sealed, seal, unseal


def seal_life(number: int, source_checkpoint_id: str | None) -> Sealed:
    """The bytes of a life's file and their digest."""
    return seal(orjson.dumps({"life": number, "source_checkpoint_id": source_checkpoint_id}))


def parse_life(data: bytes, number: int, file: str) -> str | None:
    """The id of the checkpoint that the life restored; None for a fresh start. Raises :class:`Damaged`."""
    fields, _ = unseal(data, file)
    if fields.integer("life") != number:
        raise fields.damaged(f"is not {number}", "life")
    source = fields.value("source_checkpoint_id")
    return None if source is None else fields.label("source_checkpoint_id")

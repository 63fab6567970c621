"""Lives: each start and each restore of a run takes the next number, so that no attempt is ever used
twice."""

from __future__ import annotations

import re
from typing import Final

import orjson

from ckptfmt._errors import Conflict, NotFound
from ckptfmt._model.fields import check_label
from ckptfmt._model.self_checked import seal
from ckptfmt.stores import Url, choose_store

LIVES_FOLDER: Final = "lives"
_LIFE_FILE: Final = re.compile(r"(0|[1-9][0-9]{0,8})\.json")


def start_life(run_url: Url, source_checkpoint_id: str | None = None) -> int:
    """Take the next free life of the run, and return its number (the first is 0). Durable when it returns.

    Two processes never get the same number: each file is created only once. ``source_checkpoint_id`` is the
    checkpoint that this life restores. Raises what the store raises.
    """
    if source_checkpoint_id is not None:
        check_label(source_checkpoint_id, "checkpoint id")
    lives = choose_store(run_url).at(LIVES_FOLDER)
    try:
        taken = [int(match[1]) for entry in lives.entries("") if (match := _LIFE_FILE.fullmatch(entry.name))]
    except NotFound:
        taken = []
    life = max(taken, default=-1) + 1
    while True:
        body = orjson.dumps({"life": life, "source_checkpoint_id": source_checkpoint_id})
        try:
            lives.create(f"{life}.json", seal(body).data)
        except Conflict:
            life += 1
        else:
            lives.make_durable("")
            return life

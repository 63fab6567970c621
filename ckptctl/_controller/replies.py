"""What a server must reply to each call, checked once where the reply comes in.

Whatever answers at a server's address is not trusted to be one: a reply that lacks something is the
failure ``bad_reply`` of that server, never a KeyError somewhere in the controller. Members that nobody
asks for are ignored: a later server may send more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError

from ckptctl._errors import ControlError
from ckptctl._protocol import Key, Rollout

_Keys = Annotated[list[Key], FailFast()]


class Reply(BaseModel):
    """Base of all replies: every one says which process it comes from (CP18)."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    instance_id: str = Field(min_length=1, max_length=256)


class Prepare(Reply):
    phase: Literal["preparing", "prepared"]
    blockers: Annotated[list[dict[str, Any]], FailFast()]
    blocker_count: int = Field(ge=0)
    restarts: _Keys
    episodes: _Keys


class Renew(Reply):
    lease_seconds_left: float | None = Field(ge=0)


class Manifest(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    sha256: str = Field(pattern=r"^[0-9a-f]{64}\z")
    records: int = Field(ge=0)
    bytes: int = Field(ge=0)


class Commit(Reply):
    manifest: Manifest
    episode_ids: _Keys
    references: Mapping[str, Annotated[list[str], FailFast()]]


class Restore(Reply):
    restored: _Keys
    source_checkpoint_id: str


class Forget(Reply):
    kept: Annotated[list[Rollout], FailFast()]


REPLIES: Mapping[str, type[Reply]] = {
    "prepare": Prepare,
    "renew": Renew,
    "commit": Commit,
    "restore": Restore,
    "forget": Forget,
}
"""A verb that is not here replies nothing that the controller reads."""


def check_reply(verb: str, reply: object) -> str:
    """The ``instance_id`` of a reply that holds what it must. Raises `ControlError` ``bad_reply``."""
    try:
        return REPLIES.get(verb, Reply).model_validate(reply).instance_id
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:80]
        raise ControlError("bad_reply", f"the reply to {verb}: {where or 'it'}: {first['msg']}") from None

"""What a server must reply to each call, checked once where the reply arrives.

What answers at the address of a server need not be a server: a reply that lacks a member is the failure
``bad_reply`` of that server, and not a KeyError later in the controller. Unknown members are ignored, since a
later version may send more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError

from ckptctl._errors import ControlError
from ckptctl._protocol import CaptureKey, RolloutId

_Keys = Annotated[list[CaptureKey], FailFast()]


class Reply(BaseModel):
    """Base class of all replies: each states which process it comes from (CP18)."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    instance_id: str = Field(min_length=1, max_length=256)


class PrepareReply(Reply):
    phase: Literal["preparing", "prepared"]
    blockers: Annotated[list[dict[str, Any]], FailFast()]
    blocker_count: int = Field(ge=0)
    restarts: _Keys
    episodes: _Keys


class RenewReply(Reply):
    lease_seconds_left: float | None = Field(ge=0)


class ManifestReply(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)

    sha256: str = Field(pattern=r"^[0-9a-f]{64}\z")
    records: int = Field(ge=0)
    bytes: int = Field(ge=0)


class CommitReply(Reply):
    manifest: ManifestReply
    episode_ids: _Keys
    references: Mapping[str, Annotated[list[str], FailFast()]]


class RestoreReply(Reply):
    restored: _Keys
    source_checkpoint_id: str


class ForgetReply(Reply):
    kept: Annotated[list[RolloutId], FailFast()]


REPLIES: Mapping[str, type[Reply]] = {
    "prepare": PrepareReply,
    "renew": RenewReply,
    "commit": CommitReply,
    "restore": RestoreReply,
    "forget": ForgetReply,
}
"""The controller reads nothing from the replies to other calls."""


def check_reply(verb: str, reply: object) -> str:
    """The ``instance_id`` of a reply that holds what it must.

    Raises `ControlError` ``bad_reply``.
    """
    try:
        return REPLIES.get(verb, Reply).model_validate(reply).instance_id
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:80]
        raise ControlError("bad_reply", f"the reply to {verb}: {where or 'it'}: {first['msg']}") from None

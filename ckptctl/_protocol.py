"""The wire: verbs, request models, and how a body becomes one.

Requests are validated once, here (CP11): unknown fields, wrong types, repeated keys, bad UTF-8, bodies
that are too deep or too large are ``invalid_request``, whatever the verb. Bodies and replies are JSON
under ``/ng-control/v1/checkpoint/``; the remaining deadline and the process fence travel in headers, so
that one body serves every participant (CO6).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    PlainValidator,
    StringConstraints,
    ValidationError,
)

from ckptctl._errors import ControlError
from ckptfmt import CheckpointError, EpisodeId

PREFIX = "/ng-control/v1/checkpoint/"
ROLLOUT_PREFIX = "/ng-rollout/"
DEADLINE_HEADER = "x-ng-deadline-seconds"
INSTANCE_HEADER = "x-ng-instance"
RESTART_HEADER = "x-ng-checkpoint-restart"
VERIFY_HEADER = "x-ng-checkpoint-verify"
MAX_BODY_BYTES = 16 * 1024 * 1024
MAX_BLOCKERS = 100
"""The most blockers that a prepare reply lists; their total count is always exact (CP6)."""


@dataclass(frozen=True)
class Call:
    """One control call, as a transport carries it: ``body`` is JSON, empty for status."""

    verb: str
    body: bytes = b""
    deadline_seconds: float | None = None
    instance: str | None = None


def parse_key(value: object) -> EpisodeId:
    """A capture key of a body or path (ID10). Raises ValueError."""
    if not isinstance(value, str):
        raise ValueError("a capture key is a string")
    try:
        return EpisodeId.from_capture_key(value)
    except CheckpointError as error:
        raise ValueError(str(error)) from None


def _rollout_id(value: object) -> str:
    episode = parse_key(value)
    if episode.attempt:
        raise ValueError(f"{value!r} names an attempt: give the rollout id {episode.rollout_id!r}")
    return episode.rollout_id


def _scope(episodes: list[EpisodeId]) -> list[EpisodeId]:
    rollouts: dict[str, EpisodeId] = {}
    for episode in episodes:
        if episode.rollout_id in rollouts:
            first = rollouts[episode.rollout_id]
            raise ValueError(f"{first.capture_key!r} and {episode.capture_key!r} are of one rollout")
        rollouts[episode.rollout_id] = episode
    return episodes


def _directory(value: str) -> str:
    if not (value.startswith("/") or re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", value)):
        raise ValueError("an absolute path or a URL is needed")
    return value


def _marks(value: object) -> dict[str, int]:
    if not isinstance(value, dict):
        raise ValueError("marks are an object from rollout id to attempt")
    for rollout_id, attempt in value.items():
        _rollout_id(rollout_id)
        if type(attempt) is not int or not 0 <= attempt <= 999_999_999:
            raise ValueError("an attempt is an integer of at most nine digits, and not negative")
    return value


# What ckptfmt takes as a checkpoint id, so that nothing is refused only once a commit writes.
_Text = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
_Directory = Annotated[
    str,
    StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$"),
    AfterValidator(_directory),
]
_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}\z")]
Key = Annotated[EpisodeId, PlainValidator(parse_key)]
"""A capture key in a body."""
Rollout = Annotated[str, PlainValidator(_rollout_id)]
"""A rollout id in a body, which names no attempt (RT10)."""
# The first bad element ends it: an error for each of millions would take minutes and gigabytes.
_Keys = Annotated[list[Key], FailFast()]
_Scope = Annotated[_Keys, AfterValidator(_scope)]
_Rollouts = Annotated[list[Rollout], FailFast()]
_Marks = Annotated[dict[str, int], PlainValidator(_marks)]


class Request(BaseModel):
    """Base of all request bodies: strict types, no unknown field."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @property
    def open_id(self) -> str | None:
        """The checkpoint id that the request names, if its verb has one."""
        return getattr(self, "checkpoint_id", None)


class Prepare(Request):
    checkpoint_id: _Text
    directory: _Directory
    cut_digest: _Digest | None = None
    restarts: _Keys = []


class Renew(Request):
    checkpoint_id: _Text


class Commit(Request):
    checkpoint_id: _Text
    directory: _Directory
    episodes: _Scope


class Resume(Request):
    checkpoint_id: _Text


class Restore(Request):
    checkpoint_id: _Text
    directory: _Directory
    episodes: _Scope
    checkpoint_digest: _Digest | None = None
    marks: _Marks = {}


class Retire(Request):
    episodes: _Keys


class Forget(Request):
    rollouts: _Rollouts


REQUESTS: Mapping[str, type[Request]] = {
    "prepare": Prepare,
    "renew": Renew,
    "commit": Commit,
    "resume": Resume,
    "restore": Restore,
    "retire": Retire,
    "forget": Forget,
}


def parse(verb: str, body: bytes) -> Request:
    """The validated request of a POST. Raises `ControlError` ``invalid_request``."""
    value = parse_json(body)
    model = REQUESTS[verb]
    if isinstance(value, dict) and (unknown := value.keys() - model.model_fields.keys()):
        raise invalid(f"{verb}: unknown field {min(unknown)[:80]!a}")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise invalid(f"{verb}: {where or 'body'}: {first['msg']}") from None


def parse_json(body: bytes) -> Any:
    """Strict JSON: no repeated key, no NaN, valid UTF-8. Raises `ControlError` ``invalid_request``."""
    if len(body) > MAX_BODY_BYTES:
        raise too_large()
    try:
        return json.loads(
            body.decode("utf-8"), object_pairs_hook=_no_repeats, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        reason = "too deep" if isinstance(error, RecursionError) else str(error)
        raise invalid(f"the body is not a JSON request: {reason}") from None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object repeats a key")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON value")


def parse_deadline(header: str | None, *, default: float, maximum: float) -> float:
    """Seconds left for a call; above the maximum it is clamped. Raises ``invalid_request``."""
    if header is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", header, re.ASCII):
        raise invalid(f"{DEADLINE_HEADER} must be a number of seconds, not {header[:32]!r}")
    return min(float(header), maximum)


def format_deadline(seconds: float) -> str:
    """The header text of a deadline: never negative, and never more than a server can read."""
    return f"{min(max(0.0, seconds), 999_999_999.0):.3f}"


def invalid(message: str, *, status: int | None = None) -> ControlError:
    return ControlError("invalid_request", message, status=status)


def too_large() -> ControlError:
    return invalid(f"a body has at most {MAX_BODY_BYTES} bytes", status=413)

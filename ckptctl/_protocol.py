"""The messages between a controller and its servers: calls, request bodies, and how a body is validated.

Requests are validated once, here (CP11): unknown fields, wrong types, repeated keys, bad UTF-8, bodies
that are too deep or too large are ``invalid_request``, whatever the call. Bodies and replies are JSON. The
remaining deadline and the id of the process that is meant travel beside the body, over HTTP in headers, so
that one body serves every participant (CO6).
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, Protocol

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
from ckptfmt import EpisodeId, InvalidId

PREFIX = "/ng-control/v1/checkpoint/"
"""The path of a control call over HTTP, without its verb."""
ROLLOUT_PREFIX = "/ng-rollout/"
"""The path of a call on behalf of an episode begins with this; its capture key follows."""
DEADLINE_HEADER = "x-ng-deadline-seconds"
"""The request header with the seconds that are left for a control call."""
INSTANCE_HEADER = "x-ng-instance"
"""The request header with the ``instance_id`` of the process that a control call is meant for."""
RESTART_HEADER = "x-ng-checkpoint-restart"
"""A reply header of a server that cannot save the episode it was asked to begin; its value is the reason."""
VERIFY_HEADER = "x-ng-checkpoint-verify"
"""A reply header of a resources server: ``replay`` when its ``/verify`` is safe to repeat."""
MAX_BODY_BYTES = 16 * 1024 * 1024
"""The most bytes that the body of a control call has."""
MAX_BLOCKERS = 100
"""The most blockers that a prepare reply lists; their total count is always exact (CP6)."""


@dataclass(frozen=True)
class Call:
    """One control call, as a transport carries it to a server.

    Attributes:
        verb: ``status``, ``prepare``, ``renew``, ``commit``, ``resume``, ``restore``, ``retire`` or
            ``forget``.
        body: A JSON object; empty for ``status``.
        deadline_seconds: The time that is left for the call; None for the server's default.
        instance: The ``instance_id`` of the process that is meant; None for any.
    """

    verb: str
    body: bytes = b""
    deadline_seconds: float | None = None
    instance: str | None = None


class Transport(Protocol):
    """How the calls of a controller reach one server.

    Any callable of this shape is one: the transport of a `ckptctl.transports.http.ControlClient`, a method
    of a remote actor, or :meth:`ckptctl.ControlPlane.call` of a control plane in the same process.
    """

    def __call__(self, call: Call, /) -> Awaitable[dict[str, Any]]:
        """Carry one call to the server, and its reply back.

        Args:
            call: The call. A transport that cannot pass on the deadline must itself end about then.

        Returns:
            The reply of the server: a JSON object.

        Raises:
            ControlError: The error that the reply carries; ``unreachable`` when the call has not reached
                the server; ``no_reply`` when it may have; ``bad_reply`` when the answer is no reply.
            OSError: The connection failed: the same as ``no_reply``.
        """
        ...


def parse_key(value: object) -> EpisodeId:
    """A capture key of a body or path (ID10).

    Raises ValueError.
    """
    if not isinstance(value, str):
        raise ValueError("a capture key is a string")
    try:
        return EpisodeId.from_capture_key(value)
    except InvalidId as error:
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


# What ckptfmt accepts as a checkpoint id, so that a wrong one is not refused as late as in a commit.
_Text = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
_Directory = Annotated[
    str,
    StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$"),
    AfterValidator(_directory),
]
_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}\z")]
CaptureKey = Annotated[EpisodeId, PlainValidator(parse_key)]
"""A capture key in a body."""
RolloutId = Annotated[str, PlainValidator(_rollout_id)]
"""A rollout id in a body, which names no attempt (RT10)."""
# Validation ends at the first bad element: an error for each of millions takes minutes and gigabytes.
_Keys = Annotated[list[CaptureKey], FailFast()]
_Scope = Annotated[_Keys, AfterValidator(_scope)]
_Rollouts = Annotated[list[RolloutId], FailFast()]
_Marks = Annotated[dict[str, int], PlainValidator(_marks)]


class Request(BaseModel):
    """Base class of all request bodies: strict types, no unknown field."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @property
    def open_id(self) -> str | None:
        """The checkpoint id that the request names, if its call has one."""
        return getattr(self, "checkpoint_id", None)


class PrepareRequest(Request):
    checkpoint_id: _Text
    directory: _Directory
    cut_digest: _Digest | None = None
    restarts: _Keys = []


class RenewRequest(Request):
    checkpoint_id: _Text


class CommitRequest(Request):
    checkpoint_id: _Text
    directory: _Directory
    episodes: _Scope


class ResumeRequest(Request):
    checkpoint_id: _Text


class RestoreRequest(Request):
    checkpoint_id: _Text
    directory: _Directory
    episodes: _Scope
    checkpoint_digest: _Digest | None = None
    marks: _Marks = {}


class RetireRequest(Request):
    episodes: _Keys


class ForgetRequest(Request):
    rollouts: _Rollouts


REQUESTS: Mapping[str, type[Request]] = {
    "prepare": PrepareRequest,
    "renew": RenewRequest,
    "commit": CommitRequest,
    "resume": ResumeRequest,
    "restore": RestoreRequest,
    "retire": RetireRequest,
    "forget": ForgetRequest,
}


def parse_request(verb: str, body: bytes) -> Request:
    """The validated request of a POST.

    Raises `ControlError` ``invalid_request``.
    """
    value = parse_json(body)
    model = REQUESTS[verb]
    if isinstance(value, dict) and (unknown := value.keys() - model.model_fields.keys()):
        raise invalid_request(f"{verb}: unknown field {min(unknown)[:80]!a}")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise invalid_request(f"{verb}: {where or 'body'}: {first['msg']}") from None


def parse_json(body: bytes) -> Any:
    """Strict JSON: no repeated key, no NaN, valid UTF-8.

    Raises `ControlError` ``invalid_request``.
    """
    if len(body) > MAX_BODY_BYTES:
        raise too_large()
    try:
        return json.loads(
            body.decode("utf-8"), object_pairs_hook=_no_repeats, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        reason = "too deep" if isinstance(error, RecursionError) else str(error)
        raise invalid_request(f"the body is not a JSON request: {reason}") from None


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object repeats a key")
    return found


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def parse_deadline(header: str | None, *, default: float, maximum: float) -> float:
    """Seconds left for a call; above the maximum it is clamped.

    Raises ``invalid_request``.
    """
    if header is None:
        return default
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", header, re.ASCII):
        raise invalid_request(f"{DEADLINE_HEADER} must be a number of seconds, not {header[:32]!r}")
    return min(float(header), maximum)


def format_deadline(seconds: float) -> str:
    """The header text of a deadline: never negative, and never more than a server can read."""
    return f"{min(max(0.0, seconds), 999_999_999.0):.3f}"


def invalid_request(message: str, *, status: int | None = None) -> ControlError:
    """Make the error of a request that is itself wrong.

    Args:
        message: What is wrong with it, for people.
        status: The HTTP status. 400 by default.

    Returns:
        An ``invalid_request``, to be raised.
    """
    return ControlError("invalid_request", message, status=status)


def too_large() -> ControlError:
    """Make the error of a body with more than `MAX_BODY_BYTES`.

    Returns:
        An ``invalid_request`` with status 413, to be raised.
    """
    return invalid_request(f"a body has at most {MAX_BODY_BYTES} bytes", status=413)

"""A control call over HTTP, as a controller sees it: the parts that do not depend on a client library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from ckptctl import _protocol as protocol
from ckptctl._errors import ControlError
from ckptctl._protocol import Call

REPLY_GRACE_SECONDS = 5.0
"""How long after a call's deadline its reply may still come: a server replies by the deadline itself."""


@dataclass(frozen=True)
class HttpRequest:
    """The HTTP request of a control call.

    Attributes:
        method: ``GET`` or ``POST``.
        path: The path, which begins with a slash.
        headers: Header name to value, the token among them.
        body: The body; None for none.
        timeout_seconds: How long to wait for the reply; None for no limit.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None
    timeout_seconds: float | None


def http_request(call: Call, token: str) -> HttpRequest:
    """Make the HTTP request of a control call.

    Args:
        call: The call.
        token: The token of the server.

    Returns:
        What to send. Do not follow redirects.
    """
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    if call.instance is not None:
        headers[protocol.INSTANCE_HEADER] = call.instance
    timeout = None
    if call.deadline_seconds is not None:
        headers[protocol.DEADLINE_HEADER] = protocol.format_deadline(call.deadline_seconds)
        timeout = max(0.0, call.deadline_seconds) + REPLY_GRACE_SECONDS
    return HttpRequest(
        method="GET" if call.verb == "status" else "POST",
        path=protocol.PREFIX + call.verb,
        headers=headers,
        body=call.body or None,
        timeout_seconds=timeout,
    )


def parse_reply(status: int, body: bytes) -> dict[str, Any]:
    """Read the reply of a control call.

    Args:
        status: The HTTP status.
        body: The body.

    Returns:
        The reply of the server.

    Raises:
        ControlError: The error that the reply carries, with the ``instance_id`` of the server in its
            details; ``bad_reply`` for what is not a reply of a control plane.
    """
    try:
        value = orjson.loads(body)
        if status == 200 and isinstance(value, dict):
            return value
        error = value["error"]
        code, message, retryable = error["code"], error["message"], error["retryable"]
        if not (isinstance(code, str) and isinstance(message, str) and isinstance(retryable, bool)):
            raise TypeError("an error of other types")
        details = {**error["details"], "instance_id": value.get("instance_id")}
    except (orjson.JSONDecodeError, LookupError, TypeError):
        raise ControlError("bad_reply", f"HTTP {status} without a control reply") from None
    raise ControlError(code, message, details=details, status=status, retryable=retryable)

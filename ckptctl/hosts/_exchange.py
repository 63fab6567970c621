"""A control call over HTTP, as a server sees it: the parts that do not depend on a web framework."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

import orjson

from ckptctl import _protocol as protocol
from ckptctl._errors import ControlError
from ckptctl._settings import Settings
from ckptfmt import EpisodeId


def check_authorization(headers: Sequence[str], settings: Settings) -> None:
    """Check the bearer token of a control call, in constant time.

    Args:
        headers: The values of all ``Authorization`` headers of the request.
        settings: The settings of the server, which hold the token.

    Raises:
        ControlError: ``unauthorized``, when there is not exactly one header with the right token.
    """
    expected = b"Bearer " + settings.control_auth_token.encode()
    sent = headers[0].encode("utf-8", "surrogateescape") if len(headers) == 1 else b""
    if not hmac.compare_digest(sent, expected):
        raise ControlError("unauthorized", "a control call needs the bearer token of this server")


def check_route(method: str, verb: str) -> None:
    """Check that there is such a control call.

    Args:
        method: The HTTP method.
        verb: The path of the request after `PREFIX`.

    Raises:
        ControlError: ``invalid_request``: status 404 for an unknown call, 405 for another method.
    """
    if verb != "status" and verb not in protocol.REQUESTS:
        raise protocol.invalid_request(f"there is no control call {verb[:64]!r}", status=404)
    expected = "GET" if verb == "status" else "POST"
    if method != expected:
        raise protocol.invalid_request(f"{verb} is a {expected}", status=405)


def parse_deadline(header: str | None, settings: Settings) -> float:
    """Read the deadline of a control call.

    Args:
        header: The value of `DEADLINE_HEADER`; None when the request has none.
        settings: The settings of the server: its default and maximum.

    Returns:
        The seconds that are left for the call, at most the maximum.

    Raises:
        ControlError: ``invalid_request``, when the header is not a number of seconds.
    """
    return protocol.parse_deadline(
        header, default=settings.default_deadline_seconds, maximum=settings.maximum_deadline_seconds
    )


def parse_capture_key(text: str) -> EpisodeId:
    """Read the episode of a path below `ROLLOUT_PREFIX`.

    Args:
        text: The capture key, with percent encoding removed.

    Returns:
        The attempt that it names.

    Raises:
        ControlError: ``invalid_request``, when it names none (ID10).
    """
    try:
        return protocol.parse_key(text)
    except ValueError as error:
        raise protocol.invalid_request(str(error)) from None


def error_body(error: ControlError, **more: object) -> bytes:
    """Encode the body of an error reply.

    Its HTTP status is ``error.status``.

    Args:
        error: The error. Details that are not JSON are left out.
        **more: Members to put beside ``error``. A control reply needs ``instance_id``.

    Returns:
        JSON.
    """
    try:
        return orjson.dumps({**error.to_wire(), **more})
    except orjson.JSONEncodeError:
        # An error of a participant, with details that are not JSON.
        bare = ControlError(error.code, error.message, status=error.status, retryable=error.retryable)
        return orjson.dumps({**bare.to_wire(), **more})

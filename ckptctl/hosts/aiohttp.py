"""The control plane in an aiohttp application.

::

    app = web.Application()
    install(app, plane)                               # the control routes, and typed errors for all routes

    async def run(request: web.Request) -> web.Response:
        episode = rollout_of(request)                 # of /ng-rollout/<capture key>/…
        await admit(plane, request, episode)          # waits while a checkpoint is open
        ...

The data plane's own routes stay the host's business; an error of `rollout_of` or `admit` becomes a
typed JSON reply.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage

from ckptctl import _protocol as protocol
from ckptctl._errors import ControlError, control_error
from ckptctl._server.admission import ClientGone
from ckptctl._server.plane import ControlPlane
from ckptfmt import EpisodeId

BODY_SECONDS = 30.0
"""How long the body of a control call may take to arrive. Not its deadline: a late retire leaves its mark."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def install(app: web.Application, plane: ControlPlane) -> None:
    """Add the control routes and the typed error replies to an application that has not started.

    No control route when the settings do not enable checkpoints (SE1).
    """

    async def control(request: web.Request) -> web.Response:
        return await _control(request, plane)

    if plane.settings.enabled:
        app.router.add_route("*", protocol.PREFIX + "{verb:.*}", control)
    app.middlewares.insert(0, _typed_errors)


def rollout_of(request: web.Request) -> EpisodeId:
    """The episode of a route with ``/ng-rollout/{key}/``. Raises ``invalid_request`` (ID10)."""
    try:
        return protocol.parse_key(request.match_info["key"])
    except ValueError as error:
        raise protocol.invalid(str(error)) from None


async def admit(plane: ControlPlane, request: web.Request, episode: EpisodeId | None) -> None:
    """Read the request's body, then wait until it may run; see `ckptctl._server.admission.Admission.enter`.

    The body is read first, so that the handler awaits nothing between its admission and its first step or
    call: a prepare or a retire that came in between would not see it.
    """
    await request.read()

    def client_gone() -> bool:
        return request.transport is None or request.transport.is_closing()

    await plane.admission.enter(episode, client_gone=client_gone)


def reply(value: object, *, status: int = 200) -> web.Response:
    """A JSON reply."""
    return web.Response(status=status, body=orjson.dumps(value), content_type="application/json")


def error_reply(error: ControlError, **more: object) -> web.Response:
    """The JSON reply of an error, and ``more`` members beside it."""
    try:
        return reply({**error.to_wire(), **more}, status=error.status)
    except TypeError:
        # A participant's own error, with details that are no JSON.
        bare = ControlError(error.code, error.message, status=error.status, retryable=error.retryable)
        return reply({**bare.to_wire(), **more}, status=error.status)


@web.middleware
async def _typed_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ControlError as error:
        return error_reply(error)
    except ClientGone:
        return web.Response(status=499)  # Nobody reads it.


async def _control(request: web.Request, plane: ControlPlane) -> web.Response:
    try:
        _authorize(request, plane.settings.control_auth_token)
        verb = request.match_info["verb"]
        _check_route(request.method, verb)
        plane.check_instance(request.headers.get(protocol.INSTANCE_HEADER))
        settings = plane.settings
        deadline = protocol.parse_deadline(
            request.headers.get(protocol.DEADLINE_HEADER),
            default=settings.default_deadline_seconds,
            maximum=settings.maximum_deadline_seconds,
        )
        body = b"" if verb == "status" else await _body(request)
        return reply(await plane.handle(verb, body, deadline_seconds=deadline))
    except ClientGone:
        raise
    except Exception as error:  # Such as a reply that a participant filled with what is no JSON.
        return error_reply(control_error(error), instance_id=plane.instance_id)


def _authorize(request: web.Request, token: str) -> None:
    given = request.headers.getall("Authorization", [])
    expected = b"Bearer " + token.encode()
    sent = given[0].encode("utf-8", "surrogateescape") if len(given) == 1 else b""
    if not hmac.compare_digest(sent, expected):
        raise ControlError("unauthorized", "a control call needs the bearer token of this server")


def _check_route(method: str, verb: str) -> None:
    if verb != "status" and verb not in protocol.REQUESTS:
        raise protocol.invalid(f"there is no control call {verb[:64]!r}", status=404)
    expected = "GET" if verb == "status" else "POST"
    if method != expected:
        raise protocol.invalid(f"{verb} is a {expected}", status=405)


async def _body(request: web.Request) -> bytes:
    if "Content-Encoding" in request.headers:
        raise protocol.invalid("a control body must not be compressed")
    if (request.content_length or 0) > protocol.MAX_BODY_BYTES:
        raise protocol.too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > protocol.MAX_BODY_BYTES:
                    raise protocol.too_large()
    except TimeoutError:
        raise protocol.invalid("the body did not arrive", status=408) from None
    except (web.RequestPayloadError, BadHttpMessage) as error:
        raise protocol.invalid(f"the body is broken: {type(error).__name__}") from None
    except ConnectionError:
        raise ClientGone from None
    return bytes(body)

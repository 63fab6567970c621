"""The control plane in an aiohttp application.

::

    app = web.Application()
    install(app, plane)                               # the control routes, and error replies for all routes

    async def run(request: web.Request) -> web.Response:
        episode = rollout_of(request)                 # of /ng-rollout/<capture key>/…
        await admit(plane, request, episode)          # waits while a checkpoint is open
        ...

The other routes of the application stay its own; an error of `rollout_of` or `admit` in them becomes a
JSON reply with its code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage

from ckptctl import _protocol as protocol
from ckptctl._errors import ClientGone, ControlError, control_error
from ckptctl._server.plane import ControlPlane
from ckptctl.hosts import _exchange as exchange
from ckptfmt import EpisodeId

__all__ = ["admit", "error_reply", "install", "reply", "rollout_of"]

BODY_SECONDS = 30.0
"""How long the body of a control call may take to arrive. Not its deadline: a late retire takes effect."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def install(app: web.Application, plane: ControlPlane) -> None:
    """Add the control routes, and error replies for all routes, to an application that has not started.

    No control route is added when the settings do not enable checkpoints (SE1).

    Args:
        app: The application.
        plane: The control plane of this server.

    Example:
        A server with its data plane and its control plane on one port::

            app = web.Application()
            install(app, ControlPlane(participant, Settings.from_block(config.get("checkpoint"))))
            app.router.add_post("/ng-rollout/{key}/run", run)
            web.run_app(app)
    """

    async def control(request: web.Request) -> web.Response:
        return await _control(request, plane)

    if plane.settings.enabled:
        app.router.add_route("*", protocol.PREFIX + "{verb:.*}", control)
    app.middlewares.insert(0, _error_replies)


def rollout_of(request: web.Request) -> EpisodeId:
    """Return the episode of a route with ``/ng-rollout/{key}/``.

    Args:
        request: A request to such a route.

    Returns:
        The attempt that its path names.

    Raises:
        ControlError: ``invalid_request``, when the key names none (ID10).
    """
    return exchange.parse_capture_key(request.match_info["key"])


async def admit(plane: ControlPlane, request: web.Request, episode: EpisodeId | None) -> None:
    """Read the body of a request, then wait until it may run; see :meth:`ckptctl.Admission.enter`.

    The body is read first, so that the handler awaits nothing between its admission and its first step or
    call: a prepare or a retire that came in between would miss it.

    Args:
        plane: The control plane of this server.
        request: The request. Read its body again with ``await request.read()``.
        episode: The attempt that it belongs to; None for a request without identity, which no checkpoint
            saves or waits for.

    Raises:
        ControlError: ``stale_attempt``, when the attempt is retired.
        ClientGone: The client disconnected while the request waited. Let it pass through the handler.
    """
    await request.read()

    def client_gone() -> bool:
        return request.transport is None or request.transport.is_closing()

    await plane.admission.enter(episode, client_gone=client_gone)


def reply(value: object, *, status: int = 200) -> web.Response:
    """Make a JSON reply.

    Args:
        value: What to encode.
        status: The HTTP status.

    Returns:
        The response.

    Raises:
        TypeError: The value is not JSON.
    """
    return web.Response(status=status, body=orjson.dumps(value), content_type="application/json")


def error_reply(error: ControlError, **more: object) -> web.Response:
    """Make the JSON reply of an error.

    Args:
        error: The error. Details that are not JSON are left out.
        **more: Members to put beside ``error``.

    Returns:
        The response, with the status of the error.
    """
    data = exchange.error_body(error, **more)
    return web.Response(status=error.status, body=data, content_type="application/json")


@web.middleware
async def _error_replies(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ControlError as error:
        return error_reply(error)
    except ClientGone:
        return web.Response(status=499)  # The client has disconnected.


async def _control(request: web.Request, plane: ControlPlane) -> web.Response:
    try:
        exchange.check_authorization(request.headers.getall("Authorization", []), plane.settings)
        verb = request.match_info["verb"]
        exchange.check_route(request.method, verb)
        plane.check_instance(request.headers.get(protocol.INSTANCE_HEADER))
        deadline = exchange.parse_deadline(request.headers.get(protocol.DEADLINE_HEADER), plane.settings)
        body = b"" if verb == "status" else await _body(request)
        return reply(await plane.handle(verb, body, deadline_seconds=deadline))
    except ClientGone:
        raise
    except Exception as error:  # Such as a participant whose status is not JSON. Every reply has a code.
        return error_reply(control_error(error), instance_id=plane.instance_id)


async def _body(request: web.Request) -> bytes:
    if "Content-Encoding" in request.headers:
        raise protocol.invalid_request("a control body must not be compressed")
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
        raise protocol.invalid_request("the body did not arrive", status=408) from None
    except (web.RequestPayloadError, BadHttpMessage) as error:
        raise protocol.invalid_request(f"the body is broken: {type(error).__name__}") from None
    except ConnectionError:
        raise ClientGone from None
    return bytes(body)

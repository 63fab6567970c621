"""The HTTP transport of control calls, with a connection pool of its own.

Data calls can hold every connection to a host, such as ``/run`` calls that are parked during a checkpoint:
in a shared pool no connection would be left for prepare, commit and resume.
"""

from __future__ import annotations

import asyncio
import re
from types import TracebackType
from typing import Any

import aiohttp

from ckptctl._errors import ControlError, SettingsError
from ckptctl._protocol import Call, Transport
from ckptctl._settings import checked_token
from ckptctl.transports._exchange import http_request, parse_reply

__all__ = ["ControlClient"]


class ControlClient:
    """A pool of control connections.

    Use it as an async context manager.

    Args:
        token: The token of the servers.
        limit: Connections at a time; 0 for no limit.
        limit_per_host: Connections at a time to one host; 0 for no limit.

    Raises:
        ValueError: A limit is negative.
        SettingsError: The token is empty, or one that no server can have.

    Example:
        A coordination over two servers::

            async with ControlClient(token) as client:
                coordination = Coordination(
                    [
                        Server("env-0", "environment", client.transport("http://env-0:8080")),
                        Server("agent-0", "agent", client.transport("http://agent-0:8080")),
                    ]
                )
    """

    def __init__(self, token: str, *, limit: int = 0, limit_per_host: int = 0) -> None:
        if limit < 0 or limit_per_host < 0:
            raise ValueError("a connection limit is not negative; 0 means no limit")
        self._token = checked_token(token)
        if not self._token:
            raise SettingsError("control_auth_token", "is required")
        self._limit = limit
        self._limit_per_host = limit_per_host
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> ControlClient:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._limit, limit_per_host=self._limit_per_host),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def transport(self, url: str) -> Transport:
        """Return the transport to one server.

        Args:
            url: The root of the server, ``http://`` or ``https://``.

        Returns:
            A transport for :class:`ckptctl.Server`. It works while the client is open.

        Raises:
            ValueError: The URL is not an HTTP address.
        """
        if not re.match(r"https?://[^/]", url):
            raise ValueError(f"{url!r} is no http:// or https:// address of a server")
        base = url.rstrip("/")

        async def call(call: Call) -> dict[str, Any]:
            return await self._call(base, call)

        return call

    async def _call(self, base: str, call: Call) -> dict[str, Any]:
        if self._session is None:
            raise RuntimeError("the control client is not open")
        request = http_request(call, self._token)
        url = base + request.path
        try:
            async with asyncio.timeout(request.timeout_seconds):
                async with self._session.request(
                    request.method, url, data=request.body, headers=request.headers, allow_redirects=False
                ) as response:
                    return parse_reply(response.status, await response.read())
        except aiohttp.ClientConnectorError as error:
            raise ControlError("unreachable", f"{url}: {error.os_error}") from None
        except TimeoutError:
            raise ControlError("no_reply", f"{url}: no reply within {request.timeout_seconds} s") from None
        except (aiohttp.ClientError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise ControlError("no_reply", f"{url}: the connection broke: {reason}") from None

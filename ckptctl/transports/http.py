"""The HTTP transport of control calls, on a connection pool of their own.

Data calls can hold every connection to a host, such as ``/run`` calls parked during a checkpoint: on a
shared pool they would starve prepare, commit and resume.
"""

from __future__ import annotations

import asyncio
import re
from types import TracebackType
from typing import Any

import aiohttp
import orjson

from ckptctl import _protocol as protocol
from ckptctl._controller.fleet import Transport
from ckptctl._errors import ControlError, SettingsError
from ckptctl._protocol import Call
from ckptctl._settings import checked_token

REPLY_GRACE_SECONDS = 5.0
"""How long after a call's deadline its reply may still come: a server answers by the deadline itself."""


class ControlClient:
    """A pool of control connections. Use it as an async context manager.

    ``limit`` and ``limit_per_host``: connections at a time, 0 for no limit. Raises ValueError for a negative
    one, `SettingsError` for a token that no server can have.
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
        """The transport to the server at ``url``, its root. Raises ValueError for what is no HTTP address."""
        if not re.match(r"https?://[^/]", url):
            raise ValueError(f"{url!r} is no http:// or https:// address of a server")
        base = url.rstrip("/") + protocol.PREFIX

        async def call(call: Call) -> dict[str, Any]:
            return await self._call(base + call.verb, call)

        return call

    async def _call(self, url: str, call: Call) -> dict[str, Any]:
        if self._session is None:
            raise RuntimeError("the control client is not open")
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        if call.instance is not None:
            headers[protocol.INSTANCE_HEADER] = call.instance
        timeout = None
        if call.deadline_seconds is not None:
            headers[protocol.DEADLINE_HEADER] = protocol.format_deadline(call.deadline_seconds)
            timeout = max(0.0, call.deadline_seconds) + REPLY_GRACE_SECONDS
        method = "GET" if call.verb == "status" else "POST"
        try:
            async with asyncio.timeout(timeout):
                async with self._session.request(
                    method, url, data=call.body or None, headers=headers, allow_redirects=False
                ) as response:
                    return parse_reply(response.status, await response.read())
        except aiohttp.ClientConnectorError as error:
            raise ControlError("unreachable", f"{url}: {error.os_error}") from None
        except TimeoutError:
            raise ControlError("no_reply", f"{url}: no reply within {timeout} s") from None
        except (aiohttp.ClientError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise ControlError("no_reply", f"{url}: the connection broke: {reason}") from None


def parse_reply(status: int, body: bytes) -> dict[str, Any]:
    """The reply of a control call. Raises the `ControlError` that it carries, or ``bad_reply``."""
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

"""How the calls of a controller reach a server: what every HTTP client has in common.

:mod:`ckptctl.transports.http` is a client with a connection pool. For another client library, send the
request that `http_request` makes, and read the reply with `parse_reply`; raise
:class:`ckptctl.ControlError` with ``unreachable`` or ``no_reply`` where there is none
(:class:`ckptctl.Transport` says when).
"""

from ckptctl.transports._exchange import HttpRequest, http_request, parse_reply
from ckptfmt._public_names import set_public_module

__all__ = ["HttpRequest", "http_request", "parse_reply"]

set_public_module(globals())

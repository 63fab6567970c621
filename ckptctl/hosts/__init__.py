"""A control plane behind a web framework: what every framework has in common.

:mod:`ckptctl.hosts.aiohttp` serves it with aiohttp. For another framework, call these functions in the
order in which they stand here, then :meth:`ckptctl.ControlPlane.handle`::

    try:
        check_authorization(request.headers.getlist("Authorization"), plane.settings)
        check_route(request.method, verb)
        plane.check_instance(request.headers.get(INSTANCE_HEADER))
        deadline = parse_deadline(request.headers.get(DEADLINE_HEADER), plane.settings)
        body = ...                                        # at most MAX_BODY_BYTES, else raise too_large()
        value = await plane.handle(verb, body, deadline_seconds=deadline)
    except ControlError as error:
        status, data = error.status, error_body(error, instance_id=plane.instance_id)
"""

from ckptctl._protocol import (
    DEADLINE_HEADER,
    INSTANCE_HEADER,
    MAX_BODY_BYTES,
    PREFIX,
    RESTART_HEADER,
    ROLLOUT_PREFIX,
    VERIFY_HEADER,
    invalid_request,
    too_large,
)
from ckptctl.hosts._exchange import (
    check_authorization,
    check_route,
    error_body,
    parse_capture_key,
    parse_deadline,
)
from ckptfmt._public_names import set_public_module

__all__ = [
    "DEADLINE_HEADER",
    "INSTANCE_HEADER",
    "MAX_BODY_BYTES",
    "PREFIX",
    "RESTART_HEADER",
    "ROLLOUT_PREFIX",
    "VERIFY_HEADER",
    "check_authorization",
    "check_route",
    "error_body",
    "invalid_request",
    "parse_capture_key",
    "parse_deadline",
    "too_large",
]

set_public_module(globals())

"""The check and the encoding of an exact value.

Exact values are None, bool, int, float, str, list, and dict with str keys, of exactly these types, nested at
most 250 containers deep. `encode` checks a value and encodes it in one step; `proof` does the work.
"""

from __future__ import annotations

from typing import NamedTuple

from ckptfmt._errors import LimitExceeded
from ckptfmt._limits import DEFAULT_LIMITS, FormatLimits, Limits
from ckptfmt._values import proof
from ckptfmt._values.patches import Exact
from ckptfmt._values.proof import episode_prefix


class Encoded(NamedTuple):
    """The bytes of an exact value: strict JSON, and the JSON of its patches (empty when there are none)."""

    data: bytes
    patches: bytes


def encode(
    value: Exact,
    *,
    episode: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    depth: int = FormatLimits.DEPTH,
) -> Encoded:
    """Encode ``value``. ``episode`` is named in errors.

    Raises:
        InexactValue: A part of the value is not exact; the error names its path.
        LimitExceeded: The value has more values or bytes than ``limits.record_values`` and
            ``limits.record_bytes`` allow.
    """
    encoded = encode_unless_large(value, None, episode=episode, limits=limits, depth=depth)
    assert encoded is not None
    return encoded


def encode_unless_large(
    value: Exact,
    size: int | None,
    *,
    episode: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    depth: int = FormatLimits.DEPTH,
) -> Encoded | None:
    """Like :func:`encode`; returns None when the text would exceed about ``size`` bytes (None: no limit)."""
    proved = proof.encode(value, episode, limits, depth, size)
    if proved is None:
        return None
    data, patches = proved
    if len(data) + len(patches) > limits.record_bytes:
        raise LimitExceeded(
            f"{episode_prefix(episode)}the record has more than {limits.record_bytes} bytes; "
            "split it, or save less"
        )
    return Encoded(data, patches)

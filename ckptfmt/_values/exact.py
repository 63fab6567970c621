"""Which values are exact: None, bool, int, float, str, list, and dict with str keys, of exactly these types,
at most 250 deep. `encode` proves that and encodes, as one step; how is in `proof`.
"""

from __future__ import annotations

from typing import NamedTuple

from ckptfmt._errors import LimitExceeded
from ckptfmt._limits import DEFAULT_LIMITS, FormatLimits, Limits
from ckptfmt._values import proof
from ckptfmt._values.patches import Exact
from ckptfmt._values.proof import where


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
    """Encode ``value``, or raise :class:`InexactValue` with the path of what is not exact.

    Raises :class:`LimitExceeded` for a value of more than ``limits.record_values`` values, or more bytes than
    ``limits.record_bytes``. ``episode`` is only for the errors.
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
    """The same; None when the text would have more than about ``size`` bytes (None: however many)."""
    proved = proof.encode(value, episode, limits, depth, size)
    if proved is None:
        return None
    data, patches = proved
    if len(data) + len(patches) > limits.record_bytes:
        raise LimitExceeded(
            f"{where(episode)}the record has more than {limits.record_bytes} bytes; split it, or save less"
        )
    return Encoded(data, patches)

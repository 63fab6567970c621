"""A payload as encoded bytes: encoded once, checked once, decoded on request."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import Final

import orjson

from ckptfmt._errors import Damaged
from ckptfmt._limits import DEFAULT_LIMITS, FormatLimits, Limits
from ckptfmt._values import exact, patches
from ckptfmt._values.patches import Exact, Json
from ckptfmt._values.proof import COMPILED
from ckptfmt._values.strict_json import strict_json_problem

if COMPILED:
    from ckptfmt._values.scan import count_brackets
else:

    def count_brackets(data: bytes) -> int:
        """The number of opening brackets and braces in a text."""
        return data.count(b"[") + data.count(b"{")


_ORJSON_READ_DEPTH: Final = 1024


@dataclass(frozen=True, slots=True)
class JsonPayload:
    """An exact value in its encoded form: the bytes that a writer stores.

    :meth:`of` creates one. A payload is not checked again when it is written, read back or pickled to another
    process. Code that creates one from bytes is responsible for their validity.

    Attributes:
        data: Strict JSON in UTF-8, with ``null`` in each place that has a patch, and without a line feed.
        patch_data: The JSON of the patches; empty when there are none.

    Example:
        ::

            payload = ckptfmt.JsonPayload.of({"messages": [], "logprobs": [float("nan")]})
            payload.data     # b'{"messages":[],"logprobs":[null]}'
            payload.value()  # the value again
    """

    data: bytes
    patch_data: bytes = b""

    @classmethod
    def of(cls, value: Exact, *, episode: str | None = None, limits: Limits = DEFAULT_LIMITS) -> JsonPayload:
        """Encode a value.

        Args:
            value: An exact value.
            episode: The capture key that errors name.
            limits: The most values and bytes that the payload may have.

        Returns:
            The encoded payload.

        Raises:
            InexactValue: A part of the value is not exact; the error names its path.
            LimitExceeded: The value has more than ``limits.record_values`` values, or more than
                ``limits.record_bytes`` bytes.
        """
        return cls(*exact.encode(value, episode=episode, limits=limits))

    @property
    def patches(self) -> list[Json]:
        """The decoded list of patches: ``[[container path, [[key or index, value], …]], …]``."""
        return list(orjson.loads(self.patch_data)) if self.patch_data else []

    def __repr__(self) -> str:
        return f"<JsonPayload of {self.size} bytes>"

    @property
    def size(self) -> int:
        """The number of bytes of ``data``."""
        return len(self.data)

    def value(self) -> Exact:
        """Decode the payload.

        Returns:
            A new object on each call.

        Raises:
            Damaged: No correct writer wrote these bytes.
        """
        return decode(self.data, self.patch_data)

    def check(self) -> None:
        """Decode the payload, and look for faults that the decoder does not report.

        These faults are a member that is named twice and an integer beyond 64 bits.

        Raises:
            Damaged: No correct writer wrote these bytes.
        """
        self.value()
        for text in filter(None, (self.data, self.patch_data)):
            problem = strict_json_problem(text, orjson.loads(text))
            if problem is not None:
                raise Damaged(f"a payload, or its patches, {problem}")


def decode(data: bytes, patch_data: bytes = b"") -> Exact:
    """Decode ``data`` and apply its patches. Raises :class:`Damaged`."""
    was_enabled = gc.isenabled()
    try:
        # Decoding creates no cycles, so garbage collections find nothing, and they cost as much as decoding.
        # The calls are in this frame, not in a context manager, so that an interrupt at any moment leaves the
        # collector in its earlier state.
        if was_enabled:  # otherwise other code has paused the collector and will enable it
            gc.disable()
        value = _loads(data)
        return apply_patches(value, orjson.loads(patch_data)) if patch_data else value
    except orjson.JSONDecodeError as error:
        raise Damaged(
            f"a payload is not strict JSON of at most {FormatLimits.DEPTH} levels: "
            f"{_decode_error_text(error)}"
        ) from None
    finally:
        if was_enabled:
            gc.enable()


def apply_patches(value: Exact, listed: Json) -> Exact:
    """Apply patches to ``value``. Raises :class:`Damaged`, also when the result is nested too deep."""
    if type(listed) is not list or not listed:
        raise Damaged("patches are not a list, or an empty list")
    value = patches.apply(value, listed)
    check_depth(value)
    return value


def check_depth(value: Exact) -> None:
    """Raise :class:`Damaged` when ``value`` is nested too deep."""
    if not _is_depth_within(value, FormatLimits.DEPTH):
        raise Damaged(f"a value is nested deeper than {FormatLimits.DEPTH} containers")


def _loads(data: bytes) -> Exact:
    """``orjson.loads`` with the depth limit of the format instead of its own.

    orjson reads up to 1,024 levels. A text with enough brackets to be too deep is wrapped in so many lists
    that orjson's limit becomes the limit of the format. This is exact, and far cheaper than walking the
    value.
    """
    depth = FormatLimits.DEPTH
    if count_brackets(data) <= depth:
        return orjson.loads(data)
    wrapped = _ORJSON_READ_DEPTH - depth
    value = orjson.loads(b"".join((b"[" * wrapped, data, b"]" * wrapped)))
    for _ in range(wrapped):
        value = value[0]
    return value


def _is_depth_within(value: Exact, limit: int) -> bool:
    """Whether ``value`` has at most ``limit`` levels.

    The depth of the text does not bound the depth of the value: a patch may insert a dict into a dict that
    another patch inserted.
    """
    level = [value]
    for _ in range(limit):
        level = [
            child
            for container in level
            if type(container) is dict or type(container) is list
            for child in (container.values() if type(container) is dict else container)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return True
    return False


def _decode_error_text(error: orjson.JSONDecodeError) -> str:
    """The reason and the position from the decoder's error, without the surrounding JSON text."""
    return f"{error.msg.split(':')[0]} at byte {error.pos}"

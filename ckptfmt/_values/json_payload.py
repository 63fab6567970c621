"""An opaque payload: encoded once, checked once, decoded when somebody asks for it."""

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
from ckptfmt._values.strict_json import problem_of

if COMPILED:
    from ckptfmt._values.scan import brackets
else:

    def brackets(data: bytes) -> int:
        """How many brackets and braces open in a text."""
        return data.count(b"[") + data.count(b"{")


_ORJSON_READ_DEPTH: Final = 1024


@dataclass(frozen=True, slots=True)
class JsonPayload:
    """An exact value as the bytes that the writer writes.

    Make one with :meth:`of`. A payload is never checked a second time, not when it is written, nor when it
        is read back or pickled to another process: whoever builds one from bytes vouches for them.
    """

    data: bytes
    """Strict JSON in UTF-8, with ``null`` where a patch belongs; no line feed."""

    patch_data: bytes = b""
    """The JSON of the patches; empty when there are none."""

    @classmethod
    def of(cls, value: Exact, *, episode: str | None = None, limits: Limits = DEFAULT_LIMITS) -> JsonPayload:
        """Encode ``value`` (raises :class:`InexactValue` or :class:`LimitExceeded`; ``episode`` is for
        these)."""
        return cls(*exact.encode(value, episode=episode, limits=limits))

    @property
    def patches(self) -> list[Json]:
        """The patches as a list that JSON can hold: ``[[container path, [[key or index, value], …]], …]``."""
        return list(orjson.loads(self.patch_data)) if self.patch_data else []

    def __repr__(self) -> str:
        return f"<JsonPayload of {self.size} bytes>"

    @property
    def size(self) -> int:
        """Bytes of the payload's text."""
        return len(self.data)

    def value(self) -> Exact:
        """Decode: a fresh object each time. Raises :class:`Damaged` for bytes that no correct writer
        wrote."""
        return decode(self.data, self.patch_data)

    def check(self) -> None:
        """Decode, and look for what decoding passes over: a member named twice, an integer beyond 64 bits.

        Raises :class:`Damaged`.
        """
        self.value()
        for text in filter(None, (self.data, self.patch_data)):
            problem = problem_of(text, orjson.loads(text))
            if problem is not None:
                raise Damaged(f"a payload, or its patches, {problem}")


def decode(data: bytes, patch_data: bytes = b"") -> Exact:
    """The exact value of ``data`` and its patches. Raises :class:`Damaged`."""
    was_enabled = gc.isenabled()
    try:
        # Collections cannot find anything in what is decoded, and cost as much as decoding. This is done in
        # the frame itself, and by no context manager: an interrupt at any moment leaves them as they were.
        if was_enabled:  # else somebody else pauses it, and will end that
            gc.disable()
        value = _loads(data)
        return apply_patches(value, orjson.loads(patch_data)) if patch_data else value
    except orjson.JSONDecodeError as error:
        raise Damaged(
            f"a payload is not strict JSON of at most {FormatLimits.DEPTH} levels: {_shown(error)}"
        ) from None
    finally:
        if was_enabled:
            gc.enable()


def apply_patches(value: Exact, listed: Json) -> Exact:
    """``value`` with these patches in place. Raises :class:`Damaged`, also when the result nests too deep."""
    if type(listed) is not list or not listed:
        raise Damaged("patches are no list, or an empty one")
    value = patches.apply(value, listed)
    check_depth(value)
    return value


def check_depth(value: Exact) -> None:
    """Raise :class:`Damaged` when ``value`` is nested too deep."""
    if not _depth_within(value, FormatLimits.DEPTH):
        raise Damaged(f"a value is nested deeper than {FormatLimits.DEPTH} containers")


def _loads(data: bytes) -> Exact:
    """``orjson.loads`` with our limit of depth instead of its own.

    orjson reads up to 1,024 levels. Where a text has enough brackets to be too deep, we wrap it in so many
        lists that orjson's limit falls on ours: exact, and far cheaper than a walk of our own.
    """
    depth = FormatLimits.DEPTH
    if brackets(data) <= depth:
        return orjson.loads(data)
    wrapped = _ORJSON_READ_DEPTH - depth
    value = orjson.loads(b"".join((b"[" * wrapped, data, b"]" * wrapped)))
    for _ in range(wrapped):
        value = value[0]
    return value


def _depth_within(value: Exact, limit: int) -> bool:
    """A dict that a patch puts in place can nest in another: the depth of the text does not bound that of
    the value."""
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


def _shown(error: orjson.JSONDecodeError) -> str:
    """The decoder's reason and place, without the text around it."""
    return f"{error.msg.split(':')[0]} at byte {error.pos}"

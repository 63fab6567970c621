"""Encoding a large payload in pieces, so that no other thread waits for the whole of it.

orjson holds the GIL: a record of 50 MB would stop an event loop in the same process for 100 ms and more. So
large lists, dicts and strings are encoded a part at a time, each part proved exact and encoded in one step
like a whole payload, and the pieces together are the very text that one step would have given.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Final

import orjson

from ckptfmt._errors import InexactValue, LimitExceeded
from ckptfmt._limits import DEFAULT_LIMITS, KIB, MIB, FormatLimits, Limits
from ckptfmt._values import exact
from ckptfmt._values.patches import Exact, Json
from ckptfmt._values.size_estimate import estimate

_LARGE: Final = MIB
_PIECE: Final = 256 * KIB
_SPLIT_LEVELS: Final = 16
"""Containers below this many others are not split: that bounds our own nesting."""

_ITEMS: Final = 10_000
"""Items of a dict that are taken at a time. Large containers are never copied as a whole: to touch a million
values takes as long as to encode some of them."""

Path = list[Json]


class _InOneGo(Exception):  # never leaves this module
    """Something that only the whole can decide: a value that is not exact, an odd key."""


def encode(
    value: Exact, *, episode: str, limits: Limits = DEFAULT_LIMITS, depth: int = FormatLimits.DEPTH
) -> tuple[list[bytes], bytes]:
    """Like ``exact.encode``, with the text in pieces; one piece unless the value is large.

    Raises :class:`InexactValue` and :class:`LimitExceeded`. A value that is changed meanwhile may be seen
        before the change in one piece and after it in another; what is written is exact either way.
    """
    encoded = exact.encode_unless_large(value, _LARGE, episode=episode, limits=limits, depth=depth)
    if encoded is None:
        try:
            return _Pieces(episode, limits).encode(value, depth)
        except (_InOneGo, InexactValue, TypeError, IndexError, RuntimeError):
            # The whole knows the path of what is wrong, how to list it, or what a changed value is now.
            encoded = exact.encode(value, episode=episode, limits=limits, depth=depth)
    return [encoded.data], encoded.patches


def _is_large(value: Exact) -> bool:
    return estimate(value, _LARGE) >= _LARGE


class _Pieces:
    def __init__(self, episode: str, limits: Limits) -> None:
        self._episode = episode
        self._limits = limits
        self._size = 0
        self._patches: list[tuple[Path, list[Json]]] = []

    def encode(self, value: Exact, depth: int) -> tuple[list[bytes], bytes]:
        pieces = []
        values = since_yield = 0
        for piece in self._split(value, [], depth):
            pieces.append(piece)
            self._size += len(piece)
            values += piece.count(b",") + piece.count(b"[") + piece.count(b"{")
            if values > self._limits.record_values:
                raise _InOneGo  # perhaps: they may stand in strings
            if self._size > self._limits.record_bytes:
                raise LimitExceeded(
                    f"episode {self._episode}: the record has more than {self._limits.record_bytes} bytes; "
                    "split it, or save less"
                )
            since_yield += len(piece)
            if since_yield >= _PIECE // 4:
                since_yield = 0
                time.sleep(0)  # let other threads run
        return pieces, self._joined_patches()

    def _split(self, value: Exact, path: Path, depth: int) -> Iterator[bytes]:
        """The text of a large value, which may nest ``depth`` levels."""
        kind = type(value)
        if kind is str and len(value) > _PIECE:
            yield b'"'
            for start in range(0, len(value), _PIECE):
                yield self._proved(value[start : start + _PIECE], depth)[1:-1]
            yield b'"'
        elif depth < 1 and (kind is list or kind is dict):
            raise _InOneGo  # too deep: that says where
        elif kind is list and len(path) < _SPLIT_LEVELS:
            yield from self._split_list(value, path, depth)
        elif kind is dict and len(path) < _SPLIT_LEVELS:
            yield from self._split_dict(value, path, depth)
        else:
            yield self._proved(value, depth, path)

    def _split_list(self, values: list[Exact], path: Path, depth: int) -> Iterator[bytes]:
        yield b"["
        for start, end in self._groups(values):
            comma = b"," if start else b""
            if end - start == 1 and _is_large(values[start]):
                yield comma
                yield from self._split(values[start], [*path, start], depth - 1)
            else:
                part = values[start:end]
                if len(part) != end - start:
                    raise _InOneGo
                yield comma + self._proved(part, depth, path, start)[1:-1]
        yield b"]"

    def _split_dict(self, pairs: dict[Any, Exact], path: Path, depth: int) -> Iterator[bytes]:
        yield b"{"
        comma = b""
        items = iter(pairs.items())
        while some := list(islice(items, _ITEMS)):
            for piece in self._split_items(some, path, depth):
                yield comma + piece
                comma = b""
            comma = b","
        yield b"}"

    def _split_items(self, items: list[tuple[Any, Exact]], path: Path, depth: int) -> Iterator[bytes]:
        for start, end in self._groups([value for _, value in items]):
            comma = b"," if start else b""
            key, value = items[start]
            if end - start == 1 and _is_large(value):
                if type(key) is not str:
                    raise _InOneGo
                yield comma + orjson.dumps(key) + b":"
                yield from self._split(value, [*path, key], depth - 1)
            else:
                yield comma + self._proved(dict(items[start:end]), depth, path)[1:-1]

    def _groups(self, values: list[Exact]) -> Iterator[tuple[int, int]]:
        """Where to cut, so that a piece comes near its size: by what the pieces before turned out to be."""
        each = max(estimate(values) / max(len(values), 1), 1.0)
        start = 0
        while start < len(values):
            end = min(start + max(int(_PIECE / each), 1), len(values))
            while end - start > 1 and _is_large(values[start:end]):  # they are not like those before
                end = start + (end - start) // 2
            before = self._size
            yield start, end
            each = max((self._size - before) / (end - start), 1.0)
            start = end

    def _proved(self, value: Exact, depth: int, path: Path | None = None, offset: int = 0) -> bytes:
        """The text of one piece. ``offset`` is the index of its first value in the list at ``path``."""
        data, patches = exact.encode(value, episode=self._episode, limits=self._limits, depth=depth)
        if patches:
            if path is None:
                raise _InOneGo
            self._note(orjson.loads(patches), path, offset)
        return data

    def _note(self, patches: list[Json], path: Path, offset: int) -> None:
        for inside, entries in patches:
            if inside is None:  # the piece itself: a dict with an odd key
                raise _InOneGo
            if offset and inside:
                inside[0] += offset
            elif offset:
                entries = [[key + offset, form] for key, form in entries]
            self._patches.append(([*path, *inside], entries))

    def _joined_patches(self) -> bytes:
        if not self._patches:
            return b""
        # Outermost first, and in the order of the document within a level: as one step would list them.
        ordered = sorted(self._patches, key=lambda patch: len(patch[0]))
        return orjson.dumps(
            [
                [path, [entry for _, entries in parts for entry in entries]]
                for path, parts in groupby(ordered, key=itemgetter(0))
            ]
        )

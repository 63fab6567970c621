"""The encoding of a large payload in pieces, so that other threads run between the pieces.

orjson holds the GIL: a record of 50 MB would stop an event loop in the same process for 100 ms and more.
Therefore large lists, dicts and strings are encoded piece by piece. Each piece is checked and encoded in one
step, like a whole payload, and the joined pieces equal the text that a single step produces.
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
"""Containers below this many levels are not split, which bounds the recursion of this module."""

_ITEMS: Final = 10_000
"""Items of a dict that are taken at a time. A large container is never copied as a whole: a pass over a
million values takes as long as encoding some of them."""

Path = list[Json]


class _CannotSplit(Exception):  # caught in this module
    """The value has to be encoded as a whole, for example because a key needs a patch."""


def encode(
    value: Exact, *, episode: str, limits: Limits = DEFAULT_LIMITS, depth: int = FormatLimits.DEPTH
) -> tuple[list[bytes], bytes]:
    """Like ``exact.encode``, but returns the text in pieces: one piece unless the value is large.

    If another thread changes the value during the call, one piece may show the value before the change and
    another piece the value after it. Each piece is exact in both cases.

    Raises:
        InexactValue: A part of the value is not exact.
        LimitExceeded: The value has too many values or bytes.
    """
    encoded = exact.encode_unless_large(value, _LARGE, episode=episode, limits=limits, depth=depth)
    if encoded is None:
        try:
            return _PieceEncoder(episode, limits).encode(value, depth)
        except (_CannotSplit, InexactValue, TypeError, IndexError, RuntimeError):
            # Encoding the value as a whole finds the path of the fault, lists the patches of unusual keys,
            # and copes with a value that another thread changed.
            encoded = exact.encode(value, episode=episode, limits=limits, depth=depth)
    return [encoded.data], encoded.patches


def _is_large(value: Exact) -> bool:
    return estimate(value, _LARGE) >= _LARGE


class _PieceEncoder:
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
                raise _CannotSplit  # an exact count is needed: the brackets and commas may be in strings
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
        """Yield the text of a large value that may be nested ``depth`` levels deep."""
        kind = type(value)
        if kind is str and len(value) > _PIECE:
            yield b'"'
            for start in range(0, len(value), _PIECE):
                yield self._encode_piece(value[start : start + _PIECE], depth)[1:-1]
            yield b'"'
        elif depth < 1 and (kind is list or kind is dict):
            raise _CannotSplit  # too deep: encoding the value as a whole names the path
        elif kind is list and len(path) < _SPLIT_LEVELS:
            yield from self._split_list(value, path, depth)
        elif kind is dict and len(path) < _SPLIT_LEVELS:
            yield from self._split_dict(value, path, depth)
        else:
            yield self._encode_piece(value, depth, path)

    def _split_list(self, values: list[Exact], path: Path, depth: int) -> Iterator[bytes]:
        yield b"["
        for start, end in self._piece_ranges(values):
            comma = b"," if start else b""
            if end - start == 1 and _is_large(values[start]):
                yield comma
                yield from self._split(values[start], [*path, start], depth - 1)
            else:
                part = values[start:end]
                if len(part) != end - start:
                    raise _CannotSplit
                yield comma + self._encode_piece(part, depth, path, start)[1:-1]
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
        for start, end in self._piece_ranges([value for _, value in items]):
            comma = b"," if start else b""
            key, value = items[start]
            if end - start == 1 and _is_large(value):
                if type(key) is not str:
                    raise _CannotSplit
                yield comma + orjson.dumps(key) + b":"
                yield from self._split(value, [*path, key], depth - 1)
            else:
                yield comma + self._encode_piece(dict(items[start:end]), depth, path)[1:-1]

    def _piece_ranges(self, values: list[Exact]) -> Iterator[tuple[int, int]]:
        """Yield the ranges of ``values`` to encode as pieces of about the wanted size.

        The size of the earlier pieces predicts the size of the next one.
        """
        each = max(estimate(values) / max(len(values), 1), 1.0)
        start = 0
        while start < len(values):
            end = min(start + max(int(_PIECE / each), 1), len(values))
            while end - start > 1 and _is_large(values[start:end]):  # larger than the earlier values
                end = start + (end - start) // 2
            before = self._size
            yield start, end
            each = max((self._size - before) / (end - start), 1.0)
            start = end

    def _encode_piece(self, value: Exact, depth: int, path: Path | None = None, offset: int = 0) -> bytes:
        """Check and encode one piece. ``offset`` is the index of its first value in the list at ``path``."""
        data, patches = exact.encode(value, episode=self._episode, limits=self._limits, depth=depth)
        if patches:
            if path is None:
                raise _CannotSplit
            self._add_patches(orjson.loads(patches), path, offset)
        return data

    def _add_patches(self, patches: list[Json], path: Path, offset: int) -> None:
        for inside, entries in patches:
            if inside is None:  # the piece itself is patched: a dict with a key that JSON cannot hold
                raise _CannotSplit
            if offset and inside:
                inside[0] += offset
            elif offset:
                entries = [[key + offset, form] for key, form in entries]
            self._patches.append(([*path, *inside], entries))

    def _joined_patches(self) -> bytes:
        if not self._patches:
            return b""
        # Outermost first, and in document order within a level: the order of a single step.
        ordered = sorted(self._patches, key=lambda patch: len(patch[0]))
        return orjson.dumps(
            [
                [path, [entry for _, entries in parts for entry in entries]]
                for path, parts in groupby(ordered, key=itemgetter(0))
            ]
        )

"""The encoding of one record as one line, and its decoding.

A line is ``{"episode":…,"boundary":…,"schema":…[,"references":[…]][,"patches":[…]],"payload":…}`` and one
line feed. The small envelope comes first and the opaque payload last, so that a reader slices the payload
without parsing it. The envelope is canonical: a reader accepts exactly the bytes that a writer writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from ckptfmt._errors import Damaged, InexactValue, InvalidId, LimitExceeded
from ckptfmt._identity import EpisodeId
from ckptfmt._limits import DEFAULT_LIMITS, FormatLimits, Limits
from ckptfmt._text import count_text
from ckptfmt._values.json_payload import JsonPayload
from ckptfmt._values.large_values import encode as encode_in_pieces
from ckptfmt._values.patches import Exact, is_unicode
from ckptfmt._values.value_text import kind_text

_PAYLOAD: Final = b',"payload":'
_PATCHES: Final = b',"patches":'
# All quantifiers are possessive: the regex engine stores each backtracking position, many times the line's
# size.
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NUMBER: Final = rb"(?:0|[1-9][0-9]{0,18})"
_HEAD: Final = re.compile(
    rb'\{"episode":"([A-Za-z0-9._-]+)","boundary":(null|' + _NUMBER + rb'),"schema":(' + _NUMBER + rb")"
    rb'(?:,"references":(\[' + _STRING + rb"(?:," + _STRING + rb")*+\]))?"
)
# An unterminated string is also a token. Otherwise its end would be searched from each quote in it.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]')
_MAX_LEVELS: Final = 1024  # the limit of orjson


@dataclass(frozen=True, slots=True)
class Record:
    """The state of one episode at a boundary, as a writer takes it.

    Attributes:
        episode: The episode.
        payload: An exact value, or a :class:`JsonPayload`.
        boundary: The number of the step after which the episode can continue; None when it starts over from
            its input.
        schema: The version of the payload's own layout.
        references: Opaque strings that the controller must find in its own state. Any iterable of strings is
            accepted and stored as a tuple.

    Raises:
        InvalidId: ``episode`` is not an :class:`EpisodeId`.
        InexactValue: Another attribute has a wrong type or is out of range.

    Example:
        ::

            record = ckptfmt.Record(
                episode=ckptfmt.EpisodeId("17-0", attempt=1), boundary=4, payload={"messages": []}
            )
    """

    episode: EpisodeId
    payload: Exact
    boundary: int | None = None
    schema: int = 1
    references: Sequence[str] = ()

    def __post_init__(self) -> None:
        if type(self.episode) is not EpisodeId:
            raise InvalidId(f"a record's episode is an EpisodeId, not a {type(self.episode).__name__}")
        if self.boundary is not None:
            self._check_integer("boundary", self.boundary)
        self._check_integer("schema", self.schema)
        if type(self.references) is not tuple:
            if isinstance(self.references, str):
                raise self._inexact("references", "references are a sequence of strings, not one string")
            if not isinstance(self.references, Iterable):
                kind = type(self.references).__name__
                raise self._inexact("references", f"references are a sequence of strings, not of type {kind}")
            object.__setattr__(self, "references", tuple(self.references))
        for index, reference in enumerate(self.references):
            if type(reference) is not str or not is_unicode(reference):
                raise self._inexact(f"references[{index}]", "a reference is a str without surrogates")

    def __repr__(self) -> str:
        """The envelope and the size of the payload, without the payload itself."""
        payload = self.payload
        size = count_text(payload.size, "byte") if isinstance(payload, JsonPayload) else kind_text(payload)
        references = f", {count_text(len(self.references), 'reference')}" if self.references else ""
        return f"<Record {self.episode} at boundary {self.boundary}: {size}{references}>"

    def _check_integer(self, name: str, value: object) -> None:
        if type(value) is not int or not 0 <= value <= FormatLimits.INTEGER:
            raise self._inexact(
                name, f"{name} is an int from 0 to {FormatLimits.INTEGER}, not this {type(value).__name__}"
            )

    def _inexact(self, path: str, reason: str) -> InexactValue:
        key = self.episode.capture_key
        return InexactValue(f"episode {key}: {reason}", path=path, episode=key)


class Line(NamedTuple):
    """The content of one line: the decoded envelope, and the payload as bytes."""

    episode: EpisodeId
    boundary: int | None
    schema: int
    references: tuple[str, ...]
    payload: JsonPayload


def encode_line(record: Record, limits: Limits = DEFAULT_LIMITS) -> list[bytes]:
    """The line of ``record`` in pieces, because joining them would copy it.

    Raises :class:`InexactValue` or :class:`LimitExceeded`; both name the episode.
    """
    key = record.episode.capture_key
    payload = record.payload
    if type(payload) is not JsonPayload:
        pieces, patches = encode_in_pieces(payload, episode=key, limits=limits)
    elif b"\n" in payload.data or b"\n" in payload.patch_data:
        raise InexactValue(
            f"episode {key}: its JsonPayload contains a line feed; create payloads with JsonPayload.of",
            episode=key,
        )
    else:
        pieces, patches = [payload.data], payload.patch_data
    boundary = b"null" if record.boundary is None else b"%d" % record.boundary
    head = b'{"episode":"%b","boundary":%b,"schema":%d' % (key.encode(), boundary, record.schema)
    if record.references:
        head += b',"references":' + orjson.dumps(record.references)
    if patches:
        head += _PATCHES + patches
    line = [head + _PAYLOAD, *pieces, b"}\n"]
    size = sum(map(len, line))
    if size > limits.record_bytes:
        raise LimitExceeded(
            f"episode {key}: the record has {size} bytes; at most {limits.record_bytes} are allowed"
        )
    return line


def decode_line(line: bytes) -> Line:
    """Validate the envelope of ``line``, and slice its payload. Raises :class:`Damaged`.

    The payload is not parsed: digests prove its bytes, and the limits of a writer ensure that it can be
    decoded.
    """
    head = _HEAD.match(line)
    if head is None or not line.endswith(b"}\n"):
        raise Damaged("a record's envelope is not in canonical form")
    key = head[1].decode()
    try:
        episode = EpisodeId.from_capture_key(key)
    except InvalidId as error:
        raise Damaged(f"a record's episode is not a capture key: {error}") from None
    boundary = None if head[2] == b"null" else int(head[2])
    schema = int(head[3])
    if max(boundary or 0, schema) > FormatLimits.INTEGER:
        raise Damaged("a record's boundary or schema is out of range", episode=key)
    start = head.end()
    patches = b""
    if line.startswith(_PATCHES, start):
        start += len(_PATCHES)
        end = _end_of_patches(line, start, key)
        patches, start = line[start:end], end
    if not line.startswith(_PAYLOAD, start):
        raise Damaged("a record's envelope is not in canonical form", episode=key)
    payload = JsonPayload(line[start + len(_PAYLOAD) : -2], patches)
    return Line(episode, boundary, schema, _references(head[4], key), payload)


def _references(text: bytes | None, key: str) -> tuple[str, ...]:
    if text is None:
        return ()
    try:
        references: list[str] = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise Damaged("a record's references are not strict JSON", episode=key) from None
    if orjson.dumps(references) != text:
        raise Damaged("a record's references are not in canonical form", episode=key)
    return tuple(references)


def _end_of_patches(line: bytes, start: int, key: str) -> int:
    """The index of the end of the patches.

    A patch may contain the text of the next member, so its first occurrence is tried, and then the tokens are
    scanned.
    """
    end = line.find(_PAYLOAD, start)
    if end >= 0 and line[start : start + 1] == b"[":
        if line[end - 1 : end] == b"]" and _is_json(line[start:end]):
            return end
        depth = 0
        for token in _TOKEN.finditer(line, start):
            bracket = token[0]
            if bracket in b"[{":
                depth += 1
                if depth > _MAX_LEVELS:
                    break
            elif bracket in b"]}":
                depth -= 1
                if depth == 0:
                    return token.end()
    raise Damaged("a record's patches are not strict JSON", episode=key)


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True

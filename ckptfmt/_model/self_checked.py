"""Self-checked files: ``{"sha256":"<64 hex>","body":<body>}`` and a line feed.

The digest covers the bytes of the body. "The digest" of such a file always means this inner digest. The frame
is literal, so every byte of the file is covered, and the digest is checked before anything is parsed.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

import orjson

from ckptfmt._errors import Damaged
from ckptfmt._model.fields import Fields
from ckptfmt._values.patches import Json
from ckptfmt._values.strict_json import strict_json_problem

_PREFIX: Final = b'{"sha256":"'
_MIDDLE: Final = b'","body":'
_SUFFIX: Final = b"}\n"
_DIGEST_END: Final = len(_PREFIX) + 64
_BODY_START: Final = _DIGEST_END + len(_MIDDLE)


class Sealed(NamedTuple):
    """The bytes of a self-checked file and its digest."""

    data: bytes
    digest: str


class Unsealed(NamedTuple):
    """The members of a self-checked file's body and its digest."""

    fields: Fields
    digest: str


def seal(body: bytes) -> Sealed:
    """Put the JSON text ``body`` into the frame."""
    digest = hashlib.sha256(body).hexdigest()
    return Sealed(b"".join((_PREFIX, digest.encode(), _MIDDLE, body, _SUFFIX)), digest)


def unseal(data: bytes, file: str, *, required: str | None = None) -> Unsealed:
    """Check the frame and the digest, then parse the body.

    ``file`` is the path for errors; ``required`` is the digest that the file must have. Raises
    :class:`Damaged`; the message says when a file was cut short or has additional bytes.
    """
    if len(data) < _BODY_START + len(_SUFFIX) or not data.startswith(_PREFIX):
        raise Damaged(
            f"{file}: it is not a self-checked file, or it was changed after writing ({_shape(data)})",
            file=file,
        )
    digest = data[len(_PREFIX) : _DIGEST_END].decode("latin-1")
    if data[_DIGEST_END:_BODY_START] != _MIDDLE or not data.endswith(_SUFFIX):
        raise Damaged(
            f"{file}: its frame was changed after writing, or bytes were added or cut off ({_shape(data)})",
            file=file,
        )
    body = data[_BODY_START : -len(_SUFFIX)]
    if hashlib.sha256(body).hexdigest() != digest:
        raise Damaged(
            f"{file}: it was changed after writing: its body does not have the digest that the file states",
            file=file,
        )
    if required is not None and digest != required:
        raise Damaged(
            f"{file}: it is not the one that was published: its digest is {digest[:12]}..., "
            f"not {required[:12]}...",
            file=file,
        )
    return Unsealed(Fields(parse_json(body, file), file), digest)


def _shape(data: bytes) -> str:
    if not data:
        return "it is empty"
    if not data.strip(b"\0"):
        return f"it is {len(data)} zero bytes"
    return f"{len(data)} bytes"


def parse_json(body: bytes, file: str, place: str = "its body") -> Json:
    """Parse strict JSON in which no object names a member twice and no integer is out of range.

    ``place`` describes the text in errors. Raises :class:`Damaged`.
    """
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Damaged(f"{file}: {place} is not strict JSON", file=file) from None
    problem = strict_json_problem(body, parsed)
    if problem is not None:
        raise Damaged(f"{file}: {place} {problem}", file=file)
    return parsed

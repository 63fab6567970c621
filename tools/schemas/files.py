"""The schemas of the bodies of all kinds of files, of a block of an index, and of a record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from ckptfmt._limits import DEFAULT_LIMITS as LIMITS
from ckptfmt._model import names
from ckptfmt._model.fields import FORMAT
from ckptfmt._model.index_rows import COLUMNS
from tools.schemas.terms import (
    DEFINITIONS,
    MAX_ATTEMPT,
    TEXT,
    VALUE,
    Schema,
    array,
    keyed,
    members,
    or_null,
    ref,
    text,
    whole,
)

_UNKNOWN: Final = "Members that are not listed are ignored."
_VERSION: Final[Schema] = {
    "format": {"const": FORMAT},
    "features": array(TEXT) | {"maxItems": 0},
    "checkpoint_id": ref("label"),
}
_KEYS: Final = array(ref("captureKey"), uniqueItems=True)

_CHECKPOINT: Final = members(
    {
        **_VERSION,
        "sequence": ref("integer"),
        "cut": or_null(members({"name": ref("folder"), "sha256": ref("digest")})),
        "participants": keyed(
            ref("participantName"), members({"kind": ref("label"), "manifest": ref("digest")})
        ),
        "episodes": _KEYS,
        "restarts": _KEYS,
        "marks": keyed(ref("rolloutId"), whole(0, MAX_ATTEMPT)),
        "state": VALUE,
        "patches": ref("patches"),
    },
    optional=frozenset({"patches"}),
)

_CUT: Final = members({"checkpoint_id": ref("label"), "word": TEXT})

# The number of a life has at most as many digits as an attempt.
_LIFE: Final = members({"life": whole(0, MAX_ATTEMPT), "source_checkpoint_id": or_null(ref("label"))})

_MANIFEST: Final = members(
    {
        **_VERSION,
        "participant": members({"name": ref("participantName"), "kind": ref("label")}),
        "segments": array(ref("segment")),
        "index": text(names.INDEX_FILE.pattern),
        "records": ref("integer"),
    }
)

_BLOCKS: Final = members(
    {
        "first": array(ref("captureKey")),
        "start": array(ref("integer")),
        "length": array(whole(1, LIMITS.index_block_bytes)),
        "sha256": array(ref("digest")),
    }
)

_CELLS: Final[Schema] = {
    "episode": ref("captureKey"),
    "boundary": or_null(ref("integer")),
    "segment": ref("integer"),
    "offset": ref("integer"),
    "stored": whole(1, LIMITS.frame_stored_bytes),
    "start": whole(0, LIMITS.frame_plain_bytes),
    "length": whole(1, LIMITS.record_bytes),
    "crc32": whole(0, 2**32 - 1),
}
_BLOCK: Final = members(
    {name: array(_CELLS[name], minItems=1, maxItems=LIMITS.index_block_rows) for name in COLUMNS}
)

_RECORD: Final = {
    **members(
        {
            "episode": ref("captureKey"),
            "boundary": or_null(ref("integer")),
            "schema": ref("integer"),
            "references": array(TEXT, minItems=1),
            "patches": ref("patches"),
            "payload": VALUE,
        },
        optional=frozenset({"references", "patches"}),
    ),
    "additionalProperties": False,
}


def _document(title: str, about: str, body: Schema) -> Schema:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "description": about}
    named = _named(body)
    return head | body | {"$defs": {name: DEFINITIONS[name] for name in DEFINITIONS if name in named}}


def _named(schema: Any) -> set[str]:
    """The names of the definitions that a schema refers to, directly or not."""
    found: set[str] = set()
    new = set(_refs(schema))
    while new:
        found |= new
        new = {name for each in new for name in _refs(DEFINITIONS[each])} - found
    return found


def _refs(schema: Any) -> Iterator[str]:
    return (each.decode() for each in re.findall(rb'"#/\$defs/(\w+)"', orjson.dumps(schema)))


SCHEMAS: Final[dict[str, Schema]] = {
    "checkpoint": _document("Checkpoint", f"The body of checkpoint.json. {_UNKNOWN}", _CHECKPOINT),
    "cut": _document("Cut", f"The body of cut.json. {_UNKNOWN}", _CUT),
    "index-block": _document(
        "Block of an index",
        f"One of the further lines of index-<digest>.json. The columns have one length. {_UNKNOWN}",
        _BLOCK,
    ),
    "index-head": _document(
        "Head of an index",
        "The body of the first line of index-<digest>.json. The columns of `blocks` have one length. "
        f"{_UNKNOWN}",
        members({"records": ref("integer"), "blocks": _BLOCKS}),
    ),
    "life": _document("Life", f"The body of lives/<n>.json. {_UNKNOWN}", _LIFE),
    "manifest": _document("Manifest", f"The body of manifest.json. {_UNKNOWN}", _MANIFEST),
    "record": _document(
        "Record",
        "One line of a records file. Its members are in this order, and the bytes before `patches` and "
        "`payload` are canonical.",
        _RECORD,
    ),
}
"""The schemas by the names of their files in docs/schemas, without `.schema.json`."""

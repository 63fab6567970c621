"""The building blocks of the schemas: the terms of FORMAT.md with the patterns and limits of the package."""

from __future__ import annotations

from typing import Any, Final

from ckptfmt import _identity as identity
from ckptfmt._limits import FormatLimits
from ckptfmt._model import fields, manifest, names
from ckptfmt._values import patches

Schema = dict[str, Any]

NULL: Final[Schema] = {"type": "null"}
TEXT: Final[Schema] = {"type": "string"}
VALUE: Final[Schema] = {"description": "Any value, with null in each place that has a patch."}

MAX_ATTEMPT: Final = 10**FormatLimits.ATTEMPT_DIGITS - 1
_ROLLOUT_ID: Final = identity._ROLLOUT_ID.pattern
_SUFFIX: Final = identity._SUFFIX.pattern.removesuffix(r"\Z")
_SUFFIX_CHARACTERS: Final = len("-a") + FormatLimits.ATTEMPT_DIGITS


def ref(name: str) -> Schema:
    """A reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def whole(low: int, high: int = FormatLimits.INTEGER) -> Schema:
    """An integer in a range."""
    return {"type": "integer", "minimum": low, "maximum": high}


def text(pattern: str, **more: Any) -> Schema:
    """A string that matches ``pattern`` as a whole."""
    return {"type": "string", **more, "pattern": f"^{pattern}$"}


def array(items: Schema, **more: Any) -> Schema:
    """An array of items of one kind."""
    return {"type": "array", **more, "items": items}


def pair(first: Any, second: Any) -> Schema:
    """An array of two items."""
    return {"type": "array", "prefixItems": [first, second], "minItems": 2, "maxItems": 2}


def members(properties: Schema, optional: frozenset[str] = frozenset(), **more: Any) -> Schema:
    """An object with these members; all but ``optional`` are required."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, **more, "properties": properties}


def only(name: str, value: Schema) -> Schema:
    """An object with only this member."""
    return members({name: value}, additionalProperties=False)


def or_null(value: Schema) -> Schema:
    """The value or null."""
    return {"anyOf": [NULL, value]}


def keyed(names: Schema, values: Schema) -> Schema:
    """An object with any number of members, whose names and values have these schemas."""
    return {"type": "object", "propertyNames": names, "additionalProperties": values}


def _patch(path: Schema, place: Schema, about: str) -> Schema:
    return {"description": about, **pair(path, array(pair(place, ref("patchValue"))))}


def _segment() -> Schema:
    endings = {codec: {"properties": {"file": {"pattern": f"\\{end}$"}}} for codec, end in _ENDINGS.items()}
    codec = {"properties": {"codec": {"const": "zstd"}}}
    properties = {
        "file": text(names.RECORDS_FILE.pattern),
        "stored": ref("positive"),
        "plain": ref("positive"),
        "records": ref("positive"),
        "codec": {"enum": list(manifest.CODECS)},
    }
    return {**members(properties), "if": codec, "then": endings["zstd"], "else": endings["none"]}


_ENDINGS: Final = {codec: f".{ending.rpartition('.')[2]}" for codec, ending in manifest.CODECS.values()}

DEFINITIONS: Final[dict[str, Schema]] = {
    "label": {
        "type": "string",
        "minLength": 1,
        "maxLength": FormatLimits.LABEL_CHARACTERS,
        "pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$",
    },
    "integer": whole(0),
    "positive": whole(1),
    "digest": text(fields._DIGEST.pattern),
    "folder": text(_ROLLOUT_ID, maxLength=FormatLimits.PARTICIPANT_NAME_CHARACTERS),
    "participantName": text(names._PARTICIPANT.pattern, maxLength=FormatLimits.PARTICIPANT_NAME_CHARACTERS),
    "rolloutId": text(f"(?!.*{_SUFFIX}$){_ROLLOUT_ID}", maxLength=FormatLimits.ROLLOUT_ID_BYTES),
    "captureKey": text(
        # It has no second suffix, no suffix that is too long, and no rollout id that is too long.
        f"(?!.*{_SUFFIX}{_SUFFIX}$)"
        f"(?!.*-a[1-9][0-9]{{{FormatLimits.ATTEMPT_DIGITS},}}$)"
        f"(?=.{{1,{FormatLimits.ROLLOUT_ID_BYTES}}}({_SUFFIX})?$)"
        f"{_ROLLOUT_ID}",
        maxLength=FormatLimits.ROLLOUT_ID_BYTES + _SUFFIX_CHARACTERS,
    ),
    "segment": _segment(),
    "patches": array(ref("patch"), minItems=1),
    "patch": {
        "anyOf": [
            _patch(array(ref("place")), ref("place"), "In a container."),
            _patch(NULL, NULL, "The payload itself."),
        ]
    },
    "place": {"anyOf": [TEXT, {"type": "integer", "minimum": 0}, ref("points")]},
    "member": {"anyOf": [TEXT, ref("points")]},
    "points": only("str", array(whole(0, 0x10FFFF))),
    "patchValue": {
        "anyOf": [
            {"enum": list(patches._FLOATS)},
            only("int", text(patches._HEX.pattern)),
            ref("points"),
            only("pairs", array(pair(ref("member"), True))),
        ]
    },
}
"""The definitions that several schemas refer to."""

"""The grammar of FORMAT.md for names: of files and folders, of participants, and of labels."""

from __future__ import annotations

import re
import secrets
from typing import Final

from ckptfmt._errors import InvalidId
from ckptfmt._limits import FormatLimits
from ckptfmt._values.patches import is_unicode

CHECKPOINT_FILE: Final = "checkpoint.json"
CUT_FILE: Final = "cut.json"
MANIFEST_FILE: Final = "manifest.json"
LIVES_FOLDER: Final = "lives"

RECORDS_FILE: Final = re.compile(r"records-([0-9a-f]{64})(\.jsonl(?:\.zst)?)")
INDEX_FILE: Final = re.compile(r"index-([0-9a-f]{64})\.json")
_SCOPE_FILE: Final = re.compile(r"scope-[0-9a-f]{64}\.json")
_LIFE_FILE: Final = re.compile(r"(0|[1-9][0-9]{0,8})\.json")
_TEMPORARY_FILE: Final = re.compile(r"\.ckptfmt-[0-9a-f]+\.tmp")
_CUT_FOLDER: Final = re.compile(r"cut-[0-9a-f]{16}")
_PARTICIPANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")
_SEGMENT_OF_A_FILE_NAME: Final = re.compile(
    r"(?:^|/)((?:manifest|cut|checkpoint)\.json|(?:records|index)-[0-9a-f]{64}\.json(?:l|l\.zst)?)(?:/|$)",
    re.IGNORECASE,
)


# Files


def index_file_name(digest: str) -> str:
    """The name of the index file with this digest."""
    return f"index-{digest}.json"


def life_file_name(number: int) -> str:
    """The name of a life's file in the folder of lives."""
    return f"{number}.json"


def life_number(file: str) -> int | None:
    """The number of the life that a file in the folder of lives belongs to; None for another file."""
    match = _LIFE_FILE.fullmatch(file)
    return None if match is None else int(match[1])


def new_cut_name() -> str:
    """A random name for the folder of a new cut."""
    return f"cut-{secrets.token_hex(8)}"


def is_cut_name(folder: str) -> bool:
    """Whether :func:`new_cut_name` may return this name."""
    return _CUT_FOLDER.fullmatch(folder) is not None


def is_temporary(file: str) -> bool:
    """Whether a store uses this name for an unfinished file."""
    return _TEMPORARY_FILE.fullmatch(file) is not None


def holds_records(file: str) -> bool:
    """Whether this is the name of a records file or of an index."""
    return RECORDS_FILE.fullmatch(file) is not None or INDEX_FILE.fullmatch(file) is not None


def is_written_in_a_cut(file: str) -> bool:
    """Whether a writer of this format uses this name in the folder of a participant or of a cut."""
    return holds_records(file) or file in (MANIFEST_FILE, CUT_FILE) or _SCOPE_FILE.fullmatch(file) is not None


# Participants and labels


def is_label(text: str) -> bool:
    """Whether ``text`` can be a checkpoint id or a kind: 1 to 256 characters without control characters."""
    return (
        0 < len(text) <= FormatLimits.LABEL_CHARACTERS
        and is_unicode(text)
        and not any(map(_is_control, text))
    )


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character < "\xa0"


def check_label(text: object, what: str) -> str:
    """Return ``text``; raise :class:`InvalidId` when it cannot be the label that ``what`` names."""
    if type(text) is not str or not is_label(text):
        raise InvalidId(
            f"a {what} is a str of 1 to {FormatLimits.LABEL_CHARACTERS} characters without control "
            "characters or surrogates"
        )
    return text


def is_participant_name(text: str) -> bool:
    """Whether ``text`` is a participant's name: ``[A-Za-z0-9][A-Za-z0-9._-]*`` segments joined by ``/``."""
    return len(text) <= FormatLimits.PARTICIPANT_NAME_CHARACTERS and _PARTICIPANT.fullmatch(text) is not None


def check_participant_name(text: object) -> str:
    """Check a participant's name.

    Args:
        text: The name: segments of ``[A-Za-z0-9][A-Za-z0-9._-]*`` joined by ``/``, at most 128 characters. No
            segment may be the name of a file of the format.

    Returns:
        The name.

    Raises:
        InvalidId: The name is not valid.
    """
    if type(text) is not str or not is_participant_name(text):
        raise InvalidId(
            "a participant's name consists of segments [A-Za-z0-9][A-Za-z0-9._-]* joined by '/', "
            f"of at most {FormatLimits.PARTICIPANT_NAME_CHARACTERS} characters in all, not {ascii(text)[:80]}"
        )
    taken = _SEGMENT_OF_A_FILE_NAME.search(text)
    if taken is not None:
        raise InvalidId(
            f"participant {text}: files of the format are named like {taken[1]}; use another name"
        )
    return text

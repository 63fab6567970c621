"""Rollout ids, attempts, and the capture keys that name an attempt.

The capture key of attempt 0 of rollout ``r`` is ``r``; the capture key of attempt N ≥ 1 is ``r-aN``. A
rollout id never ends in such a suffix, so every key decodes to exactly one rollout and attempt.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ckptfmt._errors import InvalidId, wrong_type
from ckptfmt._limits import FormatLimits
from ckptfmt._text import quoted

ROLLOUT_ID_KEY: Final = "_ng_rollout_id"
ATTEMPT_INDEX_KEY: Final = "_ng_attempt_index"
TASK_INDEX_KEY: Final = "_ng_task_index"
ROLLOUT_INDEX_KEY: Final = "_ng_rollout_index"

_ROLLOUT_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SUFFIX: Final = re.compile(r"-a([1-9][0-9]*)\Z")
_LINES: Final = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]*+\n)*+")
_SPLIT_LINE: Final = re.compile(r"(.+?)(?:-a([1-9][0-9]*+))?\n")
_SUFFIXED_LINE: Final = re.compile(r"-a[1-9][0-9]*+\n")
_MAX_ATTEMPT: Final = 10**FormatLimits.ATTEMPT_DIGITS - 1


@dataclass(frozen=True, order=True, slots=True)
class EpisodeId:
    """One attempt of one rollout.

    Attributes:
        rollout_id: The id of the rollout: ``[A-Za-z0-9][A-Za-z0-9._-]*``, at most 256 bytes, without a suffix
            ``-a<attempt>``.
        attempt: The attempt, counted from 0; at most 9 digits.

    Raises:
        InvalidId: The values form no capture key.

    Example:
        ::

            episode = ckptfmt.EpisodeId("17-0", attempt=1)
            episode.capture_key                                         # "17-0-a1"
            ckptfmt.EpisodeId.from_capture_key("17-0-a1") == episode    # True
    """

    rollout_id: str
    attempt: int = 0

    def __post_init__(self) -> None:
        rollout_id, attempt = self.rollout_id, self.attempt
        if type(rollout_id) is not str:
            raise InvalidId(f"a rollout id is a str, not {_type_text(rollout_id)}")
        if _ROLLOUT_ID.fullmatch(rollout_id) is None:
            raise InvalidId(
                f"rollout id {quoted(rollout_id)} is not of the form [A-Za-z0-9][A-Za-z0-9._-]*: letters, "
                "digits, '.', '_' and '-'; the first character is a letter or a digit"
            )
        if len(rollout_id) > FormatLimits.ROLLOUT_ID_BYTES:
            raise InvalidId(
                f"rollout id {quoted(rollout_id)} has {len(rollout_id)} bytes; "
                f"at most {FormatLimits.ROLLOUT_ID_BYTES} are allowed"
            )
        if (suffix := _SUFFIX.search(rollout_id)) is not None:
            raise InvalidId(
                f"rollout id {quoted(rollout_id)} ends in {quoted(suffix[0])}, which is reserved for "
                "attempts (about one uuid4 string in 3,300 ends like this); create ids with "
                "new_rollout_id(), and decode keys with EpisodeId.from_capture_key"
            )
        if type(attempt) is not int or not 0 <= attempt <= _MAX_ATTEMPT:
            raise InvalidId(f"an attempt is an int from 0 to {_MAX_ATTEMPT}, not {_describe_index(attempt)}")

    @property
    def capture_key(self) -> str:
        """The string that names this attempt in paths, request bodies and files."""
        return f"{self.rollout_id}-a{self.attempt}" if self.attempt else self.rollout_id

    @classmethod
    def from_capture_key(cls, key: str) -> EpisodeId:
        """Decode a capture key.

        Args:
            key: The capture key.

        Returns:
            The episode.

        Raises:
            InvalidId: The key names no rollout and attempt.
        """
        if type(key) is not str:
            raise InvalidId(f"a capture key is a str, not {_type_text(key)}")
        suffix = _SUFFIX.search(key)
        if suffix is None:
            return cls(key)
        if suffix.start() == 0:
            raise InvalidId(f"{quoted(key)} is not a capture key: there is no rollout id before the attempt")
        if (other := _SUFFIX.search(key, 0, suffix.start())) is not None:
            raise InvalidId(
                f"{quoted(key)} is not a capture key: before {quoted(suffix[0])} it ends in "
                f"{quoted(other[0])}, which is reserved for the attempt; a key names one attempt of a rollout"
            )
        digits = suffix[1]
        if len(digits) > FormatLimits.ATTEMPT_DIGITS:
            raise InvalidId(
                f"capture key {quoted(key)} ends in an attempt of {len(digits)} digits; "
                f"at most {FormatLimits.ATTEMPT_DIGITS} are allowed"
            )
        return cls(key[: suffix.start()], int(digits))

    @classmethod
    def from_checked_key(cls, key: str) -> EpisodeId:
        """Decode a key that was checked before, without checking it again.

        Args:
            key: A capture key that :meth:`from_capture_key` accepts.

        Returns:
            The episode.
        """
        suffix = _SUFFIX.search(key) if "-a" in key else None
        episode = object.__new__(cls)
        object.__setattr__(episode, "rollout_id", key if suffix is None else key[: suffix.start()])
        object.__setattr__(episode, "attempt", 0 if suffix is None else int(suffix[1]))
        return episode

    def __str__(self) -> str:
        return self.capture_key


def rollouts_of(keys: Sequence[str]) -> list[str]:
    """The rollout id of each capture key, as :meth:`EpisodeId.from_capture_key` decodes it.

    For many keys this is faster than decoding each.

    Raises :class:`InvalidId`.
    """
    text = "".join(f"{key}\n" for key in keys)
    if _LINES.fullmatch(text) is not None and text.count("\n") == len(keys):
        if "-a" not in text and max(map(len, keys), default=0) <= FormatLimits.ROLLOUT_ID_BYTES:
            return list(keys)
        pairs: list[tuple[str, str]] = _SPLIT_LINE.findall(text)
        rollouts = [rollout for rollout, _ in pairs]
        if (
            max(map(len, rollouts), default=0) <= FormatLimits.ROLLOUT_ID_BYTES
            and max((len(digits) for _, digits in pairs), default=0) <= FormatLimits.ATTEMPT_DIGITS
            and _SUFFIXED_LINE.search("".join(f"{rollout}\n" for rollout in rollouts)) is None
        ):
            return rollouts
    return [EpisodeId.from_capture_key(key).rollout_id for key in keys]


def new_rollout_id() -> str:
    """Create a random rollout id.

    Returns:
        32 hex digits. The id has no hyphen, so it never ends in the suffix that is reserved for attempts.
    """
    return uuid.uuid4().hex


def episode_from_run_body(body: Mapping[str, object]) -> EpisodeId | None:
    """Find the episode that the body of a ``/run`` request belongs to.

    An explicit id ``<id>-aN`` is attempt N of ``<id>``; an attempt index beside it is refused, because the
    two could contradict each other. A plain explicit id, and a row that is named by its task and rollout
    index, use the attempt index of the body (0 when there is none).

    Args:
        body: The decoded body.

    Returns:
        The episode, or None when the body has no identity.

    Raises:
        InvalidId: The identity in the body is not valid.
        TypeError: ``body`` is not a mapping.
    """
    if not isinstance(body, Mapping):
        raise wrong_type("episode_from_run_body", "a mapping, the body of a run", body)
    index = _index(body, ATTEMPT_INDEX_KEY)
    explicit = body.get(ROLLOUT_ID_KEY)
    if explicit is not None:
        if type(explicit) is not str:
            raise InvalidId(f"{ROLLOUT_ID_KEY} must be a str, not {_type_text(explicit)}")
        episode = EpisodeId.from_capture_key(explicit)
        if episode.attempt == 0:
            return EpisodeId(episode.rollout_id, index or 0)
        if index is not None:
            raise InvalidId(
                f"{ROLLOUT_ID_KEY} {quoted(explicit)} names attempt {episode.attempt} by its suffix, and "
                f"{ATTEMPT_INDEX_KEY} is set as well; send only one of them"
            )
        return episode
    task, rollout = _index(body, TASK_INDEX_KEY), _index(body, ROLLOUT_INDEX_KEY)
    if task is None or rollout is None:
        return None
    return EpisodeId(f"{task}-{rollout}", index or 0)


def _index(body: Mapping[str, object], key: str) -> int | None:
    value = body.get(key)
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise InvalidId(f"{key} must be an int of 0 or more, not {_describe_index(value)}")
    return value


def _describe_index(value: object) -> str:
    """The index itself when it is an int of modest size, otherwise only its type."""
    if type(value) is int and abs(value) < 10**20:
        return str(value)
    return _type_text(value)


def _type_text(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"

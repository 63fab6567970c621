"""Typed access to the members of a JSON object that was not checked before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ckptfmt._errors import Damaged, Unsupported
from ckptfmt._limits import FormatLimits
from ckptfmt._model.names import is_label
from ckptfmt._values.patches import Json

FORMAT: Final = 1
"""The version of the format that this package writes, and the only one that it reads."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class Fields:
    """A JSON object whose members are read one by one, each checked for its exact type.

    Each method raises :class:`Damaged` when a member is missing or has another type. Members that are never
    read are ignored: a later minor version may add some.
    """

    def __init__(self, value: Json, file: str, place: str = "") -> None:
        self.file = file
        self._place = place
        if type(value) is not dict:
            raise self.damaged("is not a JSON object")
        self._members: dict[str, Json] = value

    def damaged(self, problem: str, member: str | None = None) -> Damaged:
        """The error that the object, or one of its members, has a problem."""
        place = ".".join(part for part in (self._place, member) if part)
        return Damaged(f"{self.file}: {place or 'its body'} {problem}", file=self.file)

    def __contains__(self, member: str) -> bool:
        return member in self._members

    def value(self, member: str) -> Json:
        """A member of any type."""
        if member not in self._members:
            raise self.damaged("is missing", member)
        return self._members[member]

    def text(self, member: str) -> str:
        """A member that is a string."""
        value = self.value(member)
        if type(value) is not str:
            raise self.damaged("is not a string", member)
        return value

    def label(self, member: str) -> str:
        """A member that is a checkpoint id or a kind."""
        value = self.text(member)
        if not is_label(value):
            raise self.damaged("is empty, too long, or holds control characters", member)
        return value

    def digest(self, member: str) -> str:
        """A member that is a SHA-256 digest in hex."""
        value = self.text(member)
        if _DIGEST.fullmatch(value) is None:
            raise self.damaged("is not 64 lower-case hex digits", member)
        return value

    def integer(self, member: str, low: int = 0, high: int = FormatLimits.INTEGER) -> int:
        """A member that is an integer from ``low`` to ``high``."""
        value = self.value(member)
        if type(value) is not int or not low <= value <= high:
            raise self.damaged(f"is not an integer from {low} to {high}", member)
        return value

    def array(self, member: str) -> list[Json]:
        """A member that is an array of any values."""
        value = self.value(member)
        if type(value) is not list:
            raise self.damaged("is not an array", member)
        return value

    def strings(self, member: str) -> list[str]:
        """A member that is an array of strings."""
        value = self.array(member)
        if not set(map(type, value)) <= {str}:
            raise self.damaged("has items other than strings", member)
        return value

    def integers(self, member: str, low: int = 0, high: int = FormatLimits.INTEGER) -> list[int]:
        """A member that is an array of integers from ``low`` to ``high``."""
        value = self.array(member)
        if not set(map(type, value)) <= {int} or (value and (min(value) < low or max(value) > high)):
            raise self.damaged(f"has items other than integers from {low} to {high}", member)
        return value

    def object(self, member: str) -> Fields:
        """A member that is an object."""
        return Fields(self.value(member), self.file, self._place_of(member))

    def objects(self, member: str) -> list[Fields]:
        """A member that is an array of objects."""
        return [
            Fields(each, self.file, f"{self._place_of(member)}[{index}]")
            for index, each in enumerate(self.array(member))
        ]

    def items(self) -> Iterator[tuple[str, Json]]:
        """The names and values of all members."""
        return iter(self._members.items())

    def _place_of(self, member: str) -> str:
        return f"{self._place}.{member}" if self._place else member

    def check_format(self) -> None:
        """Refuse another format version and unknown features. It is called before other members are read."""
        version = self._members.get("format")
        if type(version) is not int or version != FORMAT:
            found = (
                version
                if type(version) is int
                else "none"
                if version is None
                else f"a {type(version).__name__}"
            )
            raise Unsupported(
                f"{self.file}: its format version is {found}, and this ckptfmt reads version {FORMAT}; "
                "read it with the version of ckptfmt that wrote it",
                file=self.file,
            )
        unknown = sorted(self.strings("features"))
        if unknown:
            raise Unsupported(
                f"{self.file}: it requires the reader feature {unknown[0][:80]!a}, which this ckptfmt does "
                "not have; read it with a newer ckptfmt",
                file=self.file,
            )

"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptfmt.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: ``file`` is relative to the URL that was verified, ``code`` that of the
    error."""

    file: str
    code: str
    message: str

    @classmethod
    def of(cls, error: CheckpointError, file: str) -> Problem:
        """The problem that ``error`` describes; ``file`` is used where the error does not know better."""
        return cls(getattr(error, "file", None) or file, error.code, str(error))


@dataclass(slots=True)
class Report:
    """The result of a verification: ``ok`` when every byte is what was written."""

    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptfmt._errors import CheckpointError


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
    """The result of a verification: ``ok`` (and true) when every byte is what was written.

    ``complete``: there is a ``checkpoint.json`` that could be read. Without one, of a cut or of what
    :func:`ckptfmt.create` alone wrote, nothing says which participants there have to be.
    """

    problems: list[Problem] = field(default_factory=list)
    complete: bool = False

    @property
    def ok(self) -> bool:
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def _repr_html_(self) -> str:
        """For notebooks: the problems as a table."""
        from ckptfmt._show.notebook import report_html

        return report_html(self)

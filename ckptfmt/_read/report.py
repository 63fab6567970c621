"""The result of a verification."""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptfmt._display import NotebookDisplay
from ckptfmt._errors import BadCheckpoint


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a checkpoint.

    Attributes:
        file: The path of the file, relative to the URL that was verified.
        code: The code of the error: ``damaged``, ``incomplete`` or ``unsupported``.
        message: A description for people.
    """

    file: str
    code: str
    message: str

    @classmethod
    def of(cls, error: BadCheckpoint, file: str) -> Problem:
        """Make a problem from an error.

        Args:
            error: The error.
            file: The file of the problem, for an error without a ``file`` of its own.

        Returns:
            The problem.
        """
        return cls(error.file or file, error.code, str(error))


@dataclass(slots=True)
class Report(NotebookDisplay):
    """The result of a verification, which is true when every byte is what was written.

    Attributes:
        problems: All problems.
        complete: Whether there is a readable ``checkpoint.json``. Without one, as in a cut or in a folder
            that only :func:`ckptfmt.create` wrote to, the list of participants cannot be checked.
    """

    problems: list[Problem] = field(default_factory=list)
    complete: bool = False

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

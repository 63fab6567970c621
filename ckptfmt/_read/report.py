"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptfmt._display import NotebookDisplay
from ckptfmt._errors import BadCheckpoint


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a checkpoint.

    Attributes:
        file: The file, relative to the URL that was verified.
        code: The code of the error: ``damaged``, ``incomplete`` or ``unsupported``.
        message: What is wrong with it.
    """

    file: str
    code: str
    message: str

    @classmethod
    def of(cls, error: BadCheckpoint, file: str) -> Problem:
        """The problem that an error describes.

        Args:
            error: The error.
            file: The file that it is about, where the error itself does not say.

        Returns:
            The problem.
        """
        return cls(error.file or file, error.code, str(error))


@dataclass(slots=True)
class Report(NotebookDisplay):
    """The result of a verification; it is true when every byte is what was written.

    Attributes:
        problems: Everything that is wrong.
        complete: Whether there is a ``checkpoint.json`` that could be read. Without one, as in a cut or in
            what :func:`ckptfmt.create` alone wrote, nothing says which participants there have to be.
    """

    problems: list[Problem] = field(default_factory=list)
    complete: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

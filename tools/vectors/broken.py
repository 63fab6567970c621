"""The parts of an invalid vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tools.vectors.raw import Draft, Files

DAMAGED: Final = "damaged"
INCOMPLETE: Final = "incomplete"
UNSUPPORTED: Final = "unsupported"


@dataclass(frozen=True)
class Broken:
    """A checkpoint that readers refuse, the reason, and the code of the error."""

    draft: Draft
    about: str
    error: str | None = DAMAGED
    only_verify: bool = False
    """Whether only a verification finds the fault, and reading the records does not."""
    lives: Files = field(default_factory=dict)
    lives_error: str | None = None
    """The code of the error for the lives, which do not belong to the checkpoint."""

    @property
    def files(self) -> Files:
        """All files by their paths in the folder of the case."""
        return {
            **{f"checkpoint/{path}": data for path, data in self.draft.build().items()},
            **{f"lives/{name}": data for name, data in self.lives.items()},
        }

    @property
    def twin(self) -> dict[str, str | None]:
        """The expected errors of a verification and of reading the records."""
        read = None if self.only_verify else self.error
        lives = {} if self.lives_error is None else {"lives": self.lives_error}
        return {"about": self.about, "verify": self.error, "read": read, **lives}


def name_of(files: Files, kind: str) -> str:
    """The path of the only file whose name starts with ``kind``."""
    (name,) = (name for name in files if name.rpartition("/")[2].startswith(kind))
    return name


def edit(kind: str, change: Callable[[bytes], bytes]) -> Callable[[Files], None]:
    """A change of the bytes of a finished file. Digests are not updated."""

    def apply(files: Files) -> None:
        name = name_of(files, kind)
        changed = change(files[name])
        assert changed != files[name]
        files[name] = changed

    return apply


def remove(kind: str) -> Callable[[Files], None]:
    """A change that removes a finished file."""

    def apply(files: Files) -> None:
        del files[name_of(files, kind)]

    return apply

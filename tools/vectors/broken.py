"""What an invalid vector is made of."""

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
    """A checkpoint to refuse: why, and the code of the error."""

    draft: Draft
    about: str
    error: str | None = DAMAGED
    only_verify: bool = False
    """Reading the records does not come across it; verifying does."""
    lives: Files = field(default_factory=dict)
    lives_error: str | None = None
    """The code for the lives, which are no part of the checkpoint."""

    @property
    def files(self) -> Files:
        """All files, by their path in the case's folder."""
        return {
            **{f"checkpoint/{path}": data for path, data in self.draft.build().items()},
            **{f"lives/{name}": data for name, data in self.lives.items()},
        }

    @property
    def twin(self) -> dict[str, str | None]:
        read = None if self.only_verify else self.error
        lives = {} if self.lives_error is None else {"lives": self.lives_error}
        return {"about": self.about, "verify": self.error, "read": read, **lives}


def name_of(files: Files, kind: str) -> str:
    """The path of the one file whose name begins so."""
    (name,) = (name for name in files if name.rpartition("/")[2].startswith(kind))
    return name


def edit(kind: str, change: Callable[[bytes], bytes]) -> Callable[[Files], None]:
    """A change of a finished file's bytes, which no digest follows."""

    def apply(files: Files) -> None:
        name = name_of(files, kind)
        changed = change(files[name])
        assert changed != files[name]
        files[name] = changed

    return apply


def remove(kind: str) -> Callable[[Files], None]:
    def apply(files: Files) -> None:
        del files[name_of(files, kind)]

    return apply

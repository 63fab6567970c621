"""Reading the small files whole: manifests, cuts, ``checkpoint.json``."""

from __future__ import annotations

from ckptfmt._errors import Damaged, LimitExceeded
from ckptfmt.stores._interface import Store


def read_or_damaged(folder: Store, name: str, limit: int, file: str) -> bytes:
    """A whole file of at most ``limit`` bytes; what is no file, or larger, is damage of ``file``."""
    try:
        return folder.read(name, limit)
    except (Damaged, LimitExceeded) as error:
        raise Damaged(f"{file}: {error}", file=file) from error

"""Whether a directory can hold a checkpoint at all."""

from __future__ import annotations

from ckptfmt.stores import Url, choose_store


def check_directory(url: Url) -> None:
    """Try whether records and a manifest could be placed in ``url``, which must exist; leaves nothing there.

    Raises :class:`NotFound`, :class:`UnusableDirectory`, :class:`Unsupported` (no hard links),
    :class:`StoreError`.
    """
    choose_store(url).check_usable()

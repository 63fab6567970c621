"""Checking that a directory can hold a checkpoint."""

from __future__ import annotations

from ckptfmt.stores import Url, choose_store


def check_directory(url: Url) -> None:
    """Check that records and a manifest can be written to a directory.

    Files that are created for the check are deleted.

    Args:
        url: The directory. It must exist.

    Raises:
        NotFound: There is no such directory.
        UnusableDirectory: It cannot be written to.
        UnsupportedStore: The store lacks an operation, such as hard links of a local file system.
        StoreError: The store failed.
    """
    choose_store(url).check_usable()

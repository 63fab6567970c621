"""The paths of all files of a run: the names of FORMAT.md on a store.

::

    <run>/                      RunLayout
      lives/<n>.json
      <checkpoint>/             CheckpointLayout
        checkpoint.json
        <cut>/
          cut.json
          <participant>/        ParticipantLayout
            records-….jsonl[.zst]  index-….json  manifest.json

Readers and writers get paths from these classes and read through them. An error of the store about a missing
or unreadable file is converted here, in one place, to the error that a reader of the checkpoint expects.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from ckptfmt._errors import Damaged, Incomplete, LimitExceeded, NotFound
from ckptfmt._model.names import CHECKPOINT_FILE, CUT_FILE, LIVES_FOLDER, MANIFEST_FILE, life_file_name
from ckptfmt.stores import OpenFile, Store


@contextmanager
def reading(file: str, if_missing: str) -> Iterator[None]:
    """Convert the errors that a store raises for one file to errors about the checkpoint.

    ``file`` is the path for people; ``if_missing`` describes what a missing file means. Raises
    :class:`Incomplete` for a missing file and :class:`Damaged` for one that is too large or not a regular
    file.
    """
    try:
        yield
    except NotFound as error:
        raise Incomplete(f"{file}: {if_missing}", file=file) from error
    except (Damaged, LimitExceeded) as error:
        if isinstance(error, Damaged) and error.file is not None:
            raise
        raise Damaged(f"{file}: {error}", file=file) from error


def parent_url(url: str) -> str:
    """The URL of the parent folder."""
    return url.rstrip("/").rpartition("/")[0] or "/"


def name_of(store: Store) -> str:
    """The last component of a store's URL."""
    return store.url.rstrip("/").rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ParticipantLayout:
    """The paths of one participant's files.

    Paths are relative to the place of ``store``; errors name files by these paths.

    Attributes:
        store: The store that holds the files.
        folder: The path of the participant's folder.
    """

    store: Store
    folder: str

    def file(self, name: str) -> str:
        """The path of a file in the participant's folder.

        Args:
            name: The name of the file, such as the manifest states it.

        Returns:
            The path, relative to the place of ``store``.
        """
        return f"{self.folder}/{name}" if self.folder else name

    @property
    def manifest_file(self) -> str:
        """The path of the manifest."""
        return self.file(MANIFEST_FILE)

    def read(self, name: str, limit: int, if_missing: str = "it is missing") -> bytes:
        """Read a whole file.

        Args:
            name: The name of the file.
            limit: The most bytes that the file may have.
            if_missing: The words of the error for a missing file.

        Returns:
            The bytes.

        Raises:
            Incomplete: The file is missing.
            Damaged: The file is too large, or not a regular file.
            StoreError: The store failed.
        """
        file = self.file(name)
        with reading(file, if_missing):
            return self.store.read(file, limit)

    def read_range(self, name: str, start: int, length: int, if_missing: str) -> bytes:
        """Read a part of a file.

        Args:
            name: The name of the file.
            start: The first byte.
            length: The number of bytes.
            if_missing: The words of the error for a missing file.

        Returns:
            The bytes; fewer than ``length`` only when the file ends before.

        Raises:
            Incomplete: The file is missing.
            Damaged: The file is not a regular file.
            StoreError: The store failed.
        """
        file = self.file(name)
        with reading(file, if_missing):
            return self.store.read_range(file, start, length)

    @contextmanager
    def open(self, name: str, if_missing: str) -> Iterator[OpenFile]:
        """Open a file for one pass from its start.

        Args:
            name: The name of the file.
            if_missing: The words of the error for a missing file.

        Yields:
            The open file; it is closed at the end of the block.

        Raises:
            Incomplete: The file is missing.
            Damaged: The file is not a regular file.
            StoreError: The store failed.
        """
        file = self.file(name)
        with ExitStack() as stack:
            with reading(file, if_missing):
                stored = stack.enter_context(self.store.open(file))
            yield stored

    def exists(self) -> bool:
        """Check whether the participant's folder exists.

        Returns:
            Whether it exists.

        Raises:
            StoreError: The store failed.
        """
        try:
            self.store.entries(self.folder)
        except NotFound:
            return False
        return True


@dataclass(frozen=True, slots=True)
class CheckpointLayout:
    """The paths of one checkpoint's files; the place of ``store`` is the checkpoint's folder.

    Attributes:
        store: The store that holds the files.
        cut: The name of the folder that holds the participants' folders; None when they are directly in the
            place of ``store``, as in the folder of a cut.
    """

    store: Store
    cut: str | None = None

    @property
    def folder(self) -> str:
        """The path of the folder that holds the participants' folders; empty for the place of ``store``."""
        return self.cut or ""

    def participant(self, name: str) -> ParticipantLayout:
        """The files of one participant.

        Args:
            name: The participant's name.

        Returns:
            The layout of its folder.
        """
        return ParticipantLayout(self.store, f"{self.cut}/{name}" if self.cut else name)

    @property
    def cut_file(self) -> str:
        """The path of ``cut.json``."""
        return f"{self.cut}/{CUT_FILE}" if self.cut else CUT_FILE

    def read_checkpoint_file(self, limit: int) -> bytes:
        """Read the bytes of ``checkpoint.json``.

        Args:
            limit: The most bytes that the file may have.

        Returns:
            The bytes.

        Raises:
            NotFound: The folder does not exist.
            Incomplete: The folder has no ``checkpoint.json``.
            Damaged: The file is too large, or not a regular file.
            StoreError: The store failed.
        """
        try:
            missing = f"there is none in {self.store.url}: the checkpoint was not completed"
            with reading(CHECKPOINT_FILE, missing):
                return self.store.read(CHECKPOINT_FILE, limit)
        except Incomplete:
            self.store.entries("")  # raises NotFound when the folder itself does not exist
            raise

    def read_cut_file(self, limit: int, *, is_named: bool) -> bytes:
        """Read the bytes of ``cut.json``.

        Args:
            limit: The most bytes that the file may have.
            is_named: Whether ``checkpoint.json`` names the cut. Then a missing folder is an incomplete
                checkpoint, too.

        Returns:
            The bytes.

        Raises:
            NotFound: The folder does not exist, and no ``checkpoint.json`` names it.
            Incomplete: The file is missing.
            Damaged: The file is too large, or not a regular file.
            StoreError: The store failed.
        """
        where = f"{self.store.url}/{self.cut}" if self.cut else self.store.url
        try:
            with reading(self.cut_file, f"there is none in {where}; this is not the folder of the cut"):
                return self.store.read(self.cut_file, limit)
        except Incomplete:
            if not is_named:
                self.store.entries(self.folder)  # raises NotFound when the folder itself does not exist
            raise


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The paths of a run's files; the place of ``store`` is the run's folder.

    Attributes:
        store: The store that holds the files.
    """

    store: Store

    def checkpoint(self, name: str, cut: str | None = None) -> CheckpointLayout:
        """The files of one checkpoint.

        Args:
            name: The name of the checkpoint's folder.
            cut: The name of the cut's folder; None when there is none.

        Returns:
            The layout of the checkpoint.
        """
        return CheckpointLayout(self.store.at(name), cut)

    @property
    def lives(self) -> Store:
        """The store at the folder of the lives."""
        return self.store.at(LIVES_FOLDER)

    def life_file(self, number: int) -> str:
        """The path of a life's file.

        Args:
            number: The number of the life.

        Returns:
            The path, relative to the run's folder.
        """
        return f"{LIVES_FOLDER}/{life_file_name(number)}"

    def read_life_file(self, number: int, limit: int) -> bytes:
        """Read the bytes of a life's file.

        Args:
            number: The number of the life.
            limit: The most bytes that the file may have.

        Returns:
            The bytes.

        Raises:
            Incomplete: The file is missing.
            Damaged: The file is too large, or not a regular file.
            StoreError: The store failed.
        """
        file = self.life_file(number)
        with reading(file, "it is missing"):
            return self.store.read(file, limit)

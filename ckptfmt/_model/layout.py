"""Where everything of a run lies: the paths and names of FORMAT.md, on a store.

::

    <run>/                      RunLayout
      lives/<n>.json
      <checkpoint>/             CheckpointLayout
        checkpoint.json
        <cut>/
          cut.json
          <participant>/        ParticipantLayout
            records-….jsonl[.zst]  index-….json  manifest.json

Readers and writers ask these classes for paths, and read through them: a file that is not there, or that no
reader may read, becomes the error that a reader of the checkpoint expects, in one place.
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
    """Turns what a store raises about one file into errors about the checkpoint.

    ``file`` is the path for people; ``if_missing`` says what it means that the file is not there. Raises
    :class:`Incomplete` for a missing file and :class:`Damaged` for one that is too large or no regular file.
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
    """The URL of the folder above."""
    return url.rstrip("/").rpartition("/")[0] or "/"


def name_of(store: Store) -> str:
    """The last part of a store's URL."""
    return store.url.rstrip("/").rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ParticipantLayout:
    """The files of one participant: ``folder`` is the path of its folder, relative to the place of ``store``.

    Paths are relative to that place too, and errors name files by them.
    """

    store: Store
    folder: str

    def file(self, name: str) -> str:
        """The path of a file that the manifest names."""
        return f"{self.folder}/{name}" if self.folder else name

    @property
    def manifest_file(self) -> str:
        """The path of the manifest."""
        return self.file(MANIFEST_FILE)

    def read(self, name: str, limit: int, if_missing: str = "it is missing") -> bytes:
        """A whole file. Raises :class:`Incomplete`, :class:`Damaged`, :class:`StoreError`."""
        file = self.file(name)
        with reading(file, if_missing):
            return self.store.read(file, limit)

    def read_range(self, name: str, start: int, length: int, if_missing: str) -> bytes:
        """A part of a file. Raises like :meth:`read`."""
        file = self.file(name)
        with reading(file, if_missing):
            return self.store.read_range(file, start, length)

    @contextmanager
    def open(self, name: str, if_missing: str) -> Iterator[OpenFile]:
        """A file opened for one pass. Opening it raises like :meth:`read`."""
        file = self.file(name)
        with ExitStack() as stack:
            with reading(file, if_missing):
                stored = stack.enter_context(self.store.open(file))
            yield stored

    def exists(self) -> bool:
        """Whether the participant's folder is there. Raises :class:`StoreError`."""
        try:
            self.store.entries(self.folder)
        except NotFound:
            return False
        return True


@dataclass(frozen=True, slots=True)
class CheckpointLayout:
    """The files of one checkpoint, whose folder is the place of ``store``.

    ``cut`` is the name of the folder in it that holds the participants; None when they lie in ``store``
    itself, as in a cut's own folder, or without a cut.
    """

    store: Store
    cut: str | None = None

    @property
    def folder(self) -> str:
        """The path of the folder that holds the participants' folders; empty for the place of ``store``."""
        return self.cut or ""

    def participant(self, name: str) -> ParticipantLayout:
        """The files of one participant."""
        return ParticipantLayout(self.store, f"{self.cut}/{name}" if self.cut else name)

    @property
    def cut_file(self) -> str:
        """The path of ``cut.json``."""
        return f"{self.cut}/{CUT_FILE}" if self.cut else CUT_FILE

    def read_checkpoint_file(self, limit: int) -> bytes:
        """The bytes of ``checkpoint.json``.

        Raises :class:`NotFound` when there is no such folder, :class:`Incomplete` when the folder has none,
        :class:`Damaged`, :class:`StoreError`.
        """
        try:
            missing = f"there is none in {self.store.url}: the checkpoint was not completed"
            with reading(CHECKPOINT_FILE, missing):
                return self.store.read(CHECKPOINT_FILE, limit)
        except Incomplete:
            self.store.entries("")  # raises NotFound when the folder itself is not there
            raise

    def read_cut_file(self, limit: int, *, is_named: bool) -> bytes:
        """The bytes of ``cut.json``.

        ``is_named``: whether ``checkpoint.json`` names the cut, so that even a missing folder is damage.
        Raises like :meth:`read_checkpoint_file`, but no :class:`NotFound` when it is named.
        """
        where = f"{self.store.url}/{self.cut}" if self.cut else self.store.url
        try:
            with reading(self.cut_file, f"there is none in {where}; this is not the folder of the cut"):
                return self.store.read(self.cut_file, limit)
        except Incomplete:
            if not is_named:
                self.store.entries(self.folder)  # raises NotFound when the folder itself is not there
            raise


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The folders of a run, which is the place of ``store``."""

    store: Store

    def checkpoint(self, name: str, cut: str | None = None) -> CheckpointLayout:
        """The files of the checkpoint in the folder ``name``."""
        return CheckpointLayout(self.store.at(name), cut)

    @property
    def lives(self) -> Store:
        """The folder of lives."""
        return self.store.at(LIVES_FOLDER)

    def life_file(self, number: int) -> str:
        """The path of one life's file."""
        return f"{LIVES_FOLDER}/{life_file_name(number)}"

    def read_life_file(self, number: int, limit: int) -> bytes:
        """The bytes of one life's file. Raises :class:`Incomplete`, :class:`Damaged`, :class:`StoreError`."""
        file = self.life_file(number)
        with reading(file, "it is missing"):
            return self.store.read(file, limit)

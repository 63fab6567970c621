"""One opened participant of a checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from ckptfmt._display import NotebookDisplay
from ckptfmt._errors import BadCheckpoint, Damaged, Incomplete, NotFound, wrong_type
from ckptfmt._identity import EpisodeId, rollouts_of
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.index_rows import Rows
from ckptfmt._model.layout import CheckpointLayout, ParticipantLayout
from ckptfmt._model.manifest import Manifest, check_manifest_is_for, parse_manifest
from ckptfmt._model.names import MANIFEST_FILE, check_participant_name
from ckptfmt._read.columns import Columns, RecordSource
from ckptfmt._read.index_reader import RowFinder, read_index
from ckptfmt._read.report import Problem
from ckptfmt._read.segment_reader import Row, read_rows
from ckptfmt._read.stored_record import Place, StoredRecord, place_of
from ckptfmt._text import count_text, printable
from ckptfmt.stores import Url, choose_store

Key: TypeAlias = str | EpisodeId
"""An episode: its capture key, or its :class:`ckptfmt.EpisodeId`."""


def open_participant(
    directory_url: Url, name: str, *, digest: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> ParticipantCheckpoint:
    """Open one participant of a cut without reading ``checkpoint.json``.

    The manifest of the participant is read and checked now.

    Args:
        directory_url: The folder that holds the folders of the participants.
        name: The participant name.
        digest: The inner digest that the manifest must have, as ``checkpoint.json`` states it. None: any.
        limits: Limits for reading files that others wrote.

    Returns:
        The participant.

    Raises:
        NotFound: There is no such participant.
        Incomplete: It has no manifest.
        Damaged: The manifest was changed after writing, or does not have the digest.
        Unsupported: It needs another version of ckptfmt.
        InvalidId: ``name`` is not a valid participant name.
        TypeError: ``digest`` is neither a str nor None.
        StoreError: The store failed.
    """
    check_participant_name(name)
    if digest is not None and not isinstance(digest, str):
        raise wrong_type("digest", "a str or None", digest)
    layout = CheckpointLayout(choose_store(directory_url)).participant(name)
    return load_participant(layout, name, digest=digest, limits=limits)


def load_participant(
    layout: ParticipantLayout, name: str, *, digest: str | None, limits: Limits
) -> ParticipantCheckpoint:
    """Like :func:`open_participant`, for a layout and a valid name."""
    file = layout.manifest_file
    missing = f"there is no manifest: participant {name} did not commit, or its files were not all copied"
    try:
        data = layout.read(MANIFEST_FILE, limits.manifest_bytes, missing)
    except Incomplete as error:
        if digest is None and not layout.exists():
            raise NotFound(f"{layout.store.url}: there is no participant {name!a}") from error
        raise
    manifest = parse_manifest(data, file, digest=digest)
    check_manifest_is_for(manifest, name, file)
    return ParticipantCheckpoint(layout, manifest, limits)


class ParticipantCheckpoint(Columns, NotebookDisplay):
    """One opened participant.

    Iterating reads and verifies all records, in the order written. A pickle holds the store and the manifest,
    and no records. Another process can use it if it reaches the store.

    Attributes:
        manifest: The manifest of the participant.

    Example:
        ::

            part = ckptfmt.open("run/step-1200")["agent-0"]
            for record in part:
                print(record.episode, record.boundary, record.payload)
            print(part["17-0"].payload)
    """

    def __init__(self, layout: ParticipantLayout, manifest: Manifest, limits: Limits) -> None:
        self.manifest = manifest
        self._layout = layout
        self._limits = limits
        self._row_finder = RowFinder(layout, manifest, limits)

    @property
    def name(self) -> str:
        """The participant name."""
        return self.manifest.participant

    @property
    def kind(self) -> str:
        """The kind of the participant, such as ``agent``."""
        return self.manifest.kind

    @property
    def digest(self) -> str:
        """The inner digest of ``manifest.json``."""
        return self.manifest.digest

    @property
    def episodes(self) -> tuple[str, ...]:
        """The capture keys, in the order written: from the index, without reading records."""
        return tuple(self.index.episode)

    @cached_property
    def index(self) -> Rows:
        """The whole index, in the order written, read on the first access and checked against the manifest.

        Raises:
            BadCheckpoint: The index is damaged or missing.
            StoreError: The store failed.
        """
        return read_index(self._layout, self.manifest, self._limits)

    def _find(self, key: str) -> Place | None:
        """The place of one episode's record. Reads only the head and one block of the index."""
        found = self._row_finder.find(key)
        return None if found is None else place_of(*found, self.manifest, self._layout)

    def __len__(self) -> int:
        return self.manifest.records

    def __iter__(self) -> Iterator[StoredRecord]:
        return self.read()

    def __contains__(self, key: object) -> bool:
        return self._find(str(key)) is not None

    def __getitem__(self, key: Key) -> StoredRecord:
        """The record of one episode.

        The access reads one block of the index and one range of a segment, and checks both.

        Args:
            key: The episode.

        Returns:
            The record.

        Raises:
            NotFound: The participant has no such record (also a KeyError).
            InvalidId: ``key`` is not a valid capture key.
            BadCheckpoint: The record or its row of the index is damaged or missing.
            StoreError: The store failed.
        """
        return StoredRecord(self._place(key).fetch(self._limits).line)

    def _place(self, key: Key) -> Place:
        capture_key = as_capture_key(key)
        place = self._find(capture_key)
        if place is None:
            raise NotFound(f"participant {self.name} has no record of episode {capture_key}")
        return place

    def read(self, scope: Iterable[Key] | None = None) -> Iterator[StoredRecord]:
        """Read records, and verify the whole participant at the same time.

        Damage is raised at the latest after the last record, so records can be trusted only once the
        iterator has ended.

        Args:
            scope: The episodes to return; None: all. Episodes without a record are ignored.

        Returns:
            An iterator over the records, in the order written.

        Raises:
            InvalidId: ``scope`` holds an invalid capture key.
            TypeError: ``scope`` is not an iterable of keys.
            BadCheckpoint: The participant is damaged, or files are missing.
            StoreError: The store failed.
        """
        keys = None if scope is None else frozenset(map(as_capture_key, _check_is_several("scope", scope)))
        return (
            StoredRecord(checked.line)
            for row, checked in self._rows()
            if keys is None or self.index.episode[row] in keys
        )

    def restore(self, rollouts: Collection[str], memory_budget: int) -> list[StoredRecord]:
        """Read the records of these rollouts at any attempt, and verify the whole participant in one pass.

        Records hold their payloads until these reach ``memory_budget`` bytes. Later records hold only their
        place, and read and check their bytes again on each access to the payload.

        Args:
            rollouts: The rollout ids. Rollouts without a record are ignored.
            memory_budget: The most bytes of payloads to hold in memory.

        Returns:
            The records, in the order written.

        Raises:
            TypeError: ``rollouts`` is not an iterable of ids.
            BadCheckpoint: The participant is damaged, or files are missing.
            StoreError: The store failed.
        """
        wanted = frozenset(_check_is_several("rollouts", rollouts))
        records: list[StoredRecord] = []
        kept = 0
        rollouts_of_rows = rollouts_of(self.index.episode)
        for row, checked in self._rows():
            if rollouts_of_rows[row] not in wanted:
                continue
            line = checked.line
            size = line.payload.size + len(line.payload.patch_data)
            if kept + size <= memory_budget:
                kept += size
                records.append(StoredRecord(line))
            else:
                place = place_of(self.index, row, self.manifest, self._layout)
                records.append(StoredRecord(line, place))
        return records

    def line(self, key: Key) -> bytes:
        """The stored line of one episode.

        Args:
            key: The episode.

        Returns:
            The line, line feed included.

        Raises:
            NotFound: The participant has no such record (also a KeyError).
            InvalidId: ``key`` is not a valid capture key.
            BadCheckpoint: The record or its row of the index is damaged or missing.
            StoreError: The store failed.
        """
        return self._place(key).fetch(self._limits).data

    def lines(self) -> Iterator[bytes]:
        """Read all stored lines, and verify the whole participant at the same time, like :meth:`read`.

        Returns:
            An iterator over the lines, in the order written, line feeds included.

        Raises:
            BadCheckpoint: The participant is damaged, or files are missing.
            StoreError: The store failed.
        """
        return (row.checked.data for row in self._rows())

    def _rows(self) -> Iterator[Row]:
        return read_rows(self._layout, self.manifest, self.index, _raise, self._limits)

    def _record_sources(self) -> Iterable[RecordSource]:
        return (self,)

    def verify(self) -> list[Problem]:
        """Read every byte, decode every payload, and collect all problems.

        Returns:
            The problems; empty when every byte is what was written. Damage is never raised.

        Raises:
            StoreError: The store failed.
        """
        problems: list[Problem] = []

        def note(error: BadCheckpoint) -> None:
            problems.append(Problem.of(error, self._layout.manifest_file))

        self.__dict__.pop("index", None)  # the index is read again, although it may be cached
        try:
            index = self.index
        except BadCheckpoint as error:
            return [Problem.of(error, self._layout.file(self.manifest.index))]
        for row, checked in read_rows(self._layout, self.manifest, index, note, self._limits):
            line = checked.line
            try:
                line.payload.check()
            except Damaged as error:
                file = self._layout.file(self.manifest.segments[index.segment[row]].file)
                note(Damaged(f"{file}: episode {line.episode}: {error}", file=file))
        return problems

    def __reduce__(self) -> tuple[object, ...]:
        return ParticipantCheckpoint, (self._layout, self.manifest, self._limits)

    def __repr__(self) -> str:
        return (
            f"<ParticipantCheckpoint {self.name} ({printable(self.kind)}): "
            f"{count_text(len(self), 'record')}, {count_text(self.manifest.bytes, 'byte')}>"
        )


def as_capture_key(key: Key) -> str:
    """``key`` as a capture key. Raises :class:`InvalidId` when it is not a valid one."""
    return key.capture_key if isinstance(key, EpisodeId) else EpisodeId.from_capture_key(key).capture_key


def _check_is_several(argument: str, keys: Iterable[Key]) -> Iterable[Key]:
    """Refuse a single key: a string is an iterable of strings, so each character would be taken as a key."""
    if isinstance(keys, str | bytes | EpisodeId) or not isinstance(keys, Iterable):
        raise wrong_type(argument, "several keys, such as a list of them", keys)
    return keys


def _raise(error: BadCheckpoint) -> None:
    raise error

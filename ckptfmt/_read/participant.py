"""One participant of a checkpoint, as a person or a server holds it."""

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
from ckptfmt._read.index_reader import Lookup, read_index
from ckptfmt._read.report import Problem
from ckptfmt._read.segment_reader import Row, read_rows
from ckptfmt._read.stored_record import Place, StoredRecord, place_of
from ckptfmt._text import count_text, printable
from ckptfmt.stores import Url, choose_store

Key: TypeAlias = str | EpisodeId
"""An episode: its capture key, or its id."""


def open_participant(
    directory_url: Url, name: str, *, digest: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> ParticipantCheckpoint:
    """Open one participant of a cut, without ``checkpoint.json``. Its manifest is read and checked now.

    Args:
        directory_url: The folder that holds the participants' folders.
        name: The participant.
        digest: The inner digest that its manifest must have, as ``checkpoint.json`` names it.
        limits: The most that reading may cost.

    Returns:
        The participant.

    Raises:
        NotFound: There is no such participant.
        Incomplete: It has no manifest.
        Damaged: The manifest is not what was written.
        Unsupported: It needs another version of ckptfmt.
        InvalidId: ``name`` names no participant.
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
    """Like :func:`open_participant`."""
    file = layout.manifest_file
    missing = f"there is no manifest: participant {name} did not commit, or was not copied whole"
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
    """The records of one participant. Iterating reads and verifies all of them, in the order written.

    It pickles, for another process that reaches the store: its manifest goes along, and no record.

    Attributes:
        manifest: What the participant published.
    """

    def __init__(self, layout: ParticipantLayout, manifest: Manifest, limits: Limits) -> None:
        self.manifest = manifest
        self._layout = layout
        self._limits = limits
        self._lookup = Lookup(layout, manifest, limits)

    @property
    def name(self) -> str:
        return self.manifest.participant

    @property
    def kind(self) -> str:
        return self.manifest.kind

    @property
    def digest(self) -> str:
        """Inner digest of ``manifest.json``."""
        return self.manifest.digest

    @property
    def episodes(self) -> tuple[str, ...]:
        """The capture keys, in the order written (from the index: no record is read)."""
        return tuple(self.index.episode)

    @cached_property
    def index(self) -> Rows:
        """The whole index, in the order written, checked against the manifest.

        Raises :class:`Damaged`, :class:`StoreError`.
        """
        return read_index(self._layout, self.manifest, self._limits)

    def _find(self, key: str) -> Place | None:
        """The place of one episode's record: of the index, only its head and one block are read."""
        found = self._lookup.find(key)
        return None if found is None else place_of(*found, self.manifest, self._layout)

    def __len__(self) -> int:
        return self.manifest.records

    def __iter__(self) -> Iterator[StoredRecord]:
        return self.read()

    def __contains__(self, key: object) -> bool:
        return self._find(str(key)) is not None

    def __getitem__(self, key: Key) -> StoredRecord:
        """The record of one episode: a block of the index and one range read, all of it checked.

        Raises :class:`NotFound` (also a KeyError), :class:`InvalidId`, :class:`Damaged`, :class:`StoreError`.
        """
        return StoredRecord(self._place(key).fetch(self._limits).line)

    def _place(self, key: Key) -> Place:
        capture_key = as_capture_key(key)
        place = self._find(capture_key)
        if place is None:
            raise NotFound(f"participant {self.name} has no record of episode {capture_key}")
        return place

    def read(self, scope: Iterable[Key] | None = None) -> Iterator[StoredRecord]:
        """The records in ``scope`` (None: all), in the order written, while the whole participant is
        verified.

        What is in scope and not here is left out. Raises :class:`Damaged` at the latest when the last
        record has been read, so records are trusted only when the iterator ended; :class:`InvalidId` for
        a key in scope.
        """
        keys = None if scope is None else frozenset(map(as_capture_key, _listed("scope", scope)))
        return (
            StoredRecord(checked.line)
            for row, checked in self._rows()
            if keys is None or self.index.episode[row] in keys
        )

    def restore(self, rollouts: Collection[str], memory_budget: int) -> list[StoredRecord]:
        """The records of these rollouts, whatever their attempt; the whole participant is verified in one
        pass.

        Payloads are kept until they fill ``memory_budget`` bytes; the records after that keep only their
        place and read it again, checked, each time their payload is asked for. Raises like :meth:`read`.
        """
        wanted = frozenset(_listed("rollouts", rollouts))
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
        """The stored line of one episode, with its line feed. Raises like ``[key]``."""
        return self._place(key).fetch(self._limits).data

    def lines(self) -> Iterator[bytes]:
        """Every stored line, in the order written, verified like :meth:`read`."""
        return (row.checked.data for row in self._rows())

    def _rows(self) -> Iterator[Row]:
        return read_rows(self._layout, self.manifest, self.index, _raise, self._limits)

    def _record_sources(self) -> Iterable[RecordSource]:
        return (self,)

    def verify(self) -> list[Problem]:
        """Everything that is wrong with this participant: every byte is read, every payload decoded.

        Never raises for damage; raises :class:`StoreError` when the store cannot be read.
        """
        problems: list[Problem] = []

        def note(error: BadCheckpoint) -> None:
            problems.append(Problem.of(error, self._layout.manifest_file))

        self.__dict__.pop("index", None)  # every byte is read now, whatever was read before
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
    """``key`` as a capture key. Raises :class:`InvalidId` when it names no rollout and attempt."""
    return key.capture_key if isinstance(key, EpisodeId) else EpisodeId.from_capture_key(key).capture_key


def _listed(argument: str, keys: Iterable[Key]) -> Iterable[Key]:
    """A string is an iterable of strings too: taken apart, each character would be a key."""
    if isinstance(keys, str | bytes | EpisodeId) or not isinstance(keys, Iterable):
        raise wrong_type(argument, "several keys, such as a list of them", keys)
    return keys


def _raise(error: BadCheckpoint) -> None:
    raise error

"""Opening a checkpoint, a cut, or a folder that only a writer wrote to."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence

from ckptfmt._errors import BadCheckpoint, Conflict, Incomplete, NotFound
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.checkpoint_file import load_checkpoint_body
from ckptfmt._model.cut_file import load_cut
from ckptfmt._model.layout import CheckpointLayout
from ckptfmt._model.manifest import parse_manifest
from ckptfmt._model.names import (
    CHECKPOINT_FILE,
    CUT_FILE,
    MANIFEST_FILE,
    holds_records,
    is_participant_name,
)
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.listed import Listed
from ckptfmt.stores import Entry, Store, Url, choose_store


def open_checkpoint(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> Checkpoint:
    """Open a checkpoint, one cut of it, or a folder that only :func:`ckptfmt.create` wrote to.

    ``checkpoint.json`` and ``cut.json`` are read and checked now: two reads, however many other files the
    folder holds. The manifest of a participant is read on the first access to the participant.

    Args:
        url: The folder of the checkpoint.
        limits: Limits for reading files that others wrote.

    Returns:
        The checkpoint.

    Raises:
        NotFound: There is no checkpoint.
        Incomplete: The checkpoint was not completed.
        Damaged: ``checkpoint.json`` or ``cut.json`` was changed after writing.
        Unsupported: The checkpoint needs another version of ckptfmt.
        StoreError: The store failed.

    Example:
        ::

            checkpoint = ckptfmt.open("run/step-1200")
            print(checkpoint["agent-0"]["17-0"].payload)
    """
    checkpoint = find_checkpoint(choose_store(url), limits)
    checkpoint.check_cut()
    return checkpoint


def find_checkpoint(store: Store, limits: Limits) -> Checkpoint:
    """Like :func:`open_checkpoint`, but does not read the ``cut.json`` that ``checkpoint.json`` names.

    Costs one read for a folder with ``checkpoint.json``, otherwise a second read and a walk over the folder.
    """
    layout = CheckpointLayout(store)
    try:
        body = load_checkpoint_body(layout, limits)
    except Incomplete:
        return _open_without_checkpoint_file(store, limits)
    return Checkpoint(CheckpointLayout(store, body.cut.name if body.cut else None), limits, body=body)


def _open_without_checkpoint_file(store: Store, limits: Limits) -> Checkpoint:
    layout = CheckpointLayout(store)
    try:
        cut = load_cut(layout)
    except Incomplete:
        cut = None
    entries = list(_walk_with_links(store, ""))
    if cut is not None:
        return Checkpoint(layout, limits, cut=cut, names=_find_participants(store, entries))
    if any(_is_in_a_child(entry, CUT_FILE) for entry in entries):
        raise Incomplete(
            f"{CHECKPOINT_FILE}: there is none in {store.url}, only cuts: the checkpoint was not completed; "
            "to see what a cut holds, open the folder of the cut",
            file=CHECKPOINT_FILE,
        )
    names = _find_participants(store, entries)
    if not names:
        raise _not_a_checkpoint(store, entries)
    return Checkpoint(layout, limits, names=names)


def _walk_with_links(store: Store, folder: str) -> Iterator[Entry]:
    """All entries, including those behind links to folders that may be participants."""
    # A cycle of links ends where the path is too long for a participant name.
    for entry in store.walk(folder):
        yield entry
        if entry.is_link and entry.is_folder and is_participant_name(entry.path):
            yield from _walk_with_links(store, entry.path)


def _is_in_a_child(entry: Entry, name: str) -> bool:
    return entry.name == name and entry.path.count("/") == 1


def _find_participants(store: Store, entries: Sequence[Entry]) -> tuple[str, ...]:
    """The names of the participants that committed in a folder, found without ``checkpoint.json``."""
    nested = [_folder_of(each) for each in entries if each.name in (CHECKPOINT_FILE, CUT_FILE)]
    found = []
    for entry in entries:
        folder = _folder_of(entry)
        if entry.name != MANIFEST_FILE or not is_participant_name(folder):
            continue
        if any(other and f"{folder}/".startswith(f"{other}/") for other in nested):
            continue  # it belongs to the checkpoint or cut in that folder
        if "/" not in folder or not _belongs_to_nested_folder(store, folder):
            found.append(folder)
    return tuple(sorted(found, key=lambda name: name.split("/")))


def _folder_of(entry: Entry) -> str:
    return entry.path.rpartition("/")[0]


def _may_hold_records(folder: str) -> bool:
    return not folder or ("/" not in folder and is_participant_name(folder))


def _belongs_to_nested_folder(store: Store, folder: str) -> bool:
    """Whether the manifest in ``folder`` belongs to a participant of a folder below the opened one."""
    file = f"{folder}/{MANIFEST_FILE}"
    try:
        data = CheckpointLayout(store).participant(folder).read(MANIFEST_FILE, DEFAULT_LIMITS.manifest_bytes)
        manifest = parse_manifest(data, file)
    except BadCheckpoint:
        return False  # reported when the participant is opened
    return folder.endswith(f"/{manifest.participant}")


def _not_a_checkpoint(store: Store, entries: Sequence[Entry]) -> NotFound | Incomplete:
    if any(entry.path == MANIFEST_FILE for entry in entries):
        return NotFound(f"{store.url}: this is the folder of one participant; open the folder above it")
    if any(_is_in_a_child(entry, CHECKPOINT_FILE) for entry in entries):
        return NotFound(f"{store.url}: this is a folder that holds checkpoints; open one of them")
    if any(holds_records(entry.name) and _may_hold_records(_folder_of(entry)) for entry in entries):
        return Incomplete(
            f"{MANIFEST_FILE}: there is none in {store.url}, only records: nothing was committed",
            file=MANIFEST_FILE,
        )
    return NotFound(f"{store.url}: there is no checkpoint")


def _reopen(
    store: Store, identity: str | None, limits: Limits, passed_over: tuple[Listed, ...]
) -> Checkpoint:
    checkpoint = open_checkpoint(store, limits=limits)
    if checkpoint.identity != identity:
        raise Conflict(f"{store.url}: the folder holds another checkpoint than the one that was pickled")
    checkpoint.passed_over = passed_over
    return checkpoint


def _reduce(checkpoint: Checkpoint) -> tuple[object, ...]:
    return _reopen, (checkpoint.store, checkpoint.identity, checkpoint.limits, checkpoint.passed_over)


# Unpickling opens the checkpoint again. Registered here: the module of the class cannot import this one.
copyreg.pickle(Checkpoint, _reduce)  # type: ignore[arg-type]  # the stubs want a tuple of another shape

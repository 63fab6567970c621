"""Opening what a URL names: a checkpoint, a cut, or a folder that a writer alone wrote."""

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
    """Open a checkpoint, one cut of it, or a folder that :func:`ckptfmt.create` alone wrote.

    ``checkpoint.json`` and ``cut.json`` are read and checked now (two reads, whatever lies beside them),
    manifests when a participant is asked for.

    Args:
        url: The folder.
        limits: The most that reading may cost.

    Returns:
        The checkpoint.

    Raises:
        NotFound: There is no checkpoint.
        Incomplete: The checkpoint was not completed.
        Damaged: What was read is not what was written.
        Unsupported: It needs another version of ckptfmt.
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
    """Like :func:`open_checkpoint`, but without reading the cut that ``checkpoint.json`` names.

    One read where there is a ``checkpoint.json``, one more for a cut's own folder; else one walk through the
    folder.
    """
    layout = CheckpointLayout(store)
    try:
        body = load_checkpoint_body(layout, limits)
    except Incomplete:
        return _without_checkpoint_file(store, limits)
    return Checkpoint(CheckpointLayout(store, body.cut.name if body.cut else None), limits, body=body)


def _without_checkpoint_file(store: Store, limits: Limits) -> Checkpoint:
    layout = CheckpointLayout(store)
    try:
        cut = load_cut(layout)
    except Incomplete:
        cut = None
    entries = list(_everything_below(store, ""))
    if cut is not None:
        return Checkpoint(layout, limits, cut=cut, names=_participants_in(store, entries))
    if any(_is_in_a_child(entry, CUT_FILE) for entry in entries):
        raise Incomplete(
            f"{CHECKPOINT_FILE}: there is none in {store.url}, only cuts: the checkpoint was not completed; "
            "open a cut's folder to look at what it holds",
            file=CHECKPOINT_FILE,
        )
    names = _participants_in(store, entries)
    if not names:
        raise _nothing_here(store, entries)
    return Checkpoint(layout, limits, names=names)


def _everything_below(store: Store, folder: str) -> Iterator[Entry]:
    """All entries, also behind links to folders that may be participants."""
    # A circle of links ends where the path is too long for a name of a participant.
    for entry in store.walk(folder):
        yield entry
        if entry.is_link and entry.is_folder and is_participant_name(entry.path):
            yield from _everything_below(store, entry.path)


def _is_in_a_child(entry: Entry, name: str) -> bool:
    return entry.name == name and entry.path.count("/") == 1


def _participants_in(store: Store, entries: Sequence[Entry]) -> tuple[str, ...]:
    """The names of the participants that committed in a folder, found by looking."""
    others = [_folder_of(each) for each in entries if each.name in (CHECKPOINT_FILE, CUT_FILE)]
    found = []
    for entry in entries:
        folder = _folder_of(entry)
        if entry.name != MANIFEST_FILE or not is_participant_name(folder):
            continue
        if any(other and f"{folder}/".startswith(f"{other}/") for other in others):
            continue  # it belongs to that checkpoint or cut
        if "/" not in folder or not _belongs_further_down(store, folder):
            found.append(folder)
    return tuple(sorted(found, key=lambda name: name.split("/")))


def _folder_of(entry: Entry) -> str:
    return entry.path.rpartition("/")[0]


def _may_hold_records(folder: str) -> bool:
    return not folder or ("/" not in folder and is_participant_name(folder))


def _belongs_further_down(store: Store, folder: str) -> bool:
    """Whether the manifest in this folder is that of a participant of some folder between ours and it."""
    file = f"{folder}/{MANIFEST_FILE}"
    try:
        data = CheckpointLayout(store).participant(folder).read(MANIFEST_FILE, DEFAULT_LIMITS.manifest_bytes)
        manifest = parse_manifest(data, file)
    except BadCheckpoint:
        return False  # to be reported when it is opened
    return folder.endswith(f"/{manifest.participant}")


def _nothing_here(store: Store, entries: Sequence[Entry]) -> NotFound | Incomplete:
    if any(entry.path == MANIFEST_FILE for entry in entries):
        return NotFound(f"{store.url}: this is the folder of one participant; open the folder above it")
    if any(_is_in_a_child(entry, CHECKPOINT_FILE) for entry in entries):
        return NotFound(f"{store.url}: this folder holds checkpoints and is none itself; name one of them")
    if any(holds_records(entry.name) and _may_hold_records(_folder_of(entry)) for entry in entries):
        return Incomplete(
            f"{MANIFEST_FILE}: there is none in {store.url}, only records: nothing was committed",
            file=MANIFEST_FILE,
        )
    return NotFound(f"{store.url}: there is no checkpoint")


def _reopened(
    store: Store, identity: str | None, limits: Limits, passed_over: tuple[Listed, ...]
) -> Checkpoint:
    checkpoint = open_checkpoint(store, limits=limits)
    if checkpoint.identity != identity:
        raise Conflict(f"{store.url}: this is not the checkpoint that was pickled; another one was put there")
    checkpoint.passed_over = passed_over
    return checkpoint


def _reduced(checkpoint: Checkpoint) -> tuple[object, ...]:
    return _reopened, (checkpoint.store, checkpoint.identity, checkpoint.limits, checkpoint.passed_over)


# A pickled checkpoint is its place: whoever gets it opens it again. The class itself does not know how.
copyreg.pickle(Checkpoint, _reduced)  # type: ignore[arg-type]  # the stubs want a tuple of another shape

"""Publishing a participant: its index, then its manifest, which is created only once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from ckptfmt._errors import BadCheckpoint, Conflict, NotFound, OutcomeUnknown, StoreError
from ckptfmt._limits import Limits
from ckptfmt._model.index_file import SealedIndex
from ckptfmt._model.manifest import Manifest, parse_manifest, seal_manifest
from ckptfmt._model.names import MANIFEST_FILE
from ckptfmt._text import count_text
from ckptfmt._write.gate import Gate
from ckptfmt.stores import Store


def create_once(store: Store, name: str, data: bytes, limit: int) -> bytes | None:
    """Create a file that must not change once it exists.

    Returns None when the file was created, or exists with the same bytes; otherwise the bytes that it has.
    Raises :class:`OutcomeUnknown` when an existing file cannot be read, and what ``Store.create`` raises.
    """
    try:
        store.create(name, data)
    except Conflict:
        try:
            found = store.read(name, limit)
        except (StoreError, NotFound) as error:
            raise OutcomeUnknown(
                f"{store.url}/{name}: the file exists and cannot be read now ({error}); "
                "nothing was deleted; try again"
            ) from error
        return None if found == data else found
    return None


def publish_participant(
    store: Store, manifest: Manifest, index: SealedIndex, gate: Gate, limits: Limits
) -> Manifest:
    """Publish a participant whose segments are placed in ``store``, its folder: the index, then the manifest.

    Everything is durable when this returns. It can be repeated after any error: it then finds its own
    manifest and makes it durable. Raises :class:`Conflict` when another manifest exists (files that only
    this writer placed are deleted), :class:`Stopped`, and what the store raises.
    """
    sealed = seal_manifest(manifest)
    store.place(index.name, index.pieces, lambda: gate.stopped)
    store.make_durable("")
    with gate.publishing():
        other = create_once(store, MANIFEST_FILE, sealed.data, limits.manifest_bytes)
    if other is not None:
        _clean_up_and_raise_conflict(store, manifest, other)
    store.make_folder_durable("")
    return replace(manifest, digest=sealed.digest)


def _clean_up_and_raise_conflict(store: Store, ours: Manifest, other: bytes) -> None:
    """Delete the files that only this writer placed, and raise Conflict.

    Files that the published manifest names stay: two writers of equal bytes use the same name. A manifest is
    never replaced, so the files that it does not name can be deleted.
    """
    file = f"{store.url}/{MANIFEST_FILE}"
    try:
        published = parse_manifest(other, file)
    except BadCheckpoint as error:
        raise Conflict(
            f"{file}: another manifest exists and cannot be read ({error}); use a new directory"
        ) from error
    for name in ours.files - published.files:
        with suppress(StoreError):  # prune deletes it later; the conflict is the error to report
            store.delete(name)
    raise Conflict(
        f"{file}: another writer published {count_text(published.records, 'record')} of checkpoint "
        f"{published.checkpoint_id} there; its files were not replaced; use a new directory"
    )

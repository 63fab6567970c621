"""Publishing: segments and index, then the manifest, created once and read back when somebody was there
before."""

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
    """Create an object, or find it there with the same bytes: both are success, and the answer is None.

    Other bytes are returned. Raises :class:`OutcomeUnknown` when what is there cannot be read, else what
    ``Store.create`` raises.
    """
    try:
        store.create(name, data)
    except Conflict:
        try:
            found = store.read(name, limit)
        except (StoreError, NotFound) as error:
            raise OutcomeUnknown(
                f"{store.url}/{name}: something is published there and cannot be read now ({error}); "
                "nothing was deleted; try again"
            ) from error
        return None if found == data else found
    return None


def publish_participant(
    store: Store, manifest: Manifest, index: SealedIndex, gate: Gate, limits: Limits
) -> Manifest:
    """Publish a participant whose segments are placed in ``store`` (its folder): the index, then the
        manifest.

    When it returns, everything is durable. It may be called again after any error: it then finds its own
        manifest and makes it durable. Raises :class:`Conflict` when another manifest is there (files of ours
        that it does not name are removed), :class:`Stopped`, and what the store raises.
    """
    sealed = seal_manifest(manifest)
    store.place(index.name, index.pieces, lambda: gate.stopped)
    store.make_durable("")
    with gate.publishing():
        other = create_once(store, MANIFEST_FILE, sealed.data, limits.manifest_bytes)
    if other is not None:
        _give_way(store, manifest, other)
    store.make_folder_durable("")
    return replace(manifest, digest=sealed.digest)


def _give_way(store: Store, ours: Manifest, other: bytes) -> None:
    """We lost: remove what only we placed, and raise Conflict.

    Only what the published manifest does not name: two writers of equal bytes share one name. It is never
        replaced, so what it does not name now is garbage for good.
    """
    file = f"{store.url}/{MANIFEST_FILE}"
    try:
        published = parse_manifest(other, file)
    except BadCheckpoint as error:
        raise Conflict(
            f"another manifest is there already, and it cannot be read ({error}); use a new directory"
        ) from error
    for name in ours.files - published.files:
        with suppress(StoreError):  # prune removes it later; the conflict is what matters here
            store.delete(name)
    raise Conflict(
        f"{file}: another writer published {count_text(published.records, 'record')} of checkpoint "
        f"{published.checkpoint_id} there; nothing of it was replaced; use a new directory"
    )

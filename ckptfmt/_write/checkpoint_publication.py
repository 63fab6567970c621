"""Publishing a checkpoint: creating its ``checkpoint.json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ckptfmt._errors import Conflict, InvalidId, LimitExceeded, wrong_type
from ckptfmt._identity import EpisodeId
from ckptfmt._limits import DEFAULT_LIMITS, FormatLimits, Limits
from ckptfmt._model.checkpoint_file import (
    CheckpointBody,
    CutReference,
    ParticipantReference,
    seal_checkpoint_body,
    sorted_capture_keys,
)
from ckptfmt._model.cut_file import Cut, load_cut
from ckptfmt._model.layout import CheckpointLayout
from ckptfmt._model.names import CHECKPOINT_FILE, check_participant_name
from ckptfmt._read.participant import ParticipantCheckpoint, load_participant
from ckptfmt._values.patches import Exact
from ckptfmt._write.manifest_publication import create_once
from ckptfmt.stores import Store, Url, choose_store


def publish(
    url: Url,
    *,
    participants: Mapping[str, str],
    sequence: int,
    state: Exact = None,
    cut: Cut | str | None = None,
    restarts: Iterable[str | EpisodeId] = (),
    marks: Mapping[str, int] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> str:
    """Complete a checkpoint: create its ``checkpoint.json``.

    Checkpoint id, kinds and episodes are read from the manifests and indexes of the participants. The file
    is durable when this returns. Publishing the same content again is success; other content is never
    replaced.

    Args:
        url: The folder of the checkpoint.
        participants: Participant name to the inner digest of its manifest.
        sequence: The number that orders the checkpoints of a run, from 0 to 2**63 - 1.
        state: The controller's state, any exact value.
        cut: The cut that holds the participants' folders, or the name of its folder. None: the participants'
            folders lie in ``url`` itself.
        restarts: The keys of the episodes that no participant saved.
        marks: Rollout id to the attempt up to which the rollout is retired.
        limits: Limits for the files that are read and for ``checkpoint.json``.

    Returns:
        The inner digest of ``checkpoint.json``.

    Raises:
        Conflict: Another ``checkpoint.json`` exists, or participants, cut and restarts do not belong
            together.
        BadCheckpoint: A file of a participant or of the cut is damaged or missing.
        NotFound: There is no folder of the cut.
        InexactValue: ``state`` is not an exact value.
        InvalidId: A participant name, a cut or a key is invalid.
        LimitExceeded: ``checkpoint.json`` would be larger than ``limits`` allows.
        OutcomeUnknown: The store did not say whether the file was created.
        StoreError: The store failed, or cannot be used.
        TypeError: An argument has the wrong type.
        ValueError: ``sequence`` is out of range, or there is neither a cut nor a participant.

    Example:
        ::

            ckptfmt.publish(
                "run/step-1200", participants={"agent-0": writer.manifest.digest}, sequence=1200, cut=cut
            )
    """
    store = choose_store(url)
    _check_arguments(participants, restarts, marks, sequence)
    loaded_cut = _load_cut(store, cut)
    layout = CheckpointLayout(store, None if loaded_cut is None else loaded_cut.name)
    parts = _load_participants(layout, participants, limits)
    body = CheckpointBody(
        checkpoint_id=_common_checkpoint_id(loaded_cut, parts),
        sequence=sequence,
        cut=None if loaded_cut is None else CutReference(loaded_cut.name, loaded_cut.digest),
        participants={
            name: ParticipantReference(part.kind, part.digest) for name, part in sorted(parts.items())
        },
        episodes=_all_episodes(parts),
        restarts=sorted_capture_keys(restarts),
        marks={
            rollout: EpisodeId(rollout, attempt).attempt for rollout, attempt in sorted((marks or {}).items())
        },
        state=state,
    )
    both = sorted(set(body.episodes).intersection(body.restarts))
    if both:
        raise Conflict(f"episode {both[0]} is a restart and was also saved; it cannot be both")
    sealed = seal_checkpoint_body(body)
    if len(sealed.data) > limits.checkpoint_bytes:
        raise LimitExceeded(
            f"{CHECKPOINT_FILE}: it would have {len(sealed.data)} bytes; "
            f"the limit is {limits.checkpoint_bytes}; make the state smaller"
        )
    other = create_once(store, CHECKPOINT_FILE, sealed.data, limits.checkpoint_bytes)
    if other is not None:
        raise Conflict(
            f"{store.url}/{CHECKPOINT_FILE}: another checkpoint is published there; it was not replaced; "
            "use a new folder"
        )
    store.make_durable("")
    return sealed.digest


def _check_arguments(participants: object, restarts: object, marks: object, sequence: object) -> None:
    if not isinstance(participants, Mapping):
        raise wrong_type("participants", "a mapping, name to digest of the manifest", participants)
    if isinstance(restarts, str | bytes) or not isinstance(restarts, Iterable):
        raise wrong_type("restarts", "several keys, such as a list of them", restarts)
    if marks is not None and not isinstance(marks, Mapping):
        raise wrong_type("marks", "a mapping, rollout id to attempt", marks)
    if type(sequence) is not int or not 0 <= sequence <= FormatLimits.INTEGER:
        raise ValueError(f"a sequence is an int from 0 to {FormatLimits.INTEGER}")


def _load_cut(store: Store, cut: Cut | str | None) -> Cut | None:
    if cut is None:
        return None
    if not isinstance(cut, Cut | str):
        raise wrong_type("cut", "a Cut, or the name of its folder", cut)
    name, digest = (cut, None) if isinstance(cut, str) else (cut.name, cut.digest)
    if "/" in check_participant_name(name):
        raise InvalidId(f"cut {name!r}: the folder of a cut must lie directly in the checkpoint's folder")
    return load_cut(CheckpointLayout(store, name), digest=digest)


def _load_participants(
    layout: CheckpointLayout, participants: Mapping[str, str], limits: Limits
) -> dict[str, ParticipantCheckpoint]:
    if len({check_participant_name(name).lower() for name in participants}) != len(participants):
        raise InvalidId("two participant names differ only in case; rename one of them")
    for name, digest in participants.items():
        if type(digest) is not str:
            raise wrong_type(f"participants[{name!r}]", "the digest of its manifest, a str", digest)
    return {
        name: load_participant(layout.participant(name), name, digest=digest, limits=limits)
        for name, digest in participants.items()
    }


def _common_checkpoint_id(cut: Cut | None, parts: Mapping[str, ParticipantCheckpoint]) -> str:
    ids = {part.manifest.checkpoint_id for part in parts.values()}
    if cut is not None:
        ids.add(cut.checkpoint_id)
    if len(ids) > 1:
        raise Conflict(f"the participants were written for different checkpoints: {', '.join(sorted(ids))}")
    if not ids:
        raise ValueError("a checkpoint without a cut needs at least one participant")
    return ids.pop()


def _all_episodes(parts: Mapping[str, ParticipantCheckpoint]) -> tuple[str, ...]:
    keys = sorted_capture_keys(key for part in parts.values() for key in part.episodes)
    attempts: dict[str, str] = {}
    for key in keys:
        other = attempts.setdefault(EpisodeId.from_capture_key(key).rollout_id, key)
        if other != key:
            raise Conflict(
                f"one participant saved episode {other} and another one {key}: they are not of one cut"
            )
    return keys

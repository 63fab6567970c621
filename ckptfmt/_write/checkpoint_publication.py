"""Publishing ``checkpoint.json``, last of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ckptfmt._errors import Conflict, InvalidId, LimitExceeded, wrong_type
from ckptfmt._identity import EpisodeId
from ckptfmt._limits import DEFAULT_LIMITS, FormatLimits, Limits
from ckptfmt._model.checkpoint_file import (
    CheckpointBody,
    CutReference,
    ParticipantReference,
    checked_keys,
    seal_checkpoint_body,
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
    """Complete the checkpoint in the folder ``url``: create its ``checkpoint.json``; returns the inner
    digest.

    ``participants`` is name → digest of the manifest that it must have; checkpoint id, kinds and episodes
    are read from there. ``sequence`` orders checkpoints. ``cut`` (or the name of its folder) holds the
    participants' folders; None: they lie in ``url`` itself. ``restarts`` are the keys that nobody saved,
    ``marks`` is rollout → attempt.

    Create-only: the same content a second time is success. Durable when it returns. Raises
        :class:`Conflict` (other content is there; or the parts do not belong to one cut),
        :class:`Incomplete`, :class:`Damaged`, :class:`InexactValue` (the state), :class:`InvalidId`,
        :class:`LimitExceeded`, :class:`OutcomeUnknown`, and what the store raises.
    """
    store = choose_store(url)
    if not isinstance(participants, Mapping):
        raise wrong_type("participants", "a mapping, name to digest of the manifest", participants)
    if isinstance(restarts, str | bytes) or not isinstance(restarts, Iterable):
        raise wrong_type("restarts", "several keys, such as a list of them", restarts)
    if marks is not None and not isinstance(marks, Mapping):
        raise wrong_type("marks", "a mapping, rollout id to attempt", marks)
    if type(sequence) is not int or not 0 <= sequence <= FormatLimits.INTEGER:
        raise ValueError(f"a sequence is an int from 0 to {FormatLimits.INTEGER}")
    the_cut = _load_cut(store, cut)
    layout = CheckpointLayout(store, None if the_cut is None else the_cut.name)
    parts = _load_participants(layout, participants, limits)
    body = CheckpointBody(
        checkpoint_id=_one_id(the_cut, parts),
        sequence=sequence,
        cut=None if the_cut is None else CutReference(the_cut.name, the_cut.digest),
        participants={
            name: ParticipantReference(part.kind, part.digest) for name, part in sorted(parts.items())
        },
        episodes=_all_episodes(parts),
        restarts=checked_keys(restarts),
        marks={
            rollout: EpisodeId(rollout, attempt).attempt for rollout, attempt in sorted((marks or {}).items())
        },
        state=state,
    )
    both = sorted(set(body.episodes).intersection(body.restarts))
    if both:
        raise Conflict(f"episode {both[0]} is a restart and was saved too; it cannot be both")
    sealed = seal_checkpoint_body(body)
    if len(sealed.data) > limits.checkpoint_bytes:
        raise LimitExceeded(
            f"{CHECKPOINT_FILE}: it would have {len(sealed.data)} bytes; "
            f"at most {limits.checkpoint_bytes} can be read; keep large things out of the state"
        )
    other = create_once(store, CHECKPOINT_FILE, sealed.data, limits.checkpoint_bytes)
    if other is not None:
        raise Conflict(
            f"{store.url}/{CHECKPOINT_FILE}: another one is published there; it was not replaced; "
            "use a new folder"
        )
    store.make_durable("")
    return sealed.digest


def _load_cut(store: Store, cut: Cut | str | None) -> Cut | None:
    if cut is None:
        return None
    if not isinstance(cut, Cut | str):
        raise wrong_type("cut", "a Cut, or the name of its folder", cut)
    name, digest = (cut, None) if isinstance(cut, str) else (cut.name, cut.digest)
    if "/" in check_participant_name(name):
        raise InvalidId(f"the folder of a cut lies directly in the checkpoint's: {name!r} does not")
    return load_cut(CheckpointLayout(store, name), digest=digest)


def _load_participants(
    layout: CheckpointLayout, participants: Mapping[str, str], limits: Limits
) -> dict[str, ParticipantCheckpoint]:
    if len({check_participant_name(name).lower() for name in participants}) != len(participants):
        raise InvalidId("two participants' names differ only in case; rename one of them")
    for name, digest in participants.items():
        if type(digest) is not str:
            raise wrong_type(f"participants[{name!r}]", "the digest of its manifest, a str", digest)
    return {
        name: load_participant(layout.participant(name), name, digest=digest, limits=limits)
        for name, digest in participants.items()
    }


def _one_id(cut: Cut | None, parts: Mapping[str, ParticipantCheckpoint]) -> str:
    ids = {part.manifest.checkpoint_id for part in parts.values()}
    if cut is not None:
        ids.add(cut.checkpoint_id)
    if len(ids) > 1:
        raise Conflict(f"the participants were written for different checkpoints: {', '.join(sorted(ids))}")
    if not ids:
        raise ValueError("a checkpoint without a cut needs at least one participant")
    return ids.pop()


def _all_episodes(parts: Mapping[str, ParticipantCheckpoint]) -> tuple[str, ...]:
    keys = checked_keys(key for part in parts.values() for key in part.episodes)
    attempts: dict[str, str] = {}
    for key in keys:
        other = attempts.setdefault(EpisodeId.from_capture_key(key).rollout_id, key)
        if other != key:
            raise Conflict(
                f"one participant saved episode {other} and another {key}: they are not of one cut"
            )
    return keys

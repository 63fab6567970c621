"""``checkpoint.json``: a checkpoint is complete when this file exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import orjson

from ckptfmt._errors import Damaged, InvalidId
from ckptfmt._identity import EpisodeId
from ckptfmt._limits import DEFAULT_LIMITS, Limits
from ckptfmt._model.fields import FORMAT, Fields
from ckptfmt._model.layout import CheckpointLayout
from ckptfmt._model.names import CHECKPOINT_FILE, is_participant_name
from ckptfmt._model.self_checked import Sealed, seal, unseal
from ckptfmt._text import count_text, printable
from ckptfmt._values.json_payload import JsonPayload, apply_patches, check_depth
from ckptfmt._values.patches import Exact
from ckptfmt._values.value_text import kind_text
from ckptfmt.stores import Url, choose_store


@dataclass(frozen=True, slots=True)
class CutReference:
    """A reference to the cut that the checkpoint consists of.

    Attributes:
        name: The name of the cut's folder.
        digest: The inner digest of its ``cut.json``.
    """

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class ParticipantReference:
    """A reference to one participant of a checkpoint.

    Attributes:
        kind: The participant's kind, such as ``agent``.
        manifest: The inner digest of its ``manifest.json``.
    """

    kind: str
    manifest: str


@dataclass(frozen=True, slots=True)
class CheckpointBody:
    """The content of ``checkpoint.json``.

    Attributes:
        checkpoint_id: The id of the checkpoint.
        sequence: The number that orders the checkpoints of a run.
        cut: The cut; None when the participants' folders are in the same folder as ``checkpoint.json``.
        participants: The participants by name.
        episodes: The sorted capture keys of all episodes that were saved.
        restarts: The sorted capture keys of the episodes that nothing saved and that start over.
        marks: For each retired rollout the highest retired attempt.
        state: The controller's own value.
        digest: The inner digest of the file; empty before the file is written.
    """

    checkpoint_id: str
    sequence: int
    cut: CutReference | None
    participants: Mapping[str, ParticipantReference]
    episodes: tuple[str, ...]
    restarts: tuple[str, ...] = ()
    marks: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    state: Exact = None
    digest: str = ""

    def __repr__(self) -> str:
        return (
            f"<CheckpointBody {printable(self.checkpoint_id)}: sequence {self.sequence}, "
            f"{count_text(len(self.participants), 'participant')}, "
            f"{count_text(len(self.episodes), 'episode')}, {count_text(len(self.restarts), 'restart')}, "
            f"state: {kind_text(self.state)}>"
        )

    def __reduce__(self) -> tuple[object, ...]:  # a read-only view of a dict does not pickle
        values = {name: getattr(self, name) for name in self.__slots__}
        return _restore_pickled, (
            {**values, "participants": dict(self.participants), "marks": dict(self.marks)},
        )


def _restore_pickled(values: dict[str, Any]) -> CheckpointBody:
    read_only = {name: MappingProxyType(values[name]) for name in ("participants", "marks")}
    return CheckpointBody(**{**values, **read_only})


def seal_checkpoint_body(body: CheckpointBody) -> Sealed:
    """The bytes of ``checkpoint.json`` and their digest. Raises :class:`InexactValue` for the state."""
    head = orjson.dumps(
        {
            "format": FORMAT,
            "features": [],
            "checkpoint_id": body.checkpoint_id,
            "sequence": body.sequence,
            "cut": None if body.cut is None else {"name": body.cut.name, "sha256": body.cut.digest},
            "participants": {
                name: {"kind": each.kind, "manifest": each.manifest}
                for name, each in body.participants.items()
            },
            "episodes": list(body.episodes),
            "restarts": list(body.restarts),
            "marks": dict(body.marks),
        }
    )
    state = JsonPayload.of(body.state)
    pieces = [head[:-1], b',"state":', state.data]
    if state.patch_data:
        pieces += [b',"patches":', state.patch_data]
    return seal(b"".join((*pieces, b"}")))


def read_checkpoint(url: Url, *, limits: Limits = DEFAULT_LIMITS) -> CheckpointBody:
    """Read and check ``checkpoint.json`` alone.

    Args:
        url: The checkpoint's folder.
        limits: ``limits.checkpoint_bytes`` bounds the size of the file.

    Returns:
        The content of the file.

    Raises:
        NotFound: The folder does not exist.
        Incomplete: The folder has no ``checkpoint.json``.
        Damaged: The file differs from what was written.
        Unsupported: The file requires another version of ckptfmt.
        StoreError: The store failed.

    Example:
        ::

            body = ckptfmt.read_checkpoint("/data/run/step-1200")
            body.sequence, len(body.episodes)
    """
    return load_checkpoint_body(CheckpointLayout(choose_store(url)), limits)


def load_checkpoint_body(layout: CheckpointLayout, limits: Limits) -> CheckpointBody:
    """Like :func:`read_checkpoint`."""
    return _parse(layout.read_checkpoint_file(limits.checkpoint_bytes))


def _parse(data: bytes) -> CheckpointBody:
    fields, digest = unseal(data, CHECKPOINT_FILE)
    fields.check_format()
    state = fields.value("state")
    try:
        if "patches" in fields:
            state = apply_patches(state, fields.value("patches"))
        else:
            check_depth(state)
    except Damaged as error:
        raise fields.damaged(f"or its patches are damaged ({error})", "state") from None
    participants = {name: _participant(fields, name) for name, _ in fields.object("participants").items()}
    if len({name.lower() for name in participants}) != len(participants):
        raise fields.damaged("has two names that differ only in case", "participants")
    episodes, restarts = _capture_keys(fields, "episodes"), _capture_keys(fields, "restarts")
    if not set(episodes).isdisjoint(restarts):
        raise fields.damaged("names an episode that was saved", "restarts")
    return CheckpointBody(
        checkpoint_id=fields.label("checkpoint_id"),
        sequence=fields.integer("sequence"),
        cut=_cut(fields),
        participants=MappingProxyType(participants),
        episodes=episodes,
        restarts=restarts,
        marks=MappingProxyType(_marks(fields.object("marks"))),
        state=state,
        digest=digest,
    )


def _cut(fields: Fields) -> CutReference | None:
    if fields.value("cut") is None:
        return None
    cut = fields.object("cut")
    name = cut.text("name")
    if not is_participant_name(name) or "/" in name:
        raise cut.damaged("is not the name of a folder", "name")
    return CutReference(name, cut.digest("sha256"))


def _participant(fields: Fields, name: str) -> ParticipantReference:
    if not is_participant_name(name):
        raise fields.damaged(f"has {ascii(name)[:80]}, which is not a participant's name", "participants")
    reference = fields.object("participants").object(name)
    return ParticipantReference(reference.label("kind"), reference.digest("manifest"))


def _capture_keys(fields: Fields, member: str) -> tuple[str, ...]:
    keys = fields.strings(member)
    try:
        for key in keys:
            EpisodeId.from_capture_key(key)
    except InvalidId as error:
        raise fields.damaged(f"has an item that is not a capture key: {error}", member) from None
    if keys != sorted(set(keys)):
        raise fields.damaged("is not sorted, or has a duplicate key", member)
    return tuple(keys)


def _marks(fields: Fields) -> dict[str, int]:
    marks = {}
    for rollout, attempt in fields.items():
        try:
            marks[rollout] = EpisodeId(rollout, attempt).attempt
        except InvalidId as error:
            raise fields.damaged(f"has an invalid member: {error}") from None
    return marks


def sorted_capture_keys(keys: Iterable[str | EpisodeId]) -> tuple[str, ...]:
    """The sorted capture keys of ``keys``, without duplicates. Raises :class:`InvalidId`."""
    return tuple(
        sorted(
            {
                (key if isinstance(key, EpisodeId) else EpisodeId.from_capture_key(key)).capture_key
                for key in keys
            }
        )
    )

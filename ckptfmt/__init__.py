"""Exact, durable checkpoints of rollouts in flight, as files.

A participant streams its records with :func:`create`; :func:`publish` names the participants of a
checkpoint in ``checkpoint.json``; :func:`open` reads any of it back, and ``verify`` checks every byte.
FORMAT.md specifies the bytes.
"""

from __future__ import annotations

from ckptfmt import form as _form  # noqa: F401  # first: it chooses the form that the others import

# isort: split
from ckptfmt.checkpoint import Checkpoint, open_checkpoint
from ckptfmt.checkpointfile import CheckpointBody, CutReference, ParticipantReference, read_checkpoint
from ckptfmt.comparing import Difference
from ckptfmt.completing import publish
from ckptfmt.copying import CopyResult, copy
from ckptfmt.cuts import Cut, create_cut, read_cut
from ckptfmt.decoding import payloads
from ckptfmt.diff import CheckpointDiff, EpisodeDiff, ParticipantDiff, diff
from ckptfmt.directories import check_directory
from ckptfmt.encoding import Record
from ckptfmt.errors import (
    CheckpointError,
    Conflict,
    Damaged,
    Incomplete,
    InexactValue,
    InvalidId,
    LimitExceeded,
    NotFound,
    OutcomeUnknown,
    SnapshotChanged,
    Stopped,
    StoreError,
    Unsupported,
    UnusableDirectory,
)
from ckptfmt.gate import Gate
from ckptfmt.identity import EpisodeId, episode_from_run_body, new_rollout_id
from ckptfmt.leftovers import Leftover
from ckptfmt.limits import Limits
from ckptfmt.listing import LaterCheckpointUnusable, Life, Listed, Listing, latest, list_run
from ckptfmt.lives import start_life
from ckptfmt.manifest import Manifest, Segment
from ckptfmt.participant import ParticipantCheckpoint, open_participant
from ckptfmt.parts import Part, PartWriter, commit, part
from ckptfmt.payload import JsonPayload
from ckptfmt.plain import plain
from ckptfmt.pruning import Kept, Pruned, PruneResult, prune
from ckptfmt.report import Problem, Report
from ckptfmt.stored import StoredRecord
from ckptfmt.verify import verify
from ckptfmt.writer import Writer, create

__version__ = "0.1.0"

# To be used as ckptfmt.open and ckptfmt.list: `from ckptfmt import *` leaves Python's own names alone.
open = open_checkpoint
list = list_run

__all__ = [
    "Checkpoint",
    "CheckpointBody",
    "CheckpointDiff",
    "CheckpointError",
    "Conflict",
    "CopyResult",
    "Cut",
    "CutReference",
    "Damaged",
    "Difference",
    "EpisodeDiff",
    "EpisodeId",
    "Gate",
    "Incomplete",
    "InexactValue",
    "InvalidId",
    "JsonPayload",
    "Kept",
    "LaterCheckpointUnusable",
    "Leftover",
    "Life",
    "LimitExceeded",
    "Limits",
    "Listed",
    "Listing",
    "Manifest",
    "NotFound",
    "OutcomeUnknown",
    "Part",
    "PartWriter",
    "ParticipantCheckpoint",
    "ParticipantDiff",
    "ParticipantReference",
    "Problem",
    "PruneResult",
    "Pruned",
    "Record",
    "Report",
    "Segment",
    "SnapshotChanged",
    "Stopped",
    "StoreError",
    "StoredRecord",
    "Unsupported",
    "UnusableDirectory",
    "Writer",
    "check_directory",
    "commit",
    "copy",
    "create",
    "create_cut",
    "diff",
    "episode_from_run_body",
    "latest",
    "new_rollout_id",
    "open_participant",
    "part",
    "payloads",
    "plain",
    "prune",
    "publish",
    "read_checkpoint",
    "read_cut",
    "start_life",
    "verify",
]

"""Exact, durable checkpoints of rollouts in flight, as files.

A participant streams its records with :func:`create`; :func:`publish` names the participants of a
checkpoint in ``checkpoint.json``; :func:`open` reads any of it back, and ``verify`` checks every byte.
FORMAT.md specifies the bytes.
"""

from __future__ import annotations

from ckptfmt._errors import (
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
from ckptfmt._identity import EpisodeId, episode_from_run_body, new_rollout_id
from ckptfmt._limits import Limits
from ckptfmt._model.checkpoint_file import CheckpointBody, CutReference, ParticipantReference, read_checkpoint
from ckptfmt._model.cut_file import Cut, create_cut, read_cut
from ckptfmt._model.life_file import start_life
from ckptfmt._model.manifest import Manifest, Segment
from ckptfmt._model.record_line import Record
from ckptfmt._read.bulk_decoding import payloads
from ckptfmt._read.checkpoint import Checkpoint, open_checkpoint
from ckptfmt._read.participant import ParticipantCheckpoint, open_participant
from ckptfmt._read.report import Problem, Report
from ckptfmt._read.stored_record import StoredRecord
from ckptfmt._read.verification import verify
from ckptfmt._run.copying import CopyResult, copy
from ckptfmt._run.listing import LaterCheckpointUnusable, Life, Listed, Listing, latest, list_run
from ckptfmt._run.orphans import Leftover
from ckptfmt._run.pruning import Kept, Pruned, PruneResult, prune
from ckptfmt._show.diff import CheckpointDiff, EpisodeDiff, ParticipantDiff, diff
from ckptfmt._values.comparison import Difference
from ckptfmt._values.conversion import plain
from ckptfmt._values.json_payload import JsonPayload
from ckptfmt._write.checkpoint_publication import publish
from ckptfmt._write.directory_check import check_directory
from ckptfmt._write.gate import Gate
from ckptfmt._write.parts import Part, PartWriter, commit, part
from ckptfmt._write.writer import Writer, create

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

"""Exact, durable checkpoints of rollouts in flight, as files.

Participants write their records with :func:`create`. :func:`publish` completes a checkpoint by creating its
``checkpoint.json``, which names the participants. :func:`open` reads a checkpoint, and :func:`verify` checks
every byte of it. FORMAT.md specifies the bytes. :mod:`ckptfmt.stores` has the stores that hold the files, and
:mod:`ckptfmt.testing` has helpers for tests of code that uses ckptfmt.
"""

from __future__ import annotations

from ckptfmt._errors import (
    BadCheckpoint,
    BadInput,
    CheckpointError,
    Conflict,
    Damaged,
    Incomplete,
    InexactValue,
    InvalidId,
    LimitExceeded,
    MissingLibrary,
    NotFound,
    OutcomeUnknown,
    SnapshotChanged,
    Stopped,
    StoreError,
    Unsupported,
    UnsupportedStore,
    UnusableDirectory,
)
from ckptfmt._identity import EpisodeId, episode_from_run_body, new_rollout_id
from ckptfmt._limits import FormatLimits, Limits, Tuning
from ckptfmt._model.checkpoint_file import (
    CheckpointBody,
    CutReference,
    ParticipantReference,
    read_checkpoint,
)
from ckptfmt._model.cut_file import Cut, read_cut
from ckptfmt._model.index_rows import Rows
from ckptfmt._model.layout import CheckpointLayout, ParticipantLayout, RunLayout
from ckptfmt._model.manifest import Manifest, Segment
from ckptfmt._model.names import check_participant_name
from ckptfmt._model.record_line import Record
from ckptfmt._public_names import set_public_module
from ckptfmt._read.bulk_decoding import payloads
from ckptfmt._read.checkpoint import Checkpoint
from ckptfmt._read.listed import Listed
from ckptfmt._read.opening import open_checkpoint
from ckptfmt._read.participant import Key, ParticipantCheckpoint, open_participant
from ckptfmt._read.report import Problem, Report
from ckptfmt._read.stored_record import StoredRecord
from ckptfmt._read.verification import verify
from ckptfmt._run.copying import CopyResult, Progress, copy
from ckptfmt._run.latest import LaterCheckpointUnusable, latest
from ckptfmt._run.listing import Listing, list_run
from ckptfmt._run.lives import Life, start_life
from ckptfmt._run.orphans import Orphan
from ckptfmt._run.pruning import Kept, Pruned, PruneResult, prune
from ckptfmt._show.diff import diff
from ckptfmt._show.differences import CheckpointDiff, EpisodeDiff, ParticipantDiff
from ckptfmt._show.html_report import html_report
from ckptfmt._values.comparison import Difference
from ckptfmt._values.conversion import plain
from ckptfmt._values.json_payload import JsonPayload
from ckptfmt._write.checkpoint_publication import publish
from ckptfmt._write.cuts import create_cut
from ckptfmt._write.directory_check import check_directory
from ckptfmt._write.gate import Gate
from ckptfmt._write.parts import Part, PartWriter, commit, part
from ckptfmt._write.record_writer import Compression
from ckptfmt._write.writer import Writer, create
from ckptfmt.stores import LocalPath, Url

__version__ = "0.1.0"

# To be used as ckptfmt.open and ckptfmt.list: `from ckptfmt import *` leaves Python's own names alone.
open = open_checkpoint
list = list_run

__all__ = [
    "BadCheckpoint",
    "BadInput",
    "Checkpoint",
    "CheckpointBody",
    "CheckpointDiff",
    "CheckpointError",
    "CheckpointLayout",
    "Compression",
    "Conflict",
    "CopyResult",
    "Cut",
    "CutReference",
    "Damaged",
    "Difference",
    "EpisodeDiff",
    "EpisodeId",
    "FormatLimits",
    "Gate",
    "Incomplete",
    "InexactValue",
    "InvalidId",
    "JsonPayload",
    "Kept",
    "Key",
    "LaterCheckpointUnusable",
    "Life",
    "LimitExceeded",
    "Limits",
    "Listed",
    "Listing",
    "LocalPath",
    "Manifest",
    "MissingLibrary",
    "NotFound",
    "Orphan",
    "OutcomeUnknown",
    "Part",
    "PartWriter",
    "ParticipantCheckpoint",
    "ParticipantDiff",
    "ParticipantLayout",
    "ParticipantReference",
    "Problem",
    "Progress",
    "PruneResult",
    "Pruned",
    "Record",
    "Report",
    "Rows",
    "RunLayout",
    "Segment",
    "SnapshotChanged",
    "Stopped",
    "StoreError",
    "StoredRecord",
    "Tuning",
    "Unsupported",
    "UnsupportedStore",
    "UnusableDirectory",
    "Url",
    "Writer",
    "check_directory",
    "check_participant_name",
    "commit",
    "copy",
    "create",
    "create_cut",
    "diff",
    "episode_from_run_body",
    "html_report",
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

set_public_module(globals(), also=("open", "list"))

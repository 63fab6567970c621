"""The control plane of checkpoints of rollouts in flight: many live servers, one consistent cut.

A server takes part with a `Participant` behind a `ControlPlane`; a training controller saves and
restores all of them with a `Coordination`. The format of what is saved is the package `ckptfmt`.
"""

from ckptctl.coordination import Coordination
from ckptctl.cut import CommitResult, PrepareResult, RestoreResult
from ckptctl.episode import Episode
from ckptctl.episodes import EpisodeParticipant
from ckptctl.errors import (
    CkptctlError,
    ControlError,
    CoordinationError,
    NotPrepared,
    SettingsError,
    StepOrderError,
)
from ckptctl.fleet import Replies, Server
from ckptctl.ledger import Ledger
from ckptctl.lives import first_attempt
from ckptctl.participant import Blocker, Participant, PrepareReport, RestoredRecord
from ckptctl.plane import ControlPlane
from ckptctl.protocol import Call
from ckptctl.sessions import SessionParticipant
from ckptctl.settings import Settings
from ckptctl.steps import EpisodeSteps

__all__ = [
    "Blocker",
    "Call",
    "CkptctlError",
    "CommitResult",
    "ControlError",
    "ControlPlane",
    "Coordination",
    "CoordinationError",
    "Episode",
    "EpisodeParticipant",
    "EpisodeSteps",
    "Ledger",
    "NotPrepared",
    "Participant",
    "PrepareReport",
    "PrepareResult",
    "Replies",
    "RestoreResult",
    "RestoredRecord",
    "Server",
    "SessionParticipant",
    "Settings",
    "SettingsError",
    "StepOrderError",
    "first_attempt",
]

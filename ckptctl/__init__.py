"""The control plane of checkpoints of rollouts in flight: many live servers, one consistent cut.

A server takes part with a `Participant` behind a `ControlPlane`; a training controller saves and
restores all of them with a `Coordination`. The format of what is saved is the package `ckptfmt`.
"""

from ckptctl._controller.coordination import Coordination
from ckptctl._controller.fleet import Replies, Server
from ckptctl._controller.ledger import Ledger
from ckptctl._controller.lives import first_attempt
from ckptctl._controller.results import CommitResult, PrepareResult, RestoreResult
from ckptctl._errors import (
    CkptctlError,
    ControlError,
    CoordinationError,
    NotPrepared,
    SettingsError,
    StepOrderError,
)
from ckptctl._participants.episode import Episode
from ckptctl._participants.episode_participant import EpisodeParticipant
from ckptctl._participants.interface import Blocker, Participant, PrepareReport, RestoredRecord
from ckptctl._participants.session_participant import SessionParticipant
from ckptctl._participants.steps import EpisodeSteps
from ckptctl._protocol import Call
from ckptctl._server.plane import ControlPlane
from ckptctl._settings import Settings

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

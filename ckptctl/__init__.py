"""The control plane of checkpoints of rollouts in flight: many live servers save one consistent cut.

A server takes part with a `Participant` behind a `ControlPlane`; a training controller saves and
restores all of them with a `Coordination`. The format of what is saved is the package `ckptfmt`.
:mod:`ckptctl.hosts` puts a control plane behind a web framework, :mod:`ckptctl.transports` carries the
calls of a controller, and :mod:`ckptctl.testing` helps to test a participant.
"""

from ckptctl._controller.coordination import Coordination
from ckptctl._controller.fleet import Replies, Server
from ckptctl._controller.ledger import Ledger
from ckptctl._controller.lives import first_attempt
from ckptctl._controller.results import CommitResult, PrepareResult, RestoreResult
from ckptctl._errors import (
    CkptctlError,
    ClientGone,
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
from ckptctl._protocol import Call, Transport
from ckptctl._retired import RetiredAttempts
from ckptctl._server.admission import Admission
from ckptctl._server.phases import Phase
from ckptctl._server.plane import ControlPlane
from ckptctl._settings import Settings
from ckptfmt._public_names import set_public_module

__all__ = [
    "Admission",
    "Blocker",
    "Call",
    "CkptctlError",
    "ClientGone",
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
    "Phase",
    "PrepareReport",
    "PrepareResult",
    "Replies",
    "RestoreResult",
    "RestoredRecord",
    "RetiredAttempts",
    "Server",
    "SessionParticipant",
    "Settings",
    "SettingsError",
    "StepOrderError",
    "Transport",
    "first_attempt",
]

set_public_module(globals())

"""The phase machine, exhaustively: verbs and transitions of each phase, and which ids have ended."""

import itertools

import pytest

from ckptctl._errors import ControlError
from ckptctl._server.phases import ACCEPTED, REMEMBERED_IDS, Phase, PhaseMachine

OPEN = "open"


def machine(phase: Phase) -> PhaseMachine:
    """A machine in ``phase``, which it has reached by the only possible transitions."""
    found = PhaseMachine()
    if phase in (Phase.PREPARING, Phase.PREPARED, Phase.COMMITTED):
        found.begin_prepare(OPEN)
        if phase is not Phase.PREPARING:
            found.prepared()
        if phase is Phase.COMMITTED:
            found.committed()
    elif phase is not Phase.IDLE:
        found.begin_restore(OPEN)
        if phase is Phase.RESTORED:
            found.restored()
    assert found.phase is phase
    return found


def outcome(found: PhaseMachine, verb: str, checkpoint_id: str | None) -> str:
    before = (found.phase, found.checkpoint_id, found.ending)
    try:
        found.check(verb, checkpoint_id)
        return "ok"
    except ControlError as error:
        return error.code
    finally:
        assert (found.phase, found.checkpoint_id, found.ending) == before


TABLE = {
    # verb: idle, preparing, prepared, committed, restoring, restored
    "prepare": "ok ok ok wrong_phase wrong_phase wrong_phase",
    "commit": "wrong_phase not_ready ok ok wrong_phase wrong_phase",
    "renew": "wrong_phase ok ok ok ok ok",
    "resume": "ok ok ok ok ok ok",
    "restore": "ok wrong_phase wrong_phase wrong_phase ok ok",
    "retire": "ok wrong_phase wrong_phase wrong_phase wrong_phase ok",
    "forget": "ok wrong_phase wrong_phase wrong_phase wrong_phase ok",
}


@pytest.mark.parametrize("verb", TABLE)
def test_each_verb_is_accepted_in_its_phases_only(verb: str) -> None:
    checkpoint_id = None if verb in ("retire", "forget") else OPEN
    for phase, expected in zip(Phase, TABLE[verb].split(), strict=True):
        assert outcome(machine(phase), verb, checkpoint_id) == expected, phase


@pytest.mark.parametrize("verb", ["prepare", "commit", "renew", "resume", "restore"])
def test_another_id_conflicts_while_one_is_open(verb: str) -> None:
    for phase in set(Phase) - {Phase.IDLE}:
        assert outcome(machine(phase), verb, "another") == "checkpoint_conflict", phase


@pytest.mark.parametrize("verb", ["prepare", "commit", "renew", "restore"])
def test_an_id_that_ended_is_refused_and_resume_of_it_is_not(verb: str) -> None:
    for phase in set(Phase) - {Phase.IDLE}:
        found = machine(phase)
        found.begin_end()
        assert outcome(found, verb, OPEN) == "checkpoint_conflict", phase
        assert outcome(found, "resume", OPEN) == "ok"
        found.end()
        assert (found.phase, found.checkpoint_id) == (Phase.IDLE, None)
        assert outcome(found, verb, OPEN) == "checkpoint_conflict", phase
        assert outcome(found, "resume", OPEN) == "ok"


def test_an_id_that_failed_by_itself_may_be_used_again() -> None:
    for phase in (Phase.PREPARING, Phase.RESTORING):
        found = machine(phase)
        found.failed()
        assert found.phase is Phase.IDLE
        assert outcome(found, "prepare", OPEN) == "ok"


def test_the_last_ended_ids_are_remembered_and_no_more() -> None:
    found = PhaseMachine()
    for number in range(REMEMBERED_IDS + 1):
        found.remember(f"id-{number}")
    assert outcome(found, "prepare", "id-0") == "ok"
    assert outcome(found, "prepare", "id-1") == "checkpoint_conflict"
    found.remember("id-1")
    found.remember("one more")
    assert outcome(found, "prepare", "id-1") == "checkpoint_conflict"
    assert outcome(found, "prepare", "id-2") == "ok"


def test_no_other_transition_is_possible() -> None:
    moves = {
        "prepared": Phase.PREPARING,
        "committed": Phase.PREPARED,
        "restored": Phase.RESTORING,
    }
    for phase, move in itertools.product(Phase, moves):
        if phase is not moves[move]:
            with pytest.raises(AssertionError):
                getattr(machine(phase), move)()
    for phase in set(Phase) - {Phase.PREPARING, Phase.RESTORING}:
        with pytest.raises(AssertionError):
            machine(phase).failed()
    for phase in set(Phase) - {Phase.IDLE}:
        with pytest.raises(AssertionError):
            machine(phase).begin_prepare("another")
        with pytest.raises(AssertionError):
            machine(phase).begin_restore("another")


def test_every_verb_is_in_the_table() -> None:
    assert set(TABLE) - {"resume"} == set(ACCEPTED)

"""Episode steps: restarts, retires, and what restored episodes begin with."""

import asyncio

import pytest

from ckptctl import ControlError, EpisodeSteps, RestoredRecord
from ckptctl.testing import on_virtual_clock
from ckptfmt import EpisodeId, Incomplete, JsonPayload, Record, Segment
from ckptfmt._model.layout import ParticipantLayout
from ckptfmt._model.record_line import Line
from ckptfmt._read.stored_record import Place, StoredRecord
from ckptfmt.stores import choose_store

R = EpisodeId("r")


def restored(episode: EpisodeId = R, *, boundary: int | None = 4) -> RestoredRecord:
    """A record of attempt 0 that a restore installs under ``episode``."""
    payload = JsonPayload.of({"x": float("nan")})
    return RestoredRecord(episode, StoredRecord(Line(R, boundary, 7, ("key-1",), payload)))


def unreadable(episode: EpisodeId, folder: str) -> RestoredRecord:
    """A record whose payload was not kept in memory, and whose file is gone."""
    line = Line(R, 1, 1, (), JsonPayload.of({}))
    segment = Segment(f"records-{64 * '0'}.jsonl", 10, 10, 1, "none")
    place = Place(ParticipantLayout(choose_store(folder), ""), segment, 0, 10, 0, 10, 0, "r", 1)
    return RestoredRecord(episode, StoredRecord(line, place))


@pytest.mark.req("ST4", "RE7")
@on_virtual_clock
async def test_a_restored_episode_starts_at_its_boundary_and_is_there_until_its_next() -> None:
    steps = EpisodeSteps()
    again = EpisodeId("r", 1)
    steps.install([restored(again)])
    async with steps.episode(again) as episode:
        assert (episode.number, list(episode.state)) == (4, ["x"])
        episode.state["x"] = "changed in place"  # Forbidden, but it must not change the checkpoint.
        (record,) = steps.export([again])
        assert (record.episode, record.boundary, record.references) == (again, 4, ("key-1",))
        assert (record.schema, record.payload) == (7, JsonPayload.of({"x": float("nan")}))
        await episode.boundary({"x": 1})
        assert episode.number == 5
        (record,) = steps.export([again])
        assert (record.boundary, record.payload, record.references) == (5, {"x": 1}, ())


@pytest.mark.req("ST4")
@on_virtual_clock
async def test_an_episode_restored_without_a_boundary_starts_over_from_its_input() -> None:
    steps = EpisodeSteps()
    steps.install([RestoredRecord(R, StoredRecord(Line(R, None, 1, (), JsonPayload.of(None))))])
    async with steps.episode(R) as episode:
        assert (episode.number, episode.state) == (None, None)


@pytest.mark.req("CM2")
@on_virtual_clock
async def test_an_unclaimed_restored_record_is_saved_again_unchanged_but_for_its_key() -> None:
    steps = EpisodeSteps()
    again = EpisodeId("r", 100)
    rest = restored(again)
    steps.install([rest])
    (record,) = steps.export([again])
    assert (record.episode, record.boundary, record.schema, record.references) == (again, 4, 7, ("key-1",))
    assert record.payload == rest.stored.json_payload


@on_virtual_clock
async def test_a_restored_payload_that_cannot_be_read_is_not_lost(tmp_path: str) -> None:
    steps = EpisodeSteps()
    steps.install([unreadable(R, str(tmp_path))])
    for _ in range(2):
        # The second request must fail, too, and not start over silently.
        with pytest.raises(Incomplete, match="the records file is missing"):
            async with steps.episode(R):
                pass
    assert list(steps) == [R]


@pytest.mark.req("RS2")
@pytest.mark.parametrize("known_by", ["itself", "the controller"])
@on_virtual_clock
async def test_a_restart_goes_on_through_a_checkpoint_and_is_never_saved(known_by: str) -> None:
    steps = EpisodeSteps()

    async def run() -> float:
        async with steps.episode(R, restart="no hooks" if known_by == "itself" else None) as episode:
            for number in range(3):
                async with episode.step("wait"):
                    await asyncio.sleep(10)
                await episode.boundary({"steps": number})
        return asyncio.get_running_loop().time()

    task = asyncio.create_task(run())
    await asyncio.sleep(5)
    steps.close([R] if known_by == "the controller" else [])
    assert steps.blocking == 0
    if known_by == "itself":
        assert steps.restarts() == [R]
        assert steps.export([R]) == []
        assert steps.saveable() == []
    assert await task == 30


@pytest.mark.req("RS4")
@pytest.mark.parametrize("mode", ["wait", "replay"])
@on_virtual_clock
async def test_becoming_a_restart_waits_while_a_checkpoint_is_open_and_does_not_block_it(mode: str) -> None:
    steps = EpisodeSteps()
    marked: list[float] = []

    async def run() -> None:
        async with steps.episode(R) as episode:
            await episode.boundary({"before": "seed"})
            async with episode.step("wait" if mode == "wait" else "replay"):
                await asyncio.sleep(10)
                await episode.become_restart("restart_only")
                marked.append(asyncio.get_running_loop().time())
            await episode.boundary({"after": "seed"})

    task = asyncio.create_task(run())
    await asyncio.sleep(5)
    steps.close()
    assert steps.blocking == (1 if mode == "wait" else 0)
    await asyncio.sleep(95)
    # It is at the boundary before its seed: not yet a restart, and no longer a blocker.
    assert (steps.restarts(), steps.blocking) == ([], 0)
    (record,) = steps.export([R])
    assert (record.boundary, record.payload) == (1, {"before": "seed"})
    steps.reopen()
    await task
    assert marked == [100]


@pytest.mark.req("RS4")
@on_virtual_clock
async def test_an_episode_that_is_a_restart_from_its_start_begins_after_the_checkpoint() -> None:
    steps = EpisodeSteps()
    began: list[float] = []

    async def run() -> None:
        async with steps.episode(R, restart="no hooks"):
            began.append(asyncio.get_running_loop().time())

    steps.close()
    task = asyncio.create_task(run())
    await asyncio.sleep(50)
    assert (steps.restarts(), steps.blocking, len(steps)) == ([], 0, 0)
    steps.reopen()
    await task
    assert began == [50]


async def forever(steps: EpisodeSteps, episode: EpisodeId, *, clean_up: float = 0.0) -> None:
    async with steps.episode(episode, keep=True) as running:
        await running.boundary({})
        try:
            async with running.step("replay"):
                await asyncio.Event().wait()
        finally:
            await asyncio.sleep(clean_up)


@pytest.mark.req("RT3")
@on_virtual_clock
async def test_a_retire_stops_the_attempt_and_earlier_ones_and_waits_for_their_clean_up() -> None:
    steps = EpisodeSteps()
    attempts = [EpisodeId("r", number) for number in range(3)]
    tasks = [asyncio.create_task(forever(steps, each, clean_up=20)) for each in attempts]
    other = asyncio.create_task(forever(steps, EpisodeId("other")))
    steps.install([restored(EpisodeId("kept", 1)), restored(EpisodeId("gone", 1))])
    await asyncio.sleep(1)
    await steps.retire([EpisodeId("r", 1), EpisodeId("gone", 1)])
    assert asyncio.get_running_loop().time() == 21
    assert [task.done() for task in [*tasks, other]] == [True, True, False, False]
    for task in tasks[:2]:
        error = task.exception()
        assert isinstance(error, ControlError)
        assert error.code == "stale_attempt"
    # What was retired is not kept.
    assert sorted(map(str, steps)) == ["kept-a1", "other", "r-a2"]


@pytest.mark.req("ST6")
@on_virtual_clock
async def test_an_episode_being_retired_blocks_and_is_not_saved_until_its_task_has_ended() -> None:
    steps = EpisodeSteps()
    task = asyncio.create_task(forever(steps, R, clean_up=20))
    await asyncio.sleep(1)
    retire = asyncio.create_task(steps.retire([R]))
    await asyncio.sleep(1)
    retire.cancel()
    (blocker,), count = steps.blockers(5)
    assert (blocker.reason, count, steps.blocking) == ("being retired", 1, 1)
    assert (steps.export([R]), steps.saveable()) == ([], [])
    await asyncio.wait([task])
    assert (steps.blocking, len(steps)) == (0, 0)


@pytest.mark.req("RT4")
@on_virtual_clock
async def test_a_retire_that_is_repeated_does_not_cancel_again() -> None:
    steps = EpisodeSteps()
    cancelled: list[float] = []

    async def stubborn() -> None:
        async with steps.episode(R):
            for _ in range(3):
                try:
                    await asyncio.sleep(30)
                except asyncio.CancelledError:
                    cancelled.append(asyncio.get_running_loop().time())

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(10)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await steps.retire([R])
        assert list(steps) == [R]
    await steps.retire([R])
    assert cancelled == [10]
    assert asyncio.get_running_loop().time() == 70
    await task
    assert task.cancelling() == 0  # The cancellation by the retire is over, although the task ignored it.


@on_virtual_clock
async def test_a_server_that_shuts_down_still_cancels_an_episode_that_is_being_retired() -> None:
    steps = EpisodeSteps()
    task = asyncio.create_task(forever(steps, R, clean_up=20))
    await asyncio.sleep(1)
    retire = asyncio.create_task(steps.retire([R]))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait([task, retire])
    assert task.cancelled()


@pytest.mark.req("ST7")
@on_virtual_clock
async def test_the_participant_is_told_once_nothing_blocks_and_only_in_a_checkpoint() -> None:
    steps = EpisodeSteps()
    told: list[int] = []
    steps.changed = lambda: told.append(steps.blocking)

    async def run(episode: EpisodeId, seconds: float) -> None:
        async with steps.episode(episode) as running:
            for number in range(2):
                async with running.step("wait"):
                    await asyncio.sleep(seconds)
                await running.boundary(number)

    tasks = [asyncio.create_task(run(EpisodeId(f"r{number}"), 10 + number)) for number in range(3)]
    await asyncio.sleep(15)
    assert told == []
    steps.close()
    await asyncio.sleep(100)
    assert told == [0]
    steps.reopen()
    await asyncio.gather(*tasks)
    assert told == [0]


@pytest.mark.req("ST7")
@on_virtual_clock
async def test_blockers_are_listed_up_to_the_limit_and_counted_beyond_it() -> None:
    steps = EpisodeSteps()

    async def run(number: int) -> None:
        async with steps.episode(EpisodeId(f"r{number}")) as running, running.step("wait"):
            await asyncio.sleep(10)
            raise LookupError

    tasks = [asyncio.create_task(run(number)) for number in range(7)]
    await asyncio.sleep(1)
    listed, count = steps.blockers(3)
    assert (len(listed), count) == (3, 7)
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.req("ST9")
@on_virtual_clock
async def test_clean_up_after_complete_blocks_a_checkpoint() -> None:
    steps = EpisodeSteps()

    async def run() -> None:
        async with steps.episode(R) as episode:
            await episode.boundary({})
            await episode.complete()
            await asyncio.sleep(10)

    task = asyncio.create_task(run())
    await asyncio.sleep(5)
    steps.close()
    assert [blocker.reason for blocker in steps.blockers(1)[0]] == ["completing"]
    await task
    assert steps.blocking == 0


def test_a_record_keeps_the_identity_of_what_was_saved() -> None:
    found = restored(EpisodeId("r", 3))
    assert (found.saved_as, found.boundary, found.size) == (R, 4, found.stored.size)
    assert isinstance(found.record(), Record)
    assert list(found.payload()) == ["x"]


@pytest.mark.req("ST2", "RE7")
@on_virtual_clock
async def test_a_kept_episode_that_continued_a_state_without_a_new_boundary_can_be_continued_again() -> None:
    steps = EpisodeSteps()
    steps.install([restored()])
    for _ in range(3):  # A finished session is called repeatedly.
        async with steps.episode(R, keep=True) as episode:
            assert (episode.number, list(episode.state)) == (4, ["x"])
    (record,) = steps.export([R])
    assert (record.boundary, record.schema) == (4, 7)


@pytest.mark.req("ST2")
@on_virtual_clock
async def test_a_state_recorded_as_json_is_continued_decoded() -> None:
    steps = EpisodeSteps()
    async with steps.episode(R, keep=True) as episode:
        async with episode.step():
            await asyncio.sleep(1)
        await episode.boundary(JsonPayload.of({"x": 1}))
    async with steps.episode(R) as episode:
        assert episode.state == {"x": 1}

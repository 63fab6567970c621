"""A restore over many servers: which attempts continue, what is refused, and what a failure leaves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptctl import Coordination, CoordinationError, first_attempt
from ckptctl.testing import on_virtual_clock
from ckptfmt import EpisodeId
from tests.ckptctl.servers import Cluster
from tests.ckptctl.support import ids, refused


async def save(
    directory: Path,
    keys: Sequence[str] = ("r", "s-a2"),
    *,
    cluster: Cluster | None = None,
    state: Any = None,
    restarts: Sequence[str] = (),
    life: bool = True,
) -> str:
    """A published checkpoint of servers that are then gone. Returns its directory."""
    if life:
        assert ckptfmt.start_life(directory.parent) == 0
    servers = cluster or Cluster()
    await servers.add_inactive(*keys)
    for key in restarts:
        await servers.nodes["policy"].busy(key, restart="no hooks")
    async with servers.coordination.prepared("saved", str(directory)) as cut:
        committed = await cut.commit(cut.continued(ids(*keys)))
    committed.publish(sequence=1, state=state)
    return str(directory)


@pytest.mark.req("CO13", "RE7", "CO11")
@on_virtual_clock
async def test_each_episode_continues_as_the_first_attempt_of_the_next_life(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c", state={"step": 1}, restarts=["p-a3"])
    cluster = Cluster()
    async with cluster.coordination.restored(directory) as back:
        assert set(cluster.phases().values()) == {"restored"}
        assert (back.life, back.source_checkpoint_id, back.state) == (1, "saved", {"step": 1})
        assert dict(back.episodes) == {
            EpisodeId("r"): EpisodeId("r", 100),
            EpisodeId("s", 2): EpisodeId("s", 100),
        }
        assert tuple(back.restarts) == (EpisodeId("p", 3),)
        assert back.restored == {name: tuple(ids("r-a100", "s-a100")) for name in cluster.nodes}
        assert back.checkpoint_id != "saved"
    assert cluster.all_run()
    for node in cluster.nodes.values():
        assert node.held() == ["r-a100", "s-a100"]
        assert node.marks == {"r": 99, "s": 99}
    life = json.loads((tmp_path / "lives" / "1.json").read_bytes())["body"]
    assert life == {"life": 1, "source_checkpoint_id": "saved"}


@pytest.mark.req("CO13")
@on_virtual_clock
async def test_no_attempt_is_used_twice_by_restores_of_one_checkpoint_failed_ones_too(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c")
    used: list[EpisodeId] = []
    names = set()
    for number in range(4):
        cluster = Cluster()
        if number == 1:
            cluster.nodes["tools"].faults.fail("install", RuntimeError("scripted"))
            with pytest.raises(CoordinationError):
                async with cluster.coordination.restored(directory):
                    raise AssertionError("it is not restored")
            continue
        async with cluster.coordination.restored(directory) as back:
            used += back.episodes.values()
            names.add(back.checkpoint_id)
            assert back.episodes[EpisodeId("r")].attempt == first_attempt(number + 1)
    assert len(used) == len(set(used)) == 6
    assert len(names) == 3


@pytest.mark.req("CO13")
@on_virtual_clock
async def test_a_life_owns_only_attempts_above_those_of_the_checkpoint(tmp_path: Path) -> None:
    """For a run that created no life at its start, and a checkpoint that was copied into another run."""
    directory = await save(tmp_path / "run" / "c", ["r", "s-a250"], restarts=["p-a333"], life=False)
    shutil.copytree(directory, tmp_path / "other" / "c")
    marked = Cluster()
    await marked.coordination.retire(ids("m-a620"))
    await save(tmp_path / "marked" / "c", ["r"], cluster=marked, life=False)
    for run, life in (("run", 4), ("other", 4), ("run", 5), ("marked", 7)):
        cluster = Cluster()
        async with cluster.coordination.restored(str(tmp_path / run / "c")) as back:
            assert back.life == life
            assert {each.attempt for each in back.episodes.values()} == {first_attempt(life)}
    assert sorted(each.name for each in (tmp_path / "other" / "lives").iterdir()) == [
        f"{life}.json" for life in range(5)
    ]


@pytest.mark.req("CO13")
@on_virtual_clock
async def test_a_life_far_below_the_saved_attempts_needs_attempts_from_the_caller(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c", ["r-a999999999"])
    with pytest.raises(ValueError, match="999999999"):
        async with Cluster().coordination.restored(directory):
            raise AssertionError("it is not restored")
    assert len(list((tmp_path / "lives").iterdir())) == 2
    own = EpisodeId("r", 999_999_998)
    directory = await save(tmp_path / "d", [str(own)], life=False)
    async with Cluster().coordination.restored(directory, attempts={"r": 999_999_999}) as back:
        assert dict(back.episodes) == {own: EpisodeId("r", 999_999_999)}
        assert back.life == 2


@pytest.mark.req("CO13")
@on_virtual_clock
async def test_a_controller_may_pass_attempts_of_its_own(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c")
    cluster = Cluster()
    async with cluster.coordination.restored(directory, attempts={"s": 3}) as back:
        assert set(back.episodes.values()) == set(ids("r-a100", "s-a3"))
    assert cluster.nodes["tools"].marks == {"r": 99, "s": 2}


@pytest.mark.req("CO13")
@pytest.mark.parametrize("attempts", [{"s": 2}, {"s": 1}, {"r": 0}, {"r": -1}, {"t": 5}, {"s": 3, "t": 1}])
@on_virtual_clock
async def test_attempts_that_replace_nothing_are_refused_before_any_call(
    attempts: dict[str, int], tmp_path: Path
) -> None:
    directory = await save(tmp_path / "c")
    cluster = Cluster()
    with pytest.raises(ValueError, match="attempt"):
        async with cluster.coordination.restored(directory, attempts=attempts):
            raise AssertionError("it is not restored")
    assert cluster.wire.sent == []
    assert [each.name for each in (tmp_path / "lives").iterdir()] == ["0.json"]


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_a_restore_of_some_of_the_episodes(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c", ["r", "s-a2", "t"])
    for scope in (["s-a2", "r"], ids("r", "s-a2")):
        cluster = Cluster()
        async with cluster.coordination.restored(directory, scope) as back:
            assert list(back.episodes) == ids("r", "s-a2")
        assert {tuple(key.split("-")[0] for key in node.held()) for node in cluster.nodes.values()} == {
            ("r", "s")
        }
    cluster = Cluster()
    async with cluster.coordination.restored(directory, []) as back:
        assert back.episodes == {}
    assert cluster.all_run()


@pytest.mark.req("CO11")
@pytest.mark.parametrize("scope", [["r", "unknown"], ["s"], ["r-a1"], ["p"], ["r", "s-a2", "s-a3"]])
@on_virtual_clock
async def test_a_scope_that_was_not_saved_is_refused_by_name(scope: list[str], tmp_path: Path) -> None:
    directory = await save(tmp_path / "c", restarts=["p"])
    cluster = Cluster()
    with pytest.raises(ValueError, match=scope[-1]):
        async with cluster.coordination.restored(directory, scope):
            raise AssertionError("it is not restored")
    assert cluster.wire.sent == []
    assert [each.name for each in (tmp_path / "lives").iterdir()] == ["0.json"]


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_a_checkpoint_may_be_renamed_and_copied_as_a_whole(tmp_path: Path) -> None:
    await save(tmp_path / "tmp_step_1")
    (tmp_path / "tmp_step_1").rename(tmp_path / "step_1")
    shutil.copytree(tmp_path / "step_1", tmp_path / "elsewhere" / "kept")
    for directory in (f"{tmp_path}/step_1", f"{tmp_path}/elsewhere/kept/", f"file://{tmp_path}/step_1/"):
        cluster = Cluster()
        async with cluster.coordination.restored(directory) as back:
            assert list(back.episodes) == ids("r", "s-a2")
        assert (Path(directory.removeprefix("file://")).parent / "lives" / f"{back.life}.json").exists()


@pytest.mark.req("CO11", "RE3")
@on_virtual_clock
async def test_what_checkpoint_json_does_not_name_is_ignored_and_what_differs_is_refused(
    tmp_path: Path,
) -> None:
    directory = await save(tmp_path / "c")
    cut = ckptfmt.open(directory).cut
    assert cut is not None
    # Another attempt to save in the same folder, by an old process: it is not named, so it is ignored.
    zombie = Cluster()
    await zombie.add_inactive("z")
    async with zombie.coordination.prepared("saved", directory) as other:
        await other.commit(["z"])
    async with Cluster().coordination.restored(directory) as back:
        assert list(back.episodes) == ids("r", "s-a2")
    # Its manifest in place of the right one: valid, but not the one that was committed.
    for name in ("tools", "policy"):
        shutil.rmtree(tmp_path / "c" / cut / name)
        shutil.copytree(tmp_path / "c" / other.cut.name / name, tmp_path / "c" / cut / name)
    cluster = Cluster()
    with pytest.raises(CoordinationError) as caught:
        async with cluster.coordination.restored(directory):
            raise AssertionError("it is not restored")
    assert set(caught.value.failures) == {"tools", "policy"}
    assert caught.value.has("invalid_checkpoint_state")
    assert cluster.all_run()
    assert all(node.held() == [] for node in cluster.nodes.values())


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_a_checkpoint_json_that_is_not_the_one_meant_is_refused_by_each_server(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c", ["r"])
    elsewhere = await save(tmp_path / "other" / "c", ["r"])
    cluster = Cluster()
    body = {
        "checkpoint_id": "restore-1",
        "directory": f"{directory}/{ckptfmt.open(directory).cut}",
        "episodes": ["r-a100"],
        "checkpoint_digest": ckptfmt.read_checkpoint(elsewhere).digest,
    }
    for node in cluster.nodes.values():
        with refused("invalid_checkpoint_state", "not the one"):
            await node.plane.handle("restore", json.dumps(body).encode())


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_what_is_no_complete_checkpoint_of_these_servers_is_refused_before_any_call(
    tmp_path: Path,
) -> None:
    directory = await save(tmp_path / "c")
    (tmp_path / "c" / "checkpoint.json").rename(tmp_path / "kept.json")
    cluster = Cluster()

    async def restore(error: type[Exception], coordination: Coordination) -> None:
        with pytest.raises(error):
            async with coordination.restored(directory):
                raise AssertionError("it is not restored")

    await restore(ckptfmt.Incomplete, cluster.coordination)
    (tmp_path / "c" / "checkpoint.json").write_bytes((tmp_path / "kept.json").read_bytes()[:-2] + b" \n")
    await restore(ckptfmt.Damaged, cluster.coordination)
    (tmp_path / "c" / "checkpoint.json").write_bytes((tmp_path / "kept.json").read_bytes())
    await restore(ckptfmt.NotFound, Coordination([cluster.server("policy")]))
    cut = ckptfmt.create_cut(tmp_path / "x", "saved")
    named = ckptfmt.read_checkpoint(directory).cut
    assert named is not None
    shutil.copy(Path(cut.url) / "cut.json", tmp_path / "c" / named.name / "cut.json")
    await restore(ckptfmt.Damaged, cluster.coordination)
    assert cluster.wire.sent == []
    assert [each.name for each in (tmp_path / "lives").iterdir()] == ["0.json"]


@pytest.mark.req("RS5", "CO13", "RT8")
@on_virtual_clock
async def test_a_restart_is_retired_everywhere_then_sent_as_the_next_attempt(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c", restarts=["p-a3"])
    cluster = Cluster()
    async with cluster.coordination.restored(directory) as back:
        await cluster.coordination.retire(back.restarts)
    (restart,) = back.restarts
    again = EpisodeId(restart.rollout_id, first_attempt(back.life))
    for node in cluster.nodes.values():
        # A process that survived the crash cannot act for an old attempt.
        for stale in (restart, EpisodeId("p")):
            with refused("stale_attempt"):
                await node.plane.admission.enter(stale)
        await node.plane.admission.enter(again)


@pytest.mark.req("RT5", "RT7", "CO11")
@on_virtual_clock
async def test_marks_are_kept_from_life_to_life_until_they_are_forgotten(tmp_path: Path) -> None:
    first = Cluster()
    await first.coordination.retire(ids("gone-a5", "done"))
    await first.coordination.retire(ids("gone-a4"))
    assert await first.coordination.forget(["done", "unknown"]) == []
    directory = await save(tmp_path / "c", ["r", "q"], cluster=first)
    assert ckptfmt.read_checkpoint(directory).marks == {"gone": 5}
    second = Cluster()
    async with second.coordination.restored(directory):
        # Before anything can be admitted.
        assert {tuple(node.marks.items()) for node in second.nodes.values()} == {
            (("gone", 5), ("q", 99), ("r", 99))
        }
    assert await second.coordination.forget(["q"]) == []
    async with second.coordination.prepared("d", str(tmp_path / "d")) as cut:
        (await cut.commit(["r-a100", "q-a100"])).publish(sequence=2)
    assert ckptfmt.read_checkpoint(tmp_path / "d").marks == {"gone": 5, "r": 99}
    third = Cluster()
    async with third.coordination.restored(str(tmp_path / "d")):
        pass
    assert third.coordination.marks.as_dict() == {"gone": 5, "q": 199, "r": 199}
    assert third.nodes["tools"].marks == {"gone": 5, "q": 199, "r": 199}


@pytest.mark.req("RT5", "RT10")
@on_virtual_clock
async def test_a_mark_stays_where_a_server_keeps_it_or_fails_to_forget_it() -> None:
    cluster = Cluster()
    await cluster.coordination.retire(ids("r-a1", "s"))
    cluster.wire.answer("tools", "forget", {"instance_id": "i", "forgotten_count": 1, "kept": ["r"]})
    assert await cluster.coordination.forget(["r", "s"]) == ["r"]
    assert cluster.coordination.marks.as_dict() == {"r": 1}
    cluster.wire.hang("tools", "forget")
    with pytest.raises(CoordinationError):
        await cluster.coordination.forget(["r"], deadline=1)
    assert cluster.coordination.marks.as_dict() == {"r": 1}
    cluster.wire.heal()
    assert await cluster.coordination.forget(["r"]) == []
    assert cluster.coordination.marks.as_dict() == {}
    assert not any("r" in node.marks for node in cluster.nodes.values())

"""The results of a checkpoint and a restore: values that can be pickled."""

from __future__ import annotations

import asyncio
import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptctl import Blocker, Call, CommitResult, PrepareReport, Replies, RestoreResult, Settings
from ckptctl.testing import on_virtual_clock
from ckptfmt import EpisodeId
from tests.ckptctl.servers import Cluster, control_error
from tests.ckptctl.support import ids
from tests.ckptctl.test_coordination_restore import save


def again(value: Any) -> Any:
    found = pickle.loads(pickle.dumps(value))
    assert found == value
    assert copy.deepcopy(value) == value
    return found


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_a_commit_result_can_be_published_by_another_process(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.add_inactive("r", on=["agent-a", "tools"])
    await cluster.nodes["policy"].busy("p", restart="no hooks")
    await cluster.coordination.retire(ids("old-a1"))
    async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
        committed = await cut.commit(cut.continued(ids("p", "r")))
    found = again(committed)
    assert isinstance(found, CommitResult)
    assert found.episodes == {EpisodeId("r")}
    assert found.publish(sequence=3) == ckptfmt.read_checkpoint(tmp_path).digest
    assert committed.publish(sequence=3) == ckptfmt.read_checkpoint(tmp_path).digest
    assert ckptfmt.open(tmp_path).verify().ok


@pytest.mark.req("CO11")
@on_virtual_clock
async def test_the_marks_of_a_commit_do_not_change_later(tmp_path: Path) -> None:
    cluster = Cluster()
    await cluster.coordination.retire(ids("old-a1"))
    async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
        committed = await cut.commit([])
    await cluster.coordination.retire(ids("later"))
    await cluster.coordination.forget(["old"])
    committed.publish(sequence=1)
    assert ckptfmt.read_checkpoint(tmp_path).marks == {"old": 1}


@on_virtual_clock
async def test_a_restore_result_is_a_value(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c", state={"lp": [float("-inf"), 2**70, "\ud800"]}, restarts=["p"])
    cluster = Cluster()
    async with cluster.coordination.restored(directory) as back:
        assert isinstance(again(back), RestoreResult)
        assert again(back).state == {"lp": [float("-inf"), 2**70, "\ud800"]}


@pytest.mark.parametrize(
    "value",
    [
        Call("commit", b"{}", 5.0, "i"),
        Blocker(EpisodeId("r", 1), "in a step", 2.5),
        PrepareReport(restarts=(EpisodeId("r"),), episodes=[EpisodeId("s", 1)]),
        Settings(enabled=True, control_auth_token="secret"),
        Replies({"a": {"phase": "idle"}}, {}),
        EpisodeId("r", 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_results_can_be_pickled(value: object) -> None:
    again(value)


def test_failed_replies_can_be_pickled() -> None:
    found = pickle.loads(pickle.dumps(Replies({}, {"a": control_error("no_reply", tried=2)})))
    assert (found.failures["a"].code, found.failures["a"].details) == ("no_reply", {"tried": 2})


@pytest.mark.req("CO3")
def test_waiting_for_replies_leaves_out_what_is_saved_or_a_restart() -> None:
    result = CommitResult(
        checkpoint_id="c",
        directory="/run/c",
        cut="cut-1",
        manifests={},
        bytes=0,
        scope=frozenset(ids("saved", "gone")),
        owners={EpisodeId("saved"): ("agent",)},
        restarts=frozenset(ids("restart-a1")),
        references={},
        marks={},
    )
    assert result.awaiting_reply(ids("gone", "saved", "restart-a1", "restart", "saved-a1")) == ids(
        "gone", "restart", "saved-a1"
    )

    async def wait() -> None:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.cancel()
        runs = {EpisodeId("saved"): never, EpisodeId("restart", 1): never, EpisodeId("gone"): done}
        assert await result.wait_for_replies(runs, timeout=1000) == []
        assert await result.wait_for_replies({EpisodeId("gone"): never}, timeout=0) == ids("gone")
        assert not never.cancelled()

    asyncio.run(wait())

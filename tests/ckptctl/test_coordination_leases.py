"""The leases are renewed in the background, from the first call to the last resume (CO2)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ckptctl import CoordinationError
from ckptctl.testing import on_virtual_clock
from tests.ckptctl.servers import Cluster
from tests.ckptctl.test_coordination_restore import save


@pytest.mark.req("CO2", "CP8")
@pytest.mark.parametrize("lease", [3.0, 10.0, 25.0, 600.0])
@on_virtual_clock
async def test_a_block_may_last_longer_than_any_lease(lease: float, tmp_path: Path) -> None:
    cluster = Cluster(lease_grace_seconds=lease)
    await cluster.add_inactive("r")
    async with cluster.coordination.prepared("c", str(tmp_path)) as cut:
        await asyncio.sleep(10 * lease)
        assert set(cluster.phases().values()) == {"prepared"}
        committed = await cut.commit(["r"])
        await asyncio.sleep(10 * lease)
        assert set(cluster.phases().values()) == {"committed"}
    committed.publish(sequence=1)
    assert cluster.all_run()


@pytest.mark.req("CO2")
@on_virtual_clock
async def test_a_prepare_that_is_long_on_one_server_does_not_end_the_lease_of_another(tmp_path: Path) -> None:
    cluster = Cluster(lease_grace_seconds=5.0)
    cluster.nodes["tools"].faults.delay("close", 50)
    async with cluster.coordination.prepared("c", str(tmp_path), deadline=60) as cut:
        await cut.commit([])
    assert cluster.all_run()


@pytest.mark.req("CO2")
@on_virtual_clock
async def test_a_server_that_replies_to_no_renewal_does_not_end_the_lease_of_another(tmp_path: Path) -> None:
    cluster = Cluster(lease_grace_seconds=30.0)
    async with cluster.coordination.prepared("c", str(tmp_path)):
        cluster.wire.hang("policy", "renew")
        await asyncio.sleep(300)
        assert cluster.phases() == {**dict.fromkeys(cluster.nodes, "prepared"), "policy": "idle"}


@pytest.mark.req("CO2")
@on_virtual_clock
async def test_a_restore_is_renewed_too(tmp_path: Path) -> None:
    directory = await save(tmp_path / "c")
    cluster = Cluster(lease_grace_seconds=20.0)
    cluster.nodes["tools"].faults.delay("install", 100)
    async with cluster.coordination.restored(directory):
        await asyncio.sleep(100)
        assert set(cluster.phases().values()) == {"restored"}
    assert cluster.all_run()


@pytest.mark.req("CO2")
@on_virtual_clock
async def test_the_renewals_end_with_the_last_resume(tmp_path: Path) -> None:
    cluster = Cluster(lease_grace_seconds=30.0)
    cluster.nodes["environment"].faults.delay("reopen", 20)
    async with cluster.coordination.prepared("c", str(tmp_path)):
        await asyncio.sleep(100)
    # While the last one was resuming, it was still kept open.
    assert cluster.all_run()
    renewals = len(cluster.wire.named("renew"))
    assert renewals > 5 * 10
    await asyncio.sleep(1000)
    assert len(cluster.wire.named("renew")) == renewals


@pytest.mark.req("CO2")
@on_virtual_clock
async def test_a_long_lease_is_not_renewed_more_often_than_it_needs(tmp_path: Path) -> None:
    cluster = Cluster({"agent": "agent"})
    async with cluster.coordination.prepared("c", str(tmp_path)):
        await asyncio.sleep(601)
    assert len(cluster.wire.named("renew")) == 61
    assert {json.dumps(each.body) for each in cluster.wire.sent if each.verb == "renew"} == {
        '{"checkpoint_id": "c"}'
    }


@pytest.mark.req("CO2", "CP8")
@on_virtual_clock
async def test_a_controller_may_renew_itself_and_gets_an_error_for_an_ended_lease(
    tmp_path: Path,
) -> None:
    cluster = Cluster(lease_grace_seconds=30.0)
    cut = await cluster.coordination.prepare("c", str(tmp_path))
    for _ in range(5):
        await asyncio.sleep(29)
        await cluster.coordination.renew("c")
    await asyncio.sleep(31)
    assert cluster.all_run()
    with pytest.raises(CoordinationError) as caught:
        await cluster.coordination.renew("c")
    assert len(caught.value.failures) == 5
    assert caught.value.has("checkpoint_conflict")
    with pytest.raises(CoordinationError):
        await cut.commit([])
    await cluster.coordination.resume("c")

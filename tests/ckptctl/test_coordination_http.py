"""Checkpoints and restores over real connections to servers on loopback, and failures there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import ckptfmt
from ckptctl import Call, Coordination, CoordinationError, Server
from ckptctl.transports import _exchange as exchange
from ckptctl.transports.http import ControlClient
from tests.ckptctl.servers import (
    KINDS,
    TOKEN,
    Answer,
    Host,
    Node,
    answering,
    http_reply,
    on_a_loop,
    send,
    serving,
)
from tests.ckptctl.support import ids
from tests.polling import until


class Deployment:
    """Servers on loopback, each of which can die, and a coordination over HTTP."""

    def __init__(self, stack: AsyncExitStack, control: ControlClient, elsewhere: Mapping[str, str]) -> None:
        self._stack = stack
        self._stacks: dict[str, AsyncExitStack] = {}
        self.hosts: dict[str, Host] = {}
        self._control = control
        self._elsewhere = elsewhere

    async def start(self, name: str, kind: str) -> None:
        self._stacks[name] = await self._stack.enter_async_context(AsyncExitStack())
        self.hosts[name] = await self._stacks[name].enter_async_context(serving(Node(name, kind)))

    async def kill(self, name: str) -> None:
        await self._stacks[name].aclose()

    def coordination(self) -> Coordination:
        """A coordination over whatever listens at the address of each name when it is called."""

        def server(name: str) -> Server:
            async def transport(call: Call) -> dict[str, Any]:
                url = self._elsewhere[name] if name in self._elsewhere else self.hosts[name].url
                return await self._control.transport(url)(call)

            return Server(name, KINDS[name], transport)

        return Coordination(map(server, KINDS))

    def all_run(self, *but: str) -> bool:
        return all(host.node.runs() for name, host in self.hosts.items() if name not in but)


@asynccontextmanager
async def deployed(elsewhere: Mapping[str, str] | None = None) -> AsyncIterator[Deployment]:
    """``elsewhere``: URLs to use for some participants in place of their servers."""
    async with AsyncExitStack() as stack:
        control = await stack.enter_async_context(ControlClient(TOKEN))
        found = Deployment(stack, control, elsewhere or {})
        for name, kind in KINDS.items():
            if name not in (elsewhere or {}):
                await found.start(name, kind)
        yield found


@pytest.mark.req("CO1", "CO11", "CP13", "RS5")
@on_a_loop
async def test_a_checkpoint_of_running_servers_is_restored_after_they_are_killed(tmp_path: Path) -> None:
    async with deployed() as run:
        coordination = run.coordination()
        ckptfmt.start_life(tmp_path)
        for host in run.hosts.values():
            await host.node.add_inactive("r", "s-a2")
        await run.hosts["policy"].node.busy("p", restart="no hooks")
        async with coordination.prepared("step-1", str(tmp_path / "step-1"), deadline=20) as cut:
            waits = asyncio.create_task(_run(run.hosts["environment"], "w"))
            await until(lambda: run.hosts["environment"].waiting)
            committed = await cut.commit(cut.continued(ids("r", "p", "s-a2")))
            assert not waits.done()
        assert (await waits).status == 200
        await asyncio.to_thread(committed.publish, sequence=1, state={"seen": [1.5, None]})
    async with deployed() as run:
        coordination = run.coordination()
        async with coordination.restored(str(tmp_path / "step-1")) as back:
            assert back.state == {"seen": [1.5, None]}
            await coordination.retire(back.restarts)
            claimed = asyncio.create_task(_run(run.hosts["environment"], "r-a100"))
            stale = asyncio.create_task(_run(run.hosts["environment"], "s-a2"))
            await until(lambda: len(run.hosts["environment"].waiting) == 2)
            assert not claimed.done()
        assert (await claimed).value == {"ran": "r-a100"}
        assert (await stale).code == "stale_attempt"
        assert (await _run(run.hosts["policy"], "p")).code == "stale_attempt"
        assert run.all_run()
        assert await coordination.forget(["r", "s", "p"]) == []
        assert (await send(run.hosts["tools"], "status")).value["retired_rollouts"] == 0


async def _run(host: Host, key: str) -> Answer:
    return await send(host, "run", method="POST", path=f"/ng-rollout/{key}/run", token=None)


@pytest.mark.req("CO10")
@on_a_loop
async def test_a_server_that_dies_inside_a_checkpoint_is_named_and_the_others_resume(tmp_path: Path) -> None:
    async with deployed() as run:
        coordination = run.coordination()
        with pytest.raises(CoordinationError) as caught:
            async with coordination.prepared("c", str(tmp_path), deadline=20) as cut:
                await run.kill("agent-a")
                await cut.commit([], deadline=20)
        assert (caught.value.verb, list(caught.value.failures)) == ("commit", ["agent-a"])
        assert caught.value.retryable
        (note,) = caught.value.__notes__
        assert "resume failed on 1 server(s): agent-a" in note
        assert run.all_run("agent-a")


@pytest.mark.req("CP18", "CO10")
@on_a_loop
async def test_a_server_restarted_inside_a_checkpoint_does_not_reply_for_the_process_before_it(
    tmp_path: Path,
) -> None:
    async with deployed() as run:
        coordination = run.coordination()
        with pytest.raises(CoordinationError) as caught:
            async with coordination.prepared("c", str(tmp_path), deadline=20) as cut:
                await run.kill("agent-a")
                await run.start("agent-a", "agent")
                await cut.commit([], deadline=20)
        assert list(caught.value.failures) == ["agent-a"]
        assert caught.value.has("wrong_instance")
        assert not hasattr(caught.value, "__notes__")
        assert run.all_run()


@pytest.mark.req("CO10")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (http_reply(200, b"<html>It works!</html>"), "bad_reply"),
        (http_reply(200, {"phase": "prepared"}), "bad_reply"),
        (http_reply(500, b"Internal Server Error"), "bad_reply"),
        (http_reply(404, b"Not Found"), "bad_reply"),
        (http_reply(302, b"", "Location: /login"), "bad_reply"),
        (b"", "no_reply"),
        (None, "no_reply"),
    ],
)
@on_a_loop
async def test_whatever_answers_in_place_of_a_server_is_named_in_the_error(
    data: bytes | None, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "REPLY_GRACE_SECONDS", 0.05)
    monkeypatch.setattr("ckptctl._controller.coordination.LEAST_RANK_SECONDS", 0.2)
    monkeypatch.setitem(Coordination.resume.__kwdefaults__ or {}, "deadline", 0.2)
    async with answering(data) as url, deployed({"policy": url}) as run:
        coordination = run.coordination()
        with pytest.raises(CoordinationError) as caught:
            async with coordination.prepared("c", str(tmp_path), deadline=0.3):
                raise AssertionError("it is not prepared")
        assert list(caught.value.failures) == ["policy"]
        assert caught.value.has(code)
        await until(run.all_run)
        found = await coordination.status(deadline=0.3)
        assert found.failures.keys() == {"policy"}
        assert found.replies.keys() == KINDS.keys() - {"policy"}


@pytest.mark.req("CP1")
@on_a_loop
async def test_a_controller_with_a_wrong_token_changes_nothing(tmp_path: Path) -> None:
    async with deployed() as run, ControlClient("wrong-token") as control:
        before = {name: host.state() for name, host in run.hosts.items()}
        coordination = Coordination(
            Server(name, KINDS[name], control.transport(host.url)) for name, host in run.hosts.items()
        )
        with pytest.raises(CoordinationError) as caught:
            async with coordination.prepared("c", str(tmp_path)):
                raise AssertionError("it is not prepared")
        assert caught.value.has("unauthorized")
        assert "wrong-token" not in "".join([str(caught.value), *caught.value.__notes__])
        with pytest.raises(CoordinationError):
            await coordination.retire(ids("r"))
        assert {name: host.state() for name, host in run.hosts.items()} == before

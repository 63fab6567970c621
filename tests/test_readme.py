"""The code in the README runs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#\s]+)", README)
    assert links
    assert not [link for link in links if "://" not in link and not (PROJECT / link).exists()]


def test_there_are_two_examples() -> None:
    assert len(BLOCKS) == 2


def test_the_notebook_lines_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(BLOCKS[0], "README.md", "exec"), {})
    assert "'logprobs': [-0.5, nan]" in capsys.readouterr().out


def test_the_participant_counts_and_is_saved(tmp_path: Path) -> None:
    from aiohttp.test_utils import TestClient, TestServer

    import ckptfmt

    names: dict[str, object] = {}
    exec(compile(BLOCKS[1], "README.md", "exec"), names)  # as a module: no event loop runs

    async def use() -> None:
        authorized = {"Authorization": "Bearer secret"}
        prefix = "/ng-control/v1/checkpoint/"
        async with TestClient(TestServer(names["app"])) as client:  # type: ignore[arg-type]
            for expected in (1, 2):
                reply = await client.post("/ng-rollout/r-a1/add")
                assert await reply.json() == expected
            named = {"checkpoint_id": "one", "directory": str(tmp_path)}
            prepared = await client.post(prefix + "prepare", json=named, headers=authorized)
            assert (await prepared.json())["episodes"] == ["r-a1"]
            committed = await client.post(
                prefix + "commit", json={**named, "episodes": ["r-a1"]}, headers=authorized
            )
            assert (await committed.json())["episode_ids"] == ["r-a1"]
        assert ckptfmt.open(str(tmp_path))["counters-0"]["r-a1"].payload == {"count": 2}

    asyncio.run(use())

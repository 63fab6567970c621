"""The ``checkpoint:`` block: what is accepted, and that a bad one is named by field and shows no secret."""

from __future__ import annotations

import asyncio
import math
import pickle
import traceback
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ckptctl import ControlPlane, Settings, SettingsError
from ckptctl._settings import TOKEN_VARIABLE
from ckptctl.hosts.aiohttp import install
from ckptctl.testing import ScriptedParticipant
from ckptctl.transports.http import ControlClient

SECRET = "s3cr3t-t0ken"
ON: dict[Any, Any] = {"enabled": True, "control_auth_token": SECRET}
DURATIONS = ("lease_grace_seconds", "default_deadline_seconds", "maximum_deadline_seconds")


@pytest.mark.req("SE1")
@pytest.mark.parametrize("block", [None, {}, {"enabled": False}])
def test_off_is_the_default_and_needs_no_token(block: dict[str, Any] | None) -> None:
    assert Settings.from_block(block, {}) == Settings()
    assert not Settings().enabled


@pytest.mark.req("SE1")
def test_the_defaults_are_the_stated_ones() -> None:
    assert TOKEN_VARIABLE == "CKPTCTL_CONTROL_AUTH_TOKEN"
    found = Settings.from_block(ON, {})
    assert found.lease_grace_seconds == 600
    assert found.default_deadline_seconds == 60
    assert found.maximum_deadline_seconds == 3600


@pytest.mark.req("SE1")
@pytest.mark.parametrize(
    ("block", "field"),
    [
        ({**ON, "lease": 5}, "lease"),
        ({**ON, 7: 5}, "7"),
        ({"enabledd": True}, "enabledd"),
        ({"enabled": True}, "control_auth_token"),
        ({**ON, "control_auth_token": ""}, "control_auth_token"),
        ({**ON, "control_auth_token": " \n"}, "control_auth_token"),
        ({**ON, "control_auth_token": f"{SECRET} x"}, "control_auth_token"),
        ({**ON, "control_auth_token": f"{SECRET}\nx"}, "control_auth_token"),
        ({**ON, "control_auth_token": "tökén"}, "control_auth_token"),
        ({**ON, "control_auth_token": "a" * 4097}, "control_auth_token"),
        ({**ON, "control_auth_token": 12345}, "control_auth_token"),
        ({**ON, "control_auth_token": SECRET.encode()}, "control_auth_token"),
        ({**ON, "enabled": 1}, "enabled"),
        ({**ON, "enabled": "true"}, "enabled"),
        *(
            ({**ON, name: value}, name)
            for name in DURATIONS
            for value in (0, -1.0, math.nan, math.inf, True, "600", None, 10**400)
        ),
        ({**ON, "default_deadline_seconds": 61, "maximum_deadline_seconds": 60}, "default_deadline_seconds"),
        ({**ON, "maximum_deadline_seconds": 1}, "default_deadline_seconds"),
        ({"enabled": True, "control_auth_token_file": "/nowhere/token"}, "control_auth_token_file"),
        ({"enabled": True, "control_auth_token_file": "a\0b"}, "control_auth_token_file"),
        ({"enabled": True, "control_auth_token_file": 5}, "control_auth_token_file"),
    ],
)
def test_a_bad_block_fails_by_field_name_and_shows_no_secret(block: dict[Any, Any], field: str) -> None:
    with pytest.raises(SettingsError, match=f"checkpoint.{field}") as caught:
        Settings.from_block(block, {})
    assert caught.value.field == field
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.field, str(again)) == (field, str(caught.value))


@pytest.mark.req("SE1")
@pytest.mark.parametrize("block", [[], "enabled", 5, True, False, [("enabled", True)]])
def test_a_block_that_is_not_a_mapping_is_refused(block: Any) -> None:
    with pytest.raises(SettingsError, match="checkpoint: must be a mapping"):
        Settings.from_block(block, {})


@pytest.mark.req("SE1")
def test_the_token_comes_from_the_block_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"  {SECRET}\n")
    environment = {TOKEN_VARIABLE: "from-environment\n"}
    by_file = {"enabled": True, "control_auth_token_file": str(file)}
    assert Settings.from_block(by_file, {}).control_auth_token == SECRET
    assert Settings.from_block({"enabled": True}, environment).control_auth_token == "from-environment"
    # The block comes before the file, the file before the environment.
    assert Settings.from_block(by_file, environment).control_auth_token == SECRET
    assert Settings.from_block(ON, environment).control_auth_token == SECRET
    assert SECRET not in repr(Settings.from_block(by_file, {}))


@pytest.mark.req("SE1")
def test_the_content_of_a_wrong_token_file_is_not_shown(tmp_path: Path) -> None:
    for content in (SECRET.encode() + b"\xff", f"{SECRET}\nmore".encode()):
        (tmp_path / "token").write_bytes(content)
        with pytest.raises(SettingsError) as caught:
            Settings.from_block({"enabled": True, "control_auth_token_file": str(tmp_path / "token")}, {})
        assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.req("SE1")
def test_off_reads_no_token(tmp_path: Path) -> None:
    missing = {"enabled": False, "control_auth_token_file": str(tmp_path / "missing")}
    assert Settings.from_block(missing, {TOKEN_VARIABLE: "x y"}) == Settings()


@pytest.mark.req("SE1")
def test_a_client_needs_a_token_and_shows_none() -> None:
    for token in ("", "  ", "\n", f"{SECRET}\nx", f"{SECRET} x"):
        with pytest.raises(SettingsError) as caught:
            ControlClient(token)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in repr(ControlClient(SECRET))


@pytest.mark.req("SE1")
def test_off_installs_no_route() -> None:
    async def routes(settings: Settings) -> int:
        app = web.Application()
        install(app, ControlPlane(ScriptedParticipant(), settings))
        return len(app.router.routes())

    assert asyncio.run(routes(Settings())) == 0
    assert asyncio.run(routes(Settings.from_block(ON, {}))) == 1

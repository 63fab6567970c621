"""The public list is true, and a driver without any web framework can import it."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import ckptctl

PROMISED = {
    *("Coordination", "Server", "Replies", "PrepareResult", "CommitResult", "RestoreResult", "Ledger"),
    *("ControlPlane", "Participant", "EpisodeParticipant", "SessionParticipant", "EpisodeSteps", "Episode"),
    *("Blocker", "PrepareReport", "RestoredRecord", "Call", "Settings", "first_attempt"),
    *("CkptctlError", "ControlError", "CoordinationError", "NotPrepared", "SettingsError", "StepOrderError"),
}
HOST_LIBRARIES = ("aiohttp", "nemo_gym", "ray", "fastapi", "starlette")


def test_the_public_list_is_true() -> None:
    assert set(ckptctl.__all__) == PROMISED
    assert list(ckptctl.__all__) == sorted(set(ckptctl.__all__))
    for name in ckptctl.__all__:
        assert inspect.getdoc(getattr(ckptctl, name)), f"{name} says nothing about itself"
    star: dict[str, object] = {}
    exec("from ckptctl import *", star)
    assert set(ckptctl.__all__) == star.keys() - {"__builtins__"}


def test_public_methods_say_what_they_do() -> None:
    silent = [
        f"{name}.{member}"
        for name in ("Coordination", "PrepareResult", "CommitResult", "ControlPlane", "Ledger", "Settings")
        for member, value in vars(getattr(ckptctl, name)).items()
        if inspect.isfunction(value) and not member.startswith("_") and not inspect.getdoc(value)
    ]
    assert silent == []


@pytest.mark.parametrize("module", ["ckptctl", "ckptctl.testing"])
def test_a_driver_imports_no_web_framework(module: str) -> None:
    code = f"import sys, {module}; print([each for each in {HOST_LIBRARIES} if each in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_format_knows_nothing_of_the_control_plane() -> None:
    code = "import sys, ckptfmt; print([each for each in sys.modules if each.startswith('ckptctl')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"

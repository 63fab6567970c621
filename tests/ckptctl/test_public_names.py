"""The public names of the control plane: what there is, its documentation, and what an import loads."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import ckptctl

PUBLIC: Final = (
    "ckptctl",
    "ckptctl.hosts",
    "ckptctl.hosts.aiohttp",
    "ckptctl.testing",
    "ckptctl.transports",
    "ckptctl.transports.http",
)
WITH_A_LIBRARY: Final = {"ckptctl.hosts.aiohttp", "ckptctl.transports.http"}
HOST_LIBRARIES: Final = ("aiohttp", "nemo_gym", "ray", "fastapi", "starlette")
NOT_CONSTRUCTED: Final = (ckptctl.Episode, ckptctl.Transport)
"""Classes whose constructor no user calls."""
STARTING_POINTS: Final = (
    "ckptctl.ControlPlane",
    "ckptctl.Coordination",
    "ckptctl.EpisodeParticipant",
    "ckptctl.EpisodeSteps",
    "ckptctl.Ledger",
    "ckptctl.Server",
    "ckptctl.SessionParticipant",
    "ckptctl.Settings",
    "ckptctl.hosts.aiohttp.install",
    "ckptctl.testing.ScriptedParticipant",
    "ckptctl.testing.on_virtual_clock",
    "ckptctl.transports.http.ControlClient",
)


def names() -> list[tuple[str, str]]:
    return [(module, name) for module in PUBLIC for name in importlib.import_module(module).__all__]


def public(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def classes() -> list[type]:
    found = [public(*each) for each in names()]
    return [each for each in found if isinstance(each, type)]


def callables() -> Iterator[tuple[str, Callable[..., Any], str]]:
    """Every public function and method of a public class: its path, itself, and its documentation."""
    for module, name in names():
        value = public(module, name)
        if inspect.isfunction(value):
            yield f"{module}.{name}", value, inspect.getdoc(value) or ""
        elif isinstance(value, type) and not issubclass(value, enum.Enum):
            for member, attribute in inspect.getmembers(value):
                function = inspect.unwrap(attribute) if callable(attribute) else None
                ours = str(getattr(function, "__module__", "")).startswith("ckptctl")
                if inspect.isfunction(function) and ours and function.__name__ == member and member[0] != "_":
                    yield f"{module}.{name}.{member}", function, inspect.getdoc(attribute) or ""
            own = "__init__" in vars(value) and not hasattr(value, "__dataclass_fields__")
            if own and value not in NOT_CONSTRUCTED:  # A constructor is documented with its class.
                yield f"{module}.{name}", value.__init__, inspect.getdoc(value) or ""


CALLABLES: Final = {path: (function, doc) for path, function, doc in callables()}


def test_what_a_controller_and_a_server_need_is_public() -> None:
    assert {
        *("Coordination", "Server", "Replies", "PrepareResult", "CommitResult", "RestoreResult", "Ledger"),
        *("ControlPlane", "Participant", "EpisodeParticipant", "SessionParticipant", "EpisodeSteps"),
        *("Episode", "Blocker", "PrepareReport", "RestoredRecord", "Call", "Settings", "first_attempt"),
        *("CkptctlError", "ControlError", "CoordinationError", "NotPrepared", "SettingsError"),
        *("StepOrderError", "ClientGone", "Admission", "RetiredAttempts", "Phase", "Transport"),
    } == set(ckptctl.__all__)


def test_no_name_is_public_twice() -> None:
    listed = [name for _, name in names()]
    assert sorted(listed) == sorted(set(listed))


@pytest.mark.parametrize(("module", "name"), names())
def test_a_name_is_documented(module: str, name: str) -> None:
    value = public(module, name)
    if isinstance(value, type) or inspect.isfunction(value):
        assert inspect.getdoc(value)
    else:
        assert name in documented_constants(), f"{name} has no docstring below it"


def documented_constants() -> set[str]:
    """The names in the package with a string below their assignment."""
    found = set()
    for path in Path(ckptctl.__path__[0]).rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for statement, below in itertools.pairwise(body):
            match statement, below:
                case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(ast.Constant(value=str())):
                    found.add(name)
    return found


@pytest.mark.parametrize("path", CALLABLES)
def test_the_documentation_of_a_callable_names_all_parameters_and_the_result(path: str) -> None:
    function, doc = CALLABLES[path]
    signature = inspect.signature(function)
    assert doc, "no docstring"
    arguments = section(doc, "Args") + section(doc, "Attributes")
    for name, parameter in signature.parameters.items():
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        if name != "self" and name != "cls":
            assert re.search(rf"^ *{re.escape(stars + name)}: \S", arguments, re.MULTILINE), name
    if signature.return_annotation not in (None, "None", inspect.Signature.empty):
        assert section(doc, "Returns") or section(doc, "Yields"), "what it returns is not documented"


def section(doc: str, title: str) -> str:
    """The lines of a section of a docstring."""
    found = re.search(rf"^{title}:\n((?: .*\n|\n)+)", doc + "\n", re.MULTILINE)
    return found[1] if found else ""


@pytest.mark.parametrize("kind", [each for each in classes() if hasattr(each, "__dataclass_fields__")])
def test_the_documentation_of_a_dataclass_names_its_fields(kind: Any) -> None:
    attributes = section(inspect.getdoc(kind) or "", "Attributes")
    for name in kind.__dataclass_fields__:
        if not name.startswith("_"):
            assert re.search(rf"^ *{name}: \S", attributes, re.MULTILINE), name


@pytest.mark.parametrize("path", STARTING_POINTS)
def test_what_users_begin_with_has_an_example(path: str) -> None:
    module, _, name = path.rpartition(".")
    assert section(inspect.getdoc(public(module, name)) or "", "Example")


@pytest.mark.parametrize("module", sorted(set(PUBLIC) - WITH_A_LIBRARY))
def test_a_controller_imports_no_web_framework(module: str) -> None:
    code = f"import sys, {module}; print([each for each in {HOST_LIBRARIES} if each in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_format_does_not_import_the_control_plane() -> None:
    code = "import sys, ckptfmt; print([each for each in sys.modules if each.startswith('ckptctl')])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"

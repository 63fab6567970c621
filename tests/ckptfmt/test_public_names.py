"""The public names and the errors."""

from __future__ import annotations

import builtins
import pickle
import subprocess
import sys

import pytest

import ckptfmt
from ckptfmt import _errors as errors

_PROMISED = {
    *(
        "EpisodeId",
        "new_rollout_id",
        "episode_from_run_body",
        "Record",
        "JsonPayload",
        "StoredRecord",
        "create",
    ),
    *("Writer", "Gate", "Checkpoint", "open_participant", "ParticipantCheckpoint", "publish"),
    *(
        "read_checkpoint",
        "create_cut",
        "read_cut",
        "Cut",
        "start_life",
        "check_directory",
        "Report",
        "Problem",
    ),
    *("Limits", "Manifest", "verify"),
    *("part", "Part", "PartWriter", "commit"),
    *("latest", "diff", "plain", "copy", "prune"),
}
_NAMES_OF_BUILTINS = {"open", "list"}
"""Public as ``ckptfmt.open`` and ``ckptfmt.list``, but not exported by ``import *``."""
_CODES = {
    "BadCheckpoint": ("bad_checkpoint", False),
    "BadInput": ("bad_input", False),
    "MissingLibrary": ("missing_library", False),
    "UnsupportedStore": ("unsupported_store", False),
    "InexactValue": ("inexact_value", False),
    "Damaged": ("damaged", False),
    "Incomplete": ("incomplete", False),
    "Conflict": ("conflict", False),
    "OutcomeUnknown": ("outcome_unknown", True),
    "Unsupported": ("unsupported", False),
    "NotFound": ("not_found", False),
    "LimitExceeded": ("limit_exceeded", False),
    "StoreError": ("store_error", True),
    "UnusableDirectory": ("unusable_directory", False),
    "Stopped": ("stopped", False),
    "SnapshotChanged": ("snapshot_changed", False),
    "InvalidId": ("invalid_id", False),
}


def test_all_public_names_exist() -> None:
    assert sorted(ckptfmt.__all__) == sorted(set(ckptfmt.__all__))
    assert all(hasattr(ckptfmt, name) for name in ckptfmt.__all__)
    assert set(ckptfmt.__all__) >= _PROMISED | set(_CODES)


def test_import_star_does_not_replace_builtins() -> None:
    names: dict[str, object] = {}
    exec("from ckptfmt import *", names)
    assert names.keys() - {"__builtins__"} == set(ckptfmt.__all__)
    assert not names.keys() & vars(builtins).keys() - {"__builtins__"}
    assert all(callable(getattr(ckptfmt, name)) for name in _NAMES_OF_BUILTINS)
    assert vars(builtins).keys() >= _NAMES_OF_BUILTINS


def test_every_error_has_a_fixed_code() -> None:
    found = {
        name: (each.code, each.retryable)
        for name, each in vars(errors).items()
        if isinstance(each, type)
        and issubclass(each, ckptfmt.CheckpointError)
        and each is not ckptfmt.CheckpointError
    }
    assert found == _CODES
    assert all(name in str(errors.__doc__) for name in _CODES)


@pytest.mark.parametrize(
    "error",
    [
        ckptfmt.InexactValue("m", path="$.a", episode="r-a1"),
        ckptfmt.Damaged("m", file="f", episode="r"),
        ckptfmt.Incomplete("m", file="f"),
        ckptfmt.StoreError("m", errno=28, path="/x", written=7),
        ckptfmt.UnusableDirectory("m", errno=20, path="/x"),
        ckptfmt.Unsupported("m", file="f"),
        ckptfmt.NotFound("m"),
        ckptfmt.InvalidId("m"),
        ckptfmt.Stopped("m"),
    ],
)
def test_every_error_pickles_with_its_attributes(error: ckptfmt.CheckpointError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == error.message == "m"
    assert vars(copy) == vars(error)


def test_errors_are_grouped_by_what_a_caller_does() -> None:
    groups: dict[type[ckptfmt.CheckpointError], set[str]] = {
        ckptfmt.StoreError: {"UnusableDirectory", "UnsupportedStore"},
        ckptfmt.BadCheckpoint: {"Damaged", "Incomplete", "Unsupported"},
        ckptfmt.BadInput: {"InexactValue", "LimitExceeded", "SnapshotChanged", "InvalidId"},
    }
    for group, names in groups.items():
        assert {each.__name__ for each in group.__subclasses__()} == names
        assert all(not getattr(ckptfmt, name).__subclasses__() for name in names)
    singles = {"Conflict", "OutcomeUnknown", "NotFound", "Stopped", "MissingLibrary"}
    found = {each.__name__ for each in ckptfmt.CheckpointError.__subclasses__()}
    assert found == singles | {each.__name__ for each in groups}


def test_some_errors_are_also_builtin_exceptions() -> None:
    assert issubclass(ckptfmt.NotFound, KeyError)
    assert issubclass(ckptfmt.InvalidId, ValueError)
    assert issubclass(ckptfmt.MissingLibrary, ImportError)


def test_importing_ckptfmt_imports_no_large_library() -> None:
    heavy = ("asyncio", "aiohttp", "pydantic", "hypothesis", "rich", "ckptctl")
    code = f"import sys, ckptfmt; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

"""The choice between the compiled form and plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import ckptfmt
from ckptfmt._values.compiled import PURE_PYTHON_VARIABLE, form

SCRIPT = (
    "import ckptfmt; from ckptfmt._values.compiled import form; "
    "print(form(), ckptfmt.JsonPayload.of([1.0]).data)"
)


def test_plain_python_runs_on_request() -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, PURE_PYTHON_VARIABLE: "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout == "plain Python b'[1.0]'\n"


def test_the_compiled_form_runs_if_it_was_built() -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    built = (Path(ckptfmt.__file__).parent / "_values" / f"proof{suffix}").exists()
    expected = "compiled" if built and not os.environ.get(PURE_PYTHON_VARIABLE) else "plain Python"
    assert form() == expected

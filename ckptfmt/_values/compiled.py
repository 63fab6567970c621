"""The choice between the two forms of `ckptfmt._values.proof`.

The compiled form runs where the package was built with a C compiler; otherwise plain Python runs. Both forms
have the same source and pass the same tests. When the environment variable ``CKPTFMT_PURE_PYTHON`` is set to
a non-empty string, plain Python runs even if the compiled form is installed.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

try:
    import ckptfmt._values.scan  # noqa: F401  # the compiled form imports it
except ImportError:
    _has_scan = False
else:
    _has_scan = True

PURE_PYTHON_VARIABLE: Final = "CKPTFMT_PURE_PYTHON"

_PROOF: Final = "ckptfmt._values.proof"


def _load_plain_python(name: str) -> None:
    path = Path(__file__).with_name(f"{name.rpartition('.')[2]}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _is_built() -> bool:
    spec = importlib.util.find_spec(_PROOF)
    return spec is not None and spec.origin is not None and not spec.origin.endswith(".py")


IS_COMPILED: Final = _has_scan and not os.environ.get(PURE_PYTHON_VARIABLE) and _is_built()
"""Whether the compiled form runs in this process."""

if not IS_COMPILED:
    _load_plain_python(_PROOF)


def form() -> str:
    """The form that runs in this process: ``compiled`` or ``plain Python``."""
    return "compiled" if IS_COMPILED else "plain Python"

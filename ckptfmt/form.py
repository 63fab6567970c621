"""Which form of `ckptfmt.proof` runs: compiled where the package was built with a C compiler, else plain.

Both forms are one source and pass the same tests. With ``CKPTFMT_PURE_PYTHON`` set to anything but the
empty string, plain Python runs although the compiled form is there.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

PURE_PYTHON_VARIABLE: Final = "CKPTFMT_PURE_PYTHON"


def _load_plain_python(name: str) -> None:
    path = Path(__file__).with_name(f"{name.rpartition('.')[2]}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def _has_scan() -> bool:
    try:
        import ckptfmt.scan  # noqa: F401  # the compiled form cannot do without it
    except ImportError:
        return False
    return True


if os.environ.get(PURE_PYTHON_VARIABLE) or not _has_scan():
    _load_plain_python("ckptfmt.proof")


def form() -> str:
    """``compiled`` or ``plain Python``."""
    from ckptfmt.proof import COMPILED

    return "compiled" if COMPILED else "plain Python"

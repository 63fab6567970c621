"""The command ``ckptfmt``, run in this process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ckptfmt._cli import main


class Command:
    """Runs the command in this process and captures its output."""

    def __init__(self, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        self._capture = capfdbinary

    def __call__(self, *argv: object) -> tuple[int, str, str]:
        status = main([str(each) for each in argv])
        out, err = self._capture.readouterr()
        return status, out.decode(), err.decode()

    def json(self, *argv: object) -> tuple[int, Any]:
        status, out, _ = self(*argv, "--json")
        assert out.endswith("\n")
        return status, json.loads(out.splitlines()[-1])

    def refused(self, *argv: object) -> tuple[int, str]:
        """The status and the one line of an error."""
        status, out, err = self(*argv)
        assert out == ""
        assert err.count("\n") == 1
        assert err.startswith("ckptfmt")
        assert "Traceback" not in err
        return status, err

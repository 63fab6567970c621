"""What the tests of the command share."""

from __future__ import annotations

import pytest

from tests.ckptfmt.command import Command


@pytest.fixture
def ckptfmt_command(capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    return Command(capfdbinary)

"""What all tests share."""

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("ckptfmt.testing._store_conformance")

# A slow machine is no bug of ours: the time limit per test (pyproject.toml) is the only one.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")

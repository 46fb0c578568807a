"""What every test shares: reproducible properties, and the folder of real logs where one is given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A busy machine must not turn a slow example into a failure; in CI the examples are the same on every run.
settings.register_profile(
    "evalr",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("evalr")


@pytest.fixture(scope="session")
def real_logs() -> Path:
    """The folder of real logs that the variable EVALR_DATA names; the test is skipped where it names none."""
    folder = os.environ.get("EVALR_DATA")
    if not folder:
        pytest.skip("EVALR_DATA names no folder of real logs")
    return Path(folder)

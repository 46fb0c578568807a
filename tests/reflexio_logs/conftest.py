"""What the tests of Reflexio's logs share: logs that the library itself wrote, and small ones of any release."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.append(str(HERE))

from reflexio_writing import stored_log  # noqa: E402  it lies beside this file


@pytest.fixture(scope="session")
def newest_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of 0.2.32, with its configuration beside it; nobody writes to it."""
    folder = tmp_path_factory.mktemp("newest")
    shutil.copyfile(HERE / "config_self-host-org.json", folder / "config_self-host-org.json")
    return stored_log(folder, "release_0_2_32")


@pytest.fixture(scope="session")
def tagged_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of 0.2.25, the last release that kept metadata; without interactions."""
    return stored_log(tmp_path_factory.mktemp("tagged"), "release_0_2_25", file="reflexio.db")

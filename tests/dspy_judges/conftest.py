"""What the tests of judges share: a scripted model behind real HTTP, and dspy without a price list from the network."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# dspy asks the network for a list of prices at the first call, unless told that its own will do.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"
# Its cache is a folder in the home folder otherwise.
os.environ["DSPY_CACHEDIR"] = tempfile.mkdtemp(prefix="evalr-dspy-")
atexit.register(shutil.rmtree, os.environ["DSPY_CACHEDIR"], ignore_errors=True)
sys.path.append(str(Path(__file__).parent))

import dspy  # noqa: E402  as it is told above
from model_server import ModelServer, running  # noqa: E402  it lies beside this file

# Files of a cache on a disk are open for as long as the threads that asked it.
dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    with running(ModelServer()) as server:
        yield server

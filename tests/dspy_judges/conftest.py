"""What the tests of judges share: a scripted model behind real HTTP, and dspy without a price list from the network."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# dspy asks the network for a list of prices at the first call, unless told that its own will do.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"
sys.path.append(str(Path(__file__).parent))

from model_server import ModelServer, running


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    with running(ModelServer()) as server:
        yield server

"""The door: what it offers, and what it says where dspy is not there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import evalr.dspy
import evalr_dspy

ABSENT = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
import evalr
try:
    import evalr.dspy
except ImportError as error:
    print(type(error).__name__, error)
"""


def without(module: str) -> str:
    code = ABSENT.format(blocked=module)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_offers_what_the_package_does() -> None:
    assert evalr.dspy.__all__ == evalr_dspy.__all__
    assert all(getattr(evalr.dspy, name) is getattr(evalr_dspy, name) for name in evalr_dspy.__all__)


def test_without_dspy_it_says_what_to_install() -> None:
    said = "MissingExtraError judges by language models need dspy: pip install 'evalr[dspy]'"
    assert without("dspy") == said


@pytest.mark.parametrize("module", ["json_repair", "openai"])
def test_another_error_of_dspys_own_imports_passes_through_or_is_none(module: str) -> None:
    assert not without(module).startswith("MissingExtraError")


def test_a_module_of_ours_named_dspy_is_not_the_library() -> None:
    import dspy

    assert evalr.dspy is not dspy
    assert hasattr(dspy, "LM")


def test_importing_evalr_imports_no_dspy() -> None:
    code = "import sys, evalr, evalr.measures, evalr.runs, evalr.labels; sys.exit('dspy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_it_imports_no_more_of_evalr_than_a_judge_needs() -> None:
    """Comparing with people, running and reports are imported when they are asked for."""
    code = "import sys, evalr.dspy; print(*sorted(name for name in sys.modules if name.startswith('evalr.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split())
    rooms = {name.split(".")[1] for name in loaded}
    assert not rooms & {"runs", "reports", "bulk", "cli", "testing", "logs"}, rooms
    assert {name for name in loaded if name.startswith("evalr.labels.")} <= {
        f"evalr.labels.{name}" for name in ("datasets", "examples", "files", "lines", "splits", "subjects")
    }

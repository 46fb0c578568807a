"""The sample repository: the same everywhere, and measured to the character."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from evalr import report
from evalr.cli.sample import NOW
from evalr.cli.sample_repository import AGENTS, DRAFTS, sample_repository, write_repository
from evalr.logs import read

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="the sample repository is made by the program git")


def test_a_seed_draws_the_same_on_every_python() -> None:
    commits, _ = sample_repository(7)
    assert hashlib.sha256(repr(commits).encode()).hexdigest() == DRAWN_BY_SEED_7


DRAWN_BY_SEED_7 = "28dd6f7a2f3568ec32e51abfb0a4c52b55f72b3e8fbd33242b8844701d330509"


@needs_git
@pytest.mark.parametrize("seed", [7, 8, 9])
def test_what_is_measured_is_what_was_drawn_to_the_character(seed: int, tmp_path: Path) -> None:
    commits, truth = sample_repository(seed)
    assert write_repository(tmp_path, commits)
    found = report(tmp_path, now=NOW)
    assert found["retention"].counts == {"sum": truth.kept, "total": truth.added}
    assert found["retention"].n == found["rewrites"].n == DRAFTS
    by_agent = report(tmp_path, now=NOW, by="agent", measures=["retention"]).rows[0].groups
    assert by_agent is not None
    for name, agent in zip(("claude", "aider"), AGENTS, strict=True):
        kept = by_agent[name].value
        assert kept is not None
        assert 0.3 * agent.taken_out < 1 - kept < agent.taken_out


@needs_git
def test_the_bot_is_left_out_and_everything_else_adds_up(tmp_path: Path) -> None:
    commits, _ = sample_repository(7)
    assert write_repository(tmp_path, commits)
    log = read(tmp_path)
    revisions = sum(revision.id is not None for history in log for revision in history.revisions)  # type: ignore[union-attr]
    assert log.left_out.counts == {"bot": 12}
    assert log.records == revisions + 12


def test_without_a_git_program_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    commits, _ = sample_repository(7)
    assert not write_repository(tmp_path, commits)

"""Real logs, where a folder of them is given: what is in them is read, and what is not ours is named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evalr.errors import UnknownLogError
from evalr.inputs import Session
from evalr.logs import Log, read


def counted(log: Log) -> Counter[str]:
    return Counter(type(item).__name__ for item in log)


def test_sessions_with_fields_of_their_own(real_logs: Path) -> None:
    log = read(real_logs / "entire_sessions" / "sessions.jsonl", strict=True)
    sessions = [item for item in log if isinstance(item, Session)]
    assert len(sessions) == log.records == 136
    assert all(session.read_at is not None for session in sessions)
    assert set(log.unknown_fields) == {
        "agent",
        "checkpoints",
        "checkpoint_times",
        "activities.tool",
        "activities.accepted",
    }
    assert not log.repaired


def test_histories_with_fields_of_their_own(real_logs: Path) -> None:
    log = read(real_logs / "aider_history" / "histories.jsonl", strict=True)
    assert counted(log) == {"History": 64}
    assert log.unknown_fields == {"path": 64, "cut": 64, "revisions.rule": 814, "revisions.commit": 814}


def test_transcripts_also_give_their_sessions(real_logs: Path) -> None:
    log = read(real_logs / "entire_transcripts" / "transcripts.jsonl", strict=True)
    assert counted(log) == {"Transcript": 20, "Session": 20}
    assert (log.records, log.derived) == (20, 20)


def test_what_needs_mapping_is_left_out_under_its_reason(real_logs: Path) -> None:
    log = read(real_logs / "taubench_airline" / "dev.jsonl")
    assert not counted(log)
    assert log.left_out.words() == "100 missing fields 'request' (lines 1, 2, 3, …)"


@pytest.mark.parametrize(
    "name", ["llmbar/llmbar_dev.jsonl", "pandalm/pandalm_dev.jsonl", "ggl_turnout/turnout_dev.csv"]
)
def test_what_is_something_else_is_not_claimed(name: str, real_logs: Path) -> None:
    with pytest.raises(UnknownLogError):
        read(real_logs / name, kind=None)

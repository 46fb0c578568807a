"""Results that supersede others: of each subject the last one counts, wherever it stands; the others are left out."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as forall
from hypothesis import strategies as st

import evalr
from evalr import bulk
from evalr.logs import Stored, read, superseding

T = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def result(name: str, *, completed: bool = True, supersedes: bool | None = None, **fields: Any) -> str:
    value = {"completed": completed, "quality": 3, "reason": fields.pop("reason", "")}
    about = {"kind": "session", "id": name, "user": fields.pop("user", "u")}
    line = {"type": "result", "evaluator": "completion", "value": value, "about": about, **fields}
    return json.dumps(line if supersedes is None else {**line, "supersedes": supersedes})


def session(name: str) -> str:
    return json.dumps({"id": name, "activities": [{"at": T.isoformat(), "role": "agent"}]})


def written(path: Path, lines: Iterable[str]) -> Path:
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def verdicts(path: Path) -> dict[str, bool]:
    return {
        str(item.result.about.id): item.result.value.completed  # type: ignore[union-attr]
        for item in read(path)
        if isinstance(item, Stored) and item.result.about is not None
    }


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
@pytest.mark.parametrize("sessions", [0, 3000], ids=["results alone", "after many sessions"])
def test_the_last_one_counts(name: str, sessions: int, tmp_path: Path) -> None:
    before = [session(f"x{n}") for n in range(sessions)] if name == "log.jsonl" else []
    lines = [result("a"), result("b"), result("a", completed=False, supersedes=True), result("c")]
    path = written(tmp_path / name, [*before, *lines, result("a", completed=True, reason="3", supersedes=True)])
    log = read(path)
    items = [item for item in log if isinstance(item, Stored)]
    assert [item.result.about.id for item in items if item.result.about] == ["b", "c", "a"]
    assert log.left_out.counts == {"superseded": 2}
    assert not log.left_out.faults
    assert log.records == len(before) + 5


def test_strict_reading_takes_it_for_sound(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", [result("a"), result("a", completed=False, supersedes=True)])
    (item,) = read(path, strict=True)
    assert isinstance(item, Stored)


def test_each_subject_evaluator_version_and_repeat_is_its_own(tmp_path: Path) -> None:
    others = [
        result("a", user="v"),
        result("a", version="2"),
        result("a", evaluator="people", measure="completion"),
        result("b"),
    ]
    path = written(tmp_path / "log.jsonl", [result("a"), *others, result("a", completed=False, supersedes=True)])
    log = read(path)
    assert len(list(log)) == 5
    assert log.left_out.counts == {"superseded": 1}


@pytest.mark.parametrize(
    "last",
    [
        '{"type":"result","supersedes":true',  # cut off
        '["supersedes"]',
        result("a", supersedes=False),
        result("a", reason='"supersedes":true'),
        json.dumps({"type": "result", "supersedes": True, "about": {"kind": "session"}}),
    ],
)
def test_what_only_looks_like_it_supersedes_nothing(last: str, tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", [result("a"), last])
    log = read(path)
    (item,) = log
    assert isinstance(item, Stored)
    assert "superseded" not in log.left_out.counts
    assert log.left_out.total == 1


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes with names")
    os.mkfifo(pipe)
    assert superseding.last_of_each(pipe) == {}


def test_a_log_without_results_at_its_ends_is_not_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("it is looked through")

    path = written(tmp_path / "log.jsonl", [session(f"x{n}") for n in range(3000)])
    monkeypatch.setattr("mmap.mmap", refuse)
    assert superseding.last_of_each(path) == {}
    written(path, [session("x"), result("a")])
    with pytest.raises(AssertionError, match="it is looked through"):
        superseding.last_of_each(path)


events = st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=30)


@forall(events)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_whatever_the_order_each_subject_counts_once_and_last(tmp_path: Path, events: list[tuple[str, bool]]) -> None:
    seen: set[str] = set()
    lines = []
    for number, (name, completed) in enumerate(events):
        lines.append(result(name, completed=completed, reason=str(number), supersedes=True if name in seen else None))
        seen.add(name)
    path = written(tmp_path / "log.jsonl", lines)
    assert verdicts(path) == dict(events)


def test_parts_of_a_log_in_several_processes_agree(tmp_path: Path) -> None:
    lines = [result(f"s{n}", user=f"u{n % 20}", reason="x" * 300) for n in range(300)]
    lines += [result(f"s{n}", user=f"u{n % 20}", completed=False, supersedes=True) for n in range(0, 300, 3)]
    path = written(tmp_path / "log.jsonl", lines)
    whole, parts = evalr.report(path, now=T), bulk.report(path, now=T, processes=2)
    assert "66.7%" in str(whole)
    assert "100 superseded" in str(whole)
    assert parts.to_dict() == whole.to_dict()

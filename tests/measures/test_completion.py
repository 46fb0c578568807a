"""Task completion: judged, so its verdicts come from judges and people; pass^k over trials of a task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evalr import About, Failure, InputError, Verdict, scores
from evalr.measures import TaskCompletion, Transcript, completion_pass_k, completion_quality, completion_rate
from evalr.measures.task_completion import measure


def done(completed: bool, quality: int = 3, **about: Any) -> Verdict[TaskCompletion]:
    return Verdict(TaskCompletion(completed=completed, quality=quality), "people", about=About("transcript", **about))


def test_people_and_judges_count_alike() -> None:
    class Feedback(TaskCompletion):
        stars: int = 5

    values: list[Any] = [
        Feedback(completed=True, quality=4),
        TaskCompletion(completed=False, quality=2),
        done(True),
        done(False),
    ]
    assert completion_rate(values) == 0.5
    assert completion_quality(values) == 3
    assert completion_rate([]) is None


@pytest.mark.parametrize("quality", [0, 6, 2.5, None])
def test_quality_is_from_one_to_five(quality: Any) -> None:
    with pytest.raises(ValidationError):
        TaskCompletion(completed=True, quality=quality)


def test_the_mean_quality_stays_between_one_and_five() -> None:
    estimate = completion_quality.estimate([TaskCompletion(completed=True, quality=5)] * 9)
    assert estimate.value == 5
    assert estimate.low is not None
    assert estimate.high == 5
    assert 1 < estimate.low < 5
    assert completion_quality.estimate([done(True, 5), Failure("broke")]).bounds == (3, 5)


def test_one_answer_for_each_session() -> None:
    with pytest.raises(InputError, match="results 0 and 1 are both about transcript 't1'"):
        completion_rate([done(True, id="t1"), done(False, id="t1")])


def test_pass_k_is_over_tasks_tried_often_enough() -> None:
    trials = {"a": [True, True, False], "b": [True, True, True], "c": [True, False]}
    results = [
        done(ok, id=f"{task}{trial}", attributes={"task": task})
        for task, oks in trials.items()
        for trial, ok in enumerate(oks)
    ]
    assert completion_pass_k(1)(results) == pytest.approx((2 / 3 + 1 + 1 / 2) / 3)
    assert completion_pass_k(2)(results) == pytest.approx((1 / 3 + 1 + 0) / 3)
    three = completion_pass_k(3).estimate(results)
    assert (three.value, three.n, three.left_out) == (0.5, 2, {"with fewer than 3 trials": 1})
    assert str(three).startswith("completion_pass_3 50.0% ")
    assert "2 tasks" in str(three)
    by_user = completion_pass_k(1, per="user").estimate([done(True, user="ada"), done(False, user="ada")])
    assert (by_user.value, by_user.n) == (0.5, 1)


def test_scores_are_named_by_who_judged() -> None:
    judged = Verdict(TaskCompletion(completed=True, quality=4), "completion", about=About("transcript", id="t1"))
    assert [(score.name, score.value) for score in scores(judged)] == [
        ("completion.completed", True),
        ("completion.quality", 4),
        ("completion.reason", None),
    ]


def test_the_measure_needs_a_judge_or_people() -> None:
    assert measure.evaluator is None
    assert measure.reads is Transcript
    assert [summary.name for summary in measure.summaries()] == ["completion", "completion_quality"]


def test_tau_bench_is_as_published(real_logs: Path) -> None:
    rows = [json.loads(line) for line in (real_logs / "taubench_airline" / "dev.jsonl").read_bytes().splitlines()]
    results = [
        done(row["reward"] == 1, id=row["id"], attributes={"task": str(row["task_id"]), "trial": str(row["trial"])})
        for row in rows
    ]
    assert completion_rate.estimate(results).counts == {"hits": 31, "total": 100}
    found = [completion_pass_k(k)(results) for k in (1, 2, 3, 4)]
    assert found == pytest.approx([0.31, 0.193333, 0.17, 0.16], abs=1e-6)
    assert completion_rate.estimate(results, cluster="task").clustered_by == {"task": 25}

"""A hundred real runs of an airline desk (tau-bench, MIT licence), judged end to end through the scripted server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_server import Answer, Asked, ModelServer

from evalr import Result, run_sync
from evalr.dspy import completion_judge
from evalr.inputs import ToolCall, Transcript, Turn
from evalr.labels import Dataset, Example, agreement, corrected
from evalr.measures import TaskCompletion, completion_pass_k, completion_rate
from evalr.runs import evaluate_all_sync

TRANSFER = "transfer_to_human_agents"


def turn(row: dict[str, Any]) -> Turn:
    calls = [ToolCall(name=call["name"], arguments=json.loads(call["arguments"])) for call in row.get("tool_calls", ())]
    return Turn(role=row["role"], text=row["text"] or "", tool_calls=calls, ref=row.get("ref"))


def example(row: dict[str, Any]) -> Example[TaskCompletion]:
    turns = [turn(each) for each in row["turns"]]
    given = Transcript(
        id=row["id"],
        request=next(each.text for each in turns if each.role == "person"),
        turns=turns,
        result=next((each.text for each in reversed(turns) if each.role == "agent" and each.text), None),
        attributes={"task": str(row["task_id"]), "trial": str(row["trial"])},
    )
    done = row["reward"] == 1
    return Example(given, expected=TaskCompletion(completed=done, quality=4 if done else 2), group=str(row["task_id"]))


@pytest.fixture(scope="module")
def desk(real_logs: Path) -> Dataset[TaskCompletion]:
    lines = (real_logs / "taubench_airline" / "dev.jsonl").read_bytes().splitlines()
    return Dataset("airline", [example(json.loads(line)) for line in lines])


def judged(
    server: ModelServer, desk: Dataset[TaskCompletion], script: Callable[[Asked, int], Answer | str], journal: Path
) -> list[Result[TaskCompletion]]:
    server.script = script
    judge = completion_judge(lm=server.lm())
    results = list(evaluate_all_sync(judge, desk.inputs(), limit=8, journal=journal))
    run_sync(judge.lm.aclose())
    return results


def said(completed: bool) -> str:
    return TaskCompletion(completed=completed, quality=4 if completed else 2, reason="as told").model_dump_json()


def test_a_judge_that_knows_the_truth_gives_the_published_numbers(
    model_server: ModelServer, desk: Dataset[TaskCompletion], tmp_path: Path
) -> None:
    """Also where every tenth answer is 429 or 500, which the run waits for; and no run is taken for another."""
    judge = completion_judge(lm=model_server.lm())
    truth = {
        judge.shown(each.given()).texts["turns"]: each.expected.completed for each in desk if each.expected is not None
    }
    assert len(truth) == 100

    def knows(asked: Asked, n: int) -> Answer | str:
        if n % 10 == 0:
            return Answer(status=500) if n % 20 else Answer(status=429, headers={"Retry-After": "0"})
        return said(truth[asked.data["turns"]])

    results = judged(model_server, desk, knows, tmp_path / "run.db")
    rate = completion_rate.estimate(results)
    assert (rate.counts, rate.left_out, rate.flags) == ({"hits": 31, "total": 100}, {}, ())
    assert [completion_pass_k(k)(results) for k in (1, 2, 3, 4)] == pytest.approx(
        [0.31, 0.193333, 0.17, 0.16], abs=1e-6
    )
    assert completion_rate.estimate(results, cluster="task").clustered_by == {"task": 25}
    assert sum(each.cost or 0 for each in results) == pytest.approx(100 * 0.00021)
    found = agreement(results, desk)
    assert (found.pairs, found["completed"]["kappa"].value, found["completed"]["tnr"].value) == (100, 1, 1)
    asked = len(model_server.asked)
    assert completion_rate.estimate(judged(model_server, desk, knows, tmp_path / "run.db")).counts == rate.counts
    assert len(model_server.asked) == asked  # the journal has them all


def test_a_judge_that_takes_every_transfer_for_a_success_is_found_out_and_corrected(
    model_server: ModelServer, desk: Dataset[TaskCompletion], tmp_path: Path
) -> None:
    """Of 18 runs that end with people 12 are successes, and so are 19 of the 82 others."""
    results = judged(model_server, desk, lambda asked, n: said(TRANSFER in asked.data["turns"]), tmp_path / "run.db")
    assert completion_rate.estimate(results).counts == {"hits": 18, "total": 100}
    found = agreement(results, desk)["completed"]
    assert found["accuracy"].value == pytest.approx(0.75)
    assert found["kappa"].value == pytest.approx((0.75 - 0.6216) / (1 - 0.6216))
    assert (found["tpr"].value, found["tnr"].value) == (pytest.approx(12 / 31), pytest.approx(63 / 69))
    assert found["accuracy"].clusters == 25
    part = desk.keep(lambda each: each.given().attributes["trial"] in ("0", "1"))
    right = corrected(completion_rate, results, part)
    assert right.judge_only.value == pytest.approx(0.18)
    assert right.estimate.low is not None
    assert right.estimate.high is not None
    assert right.estimate.low < 0.31 < right.estimate.high
    assert right.estimate.value is not None
    assert abs(right.estimate.value - 0.31) < abs(0.18 - 0.31)


def test_runs_that_the_judge_cannot_read_neither_raise_nor_lower_the_rate(
    model_server: ModelServer, desk: Dataset[TaskCompletion], tmp_path: Path
) -> None:
    def breaks(asked: Asked, n: int) -> Answer | str:
        return Answer(status=400) if TRANSFER in asked.data["turns"] else said(completed=False)

    results = judged(model_server, desk, breaks, tmp_path / "run.db")
    rate = completion_rate.estimate(results)
    assert (rate.value, rate.n, rate.left_out, rate.bounds) == (0, 82, {"failed": 18}, (0, 0.18))
    alike = agreement(results, desk)["completed"]["answered alike"]
    assert alike.counts == {"hits": 63, "total": 100}

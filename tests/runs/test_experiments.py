"""Experiments: a result in each place whatever happens, nothing done twice, and files that say what was found."""

from __future__ import annotations

import asyncio
import html
import importlib.util
import json
import linecache
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import (
    DatasetError,
    Failure,
    Fallback,
    FunctionEvaluator,
    HandOff,
    InputError,
    Mean,
    Rate,
    Skip,
    Verdict,
    bulk,
    report,
)
from evalr.inputs import About, Session
from evalr.labels import Dataset, Example
from evalr.logs import read
from evalr.measures import TaskCompletion, Transcript, Turn, completion_rate
from evalr.runs import Budget, Experiment, Limiter, Retry, Trial, compare, experiment, experiment_sync
from evalr.runs.code_versions import code_version
from evalr.runs.reasons import reason_lines
from evalr.runs.tasks import Output

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
ONCE = Retry(tries=1)


class Match(BaseModel):
    match: bool


matches = Rate("matches", of=Match, hits=lambda v: v.match, noun="example")


def dataset(size: int = 10, users: int = 4) -> Dataset[TaskCompletion]:
    return Dataset(
        "some",
        [
            Example(
                Transcript(id=f"e{n}", user=f"u{n % users}", request=f"q{n}"),
                expected=TaskCompletion(completed=n % 2 == 0, quality=3),
                attributes={"topic": f"t{n % 3}"},
            )
            for n in range(size)
        ],
    )


def answer(given: Transcript) -> Transcript:
    return given.model_copy(update={"turns": [Turn(role="agent", text=f"answer to {given.request}")]})


def look(given: Transcript) -> TaskCompletion:
    return TaskCompletion(completed="answer" in given.turns[0].text, quality=4, reason="it says so")


judge = FunctionEvaluator("completion", "1", look, Transcript, TaskCompletion)
to_label = FunctionEvaluator(
    "match", "1", lambda trial: Match(match=trial.expected.completed == (trial.output == "yes")), Trial, Match
)


def statuses(found: Experiment) -> dict[str, int]:
    return dict(Counter(result.status for result in found.results))


# Results


def test_there_is_one_result_for_each_example_and_evaluator_under_the_examples_id() -> None:
    found = experiment_sync(dataset(), answer, judge)
    assert [result.about.id for result in found.results if result.about] == [f"e{n}" for n in range(10)]
    first = found.results[0]
    assert isinstance(first, Verdict)
    assert first.value == TaskCompletion(completed=True, quality=4, reason="it says so")
    assert first.about is not None
    assert (first.about.user, first.about.attributes) == ("u0", {"topic": "t0", "group": "u0"})
    assert found.outputs["e3", None].turns[0].text == "answer to q3"


def test_an_async_task_and_a_running_loop() -> None:
    async def slow(given: Transcript) -> Transcript:
        await asyncio.sleep(0)
        return answer(given)

    async def within() -> tuple[Experiment, Experiment]:
        return await experiment(dataset(), slow, judge), experiment_sync(dataset(), slow, judge)

    first, second = asyncio.run(within())
    assert statuses(first) == statuses(second) == {"verdict": 10}


def test_a_task_that_raises_is_a_failure_of_every_evaluator_and_stays_in_the_denominator() -> None:
    def half(given: Transcript) -> Transcript:
        if int(str(given.id)[1:]) % 2:
            raise ValueError("{x} boom \ud83d")
        return answer(given)

    other = FunctionEvaluator("other", "1", look, Transcript, TaskCompletion)
    found = experiment_sync(dataset(), half, [judge, other])
    assert statuses(found) == {"verdict": 10, "failed": 10}
    failed = [result for result in found.results_of("other") if result.status == "failed"]
    assert {(result.evaluator, result.version) for result in failed} == {("other", "1")}
    assert "task half failed: ValueError: {x} boom \ufffd" in repr(failed[0])
    estimate = completion_rate.estimate(found.results_of("completion"))
    assert (estimate.n, estimate.left_out, estimate.bounds) == (5, {"failed": 5}, (0.5, 1.0))


def test_an_evaluator_that_raises_is_a_failure_and_no_other_is_touched() -> None:
    def crash(given: Transcript) -> TaskCompletion:
        raise ValueError("the judge is out")

    crashing = FunctionEvaluator("crash", "1", crash, Transcript, TaskCompletion)
    found = experiment_sync(dataset(), answer, [judge, crashing])
    assert {result.status for result in found.results_of("completion")} == {"verdict"}
    assert {result.status for result in found.results_of("crash")} == {"failed"}


def test_a_task_may_skip_or_hand_off() -> None:
    def choosy(given: Transcript) -> Any:
        return {"e0": Skip("not asked"), "e1": HandOff("to people")}.get(str(given.id)) or answer(given)

    found = experiment_sync(dataset(3), choosy, judge)
    assert [result.status for result in found.results] == ["skipped", "handed_off", "verdict"]
    assert {result.evaluator for result in found.results} == {"completion"}


def test_what_the_budget_did_not_reach_is_a_skip_that_says_so() -> None:
    found = experiment_sync(dataset(), answer, judge, budget=Budget(calls=7), limit=1)
    assert len(found.results) == 10
    skipped = [result for result in found.results if isinstance(result, Skip)]
    assert skipped
    assert {result.reason for result in skipped} == {"not done: budget of 7 calls used up"}
    assert sum(run.calls for run in found.runs.values()) == 7
    assert completion_rate.estimate(found.results).bounds == ((10 - len(skipped)) / 10, 1.0)


def test_a_task_that_takes_too_long_is_a_failure_that_names_it() -> None:
    async def stuck(given: Transcript) -> Transcript:
        await asyncio.sleep(30 if given.id == "e1" else 0)
        return answer(given)

    found = experiment_sync(dataset(3), stuck, judge, timeout=0.2, retry=ONCE)
    assert [result.status for result in found.results] == ["verdict", "failed", "verdict"]
    assert "task stuck failed: timed out: transcript 'e1'" in repr(found.results[1])


def test_calls_of_task_and_evaluators_share_one_limit() -> None:
    at_once, most = 0, 0

    async def counted(given: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.002)
        at_once -= 1
        return answer(given) if not given.turns else look(given)

    both = FunctionEvaluator("completion", "1", counted, Transcript, TaskCompletion)
    found = experiment_sync(dataset(20), counted, both, limit=Limiter(3), task_version="1")
    assert statuses(found) == {"verdict": 20}
    assert most == 3


def test_without_a_task_the_inputs_are_judged_as_they_are() -> None:
    plain = FunctionEvaluator(
        "completion",
        "1",
        lambda given: TaskCompletion(completed=given.id == "e1", quality=3),
        Transcript,
        TaskCompletion,
    )
    found = experiment_sync(dataset(4), None, plain)
    assert (found.task, found.name) == (None, "some")
    assert completion_rate(found.results) == 0.25


# What evaluators are given


def test_an_evaluator_of_trials_sees_example_output_and_label() -> None:
    found = experiment_sync(dataset(), lambda given: "yes", to_label)
    assert matches(found.results) == 0.5
    assert {result.about.kind for result in found.results if result.about} == {"trial"}


def test_evaluators_of_trials_and_of_outputs_work_side_by_side() -> None:
    seen: list[Transcript] = []

    def quiet(given: Transcript) -> TaskCompletion:
        seen.append(given)
        return look(given)

    trials = FunctionEvaluator(
        "match",
        "1",
        lambda trial: Match(match=trial.output.turns[0].text.endswith(trial.example.input.request)),
        Trial,
        Match,
    )
    found = experiment_sync(
        dataset(), answer, [FunctionEvaluator("completion", "1", quiet, Transcript, TaskCompletion), trials]
    )
    assert statuses(found) == {"verdict": 20}
    assert matches(found.results_for(matches)) == 1.0
    assert all(type(each) is Transcript for each in seen), "who reads outputs never sees the label"


def test_the_label_reaches_evaluators_of_sessions_too() -> None:
    whole = Dataset("some", [Example(Session(id="s1", user="u"), expected=Match(match=True))])
    trials = FunctionEvaluator("match", "1", lambda trial: Match(match=trial.expected.match), Trial, Match)
    assert matches(experiment_sync(whole, None, trials).results) == 1.0


def test_judge_input_makes_what_is_judged() -> None:
    found = experiment_sync(
        dataset(3),
        lambda given: f"answer to {given.request}",
        judge,
        judge_input=lambda example, output: example.input.model_copy(
            update={"turns": [Turn(role="agent", text=output)], "id": "another"}
        ),
    )
    assert statuses(found) == {"verdict": 3}
    assert [result.about.id for result in found.results if result.about] == ["e0", "e1", "e2"]


def test_a_judge_input_that_raises_is_a_failure() -> None:
    found = experiment_sync(dataset(3), answer, judge, judge_input=lambda example, output: output.nothing)
    assert statuses(found) == {"failed": 3}
    assert "judge_input failed: AttributeError" in repr(found.results[0])


def test_an_output_that_nobody_can_read_is_an_error_that_says_what_to_pass() -> None:
    with pytest.raises(InputError, match=r"the task returned a str for example 'e\d'.*judge_input="):
        experiment_sync(dataset(), lambda given: "yes", judge)


def test_an_evaluator_of_other_inputs_is_an_error_rather_than_a_skip() -> None:
    other = FunctionEvaluator("other", "1", lambda given: Match(match=True), Session, Match)
    with pytest.raises(InputError, match=r"is a Transcript, and evaluator 'other' reads Session"):
        experiment_sync(dataset(), None, other)


@pytest.mark.parametrize(
    "output",
    ["text \u2028 \ud83d", 3, 1.5, None, True, ["a", {"b": [1, None]}], TaskCompletion(completed=True, quality=2)],
)
def test_outputs_are_given_as_they_are(output: Any, tmp_path: Path) -> None:
    given: list[Any] = []

    def keep(trial: Trial) -> Match:
        given.append(trial.output)
        return Match(match=True)

    for version in "12":  # the second time, the output is in the journal
        keeping = FunctionEvaluator("keep", version, keep, Trial, Match)
        experiment_sync(
            dataset(1), lambda _: output, keeping, journal=tmp_path / "j.db", task_name="t", task_version="1"
        )
    assert given == [output, output]
    assert [type(each) for each in given] == [type(output)] * 2


def test_an_output_that_cannot_be_kept_is_a_failure_with_and_without_a_journal() -> None:
    found = experiment_sync(dataset(1), lambda _: object(), to_label)
    assert "a task returns what JSON holds, or a model; this one returned a object" in repr(found.results[0])


def test_an_output_of_a_type_that_changed_asks_for_another_version() -> None:
    kept = Output.of(TaskCompletion(completed=True, quality=2))
    with pytest.raises(InputError, match="give the task another version"):
        kept.model_copy(update={"plain": {"completed": 3}}).value()
    with pytest.raises(InputError, match="which is not defined here"):
        kept.model_copy(update={"model": "nowhere.Nothing"}).value()


def test_a_lone_surrogate_in_every_text_is_stored_hashed_tried_judged_and_read_back(tmp_path: Path) -> None:
    lone = "\ud83d"
    whole = Dataset(
        "some",
        [
            Example(
                Transcript(id=lone, user=lone, request=lone, turns=[Turn(role="agent", text=lone)], result=lone),
                expected=TaskCompletion(completed=True, quality=3, reason=lone),
                reason=lone,
                author=lone,
                attributes={lone: lone},
            )
        ],
    )
    whole.save(tmp_path / "some.jsonl")
    assert Dataset.load(tmp_path / "some.jsonl").hash == whole.hash

    def say(given: Transcript) -> TaskCompletion:
        return TaskCompletion(completed=True, quality=3, reason=lone)

    judging = FunctionEvaluator("completion", "1", say, Transcript, TaskCompletion)
    found = experiment_sync(
        whole, lambda given: given.model_copy(update={"result": lone}), judging, journal=tmp_path / "j.db"
    )
    assert statuses(found) == {"verdict": 1}
    assert next(iter(found.outputs.values())).result == "\ufffd"
    found.save(tmp_path / "found.jsonl")
    assert Experiment.load(tmp_path / "found.jsonl") == found


def test_an_output_that_is_no_valid_input_is_a_failure() -> None:
    found = experiment_sync(dataset(1), lambda given: given.model_copy(update={"turns": [3]}), judge)
    assert "task task failed: ValidationError" in repr(found.results[0])


# Repeats


def test_repeats_are_data_and_the_flip_rate_reads_them() -> None:
    numbers = random.Random(4)

    def moody(given: Transcript) -> str:
        return "yes" if numbers.random() < 0.5 else "no"

    found = experiment_sync(dataset(40), moody, to_label, repeats=3)
    assert len(found.results) == 120
    assert [result.about.repeat for result in found.results[:3] if result.about] == [1, 2, 3]
    flips = Rate("flips", of=Match, hits=lambda v: v.match, per="id", fold="flip", noun="item")
    estimate = flips.estimate(found.results)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low < 0.75 < estimate.high  # three tosses of a coin disagree in three of four
    assert matches.estimate(found.results).clusters == 4, "asking again makes no interval narrower"


def test_repeats_without_a_task_ask_the_evaluators_again() -> None:
    calls: list[str] = []

    def counted(given: Transcript) -> TaskCompletion:
        calls.append(given.request)
        return TaskCompletion(completed=True, quality=3)

    found = experiment_sync(
        dataset(3), None, FunctionEvaluator("completion", "1", counted, Transcript, TaskCompletion), repeats=2
    )
    assert Counter(calls) == {"q0": 2, "q1": 2, "q2": 2}
    assert {(result.about.id, result.about.repeat) for result in found.results if result.about} == {
        (f"e{n}", k) for n in range(3) for k in (1, 2)
    }


def test_more_repeats_later_use_those_that_are_there(tmp_path: Path) -> None:
    calls: list[str] = []

    def counted(given: Transcript) -> Transcript:
        calls.append(given.request)
        return answer(given)

    for repeats in (1, 3):
        experiment_sync(dataset(2), counted, judge, repeats=repeats, journal=tmp_path / "j.db", task_version="1")
    assert Counter(calls) == {"q0": 3, "q1": 3}


# Going on


def test_nothing_is_done_twice_and_a_failed_task_is_tried_again(tmp_path: Path) -> None:
    calls: Counter[str] = Counter()
    broken = {"e1"}

    def counted(given: Transcript) -> Transcript:
        calls[str(given.id)] += 1
        if given.id in broken:
            raise ValueError("not now")
        return answer(given)

    options: dict[str, Any] = {"journal": tmp_path / "j.db", "task_version": "1"}
    first = experiment_sync(dataset(4), counted, judge, **options)
    assert statuses(first) == {"verdict": 3, "failed": 1}
    broken.clear()
    second = experiment_sync(dataset(5), counted, judge, **options)
    assert statuses(second) == {"verdict": 5}
    assert calls == {"e0": 1, "e1": 2, "e2": 1, "e3": 1, "e4": 1}
    assert second.results[0] == first.results[0]
    assert second.runs["judging"].calls == 2


def test_another_version_of_task_or_evaluator_or_input_asks_again(tmp_path: Path) -> None:
    calls: Counter[str] = Counter()

    def counted(given: Transcript) -> Transcript:
        calls["task"] += 1
        return answer(given)

    def counted_look(given: Transcript) -> TaskCompletion:
        calls["judge"] += 1
        return look(given)

    def run(*, task: str = "1", version: str = "1", request: str = "q") -> dict[str, int]:
        calls.clear()
        whole = Dataset("some", [Example(Transcript(id="a", request=request))])
        judging = FunctionEvaluator("completion", version, counted_look, Transcript, TaskCompletion)
        experiment_sync(whole, counted, judging, journal=tmp_path / "j.db", task_version=task)
        return dict(calls)

    assert run() == {"task": 1, "judge": 1}
    assert run() == {}
    assert run(version="2") == {"judge": 1}
    assert run(task="2") == {"task": 1}, "the same output is judged already"
    assert run(request="other") == {"task": 1, "judge": 1}


CHILD = """
import asyncio, os, sys
from evalr import FunctionEvaluator
from evalr.labels import Dataset, Example
from evalr.logs import read
from evalr.measures import TaskCompletion, Transcript, Turn
from evalr.runs import experiment

folder = sys.argv[1]

def note(what, given):
    with open(os.path.join(folder, what), "a") as file:
        file.write(f"{given.request}\\n")

async def task(given):
    note("task", given)
    await asyncio.sleep(0.03)
    return given.model_copy(update={"turns": [Turn(role="agent", text="x")]})

async def look(given):
    note("judge", given)
    await asyncio.sleep(0.03)
    return TaskCompletion(completed=True, quality=3)

async def main():
    whole = Dataset("some", [Example(Transcript(id=f"e{n}", request=f"q{n}")) for n in range(60)])
    judge = FunctionEvaluator("completion", "1", look, Transcript, TaskCompletion)
    found = await experiment(whole, task, judge, journal=os.path.join(folder, "j.db"), limit=4)
    found.save(os.path.join(folder, "found.jsonl"))

asyncio.run(main())
"""


def test_a_killed_experiment_goes_on_and_repeats_only_what_was_in_flight(tmp_path: Path) -> None:
    def child() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], env={**os.environ, "PYTHONPATH": SOURCE})

    def lines(name: str) -> list[str]:
        path = tmp_path / name
        return path.read_text().splitlines() if path.exists() else []

    for reached in (10, 30):
        killed = child()
        until = time.monotonic() + 30
        while len(lines("judge")) < reached and time.monotonic() < until:
            time.sleep(0.005)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    assert not (tmp_path / "found.jsonl").exists()
    assert child().wait() == 0
    found = Experiment.load(tmp_path / "found.jsonl")
    assert statuses(found) == {"verdict": 60}
    for name in ("task", "judge"):
        calls = Counter(lines(name))
        assert len(calls) == 60
        # In flight at a kill are at most twice what is asked at once.
        assert sum(calls.values()) - 60 <= 2 * 2 * 4, name


# A version by its code

PROMPT = "be kind"


def _helper(text: str) -> str:
    return text.upper()


def uses_helper(given: Any) -> str:
    return _helper(f"{PROMPT} {given}")


VERSION_PROBE = """
import sys
from evalr.runs.code_versions import code_version
for source in sys.argv[1:]:
    space = {"__name__": "m"}
    exec(compile(source, "m.py", "exec"), space)
    print(code_version(space["task"]))
"""


def versions_of(*sources: str, seed: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", VERSION_PROBE, *sources],
        env={**os.environ, "PYTHONPATH": SOURCE, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_a_version_by_code_is_the_same_in_every_process_and_changes_with_what_is_used() -> None:
    base = "P = 'be kind'\ndef h(x):\n    return x in {'a', 'b', 'c'}\ndef task(x):\n    return h(P + x)\n"
    changes = [("kind", "firm"), ("'c'", "'d'"), ("P + x", "x + P")]
    sources = [base, f"# moved down\n\n{base}", *(base.replace(*change) for change in changes)]
    first, second = (versions_of(*sources, seed=seed) for seed in ("1", "2"))
    assert first == second
    assert first[0] == first[1]
    assert len(set(first[1:])) == 4


TASKS = """
from functools import wraps

PROMPT = 'be kind'

def helper(text):
    return f"{PROMPT}: {text!r:>{10}} {{}} {'nested' f'{text}'}"

async def task(given):
    # what is said here changes nothing
    words = \'\'\'first

    last\'\'\'

    return helper(words), [each for each in given
                           if each]
"""


def versions_in(path: Path, text: str, *names: str) -> list[str]:
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [code_version(getattr(module, name)) for name in names]


def test_a_version_by_code_goes_by_the_source_and_is_the_same_in_every_python(tmp_path: Path) -> None:
    (version,) = versions_in(tmp_path / "tasks.py", TASKS, "task")
    assert version == "code:d83f4bdcfd9a"
    alike = [("    # what is said here changes nothing\n", ""), ("given\n" + 27 * " " + "if", "given if")]
    for n, change in enumerate(alike):
        assert versions_in(tmp_path / f"alike{n}.py", TASKS.replace(*change), "task") == [version]
    others = [
        ("kind", "firm"),
        ("first\n\n", "first\n"),
        ("{text!r:", "{text!s:"),
        ("{{}}", "{{-}}"),
        ("if each", "if not each"),
    ]
    found = [
        versions_in(tmp_path / f"other{n}.py", TASKS.replace(*change), "task")[0] for n, change in enumerate(others)
    ]
    assert len({version, *found}) == len(found) + 1


def test_a_version_by_code_tells_lambdas_of_one_line_apart(tmp_path: Path) -> None:
    text = "one, other = lambda x: x + 1, lambda x: x + 2\n"
    assert len(set(versions_in(tmp_path / "lambdas.py", text, "one", "other"))) == 2


def test_a_version_by_code_is_of_what_runs_and_not_of_what_its_file_says_since(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    path.write_text("def task(x):\n    return x + 1\n", encoding="utf-8")
    space: dict[str, Any] = {"__name__": "edited"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    path.write_text("def task(x):\n    return x + 2\n", encoding="utf-8")
    linecache.clearcache()
    path_after = tmp_path / "after.py"
    (after,) = versions_in(path_after, path.read_text(encoding="utf-8"), "task")
    assert code_version(space["task"]) != after


def test_a_version_by_code_looks_into_what_holds_a_function() -> None:
    class Caller:
        def __init__(self, model: str) -> None:
            self.model = model
            self.client = object()

        def __call__(self, given: Any) -> str:
            return f"{self.model}{given}"

        def call(self, given: Any) -> str:
            return f"{given}{self.model}"

    found = [
        code_version(each)
        for each in (
            uses_helper,
            Caller("a"),
            Caller("b"),
            Caller("a").call,
            Caller("b").call,
            partial(uses_helper, given="x"),
            partial(uses_helper, given="y"),
            len,
        )
    ]
    assert len(set(found)) == len(found)
    assert code_version(Caller("a")) == found[1]
    assert code_version(Caller("a").call) == found[3]


# Looking, and files


def test_the_table_has_a_row_for_each_example(tmp_path: Path) -> None:
    def some(given: Transcript) -> Transcript:
        if given.id == "e2":
            raise ValueError("x")
        return answer(given)

    found = experiment_sync(dataset(3), some, judge, task_version="1")
    assert str(found) == (
        f"some · 3 examples of some ({found.dataset_hash[:12]}) · task some@1 · judged by completion@1 · "
        "2 verdicts, 1 failed · cost unknown\n"
        "1 failed: task some failed: ValueError: x (1)\n"
        "example  completion.completed  completion.quality\n"
        "e0       True                  4\n"
        "e1       True                  4\n"
        "e2       failed                failed"
    )
    rows = found.to_dicts()
    assert rows[0] == {
        "example": "e0",
        "group": "u0",
        "repeat": None,
        "completion:status": "verdict",
        "completion:why": None,
        "completion.completed": True,
        "completion.quality": 4,
        "completion.reason": "it says so",
    }
    assert rows[2]["completion:status"] == "failed"
    assert rows[2]["completion:why"] == "task some failed: ValueError: x"
    assert len(found.table()) == 3


def test_the_table_of_repeats_says_how_often() -> None:
    numbers = iter(["yes", "no", "yes"])
    found = experiment_sync(dataset(1), lambda _: next(numbers), to_label, repeats=3, limit=1)
    assert found.table().cells("e0") == ["e0", "True ×2, False"]
    assert len(found.to_dicts()) == 3


def test_a_long_table_is_cut_and_says_so_and_frames_have_all() -> None:
    pytest.importorskip("pandas")
    found = experiment_sync(dataset(30), answer, judge)
    assert str(found).endswith("and 10 more examples; to_frame() has them all")
    assert list(found.to_frame()["example"]) == [f"e{n}" for n in range(30)]


def test_an_experiment_says_why_there_are_no_verdicts() -> None:
    def wrong(trial: Trial) -> Match:
        number = int(str(trial.input.id)[1:])
        if number == 9:
            raise ValueError("<b>\u202e" + "x" * 500)
        return trial.label if number < 6 else [][number]  # type: ignore[attr-defined]

    found = experiment_sync(dataset(), answer, FunctionEvaluator("match", "1", wrong, Trial, Match))
    line = str(found).split("\n")[1]
    assert line.startswith("10 failed: AttributeError: 'Trial' object has no attribute 'label' (6), IndexError: ")
    assert (len(line) < 400, "(3)" in line, "(1)" in line, "\u202e" not in line) == (True, True, True, True)
    assert html.escape("object has no attribute 'label' (6)") in found._repr_html_()
    assert "<b>" not in found._repr_html_()


def test_the_commonest_reasons_are_named_and_others_counted() -> None:
    results = [Failure(f"kind {n}") for n in range(5) for _ in range(5 - n)] + [Skip("not today"), HandOff("{people}")]
    assert reason_lines(results) == [
        "15 failed: kind 0 (5), kind 1 (4), kind 2 (3), 2 other reasons (3)",
        "1 skipped: not today (1)",
        "1 handed off: {people} (1)",
    ]
    assert reason_lines([Verdict(Match(match=True), "match")]) == []


def test_html_is_escaped() -> None:
    name = "<script>alert(1)</script>\u202e"
    found = experiment_sync(Dataset(name, [Example(Transcript(id=name, request="x"))]), answer, judge)
    shown = found._repr_html_()
    assert "<script>" not in shown
    assert html.escape("<script>") in shown
    assert "\u202e" not in shown + str(found)


def test_an_experiment_is_read_back_as_it_was(tmp_path: Path) -> None:
    def hostile(given: Transcript) -> Any:
        if given.id == "e0":
            raise ValueError("\u2028 \x85 \r\n")
        return HandOff("to \u2029 people") if given.id == "e1" else "yes"

    path = tmp_path / "found.jsonl"
    found = experiment_sync(dataset(5), hostile, to_label, repeats=2)
    found.save(path)
    read = Experiment.load(path, verdict_types=[Match])
    assert read == found
    assert len(path.read_text(encoding="utf-8").splitlines()) == 11
    assert matches.estimate(read.results) == matches.estimate(found.results)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], "3 results, and its first line says 4"),
        (lambda lines: [*lines[:-1], lines[-1][:-5]], "line 5: not JSON"),
        (lambda lines: [*lines[:-1], lines[-1].replace('"match": false', '"match": 7')], "line 5: a stored verdict"),
        (
            lambda lines: [*lines[:-1], lines[-1].replace('"version": "1"', '"version": "2"')],
            "line 5: a result by match@2",
        ),
        (
            lambda lines: [lines[0].replace('"Match"', '"Other"'), *lines[1:]],
            "line 1: 'Other' is of no installed measure",
        ),
        (lambda lines: [lines[0].replace('"repeats"', '"repeat"'), *lines[1:]], "line 1: 'repeats' is missing"),
        (lambda lines: lines[1:], 'line 1: no header with "type": "experiment"'),
    ],
)
def test_damage_names_the_line(tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "found.jsonl"
    experiment_sync(dataset(4), lambda _: "yes", to_label).save(path)
    path.write_text("\n".join(change(path.read_text().splitlines())))
    with pytest.raises(DatasetError, match=message):
        Experiment.load(path, verdict_types=[Match])


def test_lines_are_results_as_evalrs_own_log_has_them(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    found = experiment_sync(dataset(4), answer, judge, repeats=2)
    found.save(path)
    stored = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert {line["type"] for line in stored} == {"result"}
    log = read(path)
    assert [item.result.about for item in log] == [result.about for result in found.results]  # type: ignore[union-attr]


def test_a_saved_experiment_is_a_log_whose_first_line_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    experiment_sync(dataset(10), answer, judge).save(path)
    for strict in (False, True):
        log = read(path, strict=strict)
        assert [type(item).__name__ for item in log] == ["Stored"] * 10
        assert (log.records, dict(log.left_out.counts), dict(log.unknown_fields)) == (10, {}, {})
    now = datetime(2026, 11, 30, tzinfo=UTC)
    for one in (report(path, now=now), bulk.report(path, now=now), bulk.report(path, now=now, processes=2)):
        assert (one["completion"].n, "left out" in str(one)) == (10, False)


def says_yes(given: Transcript) -> TaskCompletion:
    return TaskCompletion(completed=True, quality=4)


def test_a_header_that_is_longer_than_what_is_looked_at_is_known(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    experiment_sync(
        dataset(3000), None, FunctionEvaluator("completion", "1", says_yes, Transcript, TaskCompletion, inline=True)
    ).save(path)
    assert len(path.read_text().split("\n")[0]) > 64 * 1024
    assert len(list(read(path))) == 3000


def test_a_summary_finds_its_results_by_the_verdict_type() -> None:
    found = experiment_sync(
        dataset(4), answer, [judge, FunctionEvaluator("m", "1", lambda t: Match(match=True), Trial, Match)]
    )
    assert {result.evaluator for result in found.results_for(completion_rate)} == {"completion"}
    with pytest.raises(InputError, match="no evaluator gives it"):
        found.results_for(Mean("x", of=_Other, value=lambda v: 1.0))
    both = [judge, FunctionEvaluator("completion", "2", look, Transcript, TaskCompletion)]
    with pytest.raises(InputError, match="completion@1 and completion@2 give it"):
        experiment_sync(dataset(4), answer, both).results_for(completion_rate)
    assert len(experiment_sync(dataset(4), answer, both).results_of("completion", "2")) == 4
    with pytest.raises(InputError, match=r"no evaluator 'complete' judged.*did you mean 'completion'"):
        found.results_of("complete")


class _Other(BaseModel):
    x: int


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([], answer, judge), {}, "pass a Dataset"),
        ((dataset(1), "answer", judge), {}, "task='answer' must be a function"),
        ((dataset(1), answer, []), {}, "at least one evaluator"),
        ((dataset(1), answer, judge), {"repeats": 0}, "repeats=0"),
        ((dataset(1), None, judge), {"repeats": 0}, "repeats=0"),
        ((dataset(1), answer, [judge, "judge"]), {}, "'judge' is no evaluator"),
        ((dataset(1), answer, [judge, replace(judge, input_type=Trial)]), {}, "two evaluators are named 'completion'"),
        ((dataset(1), answer, judge), {"failures": "drop"}, "failures='drop'"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        experiment_sync(*arguments, **options)


def test_an_experiment_over_nothing_has_nothing_and_passes_no_gate() -> None:
    nothing = Dataset("none", input_type=Transcript, verdict_type=TaskCompletion)
    found = experiment_sync(nothing, answer, judge)
    assert found.results == []
    assert "no results" in str(found)
    comparison = compare(found, found, completion_rate)
    assert comparison["completion"].difference.status == "undefined"
    assert not comparison.gate("completion > -1")


def test_a_task_is_tried_again_where_that_may_help() -> None:
    class BusyError(Exception):
        status_code = 429

    tries: Counter[str] = Counter()

    async def busy(given: Transcript) -> Transcript:
        tries[str(given.id)] += 1
        if tries[str(given.id)] < 3:
            raise BusyError
        return answer(given)

    found = experiment_sync(dataset(3), busy, judge, retry=Retry(tries=3, first=0.001))
    assert statuses(found) == {"verdict": 3}
    assert found.runs["task"].retried == 6


def test_a_chain_of_evaluators_of_trials_reads_trials() -> None:
    def unsure(trial: Trial) -> Any:
        return HandOff("not sure")

    chain = Fallback(FunctionEvaluator("match", "0", unsure, Trial, Match), to_label)
    assert matches(experiment_sync(dataset(4), lambda _: "yes", chain).results) == 0.5


def test_an_evaluator_whose_results_name_another_is_an_error() -> None:
    class Liar:
        name, version, verdict_type = "liar", "1", Match

        async def evaluate(self, given: Any) -> Verdict[Match]:
            return Verdict(Match(match=True), "somebody else", "1", given.about())

    with pytest.raises(InputError, match="a result by 'somebody else', version '1', which none is"):
        experiment_sync(dataset(2), None, Liar())


def test_a_result_about_something_else_is_an_error() -> None:
    class Astray:
        name, version, verdict_type = "astray", "1", Match

        async def evaluate(self, given: Any) -> Verdict[Match]:
            return Verdict(Match(match=True), "astray", "1", About("transcript", "another"))

    with pytest.raises(InputError, match="'astray' gave a result about transcript 'another', which it was not asked"):
        experiment_sync(dataset(2), None, Astray())


def test_an_experiment_that_is_cancelled_leaves_nothing_running(tmp_path: Path) -> None:
    async def slow(given: Transcript) -> Transcript:
        await asyncio.sleep(10)
        return answer(given)

    async def main() -> set[str]:
        running = asyncio.create_task(experiment(dataset(), slow, judge, journal=tmp_path / "j.db"))
        await asyncio.sleep(0.1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return {task.get_name() for task in asyncio.all_tasks()} - {"Task-1"}

    assert not {name for name in asyncio.run(main()) if "evalr" in name}


def test_progress_counts_the_judged_outputs() -> None:
    seen: list[Any] = []
    experiment_sync(dataset(5), answer, judge, progress=seen.append)
    assert (seen[-1].done, seen[-1].total, seen[-1].over) == (5, 5, True)

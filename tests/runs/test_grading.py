"""Grading on demand: who is asked, what the cache serves and for how long, in one process and in several."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from evalr import Failure, FunctionEvaluator, HandOff, InputError, JournalError, Skip, Verdict
from evalr.inputs import Input, Session, Transcript, Turn
from evalr.runs import Budget, Family, Grades, Journal, Limiter, evaluate_all_sync, grade, grade_sync
from evalr.runs.journal import Elsewhere
from evalr.runs.recording import JournalRecorder

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
NINE = datetime(2026, 11, 30, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Said(BaseModel):
    good: bool


class Exchange(Input):
    kind: ClassVar[str] = "exchange"

    session: str
    served: str
    shadow: str

    def _parent(self) -> str | None:
        return self.session


@dataclass
class Judge:
    """A scripted judge that counts what it is asked."""

    name: str
    answer: Callable[[Any], Any] = lambda given: Said(good=True)
    version: str = "1"
    reads: type[Input] = Transcript
    asked: Counter[str] = field(default_factory=Counter)
    pending: Callable[[Said], bool] | None = None

    def evaluator(self) -> FunctionEvaluator[Any, Said]:
        def ask(given: Input) -> Any:
            self.asked[str(given.id)] += 1
            answer = self.answer(given)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return FunctionEvaluator(self.name, self.version, ask, self.reads, Said, inline=True, pending=self.pending)

    @property
    def calls(self) -> int:
        return self.asked.total()


def session(*shadows: str | None, name: str = "s1", **fields: Any) -> Transcript:
    turns = [
        Turn(role="agent", id=f"r{n}", text="served", metadata={} if shadow is None else {"shadow": shadow})
        for n, shadow in enumerate(shadows)
    ]
    return Transcript(id=name, user="u1", request="help", turns=turns, **fields)


def exchanges(given: Transcript) -> list[Exchange]:
    return [
        Exchange(
            id=turn.id, user=given.user, session=str(given.id), served=turn.text, shadow=str(turn.metadata["shadow"])
        )
        for turn in given.turns
        if "shadow" in turn.metadata
    ]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "grades.db"


# ---------------------------------------------------------------------------------------------------------------------
# The cache
# ---------------------------------------------------------------------------------------------------------------------


def test_a_grade_is_served_for_its_lifetime_and_then_asked_again(cache: Path) -> None:
    judge = Judge("outcome")
    seen = []
    for after in (timedelta(0), HOUR, 24 * HOUR - timedelta(microseconds=1), 24 * HOUR, 25 * HOUR):
        grades = grade_sync(session(), {"outcome": judge.evaluator()}, cache=cache, now=NINE + after)
        found = grades["outcome"]
        assert (found.status, found.reason, found.counts) == ("graded", None, {"graded": 1})
        assert found.graded_at is not None
        assert found.expires_at == found.graded_at + 24 * HOUR
        (result,) = found.results
        assert isinstance(result, Verdict)
        assert result.about is not None
        assert (result.value, result.about.subject) == (Said(good=True), ("transcript", "u1", None, "s1"))
        assert grades.summary.calls == (0 if found.cached else 1)
        seen.append((found.cached, (found.graded_at - NINE) // HOUR))
    assert seen == [(False, 0), (True, 0), (True, 0), (False, 24), (True, 24)]
    assert judge.calls == 2


@pytest.mark.parametrize(
    ("lifetime", "after", "cached"), [(HOUR, 1.5, False), (2 * HOUR, 1.5, True), (None, 1e5, True)]
)
def test_the_lifetime_is_the_requests_to_say(
    lifetime: timedelta | None, after: float, cached: bool, cache: Path
) -> None:
    judges = {"outcome": Judge("outcome").evaluator()}
    grade_sync(session(), judges, cache=cache, now=NINE)
    found = grade_sync(session(), judges, cache=cache, now=NINE + after * HOUR, lifetime=lifetime)["outcome"]
    assert found.cached is cached
    assert (found.expires_at is None) is (lifetime is None)


def test_a_clock_is_read_for_each_request_and_each_call(cache: Path) -> None:
    times = [NINE]

    def clock() -> datetime:
        times.append(times[-1] + timedelta(minutes=1))
        return times[-1]

    judges = {"outcome": Judge("outcome").evaluator()}
    found = grade_sync(session(), judges, cache=cache, now=clock)["outcome"]
    assert found.graded_at in times[2:]
    assert grade_sync(session(), judges, cache=cache, now=clock)["outcome"].graded_at == found.graded_at


def test_a_later_turn_and_a_new_version_of_the_judge_are_asked(cache: Path) -> None:
    judge, newer = Judge("outcome"), Judge("outcome", version="2")
    one = grade_sync(session("a"), {"outcome": judge.evaluator()}, cache=cache)
    longer = grade_sync(session("a", "b"), {"outcome": judge.evaluator()}, cache=cache)
    version = grade_sync(session("a"), {"outcome": newer.evaluator()}, cache=cache)
    assert [each["outcome"].cached for each in (one, longer, version)] == [False, False, False]
    assert grade_sync(session("a"), {"outcome": judge.evaluator()}, cache=cache)["outcome"].cached
    assert (judge.calls, newer.calls) == (2, 1)


def test_how_many_it_stands_for_is_no_part_of_the_question(cache: Path) -> None:
    judge = Judge("outcome")
    for weight in (None, 2.5, 7.0):
        found = grade_sync(session(weight=weight), {"outcome": judge.evaluator()}, cache=cache)["outcome"]
        assert [each.about and each.about.weight for each in found.results] == [weight]
    assert judge.calls == 1


def test_again_asks_everything_once_more(cache: Path) -> None:
    judge = Judge("outcome")
    for now in (NINE, NINE, NINE + HOUR):
        found = grade_sync(session(), {"outcome": judge.evaluator()}, cache=cache, now=now, again=True)["outcome"]
        assert (found.cached, found.graded_at) == (False, now)
    assert judge.calls == 3
    assert grade_sync(session(), {"outcome": judge.evaluator()}, cache=cache, now=NINE + 24 * HOUR)["outcome"].cached


def test_what_a_run_has_asked_is_served(cache: Path) -> None:
    judge = Judge("outcome")
    list(evaluate_all_sync(judge.evaluator(), [session()], journal=cache))
    found = grade_sync(session(), {"outcome": judge.evaluator()}, cache=cache)["outcome"]
    assert (found.cached, judge.calls) == (True, 1)
    old = grade_sync(session(), {"outcome": judge.evaluator()}, cache=cache, now=datetime.now(UTC) + 25 * HOUR)
    assert (old["outcome"].cached, judge.calls) == (False, 2)


def test_a_journal_may_be_one_that_is_open(cache: Path) -> None:
    judges = {"outcome": Judge("outcome").evaluator()}
    with Journal(cache) as journal:
        assert [grade_sync(session(), judges, cache=journal)["outcome"].cached for _ in range(2)] == [False, True]
        assert journal.totals().items == {"verdict": 1}


# ---------------------------------------------------------------------------------------------------------------------
# What is said of each family
# ---------------------------------------------------------------------------------------------------------------------

ANSWERS: dict[str, tuple[Any, str | None, bool]] = {
    "graded": (Said(good=True), None, True),
    "skipped": (Skip("too short"), "too short", True),
    "handed_off": (HandOff("unsure"), "unsure", True),
    "failed": (ValueError("broken"), "ValueError: broken", False),
    "pending": (Said(good=False), "too soon to tell", False),
}


@pytest.mark.parametrize("status", ANSWERS)
def test_the_five_kinds_are_kept_apart_and_failures_are_no_grades(status: str, cache: Path) -> None:
    answer, reason, served = ANSWERS[status]
    judge = Judge("outcome", lambda given: answer, pending=lambda said: not said.good)
    for again in (False, True):
        found = grade_sync(session(), {"outcome": judge.evaluator()}, cache=cache, now=NINE)["outcome"]
        assert (found.status, found.reason, found.counts) == (status, reason, {status: 1})
        assert found.cached is (again and served)
        assert (found.graded_at, found.expires_at) == ((NINE, NINE + 24 * HOUR) if served else (None, None))
    assert judge.calls == (1 if served else 2)


def test_a_failure_is_given_with_its_error(cache: Path) -> None:
    error = ValueError("broken")
    grades = grade_sync(session(), {"outcome": Judge("outcome", lambda given: error).evaluator()}, cache=cache)
    (result,) = grades.results
    assert isinstance(result, Failure)
    assert result.exception is error


def test_a_grade_that_has_expired_is_not_served_when_asking_again_fails(cache: Path) -> None:
    answers: list[Any] = [Said(good=True), ValueError("down"), Said(good=False)]
    judge = Judge("outcome", lambda given: answers.pop(0))
    found = [
        grade_sync(session(), {"outcome": judge.evaluator()}, cache=cache, now=NINE + after * HOUR)["outcome"].status
        for after in (0, 24, 24)
    ]
    assert found == ["graded", "failed", "graded"]


def test_families_are_graded_side_by_side(cache: Path) -> None:
    outcome, shadow, learning = Judge("outcome"), Judge("shadow", reads=Exchange), Judge("learning", reads=Exchange)
    judges = {
        "outcome": outcome.evaluator(),
        "shadow": Family(shadow.evaluator(), exchanges, none="no turn with a shadow answer"),
        "learning": Family(learning.evaluator(), lambda given: Skip("the learnings were deleted")),
    }
    none = grade_sync(session(None), judges, cache=cache)
    assert list(none) == ["outcome", "shadow", "learning"]
    assert (none["shadow"].status, none["shadow"].reason) == ("skipped", "no turn with a shadow answer")
    assert (none["learning"].status, none["learning"].reason) == ("skipped", "the learnings were deleted")
    assert (none["shadow"].cached, none["shadow"].results) == (False, ())
    some = grade_sync(session("a", None, "b"), judges, cache=cache)
    assert some["shadow"].counts == {"graded": 2}
    assert shadow.asked == {"r0": 1, "r2": 1}
    more = grade_sync(session("a", None, "b", "c"), judges, cache=cache)
    assert (more["shadow"].counts, more["shadow"].cached) == ({"graded": 3}, False)
    assert shadow.asked == {"r0": 1, "r2": 1, "r3": 1}
    assert (outcome.calls, learning.calls) == (3, 0)
    assert len(more.results) == 4


def test_parts_stand_for_as_many_as_the_whole(cache: Path) -> None:
    judges = {"shadow": Family(Judge("shadow", reads=Exchange).evaluator(), exchanges)}
    found = grade_sync(session("a", weight=3.0), judges, cache=cache)["shadow"]
    assert [each.about and each.about.weight for each in found.results] == [3.0]


def test_a_family_of_which_some_parts_have_no_grade_is_partial_and_asks_only_for_those(cache: Path) -> None:
    broken = {"r1"}
    judge = Judge("shadow", lambda given: OSError("reset") if given.id in broken else Said(good=True), reads=Exchange)
    judges = {"shadow": Family(judge.evaluator(), exchanges)}
    found = grade_sync(session("a", "b", "c"), judges, cache=cache, now=NINE)["shadow"]
    assert (found.status, found.reason) == ("partial", "2 graded, 1 failed (OSError: reset)")
    assert (found.counts, found.graded_at, found.expires_at) == ({"graded": 2, "failed": 1}, NINE, None)
    broken.clear()
    found = grade_sync(session("a", "b", "c"), judges, cache=cache, now=NINE + HOUR)["shadow"]
    assert (found.status, found.cached, found.graded_at) == ("graded", False, NINE)
    assert found.expires_at == NINE + 24 * HOUR
    assert judge.asked == {"r0": 1, "r1": 2, "r2": 1}


def test_several_kinds_without_a_verdict_are_counted_each(cache: Path) -> None:
    answers = {"r0": Skip("empty"), "r1": HandOff("unsure"), "r2": ValueError("broken")}
    judge = Judge("shadow", lambda given: answers[given.id], reads=Exchange)
    found = grade_sync(session("a", "b", "c"), {"shadow": Family(judge.evaluator(), exchanges)}, cache=cache)["shadow"]
    assert found.status == "failed"
    assert found.reason == "1 failed (ValueError: broken), 1 handed off (unsure), 1 skipped (empty)"


def test_a_family_may_have_several_evaluators(cache: Path) -> None:
    one, other = Judge("one"), Judge("other", lambda given: Skip("not mine"))
    found = grade_sync(session(), {"outcome": [one.evaluator(), other.evaluator()]}, cache=cache)["outcome"]
    assert (found.status, found.counts) == ("graded", {"graded": 1, "skipped": 1})


def test_what_a_budget_leaves_undone_is_neither_failed_nor_skipped(cache: Path) -> None:
    judges = {"shadow": Family(Judge("shadow", reads=Exchange).evaluator(), exchanges)}
    found = grade_sync(session("a", "b"), judges, cache=cache, budget=Budget(calls=0))["shadow"]
    assert (found.status, found.reason, found.counts) == ("not_done", "budget of 0 calls used up", {"not_done": 2})
    found = grade_sync(session("a", "b"), judges, cache=cache, budget=Budget(calls=1), limit=1)["shadow"]
    assert (found.status, found.reason) == ("partial", "1 graded, 1 not done (budget of 1 calls used up)")
    assert (found.cached, found.expires_at) == (False, None)


def test_grades_print_and_dump_what_they_say(cache: Path) -> None:
    judge = Judge("outcome", lambda given: ValueError("a \x1b[31mred\nline"))
    judges = {
        "outcome": judge.evaluator(),
        "shadow": Family(Judge("shadow").evaluator(), lambda given: [], none="none"),
    }
    grades = grade_sync(session(), judges, cache=cache)
    assert str(grades) == (
        "transcript 's1' of user 'u1'\n  outcome: failed, ValueError: a \\x1b[31mred\\nline\n  shadow: skipped, none"
    )
    assert grades.to_dict()["shadow"] == {
        "status": "skipped",
        "reason": "none",
        "counts": {},
        "results": [],
        "cached": False,
        "graded_at": None,
        "expires_at": None,
    }
    graded = grade_sync(session(), {"outcome": Judge("other").evaluator()}, cache=cache, now=NINE)
    assert graded.to_dict()["outcome"]["expires_at"] == "2026-12-01T09:00:00+00:00"
    cached = grade_sync(session(), {"outcome": Judge("other").evaluator()}, cache=cache, now=NINE)
    assert str(cached["outcome"]) == "outcome: graded, good=True (cached)"


def test_a_dump_has_the_results_in_plain_types(cache: Path) -> None:
    answers: dict[str, Any] = {
        "good": Verdict(Said(good=True), "x", cost=0.25, confidence={"good": 0.5}),
        "person": HandOff("unsure", verdict=Verdict(Said(good=False), "x")),
        "bad": Failure("no {answer}"),
    }
    judges = {name: Judge(name, lambda given, name=name: answers[name]).evaluator() for name in answers}
    grades = grade_sync(session(), judges, cache=cache, now=NINE)
    dumped = json.loads(json.dumps(grades.to_dict()))
    (good,), (person,), (bad,) = (dumped[name]["results"] for name in answers)
    assert good.pop("latency") >= 0
    assert good == {
        "status": "verdict",
        "evaluator": "good",
        "version": "1",
        "about": {"kind": "transcript", "id": "s1", "user": "u1", "attributes": {}},
        "value": {"good": True},
        "confidence": {"good": 0.5},
        "cost": 0.25,
    }
    assert (person["reason"], person["verdict"]["value"], person["cost"]) == ("unsure", {"good": False}, None)
    assert (bad["status"], bad["error"], bad["cost"]) == ("failed", "no {answer}", None)
    assert str(grades["good"]) == "good: graded, good=True"


def test_a_long_verdict_stands_in_the_results_alone(cache: Path) -> None:
    class Wide(BaseModel):
        followed_the_instructions: bool = True
        answered_the_whole_question: bool = True
        said_where_it_was_found: bool = True
        stayed_within_the_subject: bool = True

    wide = FunctionEvaluator("wide", "1", lambda given: Wide(), Transcript, Wide)
    assert str(grade_sync(session(), {"wide": wide}, cache=cache)["wide"]) == "wide: graded"


# ---------------------------------------------------------------------------------------------------------------------
# Several requests at once
# ---------------------------------------------------------------------------------------------------------------------


class Held:
    """A judge whose calls wait until they are let go."""

    def __init__(self, answer: Said | Exception) -> None:
        self.calls = 0
        self.let_go = asyncio.Event()
        self.answer = answer

    async def ask(self, given: Transcript) -> Said:
        self.calls += 1
        await self.let_go.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def evaluator(self) -> FunctionEvaluator[Transcript, Said]:
        return FunctionEvaluator("outcome", "1", self.ask, Transcript, Said)

    async def called(self, times: int) -> None:
        while self.calls < times:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


class Waiters:
    """Which requests have found that another one is asking what they would ask."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._found: set[JournalRecorder] = set()
        begin = JournalRecorder.begin

        async def watched(recorder: JournalRecorder, *args: Any) -> Any:
            answer = await begin(recorder, *args)
            if isinstance(answer, Elsewhere):
                self._found.add(recorder)
            return answer

        monkeypatch.setattr(JournalRecorder, "begin", watched)

    async def come(self, requests: int) -> None:
        while len(self._found) < requests:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.fixture
def waiters(monkeypatch: pytest.MonkeyPatch) -> Waiters:
    return Waiters(monkeypatch)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("answer", [Said(good=True), ValueError("broken")], ids=["graded", "failed"])
def test_requests_at_once_ask_once(again: bool, answer: Said | Exception, cache: Path, waiters: Waiters) -> None:
    async def all_of_them() -> list[Grades]:
        held = Held(answer)
        judges = {"outcome": held.evaluator()}
        first = asyncio.create_task(grade(session(), judges, cache=cache, again=again))
        await held.called(1)
        others = [asyncio.create_task(grade(session(), judges, cache=cache, again=again)) for _ in range(4)]
        await waiters.come(4)
        held.let_go.set()
        found = await asyncio.gather(first, *others)
        assert held.calls == 1
        return found

    found = asyncio.run(all_of_them())
    assert [grades["outcome"].cached for grades in found] == [False, True, True, True, True]
    assert {grades["outcome"].status for grades in found} == {"graded" if isinstance(answer, Said) else "failed"}


def test_a_request_that_is_given_up_leaves_its_question_to_the_others(cache: Path, waiters: Waiters) -> None:
    async def both() -> Grades:
        held = Held(Said(good=True))
        judges = {"outcome": held.evaluator()}
        first = asyncio.create_task(grade(session(), judges, cache=cache))
        await held.called(1)
        second = asyncio.create_task(grade(session(), judges, cache=cache))
        await waiters.come(1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await held.called(2)
        held.let_go.set()
        return await second

    found = asyncio.run(both())["outcome"]
    assert (found.status, found.cached) == ("graded", False)


def test_many_requests_of_one_process_share_an_open_journal(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Journal] = []
    connected = Journal._connected

    def counted(self: Journal) -> Any:
        opened.append(self)
        return connected(self)

    async def ask(given: Transcript) -> Said:
        await asyncio.sleep(0.05)
        return Said(good=True)

    async def many() -> list[Grades]:
        judges = {"outcome": FunctionEvaluator("outcome", "1", ask, Transcript, Said)}
        return await asyncio.gather(*[grade(session(name=f"s{n}"), judges, cache=cache) for n in range(50)])

    monkeypatch.setattr(Journal, "_connected", counted)
    assert {grades["outcome"].status for grades in asyncio.run(many())} == {"graded"}
    assert len(set(map(id, opened))) == 1
    with pytest.raises(JournalError, match="closed"):
        opened[0].totals()
    assert grade_sync(session(name="s7"), {"outcome": Judge("outcome").evaluator()}, cache=cache)["outcome"].cached


CHILD = """
import json, sys, time
from pathlib import Path
from pydantic import BaseModel
from evalr import FunctionEvaluator
from evalr.inputs import Transcript
from evalr.runs import grade_sync

class Said(BaseModel):
    good: bool

def ask(given):
    with open(sys.argv[2], "a") as bill:
        bill.write(given.id + "\\n")
    time.sleep(0.5)
    return Said(good=True)

judge = FunctionEvaluator("outcome", "1", ask, Transcript, Said)
while not Path(sys.argv[3]).exists():
    time.sleep(0.005)
grades = grade_sync(Transcript(id="s1", request="help"), {"outcome": judge}, cache=sys.argv[1])
print(json.dumps([grades["outcome"].status, grades["outcome"].cached, str(grades["outcome"].graded_at)]))
"""


def test_processes_at_once_ask_once(cache: Path, tmp_path: Path) -> None:
    bill, go = tmp_path / "bill", tmp_path / "go"
    command = [sys.executable, "-c", CHILD, str(cache), str(bill), str(go)]
    env = {**os.environ, "PYTHONPATH": SOURCE}
    children = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    go.touch()
    said = [child.communicate(timeout=60)[0] for child in children]
    assert bill.read_text() == "s1\n"
    assert sorted(line.split(", ")[1] for line in said) == ["false", "true", "true"]
    assert len({(line.split(", ")[0], line.split(", ")[2]) for line in said}) == 1


def test_when_a_process_is_killed_that_is_asking_another_asks_at_once(cache: Path, tmp_path: Path) -> None:
    bill, go = tmp_path / "bill", tmp_path / "go"
    go.touch()
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.replace("sleep(0.5)", "sleep(60)"), str(cache), str(bill), str(go)],
        env={**os.environ, "PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
    )
    while not bill.exists():
        time.sleep(0.01)
    answered: list[Grades] = []
    judges = {"outcome": Judge("outcome").evaluator()}
    given = Transcript(id="s1", request="help")
    waiting = threading.Thread(target=lambda: answered.append(grade_sync(given, judges, cache=cache)))
    waiting.start()
    waiting.join(0.5)
    assert not answered  # the other one is alive, and at it
    child.kill()
    child.communicate(timeout=60)
    waiting.join(10)
    (grades,) = answered
    assert (grades["outcome"].status, grades["outcome"].cached, grades.summary.in_doubt) == ("graded", False, 1)


# ---------------------------------------------------------------------------------------------------------------------
# What cannot be used
# ---------------------------------------------------------------------------------------------------------------------

ok = Judge("outcome").evaluator()


@pytest.mark.parametrize(
    ("given", "judges", "options", "words"),
    [
        ([session()], {"outcome": ok}, {}, "grade reads one input, such as a Session, not list"),
        (session(), {}, {}, "a map with at least one"),
        (session(), ok, {}, "judges is a map"),
        (session(), {"outcome": []}, {}, "family 'outcome' needs at least one evaluator"),
        (session(), {"outcome": 3}, {}, "family 'outcome': 3 is no evaluator"),
        (session(), {1: ok}, {}, "must be a text, not 1"),
        (session(), {"a": ok, "b": ok}, {}, "families 'a' and 'b' both ask evaluator 'outcome', version '1'"),
        (session(), {"outcome": ok}, {"lifetime": timedelta(0)}, "pass again=True"),
        (session(), {"outcome": ok}, {"lifetime": 24}, "must be a timedelta above 0"),
        (session(), {"outcome": ok}, {"lifetime": timedelta.max}, "pass None for ever"),
        (session(), {"outcome": ok}, {"budget": 100}, "budget=100 must be a Budget"),
        (session(), {"outcome": ok}, {"timeout": 0}, "timeout=0 must be seconds"),
        (session(), {"outcome": ok}, {"limit": Limiter(4, tokens_per_minute=100)}, "'outcome' has no expected_tokens"),
        (session(), {"outcome": ok}, {"now": datetime(2026, 11, 30)}, "has no time zone"),  # noqa: DTZ001
        (Session(id="s"), {"outcome": ok}, {}, "family 'outcome' reads Transcript, and session 's' is a Session"),
        (
            Session(id="s"),
            {"shadow": Family(ok, exchanges, input_type=Transcript)},
            {},
            "family 'shadow' reads Transcript, and session 's' is a Session: leave the family out",
        ),
        (session(), {"shadow": Family(ok, lambda given: [Session(id="s")])}, {}, "reads Transcript"),
        (
            session(),
            {"shadow": Family(ok, lambda given: 3)},
            {},
            "cannot split transcript 's1' of user 'u1': TypeError",
        ),
        (session(), {"shadow": Family(ok, lambda given: 1 / 0)}, {}, "ZeroDivisionError"),
        (session(), {"shadow": Family(ok, lambda given: ["x"])}, {}, "parts() gave str, which is no input"),
    ],
)
def test_what_cannot_be_used_is_said(given: Any, judges: Any, options: Any, words: str, cache: Path) -> None:
    with pytest.raises(InputError) as raised:
        grade_sync(given, judges, cache=cache, **options)
    assert words in str(raised.value)
    assert not cache.exists()

"""Runs: one result for each input, as they come, and nothing asked twice."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import (
    DuplicateError,
    Failure,
    FunctionEvaluator,
    HandOff,
    InputError,
    JournalError,
    Rate,
    Result,
    Skip,
    Verdict,
    run_sync,
)
from evalr.inputs import Activity, Session, Transcript, Turn
from evalr.measures import drop_off_evaluator
from evalr.runs import (
    Budget,
    Journal,
    Limiter,
    Progress,
    ProgressLine,
    Retry,
    Run,
    RunSummary,
    evaluate_all,
    evaluate_all_sync,
)

NINE = datetime(2026, 9, 28, 9, tzinfo=UTC)
NO_WAIT = Retry(first=0)


class Said(BaseModel):
    done: bool


YES, NO = Said(done=True), Said(done=False)
done_rate = Rate("done", of=Said, hits=lambda v: v.done)


def asks(n: int, **fields: Any) -> list[Transcript]:
    return [Transcript(id=f"t{number}", request=f"request {number}", **fields) for number in range(n)]


class Calls(Counter[str]):
    """How often each item was asked, by an evaluator that answers with what `answer` gives."""

    def judge(self, answer: Callable[[Transcript], Any] = lambda given: YES, **options: Any) -> Any:
        def asked(given: Transcript) -> Any:
            self[str(given.id)] += 1
            return answer(given)

        return FunctionEvaluator("judge", options.pop("version", "1"), asked, Transcript, Said, inline=True, **options)


@dataclass
class Priced:
    """An evaluator whose calls cost something."""

    cost: float | None = 0.1
    name: str = "priced"
    version: str = "1"
    verdict_type: type[Said] = Said
    asked: int = 0
    seconds: float = 0.0
    costs: dict[str, float | None] = field(default_factory=dict)

    async def evaluate(self, given: Transcript, /) -> Result[Said]:
        self.asked += 1
        await asyncio.sleep(self.seconds)
        cost = self.costs.get(str(given.id), self.cost)
        return Verdict(YES, self.name, self.version, given.about(), cost=cost)


async def listed(run: Run) -> list[Result[Any]]:
    return [result async for result in run]


def ran(*args: Any, **options: Any) -> tuple[list[Result[Any]], RunSummary]:
    async def main() -> tuple[list[Result[Any]], RunSummary]:
        run = evaluate_all(*args, **options)
        return await listed(run), run.summary

    return asyncio.run(main())


def ids(results: list[Result[Any]]) -> list[str]:
    return sorted(str(result.about.id) for result in results if result.about is not None)


# ---------------------------------------------------------------------------------------------------------------------
# Results
# ---------------------------------------------------------------------------------------------------------------------


def test_every_input_has_one_result_about_itself() -> None:
    results, summary = ran(Calls().judge(), asks(300))
    assert ids(results) == ids([Verdict(YES, "e", about=given.about()) for given in asks(300)])
    assert all(isinstance(result, Verdict) and result.value == YES for result in results)
    assert (summary.verdicts, summary.calls, summary.finished) == (300, 300, True)


def test_the_four_kinds_of_results_are_kept_apart() -> None:
    answers = {"t0": YES, "t1": Skip("no question"), "t2": HandOff("unsure")}
    results, summary = ran(Calls().judge(lambda given: answers[str(given.id)]), asks(4))
    kinds = {str(result.about.id): type(result) for result in results if result.about is not None}
    assert kinds == {"t0": Verdict, "t1": Skip, "t2": HandOff, "t3": Failure}
    assert (summary.verdicts, summary.skipped, summary.handed_off, summary.failed) == (1, 1, 1, 1)
    assert summary.results == 4


def test_crashing_judges_do_not_leave_the_denominator() -> None:
    def crashes(given: Transcript) -> Said:
        if int(str(given.id)[1:]) >= 5:
            raise ValueError("crashed")
        return YES

    results, summary = ran(Calls().judge(crashes), asks(10))
    estimate = done_rate.estimate(results)
    assert (summary.verdicts, summary.failed) == (5, 5)
    assert estimate.left_out == {"failed": 5}
    assert estimate.bounds == (0.5, 1.0)
    assert estimate.n == 5


def test_results_come_as_they_are_ready_and_not_in_the_order_of_inputs() -> None:
    async def waits(given: Transcript) -> Said:
        await asyncio.sleep(0.2 if given.id == "t0" else 0)
        return YES

    results, _ = ran(FunctionEvaluator("slow", "1", waits, Transcript, Said), asks(5))
    assert results[-1].about is not None
    assert results[-1].about.id == "t0"


def test_several_evaluators_are_each_asked_of_each_input() -> None:
    calls, others = Calls(), Calls()
    results, _ = ran([calls.judge(), replace(others.judge(lambda given: NO), name="other")], asks(3))
    given_by = Counter(result.evaluator for result in results)
    assert given_by == {"judge": 3, "other": 3}
    assert (calls.total(), others.total()) == (3, 3)


def test_a_result_without_its_stamps_gets_them() -> None:
    @dataclass
    class Bare:
        name: str = "bare"
        version: str = "7"
        verdict_type: type[Said] = Said

        async def evaluate(self, given: Transcript, /) -> Result[Said]:
            await asyncio.sleep(0.02)
            return Failure("no answer")

    (result,), _ = ran(Bare(), asks(1), retry=NO_WAIT)
    assert result.about == asks(1)[0].about()
    assert (result.evaluator, result.version) == ("bare", "7")
    assert result.latency is not None
    assert 0.02 <= result.latency < 1


def test_an_evaluator_that_raises_or_returns_nonsense_fails_for_that_input_alone() -> None:
    @dataclass
    class Odd:
        name: str = "odd"
        version: str = "1"
        verdict_type: type[Said] = Said

        async def evaluate(self, given: Transcript, /) -> Result[Said]:
            if given.id == "t0":
                raise RuntimeError("broken")
            return "yes" if given.id == "t1" else Verdict(YES, "odd")  # type: ignore[return-value]

    results, _ = ran(Odd(), asks(3))
    errors = {result.about.id: result.error for result in results if isinstance(result, Failure) and result.about}
    assert errors == {"t0": "RuntimeError: broken", "t1": "returned str where a result was promised"}


# ---------------------------------------------------------------------------------------------------------------------
# Inputs
# ---------------------------------------------------------------------------------------------------------------------


def test_an_evaluator_that_cannot_read_an_input_is_an_error_and_no_skip() -> None:
    inputs = [*asks(3), Session(id="s"), *asks(9)[3:]]
    with pytest.raises(InputError, match="input 3 is a Session, and evaluator 'judge' reads Transcript"):
        ran(Calls().judge(), inputs)


def test_an_evaluator_that_says_so_only_when_it_is_asked_is_an_error_too() -> None:
    class Strict(Priced):
        async def evaluate(self, given: Transcript, /) -> Result[Said]:
            if given.id == "t5":
                raise InputError("not an input of mine")
            return await super().evaluate(given)

    with pytest.raises(InputError, match="not an input of mine"):
        ran(Strict(), asks(20))


def test_what_is_no_input_is_named_by_its_position() -> None:
    with pytest.raises(InputError, match="input 2 is a str"):
        ran(Calls().judge(), [*asks(2), "text"])


def test_two_inputs_with_one_subject_and_another_content_are_an_error_that_names_both() -> None:
    inputs = [*asks(4), Transcript(id="t1", request="another request")]
    with pytest.raises(DuplicateError, match="inputs 1 and 4 are both transcript 't1', and differ"):
        ran(Calls().judge(), inputs)


def test_calls_in_flight_are_waited_for_before_a_mistake_is_raised() -> None:
    judge = Priced(seconds=0.1)
    inputs = [*asks(4), Transcript(id="t1", request="another request")]

    found: list[Result[Any]] = []

    async def main() -> None:
        async for result in evaluate_all(judge, inputs):
            found.append(result)  # noqa: PERF401  what came before the error is kept

    with pytest.raises(DuplicateError):
        asyncio.run(main())
    assert len(found) == judge.asked == 4


def test_first_keeps_the_first_of_two_that_differ() -> None:
    calls = Calls()
    inputs = [*asks(2), Transcript(id="t1", request="another request")]
    results, summary = ran(calls.judge(), inputs, duplicates="first")
    assert (ids(results), summary.duplicates, calls.total()) == (["t0", "t1"], 1, 2)


def test_an_input_that_comes_again_unchanged_is_judged_once_and_counted() -> None:
    calls = Calls()
    results, summary = ran(calls.judge(), asks(2) + asks(2))
    assert (len(results), summary.duplicates, calls.total()) == (2, 2, 2)


def test_users_may_share_ids() -> None:
    inputs = [Transcript(id="t", user=user, request=user) for user in ("a", "b")]
    results, summary = ran(Calls().judge(), inputs)
    assert (len(results), summary.duplicates) == (2, 0)


def test_equal_inputs_without_an_id_are_several(tmp_path: Path) -> None:
    calls = Calls()
    inputs = [Transcript(request="same")] * 3
    for _ in range(2):
        results, _ = ran(calls.judge(), inputs, journal=tmp_path / "j.db")
        assert len(results) == 3
    assert calls.total() == 3


def test_async_inputs_are_judged_as_they_arrive() -> None:
    """The next one may be long in coming."""
    answered = asyncio.Event()

    async def arriving() -> AsyncIterator[Transcript]:
        first, second = asks(2)
        yield first
        await asyncio.wait_for(answered.wait(), 5)
        yield second

    async def main() -> list[Result[Any]]:
        found = []
        async for result in evaluate_all(Calls().judge(), arriving()):
            answered.set()
            found.append(result)
        return found

    assert ids(asyncio.run(main())) == ["t0", "t1"]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_what_reading_the_inputs_raises_is_raised_when_calls_are_back(kind: str) -> None:
    def broken() -> Iterator[Transcript]:
        yield from asks(3)
        raise OSError("the log is gone")

    async def broken_later() -> AsyncIterator[Transcript]:
        for given in broken():
            yield given

    found: list[Result[Any]] = []

    async def main() -> None:
        async for result in evaluate_all(Calls().judge(), broken() if kind == "sync" else broken_later()):
            found.append(result)  # noqa: PERF401  what came before the error is kept

    with pytest.raises(OSError, match="the log is gone"):
        asyncio.run(main())
    assert len(found) == 3


def test_inputs_are_read_no_further_than_results_are_taken() -> None:
    read = 0

    def endless() -> Iterator[Transcript]:
        nonlocal read
        while True:
            read += 1
            yield Transcript(id=f"t{read}", request="more")

    async def main() -> None:
        async with evaluate_all(Calls().judge(), endless()) as run:
            await anext(run)
            await asyncio.sleep(0.2)

    asyncio.run(main())
    assert read < 1000


def test_no_inputs_give_no_results() -> None:
    results, summary = ran(Calls().judge(), [])
    assert (results, summary.results, summary.finished) == ([], 0, True)


def test_memory_is_flat_over_many_items() -> None:
    def many(n: int) -> Iterator[Transcript]:
        for number in range(n):
            yield Transcript(id=f"t{number}", request="x" * 1000)

    async def peak(n: int) -> int:
        run = evaluate_all(Calls().judge(lambda given: YES, version="1"), ())  # imports, outside of what is measured
        await listed(run)
        judge = FunctionEvaluator("judge", "1", lambda given: YES, Transcript, Said, inline=True)
        gc.collect()
        tracemalloc.start()
        try:
            async for _ in evaluate_all(judge, many(n)):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    few, more = asyncio.run(peak(2_000)), asyncio.run(peak(20_000))
    # Subjects are remembered, at 16 bytes in tables that double; a list of the inputs alone would be 20 MB.
    assert more - few < 2_500_000


# ---------------------------------------------------------------------------------------------------------------------
# The journal
# ---------------------------------------------------------------------------------------------------------------------


def test_a_second_run_asks_nothing_and_gives_the_same_results(tmp_path: Path) -> None:
    calls = Calls()
    answers = {"t0": YES, "t1": Skip("no question"), "t2": HandOff("unsure"), "t3": NO}
    judge = calls.judge(lambda given: answers[str(given.id)])
    first, _ = ran(judge, asks(4), journal=tmp_path / "j.db")
    second, summary = ran(judge, asks(4), journal=tmp_path / "j.db")
    assert sorted(first, key=repr) == sorted(second, key=repr)
    assert (summary.calls, summary.from_journal, calls.total()) == (0, 4, 4)


def test_lone_surrogates_anywhere_are_hashed_judged_stored_and_read_back(tmp_path: Path) -> None:
    bad = "\ud83d"

    class Why(BaseModel):
        why: str

    def answer(given: Transcript) -> Any:
        if given.id is not None and given.id.startswith("fails"):
            raise ValueError(bad)
        return Skip(bad) if given.id == "skips" else Why(why=given.request + bad)

    def inputs() -> list[Transcript]:
        turns = [Turn(role="person", text=bad, metadata={bad: [bad]})]
        common: dict[str, Any] = {"request": bad, "turns": turns, "attributes": {bad: bad}}
        valid = [Transcript(id=name, user=bad, arm=bad, **common) for name in ("says", "skips", "fails", f"fails{bad}")]
        return [*valid, Transcript.model_construct(id=bad, user=bad, **common)]  # which nothing has mended

    judge = FunctionEvaluator("why", "1", answer, Transcript, Why, inline=True)
    first, summary = ran(judge, inputs(), journal=tmp_path / "j.db", failures="keep")
    assert (summary.verdicts, summary.skipped, summary.failed) == (2, 1, 2)
    again, summary = ran(judge, inputs(), journal=tmp_path / "j.db", failures="keep")
    assert (summary.calls, summary.from_journal) == (0, 5)
    assert sorted(first, key=repr) == sorted(again, key=repr)


def test_what_the_journal_has_can_be_left_out(tmp_path: Path) -> None:
    judge = Calls().judge()
    ran(judge, asks(4), journal=tmp_path / "j.db")
    results, summary = ran(judge, asks(6), journal=tmp_path / "j.db", replay=False)
    assert (ids(results), summary.from_journal) == (["t4", "t5"], 4)


@pytest.mark.parametrize("changed", [{"request": "other"}, {"result": "done"}, {"attributes": {"agent": "b"}}])
def test_a_changed_input_is_asked_again(changed: dict[str, Any], tmp_path: Path) -> None:
    calls = Calls()
    given = Transcript(id="t", request="do it", attributes={"agent": "a"})
    ran(calls.judge(), [given], journal=tmp_path / "j.db")
    ran(calls.judge(), [given.model_copy(update=changed)], journal=tmp_path / "j.db")
    assert calls["t"] == 2


def test_another_version_is_asked_again(tmp_path: Path) -> None:
    calls = Calls()
    for version in ("1", "2", "1"):
        ran(calls.judge(version=version), asks(3), journal=tmp_path / "j.db")
    assert calls.total() == 6


def test_failures_are_asked_again_or_kept(tmp_path: Path) -> None:
    calls = Calls()
    broken = calls.judge(lambda given: 1 / 0)
    ran(broken, asks(2), journal=tmp_path / "j.db")
    results, summary = ran(broken, asks(2), journal=tmp_path / "j.db", failures="keep")
    assert [type(result) for result in results] == [Failure, Failure]
    assert (summary.calls, summary.from_journal, calls.total()) == (0, 2, 2)
    results, summary = ran(calls.judge(), asks(2), journal=tmp_path / "j.db")
    assert [type(result) for result in results] == [Verdict, Verdict]
    assert calls.total() == 4
    ran(broken, asks(2), journal=tmp_path / "j.db")
    assert calls.total() == 4


def test_a_pending_verdict_is_never_done(tmp_path: Path) -> None:
    calls = Calls()
    judge = calls.judge(lambda given: NO, pending=lambda value: not value.done)
    for _ in range(2):
        results, summary = ran(judge, asks(2), journal=tmp_path / "j.db")
        assert (len(results), summary.pending, summary.from_journal) == (2, 2, 0)
    ran(calls.judge(pending=lambda value: not value.done), asks(2), journal=tmp_path / "j.db")
    _, summary = ran(judge, asks(2), journal=tmp_path / "j.db")
    assert (calls.total(), summary.pending, summary.from_journal) == (6, 0, 2)


def test_pending_sessions_are_asked_again_and_decided_ones_are_not(tmp_path: Path) -> None:
    sessions = [
        Session(id=f"s{h}", activities=[Activity(at=NINE + timedelta(hours=h), role="agent")]) for h in range(3)
    ]
    evaluator = drop_off_evaluator(now=NINE + timedelta(hours=2, minutes=30))
    for calls in (3, 1):
        _, summary = ran(evaluator, sessions, journal=tmp_path / "j.db")
        assert (summary.calls, summary.pending) == (calls, 1)


def test_another_reading_time_is_another_question_and_read_at_keeps_it_the_same(tmp_path: Path) -> None:
    activities = [Activity(at=NINE, role="agent")]
    fixed = Session(id="fixed", activities=activities, read_at=NINE + timedelta(days=1))
    moving = Session(id="moving", activities=activities)
    for days, calls in ((2, 2), (2, 0), (3, 1)):
        evaluator = drop_off_evaluator(now=NINE + timedelta(days=days))
        _, summary = ran(evaluator, [fixed, moving], journal=tmp_path / "j.db")
        assert summary.calls == calls


def test_a_clock_is_read_once_for_a_run() -> None:
    ticks = iter(NINE + timedelta(days=n) for n in range(1, 99))
    sessions = [Session(id=f"s{n}", activities=[Activity(at=NINE, role="agent")]) for n in range(5)]
    results, _ = ran(drop_off_evaluator(now=lambda: next(ticks)), sessions)
    assert {result.as_of for result in results} == {NINE + timedelta(days=1)}


def test_a_finished_run_of_many_asks_nothing(tmp_path: Path) -> None:
    calls = Calls()
    judge = calls.judge()
    ran(judge, asks(3000), journal=tmp_path / "j.db")
    _, summary = ran(judge, asks(3000), journal=tmp_path / "j.db")
    assert (calls.total(), summary.from_journal, summary.calls) == (3000, 3000, 0)


def test_two_runs_within_one_process_share_a_journal(tmp_path: Path) -> None:
    calls = Calls()

    async def slow(given: Transcript) -> Said:
        calls[str(given.id)] += 1
        await asyncio.sleep(0.002)
        return YES

    judge = FunctionEvaluator("judge", "1", slow, Transcript, Said)

    async def main(journals: list[Any]) -> list[list[Result[Any]]]:
        return await asyncio.gather(*(listed(evaluate_all(judge, asks(100), journal=each)) for each in journals))

    with Journal(tmp_path / "shared.db") as shared:
        for journals in ([shared, shared], [tmp_path / "j.db", tmp_path / "j.db"]):
            calls.clear()
            both = asyncio.run(main(journals))
            assert all(ids(results) == sorted(f"t{n}" for n in range(100)) for results in both)
            assert set(calls.values()) == {1}


# ---------------------------------------------------------------------------------------------------------------------
# Repeats
# ---------------------------------------------------------------------------------------------------------------------


def test_repeats_are_results_of_their_own_and_give_a_flip_rate(tmp_path: Path) -> None:
    calls = Calls()

    def flips(given: Transcript) -> Said:
        number = int(str(given.id)[1:])
        return Said(done=number % 4 == 0 or (number % 2 == 0 and calls[str(given.id)] == 1))

    results, _ = ran(calls.judge(flips), asks(40), repeats=3, journal=tmp_path / "j.db")
    assert Counter(result.about.repeat for result in results if result.about) == {1: 40, 2: 40, 3: 40}
    flip = Rate("flip", of=Said, hits=lambda v: v.done, per="id", fold="flip").estimate(results)
    assert (flip.value, flip.n) == (0.25, 40)
    plain = done_rate.estimate(results)
    assert (plain.n, plain.clusters) == (120, 40)


def test_more_repeats_ask_only_for_the_rest(tmp_path: Path) -> None:
    calls = Calls()
    ran(calls.judge(), asks(5), journal=tmp_path / "j.db")
    results, summary = ran(calls.judge(), asks(5), repeats=3, journal=tmp_path / "j.db")
    assert (summary.from_journal, summary.calls, calls.total()) == (5, 10, 15)
    assert sorted(result.about.repeat or 0 for result in results if result.about) == [1] * 5 + [2] * 5 + [3] * 5
    (again,), _ = ran(calls.judge(), asks(1), journal=tmp_path / "j.db")
    assert again.about == asks(1)[0].about()


# ---------------------------------------------------------------------------------------------------------------------
# Budgets, costs, time
# ---------------------------------------------------------------------------------------------------------------------


def test_the_number_of_calls_is_strict_and_a_later_run_goes_on(tmp_path: Path) -> None:
    judge = Priced()
    results, summary = ran(judge, asks(50), budget=Budget(calls=12), limit=32, journal=tmp_path / "j.db")
    assert (judge.asked, len(results)) == (12, 12)
    assert summary.not_done == {"budget of 12 calls used up": 38}
    assert summary.finished
    results, summary = ran(judge, asks(50), budget=Budget(calls=100), journal=tmp_path / "j.db")
    assert (judge.asked, len(results), summary.calls, summary.not_done) == (50, 50, 38, {})


def test_tries_again_count_as_calls() -> None:
    calls = Calls()

    def busy(given: Transcript) -> Said:
        raise ConnectionResetError("cut")

    results, summary = ran(calls.judge(busy), asks(10), budget=Budget(calls=7), retry=NO_WAIT, limit=1)
    assert (calls.total(), summary.calls) == (7, 7)
    assert len(results) + sum(summary.not_done.values()) == 10


def test_a_cost_with_a_ceiling_is_never_exceeded() -> None:
    judge = Priced(cost=0.03, seconds=0.001)
    _, summary = ran(judge, asks(100), budget=Budget(cost=1.0, ceiling=0.1), limit=32)
    assert summary.cost <= 1.0
    # What calls left of their ceiling is used for others, until not even one ceiling is left.
    assert summary.cost > 0.9 - 0.03
    assert sum(summary.not_done.values()) == 100 - judge.asked


def test_a_cost_without_a_ceiling_is_exceeded_by_calls_in_flight_at_most() -> None:
    judge = Priced(cost=0.1, seconds=0.001)
    _, summary = ran(judge, asks(100), budget=Budget(cost=1.0), limit=8)
    assert 1.0 - 1e-9 <= summary.cost <= 1.0 + 7 * 0.1 + 1e-9
    assert "budget of $1.00 used up" in summary.not_done


def test_an_unknown_cost_is_not_0() -> None:
    _, summary = ran(Priced(costs={"t1": None}), asks(3))
    assert (summary.cost_words(), summary.unknown_costs) == ("≥ $0.2000", 1)
    _, summary = ran(Priced(cost=None), asks(3))
    assert summary.cost_words() == "cost unknown"
    _, summary = ran(Priced(cost=0.0), asks(3))
    assert summary.cost_words() == "$0.00"
    # With a ceiling, each might have cost as much.
    _, summary = ran(Priced(cost=None), asks(30), budget=Budget(cost=1.0, ceiling=0.1))
    assert summary.calls == 10


def test_a_function_says_what_its_calls_cost_and_the_budget_counts_it(tmp_path: Path) -> None:
    async def ask(given: Transcript) -> Verdict[Said] | Failure | Said:
        await asyncio.sleep(0)
        if given.id == "t0":
            return Failure("no answer", cost=0.3)  # a failed call is paid for, too
        return YES if given.id == "t1" else Verdict(YES, "judge", cost=0.1, confidence={"done": 0.9})

    judge = FunctionEvaluator("judge", "1", ask, Transcript, Said)
    results, summary = ran(judge, asks(4), journal=tmp_path / "j.db")
    assert (summary.cost, summary.unknown_costs, summary.cost_words()) == (0.5, 1, "≥ $0.5000")
    results, again = ran(judge, asks(4), journal=tmp_path / "j.db", failures="keep")
    assert {result.about.id: result.cost for result in results if result.about} == {
        "t0": 0.3, "t1": None, "t2": 0.1, "t3": 0.1,
    }  # fmt: skip
    assert again.calls == 0
    assert [r.confidence for r in results if isinstance(r, Verdict) and r.cost is not None] == [{"done": 0.9}] * 2

    results, summary = ran(judge, asks(40)[2:], budget=Budget(cost=1.0, ceiling=0.1), limit=16)
    assert (summary.calls, len(results), summary.not_done) == (10, 10, {"budget of $1.00 used up": 28})


def test_costs_add_up_over_tries_and_runs(tmp_path: Path) -> None:
    class Flaky(Priced):
        async def evaluate(self, given: Transcript, /) -> Result[Said]:
            self.asked += 1
            if self.asked % 2:
                return Failure("busy", cost=0.25, exception=ConnectionResetError("cut"))
            return Verdict(YES, "priced", cost=0.5)

    _, summary = ran(Flaky(), asks(4), journal=tmp_path / "j.db", retry=NO_WAIT, limit=1)
    assert (summary.cost, summary.retried) == (3.0, 4)
    ran(Priced(cost=None, version="2"), asks(1), journal=tmp_path / "j.db")
    with Journal(tmp_path / "j.db") as journal:
        totals = journal.totals()
    assert (totals.cost, totals.unknown_costs, totals.calls, totals.items) == (3.0, 1, 9, {"verdict": 5})


def test_tokens_per_minute_go_by_what_the_evaluator_expects_of_each_input() -> None:
    class Tokens(Priced):
        def expected_tokens(self, given: Transcript, /) -> int:
            return 600 if given.id == "t0" else 300

    async def main() -> None:
        judge = Tokens()
        async with evaluate_all(judge, asks(3), limit=Limiter(8, tokens_per_minute=1000)) as run:
            assert ids([await anext(run), await anext(run)]) == ["t0", "t1"]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await anext(run)
            assert judge.asked == 2  # the third would be 1,200, and waits for the next minute

    asyncio.run(main())


def test_an_item_whose_time_is_up_is_a_failure_that_names_it() -> None:
    async def hangs(given: Transcript) -> Said:
        await asyncio.sleep(60 if given.id == "t1" else 0)
        return YES

    begun = time.monotonic()
    results, summary = ran(FunctionEvaluator("slow", "1", hangs, Transcript, Said), asks(3), timeout=0.1)
    assert time.monotonic() - begun < 5
    (failure,) = [result for result in results if isinstance(result, Failure)]
    assert failure.error == "timed out: transcript 't1' had no result within 0.10s"
    assert isinstance(failure.exception, TimeoutError)
    assert (summary.timed_out, summary.failed, summary.verdicts, summary.calls) == (1, 1, 2, 3)


def test_a_sync_function_that_hangs_does_not_hold_up_the_run() -> None:
    release = threading.Event()

    def hangs(given: Transcript) -> Said:
        if given.id == "t1":
            release.wait(20)
        return YES

    try:
        results, summary = ran(FunctionEvaluator("slow", "1", hangs, Transcript, Said), asks(3), timeout=0.5)
        assert (summary.timed_out, len(results)) == (1, 3)
    finally:
        release.set()


def test_slow_sync_functions_run_side_by_side_and_do_not_block_the_loop() -> None:
    def slow(given: Transcript) -> Said:
        time.sleep(0.1)
        return YES

    async def main() -> tuple[float, float]:
        longest = 0.0

        async def beat() -> None:
            nonlocal longest
            while True:
                begun = time.monotonic()
                await asyncio.sleep(0.01)
                longest = max(longest, time.monotonic() - begun)

        beating = asyncio.create_task(beat())
        begun = time.monotonic()
        await listed(evaluate_all(FunctionEvaluator("slow", "1", slow, Transcript, Said), asks(128), limit=64))
        beating.cancel()
        return time.monotonic() - begun, longest

    seconds, longest = asyncio.run(main())
    assert seconds < 12.8 / 4  # one after the other it would be 12.8
    assert longest < 1


def test_latency_is_the_work_alone() -> None:
    async def works(given: Transcript) -> Said:
        await asyncio.sleep(0.05)
        return YES

    begun = time.monotonic()
    results, _ = ran(FunctionEvaluator("works", "1", works, Transcript, Said), asks(10), limit=1)
    latencies = [result.latency or 0.0 for result in results]
    assert min(latencies) > 0.04
    # One after the other: with the time that they wait for their turns, they would come to five times as much.
    assert sum(latencies) <= time.monotonic() - begun


# ---------------------------------------------------------------------------------------------------------------------
# Ending early
# ---------------------------------------------------------------------------------------------------------------------


def test_a_run_that_is_left_early_leaves_nothing_behind(tmp_path: Path) -> None:
    judge = Priced(seconds=0.02)

    async def main() -> None:
        before = asyncio.all_tasks()
        count = 0
        async with evaluate_all(judge, asks(100), journal=tmp_path / "j.db") as run:
            async for _ in run:
                count += 1
                if count == 10:
                    break
        assert asyncio.all_tasks() == before

    asyncio.run(main())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("evalr-journal")]
    asked = judge.asked
    with Journal(tmp_path / "j.db") as journal:
        totals = journal.totals()
    # Calls that were cancelled may have cost something, and nobody knows what.
    assert totals.calls == asked
    assert totals.in_doubt == 0
    assert totals.unknown_costs == asked - totals.items["verdict"]
    results, summary = ran(judge, asks(100), journal=tmp_path / "j.db")
    assert (len(results), summary.from_journal, summary.in_doubt) == (100, totals.items["verdict"], 0)


@pytest.mark.parametrize("leaves", ["break", "raises", "cancelled"])
def test_a_run_ends_by_itself_where_nobody_looks(leaves: str, tmp_path: Path) -> None:
    judge, looked = Priced(seconds=0.02), asyncio.Event()

    async def consume() -> None:
        async for _ in evaluate_all(judge, asks(1000), journal=tmp_path / "j.db"):
            looked.set()
            if leaves == "break":
                break
            if leaves == "raises":
                raise ZeroDivisionError
            await asyncio.sleep(30)

    async def main() -> None:
        consumer = asyncio.create_task(consume())
        await looked.wait()
        await asyncio.sleep(0.1)
        consumer.cancel()
        await asyncio.wait([consumer])
        if leaves == "raises":
            assert isinstance(consumer.exception(), ZeroDivisionError)
        del consumer
        gc.collect()
        for _ in range(200):
            if asyncio.all_tasks() == {asyncio.current_task()}:
                break
            await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        asked = judge.asked
        await asyncio.sleep(0.1)
        assert judge.asked == asked

    asyncio.run(main())
    assert not (tmp_path / "j.db-locks").exists()


def test_an_interrupt_of_the_loop_loses_nothing(tmp_path: Path) -> None:
    judge = Priced(seconds=0.01)

    async def interrupted() -> None:
        count = 0
        async for _ in evaluate_all(judge, asks(200), journal=tmp_path / "j.db"):
            count += 1
            if count == 20:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interrupted())
    results, summary = ran(judge, asks(200), journal=tmp_path / "j.db")
    assert len(results) == 200
    assert summary.from_journal >= 20


def test_a_run_that_never_began_leaves_nothing_behind(tmp_path: Path) -> None:
    run = evaluate_all(Calls().judge(), asks(3), journal=tmp_path / "j.db")
    del run
    gc.collect()
    run_sync(evaluate_all(Calls().judge(), asks(3), journal=tmp_path / "j.db").aclose())


def test_a_journal_that_fails_ends_the_run_and_hands_over_what_it_could_not_write(tmp_path: Path) -> None:
    judge = Priced()
    with Journal(tmp_path / "j.db") as journal:
        results, _ = ran(judge, asks(5), journal=journal)
        page_count = journal._connection.execute("PRAGMA page_count").fetchone()[0]
        journal._connection.execute(f"PRAGMA max_page_count = {page_count}")  # SQLite then finds the disk full
        with pytest.raises(JournalError, match="full; nothing that was acknowledged is lost") as raised:
            ran(judge, asks(3000), journal=journal)
        assert all(isinstance(result, Verdict) for result in raised.value.unsaved)
        journal._connection.execute("PRAGMA max_page_count = 1000000")
        asked = judge.asked
        results, summary = ran(judge, asks(3000), journal=journal)
    assert len(results) == 3000
    # Everything that had been acknowledged is there; only what was in flight is asked again.
    assert judge.asked - asked == 3000 - summary.from_journal
    assert asked - summary.from_journal <= 16


# ---------------------------------------------------------------------------------------------------------------------
# The sync twin
# ---------------------------------------------------------------------------------------------------------------------


def test_the_sync_twin_works_inside_and_outside_a_running_loop(tmp_path: Path) -> None:
    def once() -> list[str]:
        run = evaluate_all_sync(Calls().judge(), asks(20), journal=tmp_path / "j.db")
        found = ids(list(run))
        assert run.summary.finished
        return found

    async def in_a_notebook() -> list[str]:
        return once()

    assert once() == asyncio.run(in_a_notebook()) == sorted(f"t{n}" for n in range(20))


def test_a_sync_run_that_is_left_early_ends_by_itself(tmp_path: Path) -> None:
    judge = Priced(seconds=0.01)
    for _ in evaluate_all_sync(judge, asks(1000), journal=tmp_path / "j.db"):
        break
    gc.collect()
    for _ in range(500):
        if not (tmp_path / "j.db-locks").exists():
            break
        time.sleep(0.01)
    assert not (tmp_path / "j.db-locks").exists()
    asked = judge.asked
    time.sleep(0.1)
    assert judge.asked == asked < 1000


def test_the_sync_twin_raises_what_the_run_raises_and_can_be_left() -> None:
    with pytest.raises(InputError, match="input 1 is a str"):
        list(evaluate_all_sync(Calls().judge(), [*asks(1), "text"]))
    with evaluate_all_sync(Priced(seconds=0.01), asks(1000)) as run:
        next(run)
    assert list(run) == []
    assert not run.summary.finished


# ---------------------------------------------------------------------------------------------------------------------
# Progress
# ---------------------------------------------------------------------------------------------------------------------


def test_progress_says_how_far_it_is() -> None:
    seen: list[Progress] = []
    judge = Priced(seconds=0.05, costs={"t3": None})
    ran(judge, asks(100), limit=4, progress=seen.append)
    assert seen[0].done == 0
    assert (seen[-1].done, seen[-1].total, seen[-1].over) == (100, 100, True)
    middle = seen[len(seen) // 2]
    assert middle.rate is not None
    assert middle.rate < 100
    assert middle.rate == pytest.approx(middle.done / middle.summary.seconds, rel=0.2)
    assert middle.left == pytest.approx((100 - middle.done) / middle.rate)
    assert "≥ $" in str(seen[-1])
    assert "left" in str(middle)
    assert "left" not in str(seen[-1])


def test_a_total_counts_evaluators_and_repeats() -> None:
    seen: list[Progress] = []
    ran(Calls().judge(), iter(asks(3)), repeats=2, progress=seen.append, total=3)
    assert (seen[-1].done, seen[-1].total) == (6, 6)
    ran(Calls().judge(), iter(asks(3)), progress=seen.append)
    assert seen[-1].total is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_line_and_gets_its_cursor_back_however_the_run_ends() -> None:
    for inputs in (asks(20), [*asks(20), "no input"]):
        terminal, threads = Terminal(), set(threading.enumerate())
        with contextlib.suppress(InputError):
            ran(Priced(seconds=0.01), inputs, progress=ProgressLine("my [bold]judge", terminal), total=20)
        shown = terminal.getvalue()
        assert "my [bold]judge" in shown
        assert "20 of 20" in shown
        assert shown.count("\x1b[?25h") == shown.count("\x1b[?25l") == 1
        for thread in set(threading.enumerate()) - threads:
            thread.join(timeout=5)  # the terminal's refresher is told to stop, and may still be waking up to do so
            assert not thread.is_alive()


def test_where_nobody_looks_no_line_is_shown() -> None:
    file = io.StringIO()
    ran(Priced(), asks(3), progress=ProgressLine(file=file))
    assert file.getvalue() == ""


def test_a_callback_that_raises_ends_the_run() -> None:
    def broken(progress: Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ran(Priced(seconds=0.1), asks(10), progress=broken)


def test_a_summary_says_everything_in_a_line() -> None:
    summary = RunSummary(
        verdicts=10,
        pending=2,
        failed=1,
        from_journal=3,
        calls=9,
        retried=1,
        in_doubt=1,
        not_done={"budget of 9 calls used up": 5},
        cost=1.25,
        unknown_costs=1,
        throttled=61,
    )
    assert str(summary) == (
        "11 results: 10 verdicts (2 pending), 1 failed · 3 from the journal · 9 calls, 1 of them tries again · "
        "1 in doubt · 5 not done: budget of 9 calls used up · ≥ $1.25 · throttled for 1m 1s"
    )


# ---------------------------------------------------------------------------------------------------------------------
# What cannot be run
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"repeats": 0}, "repeats=0"),
        ({"duplicates": "latest"}, "duplicates='latest'"),
        ({"failures": "ignore"}, "failures='ignore'"),
        ({"timeout": 0}, "timeout=0"),
        ({"limit": 0}, "at_once=0"),
        ({"budget": 0}, "budget=0 must be a Budget"),
        ({"budget": 100}, "budget=100 must be a Budget"),
        ({"retry": 3}, "retry=3 must be a Retry"),
        ({"progress": 5}, "progress=5"),
        ({"limit": Limiter(tokens_per_minute=10)}, "'judge' has no expected_tokens"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        evaluate_all(Calls().judge(), asks(1), **options)


def test_evaluators_that_would_mix_are_refused() -> None:
    with pytest.raises(InputError, match="two evaluators are named 'judge'"):
        evaluate_all([Calls().judge(), Calls().judge()], asks(1))
    with pytest.raises(InputError, match="at least one evaluator"):
        evaluate_all([], asks(1))
    with pytest.raises(InputError, match="is no evaluator"):
        evaluate_all([len], asks(1))  # type: ignore[list-item]
    with pytest.raises(InputError, match="must be an iterable of inputs"):
        evaluate_all(Calls().judge(), 3)  # type: ignore[arg-type]
    for options in ({"calls": -1}, {"cost": -1.0}, {"ceiling": 1.0}, {"cost": 1.0, "ceiling": -1.0}):
        with pytest.raises(InputError):
            Budget(**options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"needs calls=1000 or cost=5\.0"):
        Budget()


# ---------------------------------------------------------------------------------------------------------------------
# Code that wants to end more than its own call
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()], ids=["exit", "cancelled"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_judge_that_exits_or_is_cancelled_within_fails_for_that_input_alone(
    error: BaseException, is_async: bool
) -> None:
    def answer(given: Transcript) -> Said:
        if given.id == "t1":
            raise error
        return YES

    async def answer_async(given: Transcript) -> Said:
        return answer(given)

    judge = FunctionEvaluator("judge", "1", answer_async if is_async else answer, Transcript, Said)
    for results in (ran(judge, asks(4), retry=NO_WAIT)[0], list(evaluate_all_sync(judge, asks(4), retry=NO_WAIT))):
        assert ids(results) == ["t0", "t1", "t2", "t3"]
        (failure,) = [result for result in results if isinstance(result, Failure)]
        assert failure.error.startswith(type(error).__name__)
        assert failure.about is not None
        assert failure.about.id == "t1"


def test_a_run_that_is_cancelled_is_cancelled_and_no_failure() -> None:
    async def hangs(given: Transcript) -> Said:
        await asyncio.sleep(60)
        return YES

    async def main() -> RunSummary:
        run = evaluate_all(FunctionEvaluator("slow", "1", hangs, Transcript, Said), asks(3))
        taking = asyncio.create_task(listed(run))
        await asyncio.sleep(0.05)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        await run.aclose()
        return run.summary

    assert asyncio.run(main()).failed == 0


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=["exit", "interrupt"])
def test_an_exit_in_the_code_that_gives_inputs_is_raised_and_later_runs_go_on(error: BaseException) -> None:
    def inputs() -> Iterator[Transcript]:
        yield asks(1)[0]
        raise error

    with pytest.raises(type(error)):
        list(evaluate_all_sync(Calls().judge(), inputs()))
    assert [result.status for result in evaluate_all_sync(Calls().judge(), asks(2))] == ["verdict", "verdict"]


def test_a_budget_of_no_calls_gives_what_the_journal_has(tmp_path: Path) -> None:
    ran(Calls().judge(), asks(3), journal=tmp_path / "j.db")
    results, summary = ran(Calls().judge(), asks(5), journal=tmp_path / "j.db", budget=Budget(calls=0))
    assert (len(results), summary.calls, summary.not_done) == (3, 0, {"budget of 0 calls used up": 2})


def test_the_totals_of_a_journal_print_money(tmp_path: Path) -> None:
    with Journal(tmp_path / "j.db") as journal:
        ran(Priced(cost=0.1), asks(12), journal=journal)
        assert str(journal.totals()) == "12 items: 12 with a verdict · 12 calls · $1.20"
        ran(Priced(cost=None), asks(13)[12:], journal=journal)
        assert str(journal.totals()).endswith("13 calls · ≥ $1.20")

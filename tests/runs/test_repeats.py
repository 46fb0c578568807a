"""Several verdicts on one input: told apart, folded by the input, and never taken for independent."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from evalr import About, DuplicateError, Fallback, FunctionEvaluator, InputError, Rate, Verdict, one_per_subject, scores
from evalr.inputs import Activity, Draft, History, Revision, Session, Transcript, Wait
from evalr.logs import read
from evalr.logs.jsonl import to_line
from evalr.logs.log import Stored
from evalr.measures import DropOff, drop_off_evaluator, retention_evaluator, rewrite_evaluator, wait_evaluator
from evalr.runs import evaluate_all_sync

NINE = datetime(2026, 9, 28, 9, tzinfo=UTC)


class Said(BaseModel):
    done: bool


def verdict(
    done: bool, name: str, repeat: int | None, user: str | None = None, session: str | None = None
) -> Verdict[Said]:
    return Verdict(Said(done=done), "judge", about=About("transcript", name, user, session, repeat=repeat))


done = Rate("done", of=Said, hits=lambda v: v.done)
flips = Rate("flips", of=Said, hits=lambda v: v.done, per="id", fold="flip")


def test_repeats_are_no_duplicates_and_the_same_repeat_twice_is() -> None:
    one, two = verdict(True, "t", 1), verdict(False, "t", 2)
    assert list(one_per_subject([one, two])) == [one, two]
    with pytest.raises(DuplicateError, match=r"results 0 and 2 are both about transcript 't' the 1\. time"):
        list(one_per_subject([one, two, one]))
    assert scores(one)[0].id != scores(two)[0].id


def test_a_repeat_is_counted_from_1() -> None:
    with pytest.raises(InputError, match="repeat=0 must be from 1"):
        verdict(True, "t", 0)


def test_an_item_is_told_from_one_of_another_user_or_session() -> None:
    results = [
        verdict(True, "t", 1, "a"),
        verdict(False, "t", 1, "b"),
        verdict(True, "t", 2, "a"),
        verdict(False, "t", 2, "b"),
    ]
    assert flips(results) == 0
    results = [verdict(True, "t", 1, "a", "x"), verdict(False, "t", 1, "a", "y")]
    assert flips.estimate(results).left_out == {"with fewer than 2 trials": 2}


def test_repeats_of_one_item_are_one_cluster() -> None:
    once = [verdict(n % 2 == 0, f"t{n}", None) for n in range(60)]
    thrice = [verdict(n % 2 == 0, f"t{n}", repeat) for n in range(60) for repeat in (1, 2, 3)]
    plain, repeated = done.estimate(once), done.estimate(thrice)
    assert (repeated.n, repeated.clusters, repeated.value) == (180, 60, 0.5)
    # As wide as if each had been asked once, since asking again told nothing new.
    assert plain.low is not None
    assert repeated.low is not None
    assert abs(plain.low - repeated.low) < 0.01
    assert "180 results of 60" in str(repeated)


def test_the_flip_rate_of_a_random_judge_is_within_its_interval() -> None:
    """A judge that says yes with a chance of p flips between two repeats with a chance of 2p(1 - p)."""
    covered = 0
    for seed in range(40):
        draw = random.Random(seed)
        results = [verdict(draw.random() < 0.9, f"t{n}", repeat) for n in range(200) for repeat in (1, 2)]
        estimate = flips.estimate(results)
        assert estimate.low is not None
        assert estimate.high is not None
        covered += estimate.low <= 2 * 0.9 * 0.1 <= estimate.high
    assert covered >= 36


def test_repeats_are_stored_in_a_log_and_read_back(tmp_path: Path) -> None:
    value = DropOff(outcome="continued")
    results = [Verdict(value, "drop_off", "1", About("session", "s", repeat=repeat)) for repeat in (1, 2)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(to_line(Stored("drop_off", result)) + "\n" for result in [*results, results[0]]))
    log = read(path)
    assert [item.result for item in log if isinstance(item, Stored)] == results
    assert log.left_out.total == 1


def test_the_measures_say_what_is_pending() -> None:
    later = NINE + timedelta(minutes=1)
    session = Session(id="s", activities=[Activity(at=NINE, role="agent")])
    wait = Wait(id="w", session="s", since=NINE)
    history = History(id="h", revisions=[Revision(at=NINE, role="agent", text="a")])
    draft = Draft(id="d", history="h", written=NINE, text="a")
    for evaluator, given in (
        (drop_off_evaluator(now=later), session),
        (wait_evaluator(now=later), wait),
        (rewrite_evaluator(now=later), history),
        (rewrite_evaluator(now=later), draft),
        (retention_evaluator(now=later), draft),
    ):
        run = evaluate_all_sync(evaluator, [given])
        list(run)
        assert run.summary.pending == 1, evaluator.name
    for evaluator, given in (
        (drop_off_evaluator(now=later, window=timedelta(seconds=1)), session),
        (rewrite_evaluator(), draft),
        (retention_evaluator(), draft),
    ):
        run = evaluate_all_sync(evaluator, [given])
        list(run)
        assert run.summary.pending == 0, evaluator.name


def test_a_chain_is_pending_pinned_and_dated_as_its_parts_are() -> None:
    ticks = iter(NINE + timedelta(days=n) for n in range(9))

    def at(given: Transcript, now: datetime) -> Said:
        return Said(done=False)

    timed = FunctionEvaluator(
        "timed", "1", at, Transcript, Said, now=lambda: next(ticks), inline=True, pending=lambda v: not v.done
    )
    plain = FunctionEvaluator("plain", "1", lambda given: Said(done=True), Transcript, Said, inline=True)
    chain = Fallback(timed, plain)
    pinned = chain.pinned()
    given = Transcript(id="t", request="r")
    assert pinned.as_of(given) == pinned.as_of(given) == NINE
    assert Fallback(plain).as_of(given) is None
    assert (chain.pending(Said(done=False)), chain.pending(Said(done=True))) == (True, False)
    assert Fallback(plain).pending(Said(done=False)) is False
    assert (pinned.name, pinned.version) == (chain.name, chain.version)
    assert chain.expected_tokens(given) == 0

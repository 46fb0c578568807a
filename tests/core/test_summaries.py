"""Summaries: every result is counted once under its own name, and the estimate says what it rests on."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from evalr import (
    About,
    DuplicateError,
    Estimate,
    Failure,
    HandOff,
    InputError,
    Mean,
    MixedVersionsError,
    Rate,
    Result,
    Skip,
    TimeTo,
    Verdict,
    pass_k,
)
from evalr.estimates.mean import mean_interval
from evalr.estimates.rate import rate_interval
from evalr.logs import Stored
from evalr.measures import Session
from evalr.tallies.moments import Moments

AT = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)


class Answer(BaseModel):
    ok: bool | None
    score: float | None = None
    after: float | None = None
    end: str | None = None


class Batch(BaseModel):
    good: int | None
    all: int
    pending: int = 0


class Detailed(Answer):
    why: str = "because"


share = Rate(
    "share",
    of=Answer,
    hits=lambda v: v.ok,
    leaves_out=lambda v: None if v.end != "pending" else "pending",
    noun="answer",
)
pooled = Rate(
    "pooled",
    of=Batch,
    hits=lambda v: v.good,
    total=lambda v: v.all,
    pending=lambda v: v.pending,
    noun="item",
    parent="batch",
)
score = Mean("score", of=Answer, value=lambda v: v.score)
rating = replace(score, name="rating", bounds=(1, 5))
time_to = TimeTo("time", of=Answer, after=lambda v: v.after, end=lambda v: v.end, event="back")
within = replace(time_to, name="within", within=10)


def verdict(value: BaseModel, version: str = "1", **about: Any) -> Verdict[Any]:
    about = {"user": None, **about}
    return Verdict(value, "judge", version, About("session", **about))


def answers(*outcomes: bool | None, **about: Any) -> list[Result[Any]]:
    return [verdict(Answer(ok=ok), **about) for ok in outcomes]


def interval(estimate: Estimate) -> tuple[float | None, float | None]:
    return estimate.low, estimate.high


# -- what is counted -------------------------------------------------------------------------------------------------


def test_verdicts_and_plain_values_count_alike_and_subclasses_too() -> None:
    results: list[Any] = [Answer(ok=True), verdict(Detailed(ok=False)), Detailed(ok=True), verdict(Answer(ok=True))]
    assert share(results) == 0.75
    assert share(iter(results)) == 0.75
    assert share.estimate(results).n == 4


def test_calling_a_summary_gives_the_value_of_its_estimate() -> None:
    for summary in (share, rating, time_to, within):
        results = [Answer(ok=True, score=3, after=4, end="back"), Answer(ok=False, score=5, after=6, end="back")]
        assert summary(results) == summary.estimate(results).value
        assert summary([]) is None


def test_crashing_judges_neither_raise_a_rate_nor_vanish() -> None:
    judged = answers(True, True, True, True, False)
    estimate = share.estimate([*judged, *[Failure("the judge timed out")] * 5])
    assert (estimate.value, estimate.n) == (0.8, 5)
    assert estimate.bounds == (0.8 / 2, (0.8 + 1) / 2)
    assert estimate.left_out == {"failed": 5}
    assert interval(estimate) == interval(share.estimate(judged))


@st.composite
def outcomes(draw: st.DrawFn) -> list[Any]:
    kinds = draw(st.lists(st.sampled_from(["hit", "miss", "unknown", "pending", "failed", "skipped", "handed off"])))
    made: dict[str, Any] = {
        "hit": Answer(ok=True),
        "miss": Answer(ok=False),
        "unknown": Answer(ok=None),
        "pending": Answer(ok=False, end="pending"),
        "failed": Failure("broke"),
        "skipped": Skip("no need"),
        "handed off": HandOff("too hard"),
    }
    return [(kind, made[kind]) for kind in kinds]


@given(outcomes())
def test_each_outcome_is_counted_once_under_its_own_name(given_outcomes: list[Any]) -> None:
    kinds = Counter(kind for kind, _ in given_outcomes)
    estimate = share.estimate([result for _, result in given_outcomes])
    hits, misses = kinds.pop("hit", 0), kinds.pop("miss", 0)
    assert estimate.left_out == dict(kinds)
    assert estimate.counts == {"hits": hits, "total": hits + misses}
    assert estimate.n == hits + misses
    if not hits + misses:
        assert (estimate.value, estimate.status) == (None, "undefined")
        return
    assert estimate.value == hits / (hits + misses)
    missing = kinds.total()
    assert estimate.bounds == (hits / (hits + misses + missing), (hits + missing) / (hits + misses + missing))


def test_what_does_not_belong_is_named_and_widens_nothing() -> None:
    rate = replace(share, leaves_out=lambda v: "test run" if v.end == "test" else None)
    estimate = rate.estimate([Answer(ok=True), Answer(ok=False), Answer(ok=True, end="test")])
    assert (estimate.value, estimate.bounds, estimate.left_out) == (0.5, (0.5, 0.5), {"test run": 1})


def test_one_verdict_may_hold_many_hits_and_pending_ones() -> None:
    batches = [Batch(good=1, all=4, pending=2), Batch(good=2, all=2), Batch(good=0, all=0)]
    estimate = pooled.estimate(batches)
    assert (estimate.value, estimate.n, estimate.counts) == (0.5, 6, {"hits": 3, "total": 6})
    assert estimate.left_out == {"pending": 2}
    assert estimate.bounds == (3 / 8, 5 / 8)
    assert estimate.clusters == 2  # a batch of nothing says nothing


def test_an_unknown_total_bounds_nothing_and_a_known_one_does() -> None:
    batches = [Batch(good=1, all=4), Batch(good=2, all=2)]
    assert pooled.estimate([*batches, Failure("broke")]).bounds == (0, 1)
    assert pooled.estimate([Failure("broke")]).bounds == (0, 1)
    estimate = pooled.estimate([*batches, Batch(good=None, all=2)])
    assert (estimate.value, estimate.bounds, estimate.left_out) == (0.5, (3 / 8, 5 / 8), {"unknown": 2})


@pytest.mark.parametrize(
    ("good", "total", "pending"), [(3, 2, 0), (-1, 2, 0), (0.5, 2, 0), (0, -1, 0), (0.0, 1, 0), (0, 1, -1), ("1", 1, 0)]
)
def test_hits_outside_the_total_are_refused(good: Any, total: Any, pending: Any) -> None:
    with pytest.raises(InputError, match="0 ≤ hits ≤ total"):
        pooled.estimate([Batch.model_construct(good=good, all=total, pending=pending)])


def test_a_number_that_is_none_leaves_the_mean_and_is_counted() -> None:
    values = [2.0, 4.0, math.nan, math.inf, None]
    estimate = rating.estimate([Answer(ok=True, score=value) for value in values])
    assert (estimate.value, estimate.n) == (3, 2)
    assert estimate.left_out == {"not a number": 2, "unknown": 1}
    assert estimate.bounds == ((6 + 3) / 5, (6 + 15) / 5)
    unbounded = score.estimate([Answer(ok=True, score=value) for value in values])
    assert (unbounded.value, unbounded.bounds) == (3, None)
    json.dumps(unbounded.to_dict(), allow_nan=False)


def test_a_number_outside_its_bounds_is_refused() -> None:
    with pytest.raises(InputError, match="outside its bounds, 1 to 5"):
        rating.estimate([Answer(ok=True, score=6)])


def test_a_number_too_large_to_square_is_refused() -> None:
    assert score([Answer(ok=True, score=1e100), Answer(ok=True, score=-1e100)]) == 0
    for number in (1e200, 10**400, -(10**5000)):
        with pytest.raises(InputError, match="too large"):
            score.estimate([Answer.model_construct(ok=True, score=number)])


def test_means_weigh_by_what_they_are_given_and_name_what_weighs_nothing() -> None:
    weighted = replace(score, weight=lambda v: v.after)
    values = [Answer(ok=True, score=1, after=1), Answer(ok=True, score=4, after=2), Answer(ok=True, score=9, after=0)]
    estimate = weighted.estimate(values)
    assert (estimate.value, estimate.n, estimate.left_out) == (3, 2, {"without weight": 1})
    with pytest.raises(InputError, match="must not be negative"):
        weighted.estimate([Answer(ok=True, score=1, after=-1)])


grams = Mean(
    "grams",
    of=Batch,
    value=lambda v: Fraction(v.good, v.all),
    weight=lambda v: v.all,
    pending=lambda v: v.pending,
    bounds=(0, 1),
)


def test_a_weight_still_to_come_widens_the_bounds_of_a_mean_by_what_it_could_add() -> None:
    values = [Batch(good=1, all=3), Batch(good=2, all=2, pending=4), Batch(good=0, all=0, pending=6)]
    estimate = grams.estimate(values)
    # (1 + 2) of 5 so far; 10 more could all be 0, or all be 1.
    assert (estimate.value, estimate.n, estimate.left_out) == (3 / 5, 2, {"pending": 2})
    assert estimate.counts == {"sum": 3, "total": 5}
    assert all(type(count) is int for count in estimate.counts.values())
    assert estimate.bounds == (3 / 15, 13 / 15)
    scaled = replace(grams, value=lambda v: 1 + 4 * v.good / v.all, bounds=(1, 5))
    assert scaled.estimate(values).bounds == ((1 * 5 + 4 * 3 + 1 * 10) / 15, (1 * 5 + 4 * 3 + 5 * 10) / 15)
    assert replace(grams, bounds=None).estimate(values).bounds is None
    # How much a failure would have weighed is not known.
    assert grams.estimate([*values, Failure("broke")]).bounds == (0, 1)


def test_a_weight_still_to_come_is_that_of_what_a_sampled_result_stands_for() -> None:
    results = [
        verdict(Batch(good=1, all=2, pending=2), weight=3.0),
        verdict(Batch(good=0, all=0, pending=1), weight=4.0),
    ]
    estimate = grams.estimate(results)
    assert (estimate.value, estimate.bounds) == (1 / 2, (3 / (6 + 6 + 4), (3 + 6 + 4) / (6 + 6 + 4)))
    assert grams.estimate(grams.tally(results[:1]) + grams.tally(results[1:])) == estimate


def test_a_mean_of_units_with_something_still_to_come_could_be_anything() -> None:
    folded = replace(grams, per="task", fold="mean")
    results = [
        verdict(Batch(good=1, all=2), attributes={"task": "t1"}),
        verdict(Batch(good=0, all=0, pending=1), attributes={"task": "t2"}),
    ]
    estimate = folded.estimate(results)
    assert (estimate.value, estimate.n, estimate.bounds) == (1 / 2, 1, (0, 1))
    assert estimate.left_out == {"pending": 1, "without a value": 1}


def test_a_weight_still_to_come_is_not_negative_and_is_told_apart_from_none() -> None:
    with pytest.raises(InputError, match="must not be negative"):
        grams.estimate([Batch.model_construct(good=0, all=1, pending=-1)])
    alike = replace(grams, pending=None)
    assert grams.reads() != alike.reads()
    assert replace(grams, weight=None, value=lambda v: v.good / 2).estimate([Batch(good=1, all=1, pending=2)]) == (
        replace(grams, weight=lambda v: 1, value=lambda v: v.good / 2).estimate([Batch(good=1, all=1, pending=2)])
    )


def test_another_verdict_type_is_refused_not_skipped() -> None:
    for other in (Batch(good=1, all=1), verdict(Batch(good=1, all=1)), "yes"):
        with pytest.raises(InputError, match="reads Answer, not"):
            share.estimate([Answer(ok=True), other])


def test_nothing_is_undefined_with_a_reason() -> None:
    for summary in (share, pooled, score, rating, time_to, within):
        estimate = summary.estimate([])
        assert (estimate.value, interval(estimate), estimate.bounds) == (None, (None, None), None)
        assert (estimate.status, estimate.n, estimate.clusters, estimate.flags) == ("undefined", 0, 0, ())
        assert estimate.reason
        only_failures = summary.estimate([Failure("broke")])
        assert (only_failures.value, only_failures.status) == (None, "undefined")
        assert only_failures.left_out == {"failed": 1}


# -- one result for one subject --------------------------------------------------------------------------------------


def test_duplicates_are_refused_naming_both_positions() -> None:
    results = answers(True, False, id="s1", user="ada")
    with pytest.raises(DuplicateError, match=r"results 0 and 1 are both about session 's1' of user 'ada'"):
        share.estimate(results)
    assert share.estimate(results, duplicates="first").value == 1
    assert share.by(results, "user", duplicates="latest")["ada"].value == 0
    assert share.trend(results, duplicates="first")[None].value == 1


def test_the_latest_duplicate_is_the_one_read_last() -> None:
    early, late = (
        Verdict(Answer(ok=ok), "judge", about=About("session", id="s1"), as_of=AT + timedelta(days=day))
        for ok, day in ((False, 1), (True, 2))
    )
    assert share.estimate([late, early], duplicates="latest").value == 1


def test_users_may_share_a_session_id() -> None:
    results = [*answers(True, id="s1", user="ada"), *answers(False, id="s1", user="bob"), *answers(False, id="s1")]
    assert share.estimate(results).n == 3


# -- versions --------------------------------------------------------------------------------------------------------


def test_versions_of_one_evaluator_are_not_pooled_unless_asked_to() -> None:
    results = [verdict(Answer(ok=True), version) for version in ("1", "2", "2")]
    with pytest.raises(MixedVersionsError, match="versions '1', '2' of evaluator 'judge'"):
        share.estimate(results)
    estimate = share.estimate(results, mix_versions=True)
    assert estimate.flags == ("low_confidence", "mixed_versions")
    assert estimate.versions == {"judge@1": 1, "judge@2": 2}


def test_several_evaluators_are_several_opinions_not_versions() -> None:
    people = Verdict(Answer(ok=False), "people", "7", About("session", id="s2"))
    estimate = share.estimate([*answers(True, id="s1"), people])
    assert estimate.versions == {"judge@1": 1, "people@7": 1}
    assert "mixed_versions" not in estimate.flags


def test_flags_of_verdicts_are_repeated() -> None:
    truncated = Verdict(Answer(ok=True), "judge", flags=("truncated",))
    assert "truncated" in share.estimate([truncated]).flags
    assert "truncated" not in share.estimate(answers(True)).flags


# -- clusters --------------------------------------------------------------------------------------------------------


def test_plain_values_are_their_own_clusters() -> None:
    estimate = share.estimate([Answer(ok=True)] * 3 + [Answer(ok=False)])
    assert (estimate.clusters, estimate.clustered_by) == (4, {})
    expected = rate_interval(Moments.of_clusters([(1, 1, 1)] * 3 + [(0, 1, 1)]))
    assert interval(estimate) == (expected.low, expected.high)
    assert estimate.method == expected.method


def test_the_default_cluster_is_the_user_else_what_it_is_a_part_of_else_itself() -> None:
    results = [
        *answers(True, True, False, user="ada", session="s1"),
        *answers(True, False, session="s1"),
        *answers(True, session="s2"),
        *answers(False, False),
    ]
    estimate = share.estimate(results)
    assert estimate.clustered_by == {"user": 1, "session": 2, "answer": 2}
    expected = rate_interval(Moments.of_clusters([(2, 3, 3), (1, 2, 2), (1, 1, 1), (0, 1, 1), (0, 1, 1)]))
    assert (interval(estimate), estimate.variance) == ((expected.low, expected.high), expected.variance)


def test_a_user_and_a_session_of_one_name_are_two_clusters() -> None:
    results = [*answers(True, user="x"), *answers(False, session="x")]
    assert share.estimate(results).clusters == 2
    assert within.estimate([replace(r, value=Answer(ok=True, after=1, end="back")) for r in results]).clusters == 2  # type: ignore[type-var]


def test_a_cluster_named_by_the_caller_is_strict() -> None:
    teams = [*answers(True, True, user="ada", attributes={"team": "red"}), *answers(False, attributes={"team": "blue"})]
    estimate = share.estimate(teams, cluster="team")
    assert (estimate.clusters, estimate.clustered_by) == (2, {"team": 2})
    with pytest.raises(InputError, match="cluster='team': a value without an id has none"):
        share.estimate([*teams, Answer(ok=True)], cluster="team")
    with pytest.raises(InputError, match="session 's9' has several"):
        share.estimate(answers(True, id="s9", attributes={"team": ["red", "blue"]}), cluster="team")
    with pytest.raises(InputError, match=r"the cluster function: .* has 7, which is no text"):
        share.estimate(answers(True), cluster=lambda about: 7)  # type: ignore[arg-type,return-value]
    with pytest.raises(InputError, match="cluster='user'"):
        share.estimate(answers(True), cluster="user")


def test_sessions_of_two_users_with_one_id_are_two_clusters() -> None:
    results = [*answers(True, session="s1", user="ada"), *answers(False, session="s1", user="bob")]
    assert share.estimate(results, cluster="session").clusters == 2


def test_few_clusters_are_low_confidence_however_many_rows() -> None:
    few = [each for user in range(29) for each in answers(True, False, user=f"u{user}")]
    assert "low_confidence" in share.estimate(few).flags
    assert "low_confidence" not in share.estimate([*few, *answers(True, user="u29")]).flags


def test_one_cluster_has_a_value_without_an_interval() -> None:
    results = [
        verdict(Answer(ok=ok, score=score, after=score, end="back"), user="ada")
        for ok, score in ((True, 2), (False, 4))
    ]
    for summary in (share, score, rating, within, time_to):
        estimate = summary.estimate(results)
        assert estimate.value is not None
        assert (interval(estimate), estimate.status) == ((None, None), "degenerate")
        assert "single cluster" in (estimate.reason or "")


@given(st.integers(1, 40), st.integers(1, 5), st.booleans(), st.booleans())
def test_identical_outcomes_never_have_an_interval_of_no_width(users: int, each: int, ok: bool, known: bool) -> None:
    results = [
        verdict(
            Answer(ok=ok, score=5 if ok else 1, after=3, end="back" if ok else None), user=f"u{user}" if known else None
        )
        for user in range(users)
        for _ in range(each)
    ]
    for summary in (share, rating, replace(within, within=3), replace(within, within=3, open=True), time_to, score):
        estimate = summary.estimate(results)
        if estimate.low is None and estimate.high is None:
            assert estimate.status in ("degenerate", "not_reached")
            assert estimate.reason
        else:
            assert estimate.low is not None
            assert estimate.high is None or estimate.low < estimate.high
    if users > 1:
        assert share.estimate(results).status == rating.estimate(results).status == "ok"
    assert interval(score.estimate(results)) == (None, None)  # nothing bounds what the next may be


def test_rows_of_many_units_are_called_what_they_are_parts_of() -> None:
    assert pooled.estimate([Batch(good=1, all=4), Batch(good=2, all=2)]).clustered_by == {"batch": 2}
    assert pooled.estimate([Batch(good=1, all=1), Batch(good=0, all=1)]).clustered_by == {}
    assert str(pooled.estimate([Batch(good=1, all=4)] * 2)).startswith("pooled 25.0% ")
    assert "8 items of 2 batches" in str(pooled.estimate([Batch(good=1, all=4)] * 2))


# -- groups ----------------------------------------------------------------------------------------------------------


def test_groups_overlap_for_lists_and_the_rest_is_named() -> None:
    results = [
        *answers(True, attributes={"agent": "red"}),
        *answers(False, attributes={"agent": ["red", "blue", "red"]}),
        *answers(True, attributes={"agent": []}),
        *answers(True),
    ]
    groups = share.by(results, "agent")
    assert list(groups) == ["blue", "red", None]
    assert {group: estimate.n for group, estimate in groups.items()} == {"blue": 1, "red": 2, None: 2}
    assert groups.overlap
    assert groups.by == "agent"
    assert "(no agent): share 100.0%" in str(groups)
    assert not share.by(answers(True, attributes={"agent": "red"}), "agent").overlap


def test_failures_are_counted_in_their_group() -> None:
    broken = Failure("broke", about=About("session", attributes={"agent": "red"}))
    groups = share.by([*answers(True, attributes={"agent": "red"}), broken], "agent")
    assert groups["red"].left_out == {"failed": 1}
    assert groups["red"].bounds == (0.5, 1)


def test_groups_by_a_field_or_a_function() -> None:
    results = [*answers(True, arm="treatment", user="ada"), *answers(False, arm="control", user="bob")]
    assert dict(share.by(results, "arm")).keys() == {"treatment", "control"}
    assert list(share.by(results, lambda about: (about.user or "")[:1])) == ["a", "b"]
    with pytest.raises(InputError, match="a group is a text"):
        share.by(results, lambda about: 7)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize("key", [["user", "agent"], 5, {"user"}])
def test_what_is_no_key_is_refused(key: Any) -> None:
    for ask in (lambda: share.by(answers(True), key), lambda: share.estimate(answers(True), cluster=key)):
        with pytest.raises(InputError, match="is no key"):
            ask()


def test_versions_may_differ_from_group_to_group() -> None:
    results = [verdict(Answer(ok=True), version, attributes={"agent": version}) for version in ("1", "2")]
    assert share.by(results, "agent")["1"].versions == {"judge@1": 1}


# -- trends ----------------------------------------------------------------------------------------------------------


def test_a_trend_has_every_bucket_and_empty_ones_are_undefined() -> None:
    results = [
        *answers(True, False, at=AT),
        *answers(True, at=AT + timedelta(days=3)),
        Failure("broke", about=About("session", at=AT + timedelta(days=1))),
        Answer(ok=True),
    ]
    trend = share.trend(results)
    assert list(trend) == ["2026-09-28", "2026-09-29", "2026-09-30", "2026-10-01", None]
    assert [estimate.value for estimate in trend.values()] == [0.5, None, None, 1, 1]
    assert trend["2026-09-29"].left_out == {"failed": 1}
    assert (trend["2026-09-30"].status, trend["2026-09-30"].left_out) == ("undefined", {})
    assert trend["2026-09-30"].reason
    assert "(no time): share 100.0%" in str(trend)
    assert list(share.trend([])) == []


def test_a_trend_follows_the_calendar_of_its_zone() -> None:
    results = answers(True, at=datetime(2026, 9, 28, 23, 30, tzinfo=UTC))
    assert list(share.trend(results, tz="Asia/Shanghai")) == ["2026-09-29"]
    assert list(share.trend(results, tz="America/New_York")) == ["2026-09-28"]
    with pytest.raises(InputError, match="not a known time zone"):
        share.trend(results, tz="Mars/Olympus")
    with pytest.raises(InputError, match="must be 'hour', 'day'"):
        share.trend([], bucket="year")  # type: ignore[arg-type]


# -- sampling weights ------------------------------------------------------------------------------------------------


def test_sampled_results_weigh_what_they_stand_for() -> None:
    results = [*answers(True, True, weight=0.5), *answers(False, weight=3.0)]
    estimate = share.estimate([*results, Failure("broke", about=About("session", weight=4.0))])
    assert (estimate.value, estimate.n, estimate.counts) == (0.25, 3, {"hits": 1, "total": 4})
    assert estimate.bounds == (1 / 8, 5 / 8)
    assert "sampled" in estimate.flags
    scores = [verdict(Answer(ok=True, score=number), weight=weight) for number, weight in ((1, 3.0), (5, 1.0))]
    assert (rating.estimate(scores).value, rating.estimate(scores).n) == (2, 2)


def test_equal_weights_change_no_limit_of_the_interval() -> None:
    # Users differ less than chance has it, so that the number of rows is what limits the interval.
    users = [each for user in range(8) for each in answers(True, user == 0, user=f"u{user}")]
    weighed = [replace(result, about=result.about._replace(weight=2.5)) for result in users]  # type: ignore[union-attr]
    plain, sampled = share.estimate(users), share.estimate(weighed)
    assert sampled.value == plain.value
    assert interval(sampled) == pytest.approx(interval(plain))
    assert sampled.n == plain.n


def test_folds_and_times_do_not_weigh_and_say_so() -> None:
    result = verdict(Answer(ok=True, after=1, end="back"), weight=3.0, attributes={"task": "t1"})
    folded = replace(share, per="task", fold="any")
    for summary in (folded, within, time_to):
        estimate = summary.estimate([result, result])
        assert "unweighted" in estimate.flags
        assert "sampled" not in estimate.flags
    one = replace(result, about=result.about._replace(weight=1.0))  # type: ignore[union-attr]
    assert "unweighted" not in folded.estimate([one]).flags


# -- folds -----------------------------------------------------------------------------------------------------------


def tasks(**outcomes_of: str) -> list[Any]:
    """Results by task: h is a hit, m a miss, f a failure, u unknown."""
    made = {"h": Answer(ok=True), "m": Answer(ok=False), "u": Answer(ok=None)}
    results: list[Any] = []
    for task, outcomes in outcomes_of.items():
        about = About("session", attributes={"task": task})
        results += [
            Failure("broke", about=about) if o == "f" else Verdict(made[o], "judge", about=about) for o in outcomes
        ]
    return results


@pytest.mark.parametrize(
    ("fold", "value", "n"),
    [("any", 2 / 3, 3), ("all", 1 / 3, 3), ("share", 0.5, 3), ("flip", 0.5, 2), (pass_k(2), 0.5, 2)],
)
def test_folds_make_one_row_of_a_unit(fold: Any, value: float, n: int) -> None:
    estimate = replace(share, per="task", fold=fold, noun="task").estimate(tasks(t1="hhh", t2="hmmm", t3="m"))
    expected = value if fold != "share" else float(Fraction(1 + Fraction(1, 4), 3))
    assert (estimate.value, estimate.n, estimate.clusters) == (pytest.approx(expected), n, n)
    assert estimate.left_out == ({} if n == 3 else {"with fewer than 2 trials": 1})


def test_pass_k_counts_every_way_to_draw_k_trials() -> None:
    trials = {"t1": "hhmm", "t2": "hhhh", "t3": "mmmm", "t4": "hmh"}
    for k in (1, 2, 3):
        drawn = [
            Fraction(sum(set(each) == {"h"} for each in draws), len(draws))
            for draws in (list(combinations(outcomes, k)) for outcomes in trials.values())
        ]
        summary = replace(share, per="task", fold=pass_k(k))
        assert summary(tasks(**trials)) == float(Fraction(sum(drawn), len(drawn)))
    four = replace(share, per="task", fold=pass_k(4)).estimate(tasks(**trials))
    assert (four.value, four.left_out) == (1 / 3, {"with fewer than 4 trials": 1})


def test_pass_k_is_clustered_by_task_and_stays_inside_zero_and_one() -> None:
    estimate = replace(share, per="task", fold=pass_k(2), noun="task").estimate(tasks(t1="hhhm", t2="hhhh", t3="mmmm"))
    expected = mean_interval(Moments.of_clusters([(Fraction(1, 2), 1, 1), (1, 1, 1), (0, 1, 1)]), bounds=(0, 1))
    assert interval(estimate) == (expected.low, expected.high)
    assert 0 <= (estimate.low or 0) < (estimate.high or 0) <= 1


@pytest.mark.parametrize("k", [0, -1, True, 1.5, "3"])
def test_pass_k_takes_whole_numbers_from_one(k: Any) -> None:
    with pytest.raises(InputError, match="whole number from 1"):
        pass_k(k)


@pytest.mark.parametrize("fold", ["any", "all", "share", "flip", pass_k(2)])
@given(st.lists(st.text("hmfu", min_size=1, max_size=4), min_size=1, max_size=3))
def test_bounds_of_a_fold_hold_whatever_the_missing_results_were(fold: Any, units: list[str]) -> None:
    summary = replace(share, per="task", fold=fold)
    estimate = summary.estimate(tasks(**{f"t{index}": unit for index, unit in enumerate(units)}))
    choices = [["".join(unit) for unit in product(*("hm" if o in "fu" else o for o in outcomes))] for outcomes in units]
    possible = [
        summary(tasks(**{f"t{index}": unit for index, unit in enumerate(completed)})) for completed in product(*choices)
    ]
    values = [value for value in possible if value is not None]
    if not values:
        assert (estimate.value, estimate.bounds) == (None, None)
        return
    assert estimate.bounds == (pytest.approx(min(values)), pytest.approx(max(values)))


def test_a_fold_of_unknown_totals_bounds_nothing() -> None:
    about = About("session", attributes={"task": "t1"})
    summary = replace(pooled, per="task", fold="share")
    estimate = summary.estimate([Verdict(Batch(good=1, all=1), "judge", about=about), Failure("broke", about=about)])
    assert (estimate.value, estimate.bounds) == (1, (0, 1))


def test_a_unit_is_named_by_attributes_fields_or_a_function() -> None:
    results = [
        verdict(Answer(ok=ok), user=user, session="s1", attributes={"task": task})
        for ok, user, task in ((True, "ada", "t1"), (False, "bob", "t1"), (False, "ada", "t2"))
    ]
    units = {
        "session": 2,  # two users share the id
        ("session", "task"): 3,
        "task": 2,
        "user": 2,
    }
    for per, n in units.items():
        assert replace(share, per=per, fold="any").estimate(results).n == n
    by_function = replace(share, per=lambda about: about.user, fold="any")
    assert by_function.estimate(results).n == 2
    with pytest.raises(InputError, match="per='task': a value without an id has none"):
        replace(share, per="task", fold="any").estimate([Answer(ok=True)])
    with pytest.raises(InputError, match="the per function: a value without an id has none"):
        by_function.estimate([Answer(ok=True)])


def test_a_fold_needs_its_unit_and_a_known_name() -> None:
    with pytest.raises(InputError, match="belong together"):
        replace(share, per="task")
    with pytest.raises(InputError, match="belong together"):
        replace(share, fold="any")
    with pytest.raises(InputError, match="must be one of 'any', 'all', 'share', 'flip' or pass_k"):
        replace(share, per="task", fold="most")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="folds by 'mean'"):
        replace(score, per="task", fold="any")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="folds by 'any' or 'all'"):
        replace(time_to, per="task", fold="mean")  # type: ignore[arg-type]


def test_a_mean_of_units_counts_each_unit_once() -> None:
    def scored(task: str, *scores: float | None) -> list[Any]:
        return [verdict(Answer(ok=True, score=each), attributes={"task": task}) for each in scores]

    summary = replace(rating, per="task", fold="mean")
    estimate = summary.estimate([*scored("t1", 1, 2, 3), *scored("t2", 4), *scored("t3", None)])
    assert (estimate.value, estimate.n) == (3, 2)
    assert estimate.left_out == {"unknown": 1, "without a value": 1}
    assert estimate.bounds == (1, 5)


def test_tau_bench_pass_k_is_the_published_one(real_logs: Path) -> None:
    runs = [json.loads(line) for line in (real_logs / "taubench_airline" / "dev.jsonl").read_bytes().splitlines()]
    results = [
        Verdict(
            Answer(ok=run["reward"] == 1),
            "reward",
            about=About("transcript", run["id"], attributes={"task": str(run["task_id"])}),
        )
        for run in runs
    ]
    found = []
    for k in (1, 2, 3, 4):
        estimate = replace(share, per="task", fold=pass_k(k), noun="task").estimate(results)
        assert (estimate.n, estimate.clusters, estimate.status) == (25, 25, "ok")
        assert (estimate.low or 1) < (estimate.value or 0) < (estimate.high or 0)
        found.append(round(estimate.value or 0, 6))
    assert found == [0.31, 0.193333, 0.17, 0.16]
    assert replace(share, per="task", fold="any").estimate(results).counts["hits"] == 15
    assert replace(share, per="task", fold="all").estimate(results).counts["hits"] == 4


# -- times -----------------------------------------------------------------------------------------------------------


def waits(*rows: tuple[float | None, str | None]) -> list[Any]:
    return [Answer(ok=True, after=after, end=end) for after, end in rows]


def test_what_is_still_open_stays_in_the_share() -> None:
    # Of four, one is back at 2, one open since 5, one back at 8, one not back by 10: S = 3/4 * 1/2.
    estimate = within.estimate(waits((2, "back"), (5, None), (8, "back"), (12, "back")))
    assert estimate.value == 1 - 3 / 4 * 1 / 2
    assert estimate.counts == {"ended": 2, "ended_otherwise": 0, "open": 1, "censored": 1}
    assert estimate.bounds == (2 / 4, 3 / 4)
    assert estimate.n == 4
    opened = replace(within, open=True).estimate(waits((2, "back"), (5, None), (8, "back"), (12, "back")))
    assert opened.value == 3 / 4 * 1 / 2
    assert opened.bounds == (1 / 4, 2 / 4)
    assert opened.counts == estimate.counts


def test_another_end_is_never_an_event_and_never_still_open() -> None:
    estimate = within.estimate(waits((2, "back"), (3, "closed"), (4, "back"), (5, "closed")))
    assert (estimate.value, estimate.counts["ended_otherwise"]) == (0.5, 2)
    closed = replace(within, open=True).estimate(waits((2, "back"), (3, "closed"), (5, None), (12, None)))
    assert closed.bounds == (2 / 4, 3 / 4)
    assert replace(within, open=True)(waits((2, "back"), (3, "closed"))) == 0.5


def test_exactly_the_time_counts() -> None:
    assert within(waits((10, "back"), (10, None))) == 0.5
    assert replace(within, within=timedelta(seconds=10))(waits((10, "back"), (10.5, "back"))) == 0.5


def test_the_typical_time_is_the_first_by_which_half_ended() -> None:
    rows = waits((1, "back"), (2, "back"), (3, "back"), (4, "back"))
    assert time_to(rows) == 2
    assert time_to.estimate(rows, quantile=0.75).value == 3
    open_ones = time_to.estimate(waits((1, "back"), (2, None), (3, None)))
    assert (open_ones.value, open_ones.status, open_ones.bounds) == (None, "not_reached", None)
    assert open_ones.reason
    assert open_ones.counts == {"ended": 1, "ended_otherwise": 0, "censored": 2}


def test_a_log_too_short_for_the_time_says_so() -> None:
    estimate = within.estimate(waits((1, "back"), (4, None)))
    assert (estimate.value, estimate.status, interval(estimate)) == (None, "not_reached", (None, None))
    assert estimate.bounds == (0.5, 1)


def test_unknown_durations_and_failures_widen_the_bounds_of_a_share() -> None:
    estimate = within.estimate([*waits((2, "back"), (12, "back"), (None, "back")), Failure("broke")])
    assert (estimate.value, estimate.n) == (0.5, 2)
    assert estimate.left_out == {"failed": 1, "unknown": 1}
    assert estimate.bounds == (1 / 4, 3 / 4)
    assert replace(within, open=True).estimate([*waits((2, "back")), Failure("broke")]).bounds == (0, 0.5)


def test_the_first_or_the_last_of_a_unit() -> None:
    def unit(task: str, *rows: tuple[float, str | None]) -> list[Any]:
        return [verdict(Answer(ok=True, after=after, end=end), attributes={"task": task}) for after, end in rows]

    results = [*unit("t1", (2, "back"), (30, "back")), *unit("t2", (20, "back"), (11, "back"))]
    assert replace(within, per="task", fold="any")(results) == 0.5
    assert replace(within, per="task", fold="all")(results) == 0
    assert replace(time_to, per="task", fold="all").estimate(results).counts["ended"] == 2
    assert replace(within, per="task", fold="any").estimate([*results, *unit("t2", (1, "back"))]).value == 1
    broken = Failure("broke", about=About("session", attributes={"task": "t1"}))
    assert replace(within, per="task", fold="all").estimate([*results, broken]).bounds == (0, 1)


@pytest.mark.parametrize("after", [-1, math.nan, math.inf, timedelta(seconds=-1), 10**400])
def test_a_length_of_time_is_not_negative(after: Any) -> None:
    with pytest.raises(InputError, match="as a length of time"):
        within.estimate([Answer.model_construct(ok=True, after=after, end="back")])
    with pytest.raises(InputError, match="must be a length of time"):
        replace(within, within=after)


def test_a_length_of_time_may_be_a_timedelta() -> None:
    as_timedelta = replace(within, after=lambda v: timedelta(seconds=v.after or 0))
    rows = waits((2, "back"), (12, "back"))
    assert as_timedelta(rows) == within(rows)


# -- settings --------------------------------------------------------------------------------------------------------


def test_settings_are_given_with_the_question() -> None:
    results = answers(*[True] * 8, False, False)
    wide, narrow = share.estimate(results, level=0.99), share.estimate(results, level=0.8)
    assert (wide.low or 0) < (narrow.low or 0) < (narrow.high or 0) < (wide.high or 0)
    assert (wide.level, narrow.level) == (0.99, 0.8)
    assert share.estimate(results, method="jeffreys").method.startswith("jeffreys")
    assert within.estimate(waits((2, "back"), (3, "back")), within=timedelta(seconds=2)).value == 0.5
    with pytest.raises(InputError, match="method must be one of"):
        share.estimate(results, method="wald")
    with pytest.raises(InputError, match="level must lie between"):
        share.estimate(results, level=95)
    for ask in (share.estimate, share.trend, lambda given, **more: share.by(given, "user", **more)):
        with pytest.raises(InputError, match=r"no setting 'methd'; there are: .*method.*; did you mean 'method'\?"):
            ask(results, methd="jeffreys")
    with pytest.raises(InputError, match=r"no setting 'levl'; .*did you mean 'level'\?"):
        share.estimate(results, levl=0.9)


def test_what_is_no_verdict_of_the_summary_is_refused_with_what_to_pass() -> None:
    person = Session(id="s", activities=[])
    cases: dict[str, tuple[Any, str]] = {
        "a verdict of another measure": (Verdict(Batch(good=1, all=1), "b"), r"if r\.evaluator == \.\.\.\]"),
        "an input": (person, "not Session: measure each session first"),
        "a stored result": (Stored("b", Verdict(Answer(ok=True), "b")), r"pass the \.result of each"),
        "a value of another type": (Batch(good=1, all=1), "pass values of Answer, or results that hold them"),
        "a bool": (True, r"not bool: wrap each value in the verdict type, as in Answer\(\.\.\.\)"),
    }
    for passed, message in cases.values():
        with pytest.raises(InputError, match=message) as raised:
            share.estimate([passed])
        assert ("r.evaluator ==" in str(raised.value)) is isinstance(passed, Verdict)
    with pytest.raises(InputError, match="pass a list"):
        share.estimate(Answer(ok=True))  # type: ignore[arg-type]


def test_a_bucket_stands_where_a_key_does() -> None:
    results = answers(True, False)
    assert share.trend(results, "week") == share.trend(results, bucket="week")
    assert share.trend(results, "week").by == "week"


def test_summaries_refuse_settings_that_mean_nothing() -> None:
    with pytest.raises(InputError, match="smallest, largest"):
        replace(score, bounds=(5, 1))
    for quantile in (0, 1, 2):
        with pytest.raises(InputError, match="between 0 and 1"):
            replace(time_to, quantile=quantile)
    choice: Literal["error", "first", "latest"] = "last"  # type: ignore[assignment]
    with pytest.raises(InputError, match="'error', 'first' or 'latest'"):
        share.estimate([], duplicates=choice)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(0, 3),
            st.sampled_from([None, "ada", "bob"]),
            st.sampled_from([None, 0.3, 7.0]),
        ),
        max_size=8,
    )
)
def test_a_rate_and_its_limits_are_shares(rows: list[Any]) -> None:
    results = [verdict(Batch(good=good, all=good + bad), user=user, weight=weight) for good, bad, user, weight in rows]
    estimate = pooled.estimate(results)
    found = [
        each for each in (estimate.value, estimate.low, estimate.high, *(estimate.bounds or ())) if each is not None
    ]
    assert all(0 <= each <= 1 for each in found)
    if estimate.value is not None and estimate.low is not None and estimate.high is not None:
        assert estimate.low <= estimate.value <= estimate.high
        assert estimate.low < estimate.high
    if estimate.value is not None and estimate.bounds is not None:
        assert estimate.bounds[0] <= estimate.value <= estimate.bounds[1]
    json.dumps(estimate.to_dict(), allow_nan=False)


# -- groups that are themselves clusters -----------------------------------------------------------------------------


def test_a_group_of_one_user_is_clustered_by_what_it_is_made_of() -> None:
    results = [verdict(Answer(ok=number % 3 > 0), id=str(number), user=f"u{number % 2}") for number in range(40)]
    groups = share.by(results, "user")
    assert [(group, each.status, each.clusters) for group, each in groups.items()] == [
        ("u0", "ok", 20),
        ("u1", "ok", 20),
    ]
    parts = [
        verdict(Answer(ok=number % 3 > 0), id=str(number), user="u", session=f"s{number % 4}") for number in range(40)
    ]
    assert share.by(parts, "user")["u"].clusters == 4
    assert share.by(parts, "session")["s1"].clusters == 10
    named = share.by(results, "user", cluster="user")
    assert {each.status for each in named.values()} == {"degenerate"}


def test_folded_rows_are_called_by_their_unit() -> None:
    results = [verdict(Answer(ok=True), id=str(number), attributes={"task": f"t{number % 5}"}) for number in range(10)]
    assert "· 5 tasks ·" in str(share.estimate(results, per="task", fold="all"))


def test_tallies_add_up_by_sum() -> None:
    parts = [share.tally([verdict(Answer(ok=number > 1), id=str(number))]) for number in range(4)]
    assert share.estimate(sum(parts)).counts == {"hits": 2, "total": 4}

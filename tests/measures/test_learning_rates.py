"""Learning rates by verdict, by response and by learning: one fold, and what is unknown is no neutral."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalr import Contest, Failure, FunctionEvaluator, InputError, MixedVersionsError, Skip, Verdict
from evalr.inputs import LearningUse
from evalr.measures import (
    FoldedImpact,
    LearningImpact,
    fold_impacts,
    learning_coverage,
    learning_evaluator,
    negative_rate,
    net_impact,
    per_learning,
    per_response,
    positive_rate,
    relevance_rate,
    response_mixed_rate,
    response_negative_rate,
    response_net_impact,
    response_positive_rate,
    response_relevance_rate,
)
from evalr.measures.learning import measure
from evalr.reports.report import report
from evalr.runs import evaluate_all_sync
from evalr.testing import EvaluatorContract

START = datetime(2026, 11, 1, tzinfo=UTC)


def use(response_id: str, learning_id: str, **fields: Any) -> LearningUse:
    usual = {"user": "ada", "session": "s1", "message": "Ship it?", "response": "On Monday.", "learning": "Ask legal."}
    return LearningUse(**usual | {"learning_id": learning_id, "response_id": response_id} | fields)


def judged(response: str, learning: str, impact: Any = None, relevant: bool | None = None, **fields: Any) -> Any:
    about = use(response, learning, **fields).about()
    return Verdict(LearningImpact(relevant=relevant, impact=impact), "learning", "1", about)


def by_text(given: LearningUse) -> LearningImpact:
    return LearningImpact(relevant=True, impact="positive" if given.learning == "Ask legal." else "negative")


JUDGE = FunctionEvaluator("learning", "1", by_text, LearningUse, LearningImpact, inline=True)

RESULTS = [
    judged("positive", "l1", "positive", True),
    judged("positive", "l2", "neutral", False),
    judged("negative", "l1", "negative", False),
    judged("mixed", "l1", "positive", True),
    judged("mixed", "l2", "negative", True),
    judged("neutral", "l3", "neutral", False),
    judged("unknown", "l1"),
    judged("partly", "l1", "positive", True),
    judged("partly", "l2"),
]


class TestContract(EvaluatorContract):
    evaluator = learning_evaluator(JUDGE)
    inputs: ClassVar = [use("r1", "l1"), use("r1", "l2", learning=None)]


# -- one use, one verdict ---------------------------------------------------------------------------------------------


def test_duplicate_references_of_one_response_count_once() -> None:
    uses = [use("r1", "l1"), use("r1", "l1"), use("r1", "l2"), use("r2", "l1"), use("r1", "l1", kind="profile")]
    assert len({each.about().subject for each in uses}) == 4
    results = list(evaluate_all_sync(JUDGE, uses))
    assert len(results) == 4
    twice = [JUDGE.evaluate_sync(each) for each in uses]
    assert positive_rate.estimate(twice, duplicates="first").n == 4
    assert [row.value.uses for row in fold_impacts(twice, duplicates="first")] == [3, 1]


def test_a_name_of_ones_own_stays() -> None:
    assert use("r1", "l1", id="x").id == "x"
    assert use("a/b", "c").id != use("a", "b/c").id
    given = use("r1", "l1")
    assert LearningUse.model_validate(given.model_dump()) == given
    assert LearningUse.model_validate_json(given.model_dump_json()) == given
    assert pickle.loads(pickle.dumps(given)) == given


@pytest.mark.parametrize("gone", [None, "", " \n"])
def test_a_learning_whose_text_is_gone_is_skipped_and_counted(gone: str | None) -> None:
    asked: list[LearningUse] = []

    def look(given: LearningUse) -> LearningImpact:
        asked.append(given)
        return by_text(given)

    judge = FunctionEvaluator("judge", "7", look, LearningUse, LearningImpact, inline=True)
    evaluator = learning_evaluator(judge)
    skip = evaluator.evaluate_sync(use("r1", "l1", learning=gone))
    assert isinstance(skip, Skip)
    assert (skip.reason, skip.cost, asked) == ("the text of the learning is gone", 0, [])
    verdict = evaluator.evaluate_sync(use("r1", "l2"))
    assert isinstance(verdict, Verdict)
    assert (verdict.evaluator, verdict.version, len(asked)) == ("learning", "learning@1+judge@7", 1)
    estimate = positive_rate.estimate([skip, verdict])
    assert (estimate.counts, estimate.left_out) == ({"hits": 1, "total": 1}, {"skipped": 1})
    assert estimate.bounds == (0.5, 1)


def test_a_judge_that_knows_its_cost_keeps_it() -> None:
    priced = FunctionEvaluator(
        "x", "1", lambda u: Verdict(by_text(u), "x", cost=0.25), LearningUse, LearningImpact, inline=True
    )
    assert learning_evaluator(priced).evaluate_sync(use("r1", "l1")).cost == 0.25


# -- rates ------------------------------------------------------------------------------------------------------------


def test_rates_of_verdicts() -> None:
    assert relevance_rate.estimate(RESULTS).counts == {"hits": 4, "total": 7}
    assert positive_rate.estimate(RESULTS).counts == {"hits": 3, "total": 7}
    assert negative_rate.estimate(RESULTS).counts == {"hits": 2, "total": 7}
    assert net_impact.estimate(RESULTS).counts == {"wins": 3, "ties": 2, "losses": 2}
    assert net_impact.estimate(RESULTS).left_out == {"unknown": 2}


def test_rates_of_responses() -> None:
    net = response_net_impact.estimate(RESULTS)
    assert net.counts == {"wins": 2, "ties": 2, "losses": 1, "mixed": 1}
    assert (net.value, net.noun) == (pytest.approx(0.2), "response")
    assert net.left_out == {"unknown": 2, "without a verdict": 1}
    assert response_positive_rate(RESULTS) == pytest.approx(2 / 5)
    assert response_negative_rate(RESULTS) == pytest.approx(1 / 5)
    # Relevant if any is: positive, mixed and partly are, negative and neutral are not.
    assert response_relevance_rate.estimate(RESULTS).counts == {"hits": 3, "total": 5}


def test_unknown_is_not_neutral() -> None:
    unknown = [judged("r1", "l1"), judged("r2", "l1")]
    assert learning_coverage(unknown) == 0
    for summary in measure.summaries():
        if summary is learning_coverage:
            continue
        estimate = summary.estimate(unknown)
        assert (estimate.value, estimate.left_out["unknown"]) == (None, 2)
    neutral = [judged("r1", "l1", "neutral", False), judged("r2", "l1", "neutral", False)]
    assert {summary.name: summary(neutral) for summary in measure.summaries() if summary(neutral)} == {
        "learning_coverage": 1
    }


def test_what_is_unknown_widens_the_bounds_of_responses() -> None:
    results = [judged("r1", "l1", "positive"), judged("r1", "l2"), judged("r2", "l1", "negative"), judged("r2", "l2")]
    assert response_net_impact(results) == 0
    # The unknown ones could turn either response into a mixed one.
    assert response_net_impact.estimate(results).bounds == (-0.5, 0.5)


def test_rates_of_learnings() -> None:
    rows = {row.about.id: row.value for row in fold_impacts(RESULTS, per=per_learning) if row.about}
    assert {name: (row.impact, row.uses, row.judged) for name, row in rows.items()} == {
        "l1": ("mixed", 5, 4),
        "l2": ("negative", 3, 2),
        "l3": ("neutral", 1, 1),
    }
    assert net_impact.by(RESULTS, "learning")["l1"].counts == {"wins": 3, "ties": 0, "losses": 1}
    by_learning = net_impact.estimate(RESULTS, per=per_learning, fold="unopposed")
    assert by_learning.counts == {"wins": 0, "ties": 2, "losses": 1, "mixed": 1}


def test_responses_that_share_an_id_are_told_apart() -> None:
    places = [("ada", "s1"), ("ada", "s2"), ("bob", "s1"), ("bob", None)]
    results = [judged("r1", "l1", "positive", True, user=user, session=session) for user, session in places]
    assert response_net_impact.estimate(results).n == 4
    assert len(fold_impacts(results)) == 4
    assert fold_impacts(results, per=per_learning)[0].value.uses == 4


def test_results_of_no_response_are_refused() -> None:
    stray = Verdict(LearningImpact(impact="positive"), "learning")
    with pytest.raises(InputError, match="per='response': a value without an id has none"):
        response_net_impact.estimate([stray])
    with pytest.raises(InputError, match="per='response'"):
        fold_impacts([stray])


# -- the fold ---------------------------------------------------------------------------------------------------------

IMPACTS = st.sampled_from(["positive", "neutral", "negative", None, "failed"])


SKIPPED = Skip("the text of the learning is gone", "learning", "1", use("r9", "l9").about())


def results_of(impacts: dict[tuple[int, int], Any]) -> list[Any]:
    made: list[Any] = []
    for (response, learning), impact in impacts.items():
        fields = {"user": f"u{response % 3}", "session": f"s{response % 4}"}
        if impact == "failed":
            made.append(Failure("cut", "learning", "1", use(f"r{response}", f"l{learning}", **fields).about()))
        else:
            made.append(judged(f"r{response}", f"l{learning}", impact, impact == "positive" or None, **fields))
    return made


@given(st.dictionaries(st.tuples(st.integers(0, 8), st.integers(0, 3)), IMPACTS, max_size=30))
def test_the_fold_and_the_summaries_agree(impacts: dict[tuple[int, int], Any]) -> None:
    results = results_of(impacts)
    for per in (per_response, per_learning):
        rows = fold_impacts(results, per=per)
        found = Counter(row.value.impact for row in rows)
        assert sum(row.value.uses for row in rows) == len(results)
        estimate = net_impact.estimate(results, per=per, fold="unopposed")
        assert estimate.counts == {
            "wins": found["positive"],
            "ties": found["mixed"] + found["neutral"],
            "losses": found["negative"],
            "mixed": found["mixed"],
        }
        assert estimate.left_out.get("without a verdict", 0) == found[None]
        mixed = net_impact.estimate(results, per=per, fold="unopposed", view="mixed")
        assert mixed.counts == {"hits": found["mixed"], "total": len(rows) - found[None]}
        assert mixed.left_out.get("without a verdict", 0) == found[None]
        relevant = relevance_rate.estimate(results, per=per, fold="any").counts
        assert relevant["hits"] == sum(row.value.relevant is True for row in rows)
    coverage = learning_coverage.estimate(results)
    assert not coverage.left_out
    assert coverage.counts == {
        "hits": sum(each not in (None, "failed") for each in impacts.values()),
        "total": len(impacts),
    }


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("wtl?")), max_size=7))
def test_bounds_hold_whatever_the_missing_were(rows: list[tuple[int, str]]) -> None:
    endings = {"w": "positive", "t": "neutral", "l": "negative", "?": None}

    def estimate(found: list[tuple[int, str]], view: Any) -> Any:
        results = [judged(f"r{unit}", f"l{n}", endings[each]) for n, (unit, each) in enumerate(found)]
        return response_net_impact.estimate(results, view=view)

    completed: list[list[tuple[int, str]]] = [[]]
    for unit, each in rows:
        completed = [[*done, (unit, one)] for done in completed for one in ("wtl" if each == "?" else each)]
    for view in ("net", "wins", "half_tie", "mixed"):
        bounds = estimate(rows, view).bounds
        values = [estimate(each, view).value for each in completed[:300]]
        if bounds is not None and len(completed) <= 300:
            assert bounds == pytest.approx((min(values), max(values)))


def test_tallies_of_parts_add_up() -> None:
    parts = [RESULTS[::2], RESULTS[1::2]]
    one, other = (response_net_impact.tally(part) for part in parts)
    merged = pickle.loads(pickle.dumps(one)) + other
    assert response_net_impact.estimate(merged) == response_net_impact.estimate(RESULTS)


def test_coverage_counts_whatever_has_no_verdict_as_not_judged() -> None:
    results = [*results_of({(0, 0): "positive", (0, 1): None, (1, 0): "failed"}), SKIPPED]
    estimate = learning_coverage.estimate(results)
    assert (estimate.counts, estimate.left_out, estimate.bounds) == ({"hits": 1, "total": 4}, {}, (0.25, 0.25))
    weighed = [replace(result, about=result.about._replace(weight=2.0)) for result in results]
    assert learning_coverage.estimate(weighed).counts == {"hits": 2, "total": 8}
    per = learning_coverage.estimate(results, per=per_response, fold="all")
    assert per.counts == {"hits": 0, "total": 3}
    for each in (results, [SKIPPED]):
        assert learning_coverage.estimate(learning_coverage.tally(each)) == learning_coverage.estimate(each)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"without_verdict": "hit"}, "must be 'left_out' or 'miss'"),
        ({"total": lambda v: 2}, "leave them out"),
    ],
)
def test_a_coverage_that_cannot_be_counted_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(learning_coverage, **options)


def test_a_mixed_share_is_of_units() -> None:
    with pytest.raises(InputError, match="view='mixed' is of units"):
        net_impact.estimate(RESULTS, view="mixed")
    arms = [
        judged(f"r{n}", learning, impact, user=f"u{n}", arm="treatment" if n < 20 else "control")
        for n in range(40)
        for learning, impact in (("l1", "positive"), ("l2", "negative" if n < 10 else "positive"))
    ]
    lift = response_mixed_rate.lift(arms, randomised=True)
    assert lift.difference.value == 0.5


def test_rows_say_what_they_are_about() -> None:
    fields = [{"at": START + timedelta(days=2)}, {"at": START, "arm": "treatment"}, {"at": START, "user": "bob"}]
    results = [judged("r1", f"l{n}", "positive", **each) for n, each in enumerate(fields)]
    first, other = fold_impacts(results)
    assert first.about == other.about._replace(user="ada", arm=None)  # type: ignore[union-attr]
    assert first.about is not None
    assert first.about.subject == ("response", "ada", "s1", "r1")
    assert (first.about.at, first.evaluator, first.version) == (START, "learning", "1")
    learning = fold_impacts([judged("r1", "l1"), judged("r1", "l1", user="bob")], per=per_learning)[0]
    assert learning.about is not None
    assert learning.about.subject == ("learning", None, "s1", "l1")


def test_versions_are_not_pooled_in_one_row() -> None:
    other = Verdict(LearningImpact(impact="positive"), "learning", "2", use("r1", "l2").about())
    with pytest.raises(MixedVersionsError, match="fold the results of one evaluator and version at a time"):
        fold_impacts([judged("r1", "l1", "positive"), other])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"uses": 1, "judged": 2, "impact": "mixed"}, "no more are judged than there are"),
        ({"uses": 1, "judged": 0, "impact": "neutral"}, "unknown exactly where none is judged"),
        ({"uses": 1, "judged": 1}, "unknown exactly where none is judged"),
        ({"uses": 0, "judged": 0}, "greater than or equal to 1"),
    ],
)
def test_rows_that_contradict_themselves_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        FoldedImpact(**fields)


def test_a_fold_that_favours_a_side_is_refused() -> None:
    with pytest.raises(InputError, match="'majority', 'all', 'unopposed'"):
        Contest("x", of=LearningImpact, outcome=lambda v: "win", per="user", fold="any")  # type: ignore[arg-type]


def test_a_report_has_verdicts_and_responses() -> None:
    found = report([*RESULTS], measures=[measure], now=START)
    assert found["learning_response"].counts["mixed"] == 1
    assert found["learning"].n == 7
    assert found["learning_response_mixed"].counts == {"hits": 1, "total": 5}
    assert found["learning_coverage"].n == len(RESULTS)
    assert "5 responses" in str(found)

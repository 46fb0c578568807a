"""Rates and means by a judge, corrected by people's labels of some of it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from evalr import About, Failure, InputError, Mean, MixedVersionsError, Rate, Verdict
from evalr.estimates.judged import DoubleSample, double_sampling, ppi_plus_plus, rogan_gladen
from evalr.labels import Dataset, Example, corrected, feedback
from evalr.measures import TaskCompletion, Transcript, completion_rate
from evalr.measures.task_completion import completion_quality
from evalr.tallies.moments import Moments


class Said(BaseModel):
    ok: bool | None = True
    score: float = 3


ok_rate = Rate("ok", of=Said, hits=lambda v: v.ok, noun="answer")
score = Mean("score", of=Said, value=lambda v: v.score, bounds=(1, 5))
YES, NO = Said(ok=True), Said(ok=False)


def about(n: int, **its: Any) -> About:
    return About("exchange", f"e{n}", **its)


def judged(n: int, value: Said, version: str = "1", **its: Any) -> Verdict[Said]:
    return Verdict(value, "judge", version, about(n, **its))


def rows_of(
    rows: list[tuple[int | None, bool, bool | None]],
) -> tuple[list[Verdict[Said]], list[Verdict[Said]]]:
    results = [
        judged(n, YES if judge else NO, user=None if user is None else f"u{user}")
        for n, (user, judge, _) in enumerate(rows)
    ]
    labels = [
        feedback(results[n].about, YES if label else NO)  # type: ignore[arg-type]
        for n, (_, _, label) in enumerate(rows)
        if label is not None
    ]
    return results, labels


VERDICTS = st.lists(
    st.tuples(st.none() | st.integers(0, 5), st.booleans(), st.none() | st.booleans()), min_size=1, max_size=30
)


@given(VERDICTS)
def test_a_rate_goes_by_double_sampling(rows: list[tuple[int | None, bool, bool | None]]) -> None:
    results, labels = rows_of(rows)
    for labels_are in ("random", "by_verdict"):
        found = corrected(ok_rate, results, labels, labels_are=labels_are)  # type: ignore[arg-type]
        pure = double_sampling(DoubleSample.of_rows(rows), by_verdict=labels_are == "by_verdict")
        assert (found.value, found.status, found.slope) == (pure.value, pure.status, pure.slope)
        assert (found.estimate.low, found.estimate.high) == pure.interval[:2]
        assert found.estimate.reason == pure.interval.reason
        assert (found.labels_only.value, found.judge_only.value) == (pure.labels_only.value, pure.judge_only.value)
        assert (found.judged, found.labelled) == (len(rows), len(labels))


@given(VERDICTS)
def test_a_rate_may_go_by_ppi(rows: list[tuple[int | None, bool, bool | None]]) -> None:
    results, labels = rows_of(rows)
    found = corrected(ok_rate, results, labels, method="ppi_plus_plus")
    pure = ppi_plus_plus(
        [(user, float(judge), None if label is None else float(label)) for user, judge, label in rows], bounds=(0, 1)
    )
    assert (found.value, found.estimate.low, found.estimate.high) == (pure.value, *pure.interval[:2])


def test_a_mean_goes_by_ppi_within_its_bounds() -> None:
    random.seed(3)
    people = [random.choice([1.0, 2.0, 3.0, 4.0, 5.0]) for _ in range(200)]
    judge = [min(5.0, each + random.choice([0, 0, 1])) for each in people]
    results = [judged(n, Said(score=each)) for n, each in enumerate(judge)]
    labels = [feedback(about(n), Said(score=people[n])) for n in range(80)]
    found = corrected(score, results, labels)
    pure = ppi_plus_plus([(None, j, p if n < 80 else None) for n, (j, p) in enumerate(zip(judge, people, strict=True))],
                         bounds=(1, 5))  # fmt: skip
    assert (found.value, found.estimate.low, found.estimate.high) == (pure.value, *pure.interval[:2])
    assert found.judge_only.value == pytest.approx(sum(judge) / 200)
    assert found.labels_only.n == 80
    assert found.method == "ppi_plus_plus"
    assert "PPI++ with MOVER" in str(found)


def test_labels_elsewhere_go_by_rogan_and_gladen() -> None:
    here = [judged(n, YES if n < 300 else NO) for n in range(500)]
    there = [judged(1000 + n, YES if n % 10 else NO) for n in range(100)]
    there += [judged(1100 + n, YES if n % 10 < 3 else NO) for n in range(100)]
    labels = [feedback(each.about, YES if n < 100 else NO) for n, each in enumerate(there)]  # type: ignore[arg-type]
    found = corrected(ok_rate, here, labels, labels_are="elsewhere", judged_elsewhere=there)
    known = corrected(ok_rate, here, labels_are="elsewhere", sensitivity=(90, 100), specificity=(70, 100))

    def share(hits: int, total: int) -> Moments:
        return Moments.of_clusters((int(n < hits), 1, 1) for n in range(total))

    pure = rogan_gladen(share(300, 500), share(90, 100), share(70, 100))
    for each in (found, known):
        assert each.value == pure.value == pytest.approx(0.5)
        assert (each.estimate.low, each.estimate.high) == pure.interval[:2]
        assert (each.labels_only.value, each.labels_only.reason) == (None, "labels are of other cases")
        assert each.labelled == 200
    assert "200 labels of other cases" in str(found)


def test_what_no_rate_makes_likely_is_inconsistent() -> None:
    results = [judged(n, YES if n < 5 else NO) for n in range(100)]
    found = corrected(ok_rate, results, labels_are="elsewhere", sensitivity=(90, 100), specificity=(75, 100))
    assert (found.value, found.status, found.estimate.low) == (None, "inconsistent", None)
    assert "the judge passes 5.0% here" in str(found)
    chance = corrected(ok_rate, results, labels_are="elsewhere", sensitivity=(30, 100), specificity=(60, 100))
    assert (chance.status, "no better than chance" in str(chance)) == ("undefined", True)


def test_what_is_elsewhere_is_of_the_same_judge_and_version() -> None:
    here, label = [judged(1, YES)], [feedback(about(2), YES)]
    with pytest.raises(MixedVersionsError, match="judge@2 and judge@1"):
        corrected(ok_rate, here, label, labels_are="elsewhere", judged_elsewhere=[judged(2, YES, "2")])
    mixed = corrected(
        ok_rate, here, label, labels_are="elsewhere", judged_elsewhere=[judged(2, YES, "2")], mix_versions=True
    )
    assert "mixed_versions" in mixed.flags
    other = Verdict(YES, "another", "1", about(2))
    with pytest.raises(InputError, match="the judge here is 'judge', elsewhere 'another'"):
        corrected(ok_rate, here, label, labels_are="elsewhere", judged_elsewhere=[other])
    with pytest.raises(InputError, match="need the judge's results on them"):
        corrected(ok_rate, here, label, labels_are="elsewhere")
    with pytest.raises(InputError, match="must be two counts"):
        corrected(ok_rate, here, labels_are="elsewhere", sensitivity=0.9, specificity=(1, 2))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="together"):
        corrected(ok_rate, here, labels_are="elsewhere", sensitivity=(9, 10))
    with pytest.raises(InputError, match="is for labels_are='elsewhere'"):
        corrected(ok_rate, here, label, sensitivity=(9, 10))


def test_versions_of_the_judge_are_pooled_only_where_asked() -> None:
    results, labels = [judged(1, YES), judged(2, NO, "2")], [feedback(about(1), YES)]
    with pytest.raises(MixedVersionsError):
        corrected(ok_rate, results, labels)
    assert "mixed_versions" in corrected(ok_rate, results, labels, mix_versions=True).flags


def test_what_the_judge_was_made_with_is_neither_labelled_nor_judged() -> None:
    results = [judged(n, YES if n % 3 else NO) for n in range(90)]
    labels = [feedback(about(n), YES if n % 4 else NO) for n in range(60)]
    found = corrected(ok_rate, results, labels, exclude=[f"e{n}" for n in range(30)])
    assert found == corrected(ok_rate, results[30:], labels[30:], exclude=()).__class__(
        **{
            **{name: getattr(corrected(ok_rate, results[30:], labels[30:]), name) for name in found.__slots__},
            "excluded": 30,
        }
    )
    assert "30 excluded, which the judge was made with" in str(found)
    examples = [Example(Transcript(id=f"t{n}", request="x"), expected=TaskCompletion(completed=n % 2 == 0, quality=3))
                for n in range(20)]  # fmt: skip
    of_judge = [Verdict(TaskCompletion(completed=n % 3 > 0, quality=2), "judge", about=each.about())
                for n, each in enumerate(examples)]  # fmt: skip
    made = corrected(completion_rate, of_judge, Dataset("all", examples), exclude=Dataset("train", examples[:5]))
    assert (made.judged, made.labelled, made.excluded) == (15, 15, 5)


def test_what_has_no_verdict_is_counted_and_widens_the_bounds() -> None:
    results: list[Any] = [judged(n, YES if n % 4 else NO) for n in range(80)]
    results += [Failure("x", "judge", "1", about(n)) for n in range(80, 90)]
    results += [judged(n, Said(ok=None)) for n in range(90, 100)]
    labels = [feedback(about(n), YES if n % 5 else NO) for n in range(40)] + [feedback(about(300), YES)]
    found = corrected(ok_rate, results, labels)
    assert found.value is not None
    assert found.estimate.left_out == {"failed": 10, "unknown": 10}
    assert found.estimate.bounds == pytest.approx((found.value * 0.8, found.value * 0.8 + 0.2))
    assert (found.judged, found.labelled, found.unjudged) == (80, 40, 1)
    assert "1 labelled item without a result" in str(found)


def test_labels_by_several_people_are_what_most_say_and_ties_are_counted() -> None:
    results = [judged(n, YES if n % 2 else NO) for n in range(20)]
    votes = {0: (True, True, False), 1: (True, False), 2: (False,)}
    labels = [feedback(about(n), YES if vote else NO, author=f"p{k}") for n, of in votes.items()
              for k, vote in enumerate(of)]  # fmt: skip
    found = corrected(ok_rate, results, labels)
    assert (found.labelled, found.labels_only.value) == (2, 0.5)
    assert "2 labels tied between people" in found.notes
    scores = [feedback(about(n), Said(score=each), author=f"p{each}") for n in range(4) for each in (2, 5)]
    assert corrected(score, results, scores).labels_only.value == 3.5


def test_labels_that_depend_on_the_verdict_are_told() -> None:
    results = [judged(n, YES if n < 400 else NO) for n in range(500)]
    labels = [feedback(about(n), YES if n % 9 else NO) for n in [*range(40), *range(410, 480)]]
    found = corrected(ok_rate, results, labels)
    assert "labels_uneven" in found.flags
    assert "people labelled 10.0% of what the judge passed and 70.0% of what it failed" in str(found)
    told = corrected(ok_rate, results, labels, labels_are="by_verdict")
    assert "labels_uneven" not in told.flags
    assert told.labels_only.value is None


def test_few_labelled_clusters_are_low_confidence_however_many_were_judged() -> None:
    results = [judged(n, YES if n % 3 else NO, user=f"u{n}") for n in range(200)]
    labels = [feedback(results[n].about, YES if n % 4 else NO) for n in range(20)]  # type: ignore[arg-type]
    found = corrected(ok_rate, results, labels)
    assert found.estimate.clusters == 200
    assert "low_confidence" in found.flags
    assert "low confidence" in str(found)
    more = [feedback(each.about, YES if n % 4 else NO) for n, each in enumerate(results[:40])]  # type: ignore[arg-type]
    assert "low_confidence" not in corrected(ok_rate, results, more).flags


def test_what_cannot_be_corrected_is_refused_by_name() -> None:
    results = [judged(1, YES)]
    several = Rate("several", of=Said, hits=lambda v: 1, total=lambda v: 2)
    folded = Rate("folded", of=Said, hits=lambda v: v.ok, per="user", fold="any")
    for summary, words in ((several, "counts a verdict as several"), (folded, "is folded")):
        with pytest.raises(InputError, match=words):
            corrected(summary, results)
    with pytest.raises(InputError, match="there are: random"):
        corrected(score, results, labels_are="elsewhere")
    with pytest.raises(InputError, match="there are: double_sampling"):
        corrected(ok_rate, results, labels_are="by_verdict", method="ppi_plus_plus")
    with pytest.raises(InputError, match="reads TaskCompletion, not Said"):
        corrected(completion_rate, results)
    with pytest.raises(InputError, match="different numbers of inputs"):
        corrected(ok_rate, [judged(1, YES, weight=2.0), judged(2, NO)])
    with pytest.raises(InputError, match="a str cannot be corrected"):
        corrected("ok", results)  # type: ignore[arg-type]


def test_nothing_labelled_is_no_correction() -> None:
    found = corrected(ok_rate, [judged(1, YES), judged(2, NO)])
    assert (found.value, found.status) == (None, "undefined")
    assert "nobody labelled any of it" in str(found)
    assert found.judge_only.value == 0.5
    assert corrected(ok_rate, []).status == "undefined"


def test_it_shows_all_three() -> None:
    results = [judged(n, YES if n % 4 else NO) for n in range(100)]
    found = corrected(ok_rate, results, [feedback(about(n), YES if n % 5 else NO) for n in range(40)])
    words = str(found).split(" · ")
    assert [part.split()[0] for part in words[:3]] == ["ok", "labels", "judge"]
    assert words[3] == "100 answers by judge@1, 40 labelled"
    assert words[-1] == "double sampling with MOVER"
    assert [row["group"] for row in found.to_dicts()] == ["corrected", "labels alone", "judge alone"]
    assert found.to_dict()["estimate"]["counts"] == {"judged": 100, "labelled": 40}
    page = found._repr_html_()
    assert "labels alone" in page
    assert "<td>judge alone</td>" in page


def test_it_is_a_frame() -> None:
    pytest.importorskip("pandas")
    frame = corrected(ok_rate, [judged(1, YES), judged(2, NO)]).to_frame()
    assert list(frame["group"]) == ["corrected", "labels alone", "judge alone"]


def test_quality_of_sessions_can_be_corrected() -> None:
    results = [Verdict(TaskCompletion(completed=True, quality=1 + n % 5), "judge", about=about(n)) for n in range(60)]
    labels = [feedback(about(n), TaskCompletion(completed=True, quality=max(1, n % 5))) for n in range(30)]
    found = corrected(completion_quality, results, labels)
    assert found.value is not None
    assert found.judge_only.value is not None
    assert found.value < found.judge_only.value
    assert found.estimate.unit == "number"


def test_the_interval_holds_the_truth_where_the_judges_own_does_not() -> None:
    """mlflow#22947: truth .95, se .9, sp .7; the corrected interval covers, over 1,000 seeds."""
    truth, judged_n, labelled_n, seeds = 0.95, 200, 50, 1_000
    answers = [(judged(n, YES), judged(n, NO)) for n in range(judged_n)]
    people = [(feedback(about(n), YES), feedback(about(n), NO)) for n in range(labelled_n)]
    covered = covered_by_judge = 0
    for seed in range(seeds):
        draw = random.Random(seed)
        results, labels = [], []
        for n in range(judged_n):
            is_so = draw.random() < truth
            says = draw.random() < (0.9 if is_so else 0.3)
            results.append(answers[n][not says])
            if n < labelled_n:
                labels.append(people[n][not is_so])
        found = corrected(ok_rate, results, labels)
        assert found.estimate.low is not None
        assert found.estimate.high is not None
        assert found.judge_only.low is not None
        assert found.judge_only.high is not None
        covered += found.estimate.low <= truth <= found.estimate.high
        covered_by_judge += found.judge_only.low <= truth <= found.judge_only.high
    assert covered / seeds >= 0.93
    assert covered_by_judge / seeds < 0.2

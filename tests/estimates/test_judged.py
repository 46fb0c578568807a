"""Judged rates and means, corrected: what labels and judge say together, and that no certainty is made up."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.estimates.interval import NOTHING_COUNTED, Interval
from evalr.estimates.judged import (
    ALL_LABELLED,
    ALWAYS_THE_SAME,
    DRAWN_BY_VERDICT,
    FAILS_UNLABELLED,
    LABELS_ELSEWHERE,
    NO_BETTER_THAN_CHANCE,
    NO_ERRORS_KNOWN,
    NO_MISSES,
    NOTHING_LABELLED,
    OUT_OF_BOUNDS,
    PASSES_UNLABELLED,
    PERHAPS_CHANCE,
    SAYS_NOTHING,
    Corrected,
    Counts,
    DoubleSample,
    double_sampling,
    ppi_plus_plus,
    rogan_gladen,
)
from evalr.estimates.mean import mean_interval
from evalr.estimates.rate import rate_interval
from evalr.tallies.moments import Moments

Verdicts = list[tuple[int | None, bool, bool | None]]
Scores = list[tuple[int | None, int, int | None]]

verdict_rows = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 5)), st.booleans(), st.one_of(st.none(), st.booleans())), max_size=40
)
ratings = st.integers(1, 5)
score_rows = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 5)), ratings, st.one_of(st.none(), ratings)), max_size=40
)
levels = st.sampled_from([0.5, 0.8, 0.95, 0.999])


def trials(hits: int, n: int) -> Moments:
    return Moments.of_clusters([(1, 1, 1)] * hits + [(0, 1, 1)] * (n - hits))


def limits(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


def sound(found: Corrected, floor: float, ceiling: float) -> None:
    """Nothing is NaN, out of bounds or of no width, and whatever is missing has a reason."""
    if found.value is None:
        assert found.status in {"undefined", "inconsistent"}
        assert found.interval.low is None
        assert found.interval.reason
        return
    assert floor <= found.value <= ceiling
    if found.interval.low is None:
        assert found.status == "degenerate"
        assert found.interval.reason
        return
    low, high = limits(found.interval)
    assert found.status == "ok"
    assert floor <= low <= found.value <= high <= ceiling
    assert low < high
    assert found.interval.variance is not None
    assert math.isfinite(found.interval.variance)


# --- double sampling -----------------------------------------------------------------------------------------------


@given(verdict_rows, levels, st.booleans())
def test_a_corrected_rate_is_sound(rows: Verdicts, level: float, by_verdict: bool) -> None:
    found = double_sampling(DoubleSample.of_rows(rows), level=level, by_verdict=by_verdict)
    sound(found, 0, 1)
    labels = [label for _, _, label in rows if label is not None]
    constant = len({verdict for _, verdict, _ in rows}) < 2
    if by_verdict and not constant and len(labels) < len(rows):
        assert found.labels_only.value is None
    elif labels:
        assert found.labels_only.value == pytest.approx(sum(labels) / len(labels))
    if rows:
        assert found.judge_only.value == pytest.approx(sum(verdict for _, verdict, _ in rows) / len(rows))


@given(verdict_rows, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_the_names_of_clusters_change_nothing(rows: Verdicts, random: object) -> None:
    other = [(None if cluster is None else 100 - cluster, judged, label) for cluster, judged, label in rows]
    random.shuffle(other)  # type: ignore[attr-defined]
    assert DoubleSample.of_rows(other) == DoubleSample.of_rows(rows)


@given(verdict_rows, verdict_rows)
def test_samples_without_a_common_cluster_add_up(some: Verdicts, more: Verdicts) -> None:
    apart = [(None if cluster is None else cluster + 100, judged, label) for cluster, judged, label in more]
    merged = DoubleSample.of_rows(some).merge(DoubleSample.of_rows(apart))
    assert merged == DoubleSample.of_rows(some + apart)


@given(verdict_rows)
def test_it_is_the_regression_estimator(rows: Verdicts) -> None:
    """The mean label, moved along the slope of labels on verdicts to the mean verdict of all."""
    found = double_sampling(DoubleSample.of_rows(rows))
    if found.slope is None:
        return
    labelled = [(verdict, label) for _, verdict, label in rows if label is not None]
    f, y = (np.array(column, dtype=float) for column in zip(*labelled, strict=True))
    slope = np.sum((f - f.mean()) * (y - y.mean())) / np.sum((f - f.mean()) ** 2)
    everywhere = np.mean([verdict for _, verdict, _ in rows])
    assert found.slope == pytest.approx(slope, abs=1e-12)
    assert found.value == pytest.approx(y.mean() + slope * (everywhere - f.mean()))


@given(verdict_rows, levels)
def test_passing_and_failing_are_mirror_images(rows: Verdicts, level: float) -> None:
    plain = double_sampling(DoubleSample.of_rows(rows), level=level)
    turned = [(cluster, not verdict, None if label is None else not label) for cluster, verdict, label in rows]
    mirrored = double_sampling(DoubleSample.of_rows(turned), level=level)
    assert (mirrored.value is None) == (plain.value is None)
    if plain.value is not None:
        assert mirrored.value == pytest.approx(1 - plain.value)
    if plain.interval.low is not None:
        low, high = limits(mirrored.interval)
        assert (1 - high, 1 - low) == pytest.approx(limits(plain.interval), abs=1e-9)


@given(verdict_rows)
def test_the_variance_is_that_of_the_linearised_sum(rows: Verdicts) -> None:
    """Where every part has clusters of several: what each cluster adds to the estimate, squared."""
    sample = DoubleSample.of_rows(
        (0 if cluster is None else cluster, verdict, label) for cluster, verdict, label in rows
    )
    found = double_sampling(sample)
    parts = (sample.judged, sample.passed, sample.failed)
    if found.slope is None or any(part.singletons() or part.clusters < 2 for part in parts):
        return
    q, ppv, missed = (float(part.ratio or 0) for part in parts)
    total = 0.0
    for name in {0 if cluster is None else cluster for cluster, _, _ in rows}:
        own = [(verdict, label) for cluster, verdict, label in rows if (0 if cluster is None else cluster) == name]
        sums = (
            (ppv - missed, sample.judged, sum(verdict - q for verdict, _ in own)),
            (q, sample.passed, sum(label - ppv for verdict, label in own if verdict and label is not None)),
            (1 - q, sample.failed, sum(label - missed for verdict, label in own if not verdict and label is not None)),
        )
        total += sum(w * e / float(part.m) * math.sqrt(part.clusters / (part.clusters - 1)) for w, part, e in sums) ** 2
    assert found.interval.variance == pytest.approx(total, abs=1e-12)


def test_a_good_judge_narrows_and_a_useless_one_does_not() -> None:
    good = DoubleSample.of_clusters([Counts(1, 0)] * 700 + [Counts(0, 1)] * 300 + _labelled(34, 1, 1, 14))
    useless = DoubleSample.of_clusters([Counts(1, 0)] * 500 + [Counts(0, 1)] * 500 + _labelled(18, 7, 17, 8))
    for sample, most in ((good, 0.75), (useless, 1.1)):
        found = double_sampling(sample)
        (low, high), alone = limits(found.interval), limits(found.labels_only.interval)
        assert (high - low) / (alone[1] - alone[0]) < most
    assert double_sampling(good).interval.method == "double-sampling-mover-wilson/1"


def _labelled(passed_hits: int, passed_misses: int, failed_hits: int, failed_misses: int) -> list[Counts]:
    return [
        *[Counts(1, 0, 1, 1)] * passed_hits,
        *[Counts(1, 0, 1, 0)] * passed_misses,
        *[Counts(0, 1, 0, 0, 1, 1)] * failed_hits,
        *[Counts(0, 1, 0, 0, 1, 0)] * failed_misses,
    ]


def test_users_with_several_rows_widen_it() -> None:
    """The same rows by themselves, and in users of ten who are alike."""
    random = np.random.default_rng(3)
    rows: Verdicts = []
    for user in range(40):
        chance = random.beta(0.7, 0.3)
        for row in range(10):
            passed = bool(random.random() < chance)
            verdict = passed if random.random() < 0.9 else not passed
            rows.append((user, verdict, passed if row < 3 else None))
    clustered, plain = (
        double_sampling(DoubleSample.of_rows([(cluster if known else None, f, y) for cluster, f, y in rows]))
        for known in (True, False)
    )
    assert clustered.value == plain.value
    assert clustered.interval.method == "double-sampling-mover-wilson-padded-effective-n-correlated/1"
    wide, narrow = limits(clustered.interval), limits(plain.interval)
    assert wide[1] - wide[0] > 1.5 * (narrow[1] - narrow[0])


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(None, True, True), (None, True, False), (None, False, None)], FAILS_UNLABELLED),
        ([(None, False, True), (None, False, False), (None, True, None)], PASSES_UNLABELLED),
        ([(None, True, True), (None, True, False), (None, True, None)], ALWAYS_THE_SAME),
        ([(None, True, True), (None, False, False)], ALL_LABELLED),
    ],
)
def test_where_the_judge_cannot_be_used_the_labels_stand_alone_and_it_is_said(rows: Verdicts, reason: str) -> None:
    found = double_sampling(DoubleSample.of_rows(rows))
    assert (found.value, found.slope, found.status) == (0.5, None, "ok")
    assert found.value == found.labels_only.value
    assert limits(found.interval) == limits(found.labels_only.interval)
    assert found.interval.reason == f"{reason}: labels alone"
    drawn = double_sampling(DoubleSample.of_rows(rows), by_verdict=True)
    if reason in {ALL_LABELLED, ALWAYS_THE_SAME}:
        # a random part of all that it said
        assert drawn == found
    else:
        assert (drawn.value, drawn.interval.reason) == (None, reason)
        assert drawn.labels_only.interval.reason == DRAWN_BY_VERDICT


def test_without_rows_or_labels_there_is_no_value() -> None:
    assert double_sampling(DoubleSample.of_rows([])).interval.reason == NOTHING_COUNTED
    found = double_sampling(DoubleSample.of_rows([(None, True, None)] * 9))
    assert (found.value, found.status, found.interval.reason) == (None, "undefined", NOTHING_LABELLED)
    assert found.judge_only.value == 1


def test_one_labelled_row_is_the_labels_alone_and_wide() -> None:
    found = double_sampling(DoubleSample.of_rows([(None, True, True), (None, False, None)]))
    low, high = limits(found.interval)
    assert (found.value, high) == (1.0, 1.0)
    assert low < 0.25


def test_all_labels_agreeing_with_the_judge_is_no_certainty() -> None:
    rows: Verdicts = (
        [(None, True, True)] * 6 + [(None, False, False)] * 2 + [(None, True, None), (None, False, None)] * 50
    )
    found = double_sampling(DoubleSample.of_rows(rows))
    low, high = limits(found.interval)
    assert found.value == pytest.approx(found.judge_only.value)
    assert low < limits(found.judge_only.interval)[0] < limits(found.judge_only.interval)[1] < high


def test_labels_drawn_by_verdict_are_weighted_as_verdicts_are() -> None:
    """Nine of ten fails are labelled and one of ten passes: labels alone are far off, the corrected rate is not."""
    clusters = [Counts(1, 0)] * 81 + [Counts(0, 1)] * 1 + _labelled(9, 0, 0, 9)
    found = double_sampling(DoubleSample.of_clusters(clusters), by_verdict=True)
    assert found.value == pytest.approx(0.9)
    assert double_sampling(DoubleSample.of_clusters(clusters)).labels_only.value == pytest.approx(0.5)


@pytest.mark.parametrize("counts", [Counts(1, 0, 2, 1), Counts(3, 0, 1, 2), Counts(0, 1, 0, 0, 1, -1), Counts(-1)])
def test_counts_are_of_one_another(counts: Counts) -> None:
    with pytest.raises(InputError, match="labelled"):
        DoubleSample.of_clusters([counts])


# --- scores --------------------------------------------------------------------------------------------------------


@given(score_rows, levels, st.sampled_from([None, (1.0, 5.0)]), st.sampled_from([None, 0.0, 0.3, 1.0]))
def test_a_corrected_mean_is_sound(
    rows: Scores, level: float, bounds: tuple[float, float] | None, slope: float | None
) -> None:
    found = ppi_plus_plus(rows, level=level, bounds=bounds, slope=slope)
    sound(found, *(bounds or (-math.inf, math.inf)))
    labels = [label for _, _, label in rows if label is not None]
    if labels:
        assert found.labels_only.value == pytest.approx(np.mean(labels))
    if found.slope is not None:
        assert 0 < found.slope <= 1
        left = [label - found.slope * judged for _, judged, label in rows if label is not None]
        others = [judged for _, judged, label in rows if label is None]
        assert found.value == pytest.approx(np.mean(left) + found.slope * np.mean(others))


@given(score_rows, st.randoms(use_true_random=False), st.sampled_from([None, (1.0, 5.0)]))
def test_the_order_of_scored_rows_changes_nothing(
    rows: Scores, random: object, bounds: tuple[float, float] | None
) -> None:
    found = ppi_plus_plus(rows, bounds=bounds)
    other = [(None if cluster is None else 100 - cluster, judged, label) for cluster, judged, label in rows]
    random.shuffle(other)  # type: ignore[attr-defined]
    assert ppi_plus_plus(other, bounds=bounds) == found


@given(score_rows)
def test_the_mirror_image_of_a_scale_is_the_mirror_image(rows: Scores) -> None:
    plain = ppi_plus_plus(rows, bounds=(1, 5))
    mirrored = ppi_plus_plus([(c, 6 - f, None if y is None else 6 - y) for c, f, y in rows], bounds=(1, 5))
    if plain.value is None:
        assert mirrored.value is None
        return
    assert mirrored.value == pytest.approx(6 - plain.value)
    if plain.interval.low is not None:
        low, high = limits(mirrored.interval)
        assert (6 - high, 6 - low) == pytest.approx(limits(plain.interval), abs=1e-9)


def test_a_judge_who_always_says_the_same_has_a_slope_of_nothing() -> None:
    rows: Scores = [(None, 4, 5), (None, 4, 3), (None, 4, 4), (None, 4, None)]
    found = ppi_plus_plus(rows)
    assert (found.value, found.slope) == (4, None)
    assert found.interval.reason == f"{ALWAYS_THE_SAME}: labels alone"
    plain = mean_interval(Moments.of_clusters([(5, 1, 1), (3, 1, 1), (4, 1, 1)]))
    assert limits(found.interval) == limits(plain)


def test_a_judge_who_falls_where_people_rise_is_not_used() -> None:
    rows: Scores = [(None, 1, 5), (None, 5, 1), (None, 2, 4), (None, 3, None)]
    assert ppi_plus_plus(rows).interval.reason == f"{SAYS_NOTHING}: labels alone"


def test_labels_that_all_equal_the_judges_scores_are_no_certainty() -> None:
    rows: Scores = [(None, 2, 2), (None, 4, 4), (None, 5, 5)] * 3 + [(None, 2, None), (None, 4, None)] * 40
    without = ppi_plus_plus(rows, slope=1)
    assert without.interval.reason == f"{NO_MISSES}: labels alone"
    within = ppi_plus_plus(rows, slope=1, bounds=(1, 5))
    low, high = limits(within.interval)
    assert within.value == pytest.approx(3)
    assert high - low > 0.5


def test_a_mean_out_of_bounds_is_not_shown() -> None:
    rows: Scores = [(None, 1, 5), (None, 5, 5)] + [(None, 5, None)] * 20
    found = ppi_plus_plus(rows, slope=1, bounds=(1, 5))
    assert found.value == found.labels_only.value == 5
    assert str(found.interval.reason).startswith(f"{OUT_OF_BOUNDS}: labels alone")


def test_users_with_labelled_and_other_rows_are_told_of() -> None:
    """The variance is that of what every user adds, with each mean's own small-sample factor."""
    random = np.random.default_rng(8)
    rows: Scores = []
    for user in range(20):
        level = random.normal(3, 1)
        for row in range(6):
            label = int(np.clip(round(level + random.normal(0, 0.5)), 1, 5))
            rows.append((user, int(np.clip(label + random.integers(-1, 2), 1, 5)), label if row < 2 else None))
    found = ppi_plus_plus(rows)
    assert found.slope is not None
    left = [y - found.slope * f for _, f, y in rows if y is not None]
    others = [found.slope * f for _, f, y in rows if y is None]
    total = 0.0
    for user in range(20):
        of_left = sum(y - found.slope * f - np.mean(left) for c, f, y in rows if c == user and y is not None)
        of_others = sum(found.slope * f - np.mean(others) for c, f, y in rows if c == user and y is None)
        total += (of_left / len(left) + of_others / len(others)) ** 2
    assert found.interval.variance == pytest.approx(total * 20 / 19)
    alone = ppi_plus_plus([(None, f, y) for _, f, y in rows])
    assert alone.interval.variance is not None
    assert found.interval.variance > 1.5 * alone.interval.variance
    within = ppi_plus_plus(rows, bounds=(1, 5))
    assert within.value == found.value
    assert within.interval.variance == pytest.approx(found.interval.variance)
    assert within.interval.method == "ppi++-mover-wilson-padded-effective-n-correlated/1"


def test_scores_are_finite_and_in_bounds() -> None:
    with pytest.raises(InputError, match="row 1: scores are finite"):
        ppi_plus_plus([(None, 1.0, None), (None, math.nan, 2.0)])
    with pytest.raises(InputError, match="row 0: a score of 6 lies outside"):
        ppi_plus_plus([(None, 2, 6)], bounds=(1, 5))
    with pytest.raises(InputError, match="slope"):
        ppi_plus_plus([], slope=1.5)
    for level in (0, 1, 95):
        with pytest.raises(InputError, match="level"):
            ppi_plus_plus([], level=level)
        with pytest.raises(InputError, match="level"):
            double_sampling(DoubleSample.of_rows([]), level=level)


# --- labels of other cases -----------------------------------------------------------------------------------------

shares = st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(shares, shares, shares, levels)
def test_an_estimate_from_errors_is_sound(
    judged: tuple[int, int], se: tuple[int, int], sp: tuple[int, int], level: float
) -> None:
    found = rogan_gladen(trials(*judged), trials(*se), trials(*sp), level=level)
    sound(found, 0, 1)
    q, sensitivity, specificity = (Fraction(*each) for each in (judged, se, sp))
    assert found.labels_only.interval.reason == LABELS_ELSEWHERE
    if sensitivity + specificity <= 1:
        assert found.interval.reason == NO_BETTER_THAN_CHANCE
        assert found.status == "undefined"
        return
    value = (q + specificity - 1) / (sensitivity + specificity - 1)
    if 0 <= value <= 1:
        assert found.value == float(value)
    else:
        assert found.status == "inconsistent"


@given(shares, shares, shares)
def test_fails_are_the_mirror_image_of_passes(
    judged: tuple[int, int], se: tuple[int, int], sp: tuple[int, int]
) -> None:
    plain = rogan_gladen(trials(*judged), trials(*se), trials(*sp))
    mirrored = rogan_gladen(trials(judged[1] - judged[0], judged[1]), trials(*sp), trials(*se))
    assert mirrored.status == plain.status
    if plain.interval.low is not None:
        low, high = limits(mirrored.interval)
        assert (1 - high, 1 - low) == pytest.approx(limits(plain.interval), abs=1e-9)


def test_what_its_errors_rule_out_is_inconsistent_and_never_zero_to_zero() -> None:
    found = rogan_gladen(trials(5, 100), trials(45, 50), trials(30, 40))
    assert (found.value, found.status) == (None, "inconsistent")
    assert found.interval.low is None
    assert str(found.interval.reason).startswith("the judge passes 5.0% here, outside of the 25.0% to 90.0%")


def test_too_few_labels_do_not_tell_a_judge_from_chance() -> None:
    found = rogan_gladen(trials(9, 10), trials(1, 1), trials(1, 10))
    assert (found.value, found.status, found.interval.reason) == (0.0, "degenerate", PERHAPS_CHANCE)


def test_errors_need_labels_of_both_kinds() -> None:
    assert rogan_gladen(trials(5, 10), trials(0, 0), trials(5, 5)).interval.reason == NO_ERRORS_KNOWN
    assert rogan_gladen(trials(0, 0), trials(5, 5), trials(5, 5)).interval.reason == NOTHING_COUNTED


def test_users_with_several_rows_widen_what_errors_allow() -> None:
    users = Moments.of_clusters([(8, 10, 10)] * 6 + [(3, 10, 10)] * 4 + [(10, 10, 10)] * 2)
    assert users.ratio is not None
    hits = int(users.y)
    plain = rogan_gladen(trials(hits, 120), trials(90, 100), trials(80, 100))
    clustered = rogan_gladen(users, trials(90, 100), trials(80, 100))
    assert clustered.value == plain.value
    assert clustered.interval.method == "lang-reiczigel-effective-n/1"
    assert limits(clustered.interval)[0] < limits(plain.interval)[0] < limits(plain.interval)[1]
    assert limits(clustered.judge_only.interval) == limits(rate_interval(users))
    single = rogan_gladen(Moments.of_clusters([(7, 10, 10)]), trials(90, 100), trials(80, 100))
    assert (single.status, single.interval.low) == ("degenerate", None)

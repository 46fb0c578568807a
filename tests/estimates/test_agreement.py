"""Agreement of judges and people: what it counts, that no order changes it, and how sure it claims to be."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.estimates.agreement import (
    ALL_RATINGS_ALIKE,
    METRICS,
    NO_PAIRS,
    ONE_ANSWER,
    ONE_CATEGORY,
    Confusion,
    FieldAgreement,
    Metric,
    RatingAgreement,
    VerdictAgreement,
    among_people,
    majority,
    optional_agreement,
    people_agreement,
    rating_agreement,
    verdict_agreement,
)
from evalr.estimates.interval import NOTHING_COUNTED, SINGLE_CLUSTER, Interval
from evalr.estimates.judged import Part
from evalr.estimates.rate import wilson

clusters = st.one_of(st.none(), st.integers(0, 4))
verdict_rows = st.lists(st.tuples(clusters, st.booleans(), st.booleans()), max_size=30)
rating_rows = st.lists(st.tuples(clusters, st.integers(1, 5), st.integers(1, 5)), max_size=25)
items = st.lists(st.tuples(clusters, st.lists(st.one_of(st.none(), st.integers(1, 4)), max_size=4)), max_size=12)
fields = st.lists(
    st.tuples(clusters, st.one_of(st.none(), st.sampled_from("abc")), st.one_of(st.none(), st.sampled_from("abc"))),
    max_size=25,
)
levels = st.sampled_from([0.5, 0.95, 0.999])
randoms = st.randoms(use_true_random=False)

VERDICT_PARTS = ("accuracy", "tpr", "tnr", "kappa", "ac1", "mcc")
RATING_PARTS = ("exact", "kappa", "ac2", "alpha")


def limits(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


def sound(part: Part, floor: float = -1) -> None:
    if part.value is None:
        assert part.interval.low is None
        assert part.interval.reason
        return
    assert floor <= part.value <= 1
    if part.interval.low is None:
        assert part.interval.reason == SINGLE_CLUSTER
        return
    low, high = limits(part.interval)
    assert floor <= low <= part.value <= high <= 1
    assert low < high
    if part.interval.variance is not None:
        assert math.isfinite(part.interval.variance)


def shuffled(rows: list[Any], random: Any) -> list[Any]:
    """In another order, with other names for clusters."""
    other = [(None if cluster is None else f"user {9 - cluster}", *rest) for cluster, *rest in rows]
    random.shuffle(other)
    return other


# --- verdicts ------------------------------------------------------------------------------------------------------


@given(verdict_rows, levels)
def test_every_part_of_verdicts_is_sound(rows: list[tuple[int | None, bool, bool]], level: float) -> None:
    found = verdict_agreement(rows, level=level)
    for name in VERDICT_PARTS:
        sound(getattr(found, name), 0 if name in {"accuracy", "tpr", "tnr"} else -1)
    counts = Counter((judge, people) for _, judge, people in rows)
    assert found.confusion == (counts[True, True], counts[True, False], counts[False, True], counts[False, False])
    if not rows:
        assert {getattr(found, name).interval.reason for name in VERDICT_PARTS} == {NOTHING_COUNTED}


@given(verdict_rows, randoms)
def test_the_order_of_verdicts_and_of_clusters_changes_nothing(
    rows: list[tuple[int | None, bool, bool]], random: Any
) -> None:
    assert verdict_agreement(shuffled(rows, random)) == verdict_agreement(rows)


@given(verdict_rows)
def test_judge_and_people_swapped_agree_as_far(rows: list[tuple[int | None, bool, bool]]) -> None:
    plain, swapped = (
        verdict_agreement(each) for each in (rows, [(cluster, people, judge) for cluster, judge, people in rows])
    )
    assert swapped.accuracy == plain.accuracy
    for name in ("kappa", "ac1", "mcc"):
        same_part(getattr(swapped, name), getattr(plain, name))
    both, judge_only, people_only, neither = plain.confusion
    assert swapped.confusion == Confusion(both, people_only, judge_only, neither)


@given(verdict_rows)
def test_pass_and_fail_swapped_agree_as_far(rows: list[tuple[int | None, bool, bool]]) -> None:
    plain = verdict_agreement(rows)
    turned = verdict_agreement((cluster, not judge, not people) for cluster, judge, people in rows)
    assert (turned.tpr, turned.tnr) == (plain.tnr, plain.tpr)
    for name in ("kappa", "ac1", "mcc"):
        same_part(getattr(turned, name), getattr(plain, name))


def same_part(one: Part, other: Part) -> None:
    assert one.value == pytest.approx(other.value, abs=1e-9)
    assert one.interval.reason == other.interval.reason
    if other.interval.low is not None:
        assert limits(one.interval) == pytest.approx(limits(other.interval), abs=1e-6)


@given(verdict_rows)
def test_coefficients_are_those_of_their_definitions(rows: list[tuple[int | None, bool, bool]]) -> None:
    found = verdict_agreement(rows)
    a, b, c, d = found.confusion
    n = a + b + c + d
    if not n:
        return
    judge, people = Fraction(a + b, n), Fraction(a + c, n)
    agreed = Fraction(a + d, n)
    by_chance = judge * people + (1 - judge) * (1 - people)
    q = (judge + people) / 2
    unsure = 2 * q * (1 - q)
    assert found.ac1.value == pytest.approx(float((agreed - unsure) / (1 - unsure)))
    if judge in {0, 1} or people in {0, 1}:
        assert found.kappa.value is found.mcc.value is None
        assert found.kappa.interval.reason == found.mcc.interval.reason == ONE_ANSWER
        return
    assert found.kappa.value == pytest.approx(float((agreed - by_chance) / (1 - by_chance)), abs=1e-12)
    product = (a + b) * (a + c) * (b + d) * (c + d)
    assert found.mcc.value == pytest.approx((a * d - b * c) / math.sqrt(product), abs=1e-12)


def test_an_answer_that_is_never_agreed_on_does_not_make_kappa_certain() -> None:
    found = verdict_agreement([(None, True, True)] * 58 + [(None, True, False), (None, False, True)])
    for part in (found.kappa, found.mcc):
        assert part.value == pytest.approx(-1 / 59)
        low, high = limits(part.interval)
        assert low <= -0.03 < 0.4 < high  # two judges of whom 1 in 50 is failed may agree by half, and not once in 60


def test_kappas_limits_hold_where_a_failure_is_rare() -> None:
    draw = random.Random(11)
    held = runs = 0
    for _ in range(300):
        rows = [(None, draw.random() < 0.95, draw.random() < 0.95) for _ in range(60)]
        found = verdict_agreement(rows).kappa
        if found.value is not None:
            low, high = limits(found.interval)
            runs += 1
            held += low <= 0 <= high  # of two who say it by themselves
    assert held / runs > 0.93


def test_raters_who_never_vary_have_no_kappa_and_an_ac1() -> None:
    found = verdict_agreement([(None, True, True)] * 8)
    assert (found.kappa.value, found.mcc.value, found.ac1.value) == (None, None, 1)
    # with nothing to expect by chance, AC1 is the agreement
    assert limits(found.ac1.interval) == pytest.approx((wilson(1, 8, 1.959964)[0], 1), abs=1e-6)
    assert found.tnr == Part(None, found.tnr.interval)
    assert found.tnr.interval.reason == NOTHING_COUNTED


def test_perfect_agreement_is_no_certainty() -> None:
    found = verdict_agreement([(None, True, True)] * 6 + [(None, False, False)] * 4)
    least = wilson(1, 10, 1.959964)[0]
    expected = 1 - (1 - least) / (2 * 0.6 * 0.4)
    for part in (found.kappa, found.mcc):
        assert part.value == 1
        assert limits(part.interval) == pytest.approx((expected, 1), abs=1e-6)


def test_one_row_says_little() -> None:
    found = verdict_agreement([(None, True, True)])
    assert found.ac1.value == found.accuracy.value == 1
    assert limits(found.ac1.interval)[0] < 0.25
    assert verdict_agreement([("ada", True, True)] * 3).ac1.interval.reason == SINGLE_CLUSTER


def test_rows_without_one_of_the_two_are_counted_and_rows_without_both_refused() -> None:
    found = verdict_agreement([(None, True, True), (None, True, None), (None, None, False), (None, None, True)])
    assert (found.unlabelled, found.unjudged, found.accuracy.value) == (1, 2, 1)
    with pytest.raises(InputError, match="row 1 has neither"):
        verdict_agreement([(None, True, True), (None, None, None)])
    with pytest.raises(InputError, match="True or False, not 2"):
        verdict_agreement([(None, 2, True)])  # type: ignore[list-item]


# --- intervals -----------------------------------------------------------------------------------------------------


def users_who_are_alike(users: int, rows: int) -> list[tuple[int, bool, bool]]:
    random = np.random.default_rng(11)
    found = []
    for user in range(users):
        chance, right = random.beta(1.4, 0.6), random.beta(1.7, 0.3)
        for _ in range(rows):
            people = bool(random.random() < chance)
            found.append((user, people if random.random() < right else not people, people))
    return found


def bootstrapped(rows: list[tuple[int, Any, Any]], names: tuple[str, ...], agree: Any) -> dict[str, float]:
    """Standard errors over clusters drawn with replacement: what every closed form has to come near."""
    random = np.random.default_rng(12)
    by_user: dict[int, list[tuple[int, Any, Any]]] = {}
    for row in rows:
        by_user.setdefault(row[0], []).append(row)
    values: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(120):
        drawn = random.integers(0, len(by_user), len(by_user))
        found = agree(
            (place, judge, people) for place, user in enumerate(drawn) for _, judge, people in by_user[int(user)]
        )
        for name in names:
            values[name].append(getattr(found, name).value)
    return {name: float(np.std(each, ddof=1)) for name, each in values.items()}


def test_the_variance_of_verdicts_is_that_of_a_bootstrap_over_users() -> None:
    rows = users_who_are_alike(60, 3)
    found, expected = verdict_agreement(rows), bootstrapped(rows, ("kappa", "ac1", "mcc"), verdict_agreement)
    alone = verdict_agreement((None, judge, people) for _, judge, people in rows)
    for name, error in expected.items():
        part, apart = getattr(found, name), getattr(alone, name)
        assert math.sqrt(part.interval.variance) == pytest.approx(error, rel=0.2)
        assert part.value == apart.value
        assert part.interval.variance > 1.2 * apart.interval.variance
        assert limits(part.interval)[0] < limits(apart.interval)[0]


def test_the_variance_of_ratings_is_that_of_a_bootstrap_over_users() -> None:
    """That of alpha holds the ordinal weights for known, which a bootstrap does not: no difference to speak of."""
    random = np.random.default_rng(13)
    rows = []
    for user in range(60):
        level = random.normal(3.5, 1)
        for _ in range(2):
            people = int(np.clip(round(random.normal(level, 0.7)), 1, 5))
            rows.append((user, int(np.clip(people + random.integers(-1, 2), 1, 5)), people))
    found, expected = rating_agreement(rows), bootstrapped(rows, RATING_PARTS[1:], rating_agreement)
    for name, error in expected.items():
        assert math.sqrt(getattr(found, name).interval.variance) == pytest.approx(error, rel=0.2)


@given(verdict_rows, st.tuples(levels, levels).map(sorted))
def test_a_higher_level_is_wider(rows: list[tuple[int | None, bool, bool]], two: list[float]) -> None:
    narrow, wide = (verdict_agreement(rows, level=level) for level in two)
    for name in VERDICT_PARTS:
        one, other = getattr(narrow, name).interval, getattr(wide, name).interval
        if one.low is not None:
            assert limits(other)[0] <= limits(one)[0] + 1e-9
            assert limits(other)[1] >= limits(one)[1] - 1e-9


# --- ratings -------------------------------------------------------------------------------------------------------


@given(rating_rows, levels, st.sampled_from([None, (1, 2, 3, 4, 5)]))
def test_every_part_of_ratings_is_sound(
    rows: list[tuple[int | None, int, int]], level: float, scale: tuple[int, ...] | None
) -> None:
    found = rating_agreement(rows, scale=scale, level=level)
    assert found.n == len(rows)
    for name in RATING_PARTS:
        sound(getattr(found, name), {"exact": 0, "ac2": -math.inf}.get(name, -1))
    if rows:
        assert found.leniency.value == pytest.approx(np.mean([judge - people for _, judge, people in rows]))
    if found.leniency.interval.low is not None:
        assert limits(found.leniency.interval)[0] < limits(found.leniency.interval)[1]


@given(rating_rows, randoms)
def test_the_order_of_ratings_changes_nothing_and_a_swap_only_the_leniency(
    rows: list[tuple[int | None, int, int]], random: Any
) -> None:
    plain = rating_agreement(rows)
    assert rating_agreement(shuffled(rows, random)) == plain
    swapped = rating_agreement((cluster, people, judge) for cluster, judge, people in rows)
    for name in RATING_PARTS:
        same_part(getattr(swapped, name), getattr(plain, name))
    if plain.leniency.value is not None:
        assert swapped.leniency.value == pytest.approx(-plain.leniency.value)


@given(rating_rows)
def test_another_unit_of_the_scale_changes_no_coefficient(rows: list[tuple[int | None, int, int]]) -> None:
    plain = rating_agreement(rows)
    moved = rating_agreement((cluster, 7 + 10 * judge, 7 + 10 * people) for cluster, judge, people in rows)
    for name in RATING_PARTS:
        same_part(getattr(moved, name), getattr(plain, name))


def test_the_scale_matters_to_ac2_alone() -> None:
    rows = [(None, 4, 5), (None, 5, 5), (None, 4, 4), (None, 5, 4), (None, 5, 5)]
    given, whole = rating_agreement(rows), rating_agreement(rows, scale=(1, 2, 3, 4, 5))
    assert whole.kappa.value == pytest.approx(given.kappa.value)
    assert whole.alpha.value == pytest.approx(given.alpha.value)
    assert given.ac2.value is not None
    assert whole.ac2.value is not None
    assert whole.ac2.value > given.ac2.value + 0.5


def test_ratings_that_are_all_alike() -> None:
    found = rating_agreement([(None, 5, 5)] * 6)
    assert found.kappa.interval.reason == ONE_ANSWER
    assert found.alpha.interval.reason == ALL_RATINGS_ALIKE
    assert found.ac2.interval.reason == ONE_CATEGORY
    assert rating_agreement([(None, 5, 5)] * 6, scale=(1, 5)).ac2.value == 1
    assert rating_agreement([]).exact.interval.reason == NOTHING_COUNTED


def test_a_lenient_judge_is_told() -> None:
    rows = [(None, 5, 4), (None, 4, 3), (None, 5, 5), (None, 3, 2), (None, 4, 4), (None, 5, 3)] * 5
    leniency = rating_agreement(rows, scale=(1, 2, 3, 4, 5)).leniency
    assert leniency.value == pytest.approx(5 / 6)
    assert limits(leniency.interval)[0] > 0


def test_ratings_are_numbers_on_the_scale() -> None:
    with pytest.raises(InputError, match="6 is not on the scale"):
        rating_agreement([(None, 6, 5)], scale=(1, 2, 3, 4, 5))
    for bad in (math.nan, math.inf, "good"):
        with pytest.raises(InputError, match="finite numbers"):
            rating_agreement([(None, bad, 5)])  # type: ignore[list-item]
    for level in (0, 1):
        with pytest.raises(InputError, match="level"):
            rating_agreement([], level=level)


# --- several people ------------------------------------------------------------------------------------------------

MISSING = None
PUBLISHED = [
    (1, 1, MISSING, 1),
    (2, 2, 3, 2),
    (3, 3, 3, 3),
    (3, 3, 3, 3),
    (2, 2, 2, 2),
    (1, 2, 3, 4),
    (4, 4, 4, 4),
    (1, 1, 2, 1),
    (2, 2, 2, 2),
    (MISSING, 5, 5, 5),
    (MISSING, MISSING, 1, 1),
    (MISSING, MISSING, 3, MISSING),
]


@pytest.mark.parametrize(("metric", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorffs_own_example(metric: Metric, expected: float) -> None:
    """Krippendorff 2011, four observers of twelve units, some missing."""
    found = people_agreement(((None, ratings) for ratings in PUBLISHED), metric=metric)
    assert found.alpha.value == pytest.approx(expected, abs=5e-4)
    assert (found.items, found.single) == (11, 1)


@given(items, st.sampled_from(METRICS), levels)
def test_every_part_of_people_is_sound(
    rated: list[tuple[int | None, list[int | None]]], metric: Metric, level: float
) -> None:
    found = people_agreement(rated, metric=metric, level=level)
    for part in (found.pairwise, found.alpha, found.ac):
        sound(part, {found.pairwise: 0, found.alpha: -1}.get(part, -math.inf))
    known = [[rating for rating in ratings if rating is not None] for _, ratings in rated]
    assert (found.items, found.single) == (sum(len(each) > 1 for each in known), sum(len(each) == 1 for each in known))
    if not found.items:
        expected = NO_PAIRS if found.single else NOTHING_COUNTED
        assert found.alpha.interval.reason == found.ac.interval.reason == expected


@given(items, st.sampled_from(METRICS), randoms)
def test_the_order_of_items_and_of_people_changes_nothing(
    rated: list[tuple[int | None, list[int | None]]], metric: Metric, random: Any
) -> None:
    other = [(cluster, random.sample(ratings, len(ratings))) for cluster, ratings in shuffled(rated, random)]
    assert people_agreement(other, metric=metric) == people_agreement(rated, metric=metric)


@given(items, st.sampled_from(METRICS))
def test_alpha_is_one_minus_observed_over_expected_disagreement(
    rated: list[tuple[int | None, list[int | None]]], metric: Metric
) -> None:
    """Written out over ordered pairs of ratings, with Krippendorff's differences."""
    units = [[rating for rating in ratings if rating is not None] for _, ratings in rated]
    units = [unit for unit in units if len(unit) > 1]
    pooled = [rating for unit in units for rating in unit]
    totals = Counter(pooled)

    def apart(one: int, other: int) -> float:
        if metric == "nominal":
            return float(one != other)
        if metric == "interval":
            return (one - other) ** 2
        low, high = sorted((one, other))
        between = sum(count for rating, count in totals.items() if low <= rating <= high)
        return (between - (totals[low] + totals[high]) / 2) ** 2

    observed = sum(sum(apart(*pair) for pair in permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    expected = sum(apart(*pair) for pair in permutations(pooled, 2)) / max(1, len(pooled) - 1)
    found = people_agreement(rated, metric=metric).alpha
    if not expected:
        assert found.value is None
        return
    assert found.value == pytest.approx(1 - observed / expected, abs=1e-9)


@given(verdict_rows)
def test_two_people_are_a_judge_and_a_person(rows: list[tuple[int | None, bool, bool]]) -> None:
    pair = verdict_agreement(rows)
    several = people_agreement(((cluster, both) for cluster, *both in rows), scale=(False, True))
    assert several.pairwise.value == pair.accuracy.value
    same_part(several.ac, pair.ac1)


def test_raters_as_far_apart_as_can_be_have_an_ac2_below_minus_1() -> None:
    part = people_agreement([(None, [1, 3]), (None, [2])], metric="ordinal").ac
    assert part.value == pytest.approx(-1.4406779661)
    assert limits(part.interval)[0] == part.value


def test_answers_may_be_of_any_kind_and_metrics_have_names() -> None:
    found = people_agreement([(None, ("refund", "refund", "other")), (None, ("other", "other", None))])
    assert found.pairwise.value == pytest.approx((1 / 3 + 1) / 2)
    with pytest.raises(InputError, match="metric='nominal'"):
        people_agreement([(None, ("refund", "other"))], metric="ordinal")
    with pytest.raises(InputError, match="metric must be one of"):
        people_agreement([], metric="cardinal")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'maybe' is not on the scale, which has 2"):
        people_agreement([(None, ("yes", "maybe"))], scale=("yes", "no"))


def test_what_a_judge_can_be_asked_for_is_what_people_do() -> None:
    found = among_people(
        [
            (None, "a", ("a", "a", "b")),
            (None, "b", ("b", "b", None)),
            (None, "a", ("a",)),
            (None, None, ("a", "b")),
        ]
    )
    assert (found.items, found.left_out) == (2, 2)
    assert found.people.value == pytest.approx((1 / 3 + 1) / 2)
    assert found.judge.value == pytest.approx((2 / 3 + 1) / 2)
    assert found.difference.value == pytest.approx(1 / 6)
    for part in (found.people, found.judge):
        sound(part, 0)
    empty = among_people([])
    assert empty.people.interval.reason == empty.difference.interval.reason == NOTHING_COUNTED


@given(items, randoms)
def test_a_judge_who_is_one_of_the_people_agrees_as_they_do(
    rated: list[tuple[int | None, list[int | None]]], random: Any
) -> None:
    """On average over whom of the people the judge says the same as, counting that person too."""
    for cluster, ratings in rated:
        people = [rating for rating in ratings if rating is not None]
        if len(people) < 2:
            continue
        found = [among_people([(cluster, each, people)]) for each in people]
        mean = float(np.mean([each.judge.value for each in found]))
        alike = found[0].people.value
        assert alike is not None
        assert mean == pytest.approx((alike * (len(people) - 1) + 1) / len(people))
    assert among_people([(c, 1, r) for c, r in shuffled(rated, random)]) == among_people([(c, 1, r) for c, r in rated])


def test_a_majority_is_more_than_any_other() -> None:
    assert majority([True, True, False]) is True
    assert majority([False, None, None]) is False
    assert majority([True, False]) is None
    assert majority([None]) is None
    assert majority(["a", "b", "b", "c"]) == "b"


# --- optional fields -----------------------------------------------------------------------------------------------


def test_a_field_filled_where_people_left_it_empty_counts_against_the_judge() -> None:
    rows = [(None, "late", "late"), (None, "late", None), (None, None, "rude"), (None, None, None), (None, "a", "b")]
    found = optional_agreement(rows)
    assert found[:5] == (1, 1, 1, 1, 1)
    assert found.agreement.value == pytest.approx(2 / 5)
    assert found.precision.value == pytest.approx(1 / 3)
    assert found.recall.value == pytest.approx(1 / 3)
    eager = optional_agreement([(None, "late", None)] * 4)
    assert (eager.agreement.value, eager.precision.value, eager.recall.value) == (0, 0, None)
    assert eager.judge_only == 4


@given(fields, randoms)
def test_every_row_of_a_field_counts_once(rows: list[tuple[int | None, str | None, str | None]], random: Any) -> None:
    found: FieldAgreement = optional_agreement(rows)
    assert sum(found[:5]) == len(rows)
    for part in found[5:]:
        sound(part, 0)
    assert optional_agreement(shuffled(rows, random)) == found
    swapped = optional_agreement((cluster, people, judge) for cluster, judge, people in rows)
    assert (swapped.precision, swapped.recall, swapped.agreement) == (found.recall, found.precision, found.agreement)


def test_what_is_the_same_can_be_told() -> None:
    found = optional_agreement([(None, "Late", "late"), (None, 3, 3)], same=lambda one, other: str(one) == str(other))
    assert (found.same, found.different) == (1, 1)
    loose = optional_agreement([(None, "Late", "late")], same=lambda one, other: one.lower() == other.lower())
    assert loose.same == 1


def test_results_are_what_they_are_called() -> None:
    assert VerdictAgreement._fields[3:] == VERDICT_PARTS
    assert RatingAgreement._fields[3:7] == RATING_PARTS

"""Contests: one count, several readings of it, and no missing comparison taken for a tie."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import evalr
from evalr import About, Contest, DuplicateError, Failure, HandOff, InputError, MixedVersionsError, Rate, Skip, Verdict
from evalr.estimates.contest import ONE_POSITION
from evalr.estimates.interval import SINGLE_CLUSTER
from evalr.tallies.contests import ContestMoments

AT = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
VIEWS = ("net", "wins", "decided", "half_tie", "adjusted")
PLAIN_VIEWS = VIEWS[:4]
SEED_LINE = "67% win rate · 134 wins · 52 ties · 14 losses · n=200 sampled"


class Duel(BaseModel):
    outcome: Any
    first: Any = None


contest = Contest("shadow", of=Duel, outcome=lambda v: v.outcome, first=lambda v: v.first, noun="exchange")


def duels(wins: int = 0, ties: int = 0, losses: int = 0, first: bool | None = None) -> list[Duel]:
    counts = {"win": wins, "tie": ties, "loss": losses}
    return [Duel(outcome=outcome, first=first) for outcome, count in counts.items() for _ in range(count)]


def verdicts(values: list[Duel], version: str = "1", **about: Any) -> list[Any]:
    about = {"user": None, **about}
    return [
        Verdict(value, "judge", version, About("exchange", id=f"{place}", **about))
        for place, value in enumerate(values)
    ]


def interval(estimate: Any) -> tuple[Any, Any]:
    return estimate.low, estimate.high


# -- what is printed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 5.0, 0.1])
def test_a_sampled_win_rate_begins_with_the_published_line(weight: float) -> None:
    estimate = contest.estimate(verdicts(duels(134, 52, 14), weight=weight), view="wins")
    assert str(estimate) == f"{SEED_LINE} · shadow 67.0% [60.2, 73.1]"
    assert estimate.counts == {"wins": 134, "ties": 52, "losses": 14}


def test_without_sampling_the_line_says_no_more_than_it_knows() -> None:
    results = [*verdicts(duels(134, 52, 14)), *[Failure("the judge timed out")] * 40]
    assert str(contest.estimate(results, view="wins")) == (
        "67% win rate · 134 wins · 52 ties · 14 losses · n=200 · shadow 67.0% [60.2, 73.1] · "
        "left out: 40 failed (55.8% to 72.5% with them)"
    )
    users = [replace(each, about=each.about._replace(user=f"u{n % 40}")) for n, each in enumerate(results[:200])]
    assert str(contest.estimate(users)) == (
        "+60% net win · 134 wins · 52 ties · 14 losses · n=200 · shadow +60.0% [+50.5, +68.3] of 40 users"
    )


def test_one_and_few_and_none_are_printed_as_they_are() -> None:
    assert str(contest.estimate([Duel(outcome="win")], level=0.9)).startswith(
        "+100% net win · 1 win · 0 ties · 0 losses · n=1 · shadow +100.0% ["
    )
    assert str(contest.estimate(duels(1, 0, 1), view="wins", level=0.9)).startswith(
        "50% win rate · 1 win · 0 ties · 1 loss · n=2 · shadow 50.0% [12.1, 87.9] at 90%"
    )
    assert str(contest.estimate(duels(999, 1), view="wins")).startswith(">99% win rate · 999 wins · 1 tie")
    assert str(contest.estimate([])) == "shadow — · nothing was counted"


def test_html_and_plain_types_have_what_the_line_has() -> None:
    estimate = contest.estimate([*duels(134, 52, 14), Failure("broke")])
    html = estimate._repr_html_()
    assert "<td>+60.0%</td><td>[+50.8, +68.0]</td>" in html
    assert "200 exchanges: 134 wins, 52 ties, 14 losses" in html
    plain = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
    assert (plain["unit"], plain["reading"]) == ("signed share", "net win")
    assert plain["counts"] == {"wins": 134, "ties": 52, "losses": 14}
    assert plain["bounds"] == [119 / 201, 121 / 201]


# -- the readings ----------------------------------------------------------------------------------------------------


def test_four_conventions_of_one_count() -> None:
    tally = contest.tally(duels(134, 52, 14))
    values = {view: contest.estimate(tally, view=view).value for view in PLAIN_VIEWS}
    assert values == {"wins": 0.67, "decided": 134 / 148, "half_tie": 0.8, "net": 0.6}
    assert contest.estimate(tally, view="decided").n == 148
    assert contest(duels(134, 52, 14)) == 0.6


def test_views_and_methods_share_one_tally() -> None:
    other = replace(contest, name="other", view="wins", method="jeffreys", noun="pair")
    assert other.reads() == contest.reads()
    assert other.estimate(contest.tally(duels(10, 3, 2))).value == 10 / 15
    assert replace(contest, per="user", fold="all").reads() != contest.reads()


# From scipy 1.18.1, statsmodels 0.15.0, evalstats 0.3.3, and Tango's inversion by root finding.
@pytest.mark.parametrize(
    ("method", "wins", "losses", "n", "expected"),
    [
        ("bonett_price", 10, 3, 30, (-0.006032117793455555, 0.4435321177934556)),
        ("bonett_price", 0, 0, 20, (-0.12599125675906162, 0.12599125675906162)),
        ("bonett_price", 5, 0, 5, (0.19583598522357692, 1.0)),
        ("bonett_price", 1, 0, 1, (-0.7335359280789577, 1.0)),
        ("bonett_price", 12, 2, 38, (0.06996581213667588, 0.43003418786332415)),
        ("tango", 1, 0, 1, (-0.5869013712455251, 1.0)),
        ("tango", 12, 2, 38, (0.07965824856087857, 0.4383844838349136)),
    ],
)
def test_the_net_win_has_the_limits_of_its_sources(
    method: Any, wins: int, losses: int, n: int, expected: tuple[float, float]
) -> None:
    results = duels(wins, n - wins - losses, losses)
    assert interval(contest.estimate(results, method=method)) == pytest.approx(expected, abs=1e-8)
    halves = contest.estimate(results, view="half_tie", method=method)
    assert interval(halves) == pytest.approx([(1 + limit) / 2 for limit in expected], abs=1e-8)


@pytest.mark.parametrize(
    ("wins", "losses", "exact", "mid_p"),
    [
        (134, 14, 9.191926693634371e-26, None),
        (10, 3, 0.09228515625, None),
        (5, 0, 0.0625, 0.03125),
        (25, 12, 0.04703102743951604, 0.03355243967962451),
        (0, 0, 1.0, 1.0),
        (1, 0, 1.0, None),
    ],
)
def test_the_sign_test_has_the_values_of_its_sources(wins: int, losses: int, exact: float, mid_p: float | None) -> None:
    found = contest.sign_test(duels(wins, 7, losses))
    assert found.exact == pytest.approx(exact, rel=1e-9)
    assert found.p == found.mid_p
    if mid_p is not None:
        assert found.mid_p == pytest.approx(mid_p, rel=1e-9)
    assert (found.wins, found.losses, found.clusters, found.method) == (wins, losses, wins + 7 + losses, "sign-mid-p/1")


def test_the_clustered_net_win_has_the_error_of_its_source() -> None:
    """statsmodels 0.15.0: OLS on a constant, clustered by user."""
    users = {"u1": [1, 0, 1], "u2": [0], "u3": [-1, 1], "u4": [0, 0, 1]}
    outcomes = {1: "win", 0: "tie", -1: "loss"}
    results = [
        Verdict(Duel(outcome=outcomes[score]), "judge", about=About("exchange", id=f"{user}{place}", user=user))
        for user, scores in users.items()
        for place, score in enumerate(scores)
    ]
    estimate = contest.estimate(results)
    assert estimate.value == pytest.approx(1 / 3)
    assert estimate.variance == pytest.approx(0.16001828884957678**2)
    assert (estimate.clusters, dict(estimate.clustered_by)) == (4, {"user": 4})
    found = contest.sign_test(results)
    assert (found.exact, found.mid_p, found.method) == (None, None, "net-t/1")
    assert found.p is not None
    assert 0 < found.p < 1
    assert "4 wins against 1 loss · p = 0." in str(found)


def test_a_single_user_gives_no_interval_and_no_p() -> None:
    results = verdicts(duels(5, 1, 2), user="ada")
    for view in PLAIN_VIEWS:
        estimate = contest.estimate(results, view=view)
        assert (interval(estimate), estimate.status, estimate.reason) == ((None, None), "degenerate", SINGLE_CLUSTER)
    assert contest.sign_test(results).p is None


def test_a_decided_rate_is_as_sure_as_the_clusters_that_decide() -> None:
    results = [
        *verdicts(duels(0, 50), user="ada"),
        *(replace(each, about=each.about._replace(user=f"u{n}")) for n, each in enumerate(verdicts(duels(3, 0, 2)))),
    ]
    estimate = contest.estimate(results, view="decided", duplicates="first")
    assert (estimate.value, estimate.n, estimate.clusters) == (0.6, 5, 5)
    assert "low_confidence" in estimate.flags


# -- what is missing -------------------------------------------------------------------------------------------------

MISSING: dict[str, Any] = {
    "unknown": Duel(outcome=None),
    "pending": Duel(outcome="pending"),
    "failed": Failure("broke"),
    "skipped": Skip("no need"),
    "handed off": HandOff("too hard"),
}
with_pending = replace(contest, leaves_out=lambda v: v.outcome if v.outcome in ("pending", "test run") else None)
small = st.integers(0, 3)
placed = st.tuples(small, small, small)


@settings(deadline=None, max_examples=60)
@given(placed, placed, placed, st.lists(st.sampled_from(sorted(MISSING)), max_size=2))
def test_bounds_are_reached_by_some_missing_verdicts_and_left_by_none(
    first: Any, second: Any, unplaced: Any, missing: list[str]
) -> None:
    known = [*duels(*first, first=True), *duels(*second, first=False), *duels(*unplaced)]
    results = [*known, *(MISSING[name] for name in missing)]
    possible = [
        [*known, *(Duel(outcome=outcome, first=place) for outcome, place in drawn)]
        for drawn in product(product(["win", "tie", "loss"], [True, False]), repeat=len(missing))
    ]
    for view in PLAIN_VIEWS:
        estimate = with_pending.estimate(results, view=view)
        values = [value for case in possible if (value := contest.estimate(case, view=view).value) is not None]
        assert estimate.left_out == dict(Counter(missing))
        assert estimate.bounds == (pytest.approx((min(values), max(values))) if values else None)
    estimate = with_pending.estimate(results, view="adjusted")
    values = [value for case in possible if (value := contest.estimate(case, view="adjusted").value) is not None]
    if estimate.bounds is None:
        assert not values
    for value in values:
        assert estimate.bounds[0] - 1e-12 <= value <= estimate.bounds[1] + 1e-12
    if estimate.value is not None:
        assert estimate.bounds[0] <= estimate.value <= estimate.bounds[1]
        if not missing and not any(unplaced):
            assert estimate.bounds == pytest.approx((estimate.value, estimate.value))


def test_what_does_not_belong_is_named_and_widens_nothing() -> None:
    estimate = with_pending.estimate([*duels(2, 1, 1), Duel(outcome="test run")])
    assert (estimate.value, estimate.bounds, estimate.left_out) == (0.25, (0.25, 0.25), {"test run": 1})


def test_nothing_but_failures_could_be_anything() -> None:
    failed = [Failure("broke")] * 3
    assert contest.estimate(failed).bounds == (-1, 1)
    assert contest.estimate(failed, view="wins").bounds == (0, 1)
    estimate = contest.estimate([])
    assert (estimate.value, estimate.status, estimate.bounds) == (None, "undefined", None)
    assert contest.sign_test([]).p is None


# -- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", VIEWS)
def test_equal_weights_change_nothing_but_the_flag(view: Any) -> None:
    values = [*duels(20, 5, 8, first=True), *duels(9, 6, 7, first=False)]
    plain, weighed = (contest.estimate(verdicts(values, weight=weight), view=view) for weight in (None, 0.3))
    assert interval(weighed) == pytest.approx(interval(plain))
    assert replace(weighed, low=plain.low, high=plain.high, variance=plain.variance, flags=plain.flags) == plain
    assert "sampled" in weighed.flags


def test_a_comparison_counts_as_many_times_as_it_weighs() -> None:
    results = verdicts(duels(30, 10, 20))
    weights = {"win": 1.0, "tie": 2.0, "loss": 1.0}
    results = [replace(each, about=each.about._replace(weight=weights[each.value.outcome])) for each in results]
    estimate = contest.estimate(results, view="wins")
    assert estimate.value == pytest.approx(30 / 70)
    assert (estimate.n, sum(estimate.counts.values())) == (60, pytest.approx(60))
    assert str(estimate).startswith("43% win rate · 25.7 wins · 17.1 ties · 17.1 losses · n=60 sampled")
    assert contest.estimate(results, view="decided").value == 0.6
    assert contest.sign_test(results).exact is None
    failed = Failure("broke", about=About("exchange", id="late", weight=5.0))
    assert contest.estimate([*results, failed], view="wins").bounds == (30 / 75, 35 / 75)


# -- folds -----------------------------------------------------------------------------------------------------------


def in_units(*units: list[Any]) -> list[Any]:
    return [
        replace(each, about=About("learning", id=f"{unit}{place}", attributes={"response": f"r{unit}"}))
        if isinstance(each, Failure)
        else Verdict(each, "judge", about=About("learning", id=f"{unit}{place}", attributes={"response": f"r{unit}"}))
        for unit, values in enumerate(units)
        for place, each in enumerate(values)
    ]


UNITS = in_units(duels(2, 0, 1), duels(2), duels(1, 1), duels(1, 0, 1), duels(0, 0, 2), duels(0, 3, 1))


@pytest.mark.parametrize(
    ("fold", "ended"), [("majority", {"wins": 3, "ties": 1, "losses": 2}), ("all", {"wins": 1, "ties": 4, "losses": 1})]
)
def test_a_unit_counts_once(fold: Any, ended: dict[str, int]) -> None:
    estimate = contest.estimate(UNITS, per="response", fold=fold)
    assert (estimate.counts, estimate.n, estimate.noun) == (ended, 6, "response")
    assert interval(estimate) == interval(contest.estimate(duels(*ended.values())))
    assert contest.sign_test(UNITS, duplicates="first").exact is not None


def test_units_that_win_and_lose_are_mixed_however_often_they_do() -> None:
    estimate = contest.estimate(UNITS, per="response", fold="unopposed")
    assert estimate.counts == {"wins": 2, "ties": 2, "losses": 2, "mixed": 2}
    assert interval(estimate) == interval(contest.estimate(duels(2, 2, 2)))
    assert "mixed" not in contest.estimate(UNITS, per="response", fold="majority").counts
    lift = contest.lift(
        UNITS, per="response", fold="unopposed", by=lambda about: str(about.id)[-1], treatment="0", control="1"
    )
    assert lift.treatment.counts["mixed"] == 0


def test_what_is_missing_of_a_unit_could_turn_it() -> None:
    units = in_units([*duels(1), Failure("broke")], [Failure("broke")], duels(3), [*duels(0, 0, 3), Failure("broke")])
    majority = contest.estimate(units, per="response", fold="majority")
    assert (majority.value, majority.n) == (1 / 3, 3)
    assert majority.left_out == {"failed": 3, "without a verdict": 1}
    # The first is at least tied, the second could be either, the last stays lost.
    assert majority.bounds == ((1 - 1 - 1) / 4, (1 + 1 + 1 - 1) / 4)
    strict = contest.estimate(units, per="response", fold="all")
    assert strict.bounds == ((0 + 1 - 1 - 1) / 4, (1 + 1 + 1 + 0) / 4)


def test_units_of_a_user_are_one_cluster() -> None:
    results = [
        Verdict(
            value, "judge", about=About("learning", id=str(n), user=f"u{n % 3}", attributes={"response": f"r{n // 2}"})
        )
        for n, value in enumerate(duels(4, 4, 4))
    ]
    estimate = contest.estimate(results, per="response", fold="majority")
    assert (estimate.n, estimate.clusters) == (6, 6)  # each response was seen by two users


# -- position --------------------------------------------------------------------------------------------------------


def test_an_unbalanced_order_is_adjusted() -> None:
    results = [*duels(45, 0, 15, first=True), *duels(10, 0, 10, first=False)]
    assert contest.estimate(results, view="half_tie").value == 0.6875
    adjusted = contest.estimate(results, view="adjusted")
    assert (adjusted.value, adjusted.n) == (0.625, 80)
    assert adjusted.counts == {"wins": 55, "ties": 0, "losses": 25, "shown_first": 60, "shown_second": 20}
    found = contest.position(results)
    assert found.adjusted == adjusted
    assert (found.bias.value, found.bias.unit, found.bias.bounds) == (0.125, "signed share", (0.125, 0.125))
    assert (found.first_slot.value, found.first_slot.counts) == (55 / 80, {"hits": 55, "total": 80})
    assert found.p == pytest.approx(0.0010527348573533446, rel=1e-9)  # scipy 1.18.1: binomtest(55, 80)
    first, bias, last = str(found).splitlines()
    assert first.endswith("80 exchanges · p = 0.001")
    assert bias.startswith("shadow: position bias +12.5% [")
    assert last.startswith("62% position-adjusted win rate · 55 wins · 0 ties · 25 losses · n=80 · shadow 62.5% [")
    assert "p = 0.001" in found._repr_html_()
    json.dumps(found.to_dict(), allow_nan=False)


def test_one_position_alone_adjusts_nothing() -> None:
    estimate = contest.estimate(duels(5, 1, 2, first=True), view="adjusted")
    assert (estimate.value, estimate.status, estimate.reason) == (None, "undefined", ONE_POSITION)
    assert estimate.bounds is None


def test_comparisons_of_unknown_position_are_counted_beside() -> None:
    results = [*duels(5, 1, 2, first=True), *duels(3, 1, 2, first=False), *duels(4)]
    estimate = contest.estimate(results, view="adjusted")
    assert (estimate.n, estimate.left_out) == (14, {"position unknown": 4})
    assert contest.estimate(results).counts == {
        "wins": 12, "ties": 2, "losses": 4, "shown_first": 8, "shown_second": 6
    }  # fmt: skip


def test_a_user_in_both_positions_is_one_cluster() -> None:
    results = [
        Verdict(value, "judge", about=About("exchange", id=str(n), user=f"u{n % 10}"))
        for n, value in enumerate([*duels(30, 5, 15, first=True), *duels(10, 5, 35, first=False)])
    ]
    found = contest.position(results)
    assert found.first_slot.clusters == found.adjusted.clusters == 10
    assert found.p is not None
    assert interval(found.bias) != interval(contest.position([each.value for each in results]).bias)


def both_orders(**pairs: int) -> list[Any]:
    words = {"w": "win", "t": "tie", "l": "loss"}
    made = []
    for orders, count in pairs.items():
        for number, (repeat, letter) in product(range(count), enumerate(orders, start=1)):
            about = About("exchange", id=f"{orders}{number}", repeat=repeat)
            made.append(Verdict(Duel(outcome=words[letter], first=repeat == 1), "judge", about=about))
    return made


def test_both_orders_have_the_values_of_their_source() -> None:
    """statsmodels 0.15.0 (McNemar's exact test), and Bonett & Price's formula."""
    results = both_orders(ww=60, ll=8, tt=5, wl=15, lw=4, wt=8)
    found = contest.consistency(results)
    assert (found.same.value, found.same.n, found.same.noun) == (0.73, 100, "pair")
    assert (found.first_slot, found.second_slot) == (15, 4)
    assert found.p == pytest.approx(0.0192108154296875, rel=1e-9)
    assert str(found) == (
        "shadow: same in both orders 73.0% [63.6, 80.7] · 100 pairs · first slot won 15, second slot 4 · p = 0.019"
    )
    assert "first slot won 15, second slot 4 · p = 0.019" in found._repr_html_()
    json.dumps(found.to_dict(), allow_nan=False)
    net = contest.estimate(results, per="id", fold="all")
    assert net.counts == {"wins": 60, "ties": 32, "losses": 8}
    assert (net.value, *interval(net)) == pytest.approx((0.52, 0.3830843773715786, 0.6365234657656762))


def test_what_is_no_pair_is_named() -> None:
    results = both_orders(ww=3, lw=1, w=2, www=1)
    results.append(replace(results[0], about=About("exchange", id="unplaced"), value=Duel(outcome="win")))
    results.append(Failure("broke", about=About("exchange", id="failed")))
    found = contest.consistency(results)
    assert (found.same.value, found.same.n) == (0.75, 4)
    assert found.same.left_out == {
        "in one order only": 2, "failed": 1, "judged again in one order": 1, "position unknown": 1,
        "without a verdict": 1,
    }  # fmt: skip
    assert found.same.bounds == (3 / 9, 8 / 9)
    assert contest.consistency([]).p is None


def test_pairs_of_one_user_are_one_cluster() -> None:
    results = [
        replace(each, about=each.about._replace(user=f"u{place // 8}"))
        for place, each in enumerate(both_orders(ww=20, wl=12, lw=2))
    ]
    found = contest.consistency(results)
    assert (found.same.n, found.same.clusters) == (34, 9)
    assert found.p is not None
    assert found.p != contest.consistency(both_orders(ww=20, wl=12, lw=2)).p


# -- two arms --------------------------------------------------------------------------------------------------------


def in_arms(treatment: list[Duel], control: list[Duel], users: int | None = None) -> list[Any]:
    return [
        Verdict(
            value,
            "judge",
            about=About(
                "exchange", id=f"{arm}{place}", arm=arm, user=None if users is None else f"{arm}{place % users}"
            ),
        )
        for arm, values in (("treatment", treatment), ("control", control))
        for place, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("view", "expected"),
    [("net", 0.5 - 0.2), ("wins", 0.6 - 0.4), ("decided", 12 / 14 - 8 / 12), ("half_tie", 0.75 - 0.6)],
)
@pytest.mark.parametrize("users", [None, 5])
def test_arms_are_compared_in_each_view(view: Any, expected: float, users: int | None) -> None:
    lift = contest.lift(in_arms(duels(12, 6, 2), duels(8, 8, 4), users), view=view, randomised=True)
    assert (lift.difference.value, lift.difference.unit) == (pytest.approx(expected), "points")
    assert lift.difference.low is not None
    assert lift.difference.low < expected < lift.difference.high
    counted = 26 if view == "decided" else 40
    assert (lift.difference.n, lift.difference.clusters) == (counted, counted if users is None else 10)


def test_a_share_of_wins_is_compared_as_a_rate_is() -> None:
    results = in_arms(duels(12, 6, 2), duels(8, 8, 4), 7)
    rate = Rate("shadow", of=Duel, hits=lambda v: v.outcome == "win")
    for weight in (None, 0.5):
        weighed = [replace(each, about=each.about._replace(weight=weight)) for each in results]
        mine, theirs = contest.lift(weighed, view="wins").difference, rate.lift(weighed).difference
        assert (mine.value, *interval(mine)) == pytest.approx((theirs.value, *interval(theirs)))


def test_folded_arms_are_compared_by_their_units() -> None:
    results = [
        replace(each, about=each.about._replace(arm="treatment" if place % 2 else "control"), value=each.value)
        for place, each in enumerate(UNITS)
    ]
    lift = contest.lift(results, per="response", fold="majority")
    assert lift.difference.value == pytest.approx(lift.treatment.value - lift.control.value)


def test_an_adjusted_contest_is_not_compared() -> None:
    with pytest.raises(InputError, match="not compared in view='adjusted'"):
        contest.lift(in_arms(duels(1), duels(1)), view="adjusted")


# -- as every summary ------------------------------------------------------------------------------------------------


def test_groups_trends_versions_and_duplicates() -> None:
    results = [
        *verdicts(duels(3, 1), at=AT, attributes={"agent": "ada"}, session="s1"),
        *verdicts(duels(0, 1, 3), at=AT + timedelta(days=2), attributes={"agent": "bob"}, session="s2"),
    ]
    assert {name: each.value for name, each in contest.by(results, "agent").items()} == {"ada": 0.75, "bob": -0.75}
    trend = contest.trend(results, bucket="day", view="wins")
    assert [each.value for each in trend.values()] == [0.75, None, 0]
    with pytest.raises(DuplicateError):
        contest.estimate([*results, results[0]])
    assert contest.estimate([*results, results[0]], duplicates="first").n == 8
    mixed = [*verdicts(duels(1)), *verdicts(duels(1), version="2", session="s3")]
    for read in (contest.estimate, contest.sign_test, contest.position, contest.consistency):
        with pytest.raises(MixedVersionsError):
            read(mixed)
        read(mixed, mix_versions=True)
    assert "mixed_versions" in contest.estimate(mixed, mix_versions=True).flags


@given(st.lists(st.tuples(st.sampled_from(["win", "tie", "loss"]), st.sampled_from([True, False, None]), small)))
def test_cells_are_the_clusters_they_stand_for(rows: list[tuple[str, bool | None, int]]) -> None:
    """Users u1 to u3; 0 is nobody, whose comparisons are by themselves."""
    results = [
        Verdict(
            Duel(outcome=outcome, first=first),
            "judge",
            about=About("exchange", id=str(n), user=f"u{user}" if user else None),
        )
        for n, (outcome, first, user) in enumerate(rows)
    ]
    cells = contest.tally(results).entry(None, contest._cells).cells
    clusters: dict[Any, Counter[str]] = {}
    for n, (outcome, _, user) in enumerate(rows):
        clusters.setdefault(user or f"alone {n}", Counter())[outcome] += 1
    expected = ContestMoments.of_clusters((each["win"], each["tie"], each["loss"]) for each in clusters.values())
    assert cells.moments() == expected
    assert contest.estimate(results).clusters == len(clusters)


def test_a_million_comparisons_by_themselves_stay_small() -> None:
    tally, add = contest.collector()
    value = Duel(outcome="win", first=True)
    for _ in range(100_000):
        add(value)
    assert contest.estimate(tally).n == 100_000
    assert len(pickle.dumps(tally)) < 2_000


@pytest.mark.parametrize("given_outcome", ["won", True, 1, "WIN", "{0}", ["win"]])
def test_an_outcome_is_one_of_three(given_outcome: Any) -> None:
    with pytest.raises(InputError, match=r"outcome=.*: must be one of 'win', 'tie', 'loss', or None"):
        contest.estimate([Duel(outcome=given_outcome)])


def test_a_position_is_known_or_not() -> None:
    with pytest.raises(InputError, match="first='left' must be True, False or None"):
        contest.estimate([Duel(outcome="win", first="left")])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"view": "won"}, "view='won': must be one of 'net', 'wins', 'decided', 'half_tie', 'adjusted'"),
        ({"method": "wilson"}, "method='wilson': must be one of 'bonett_price', 'tango' to choose for view='net'"),
        ({"method": "tango", "view": "wins"}, "method='tango': must be one of 'wilson'"),
        ({"method": "tango", "view": "adjusted"}, "method='tango': there is none to choose for view='adjusted'"),
        ({"per": "response", "fold": "any"}, "fold='any': must be one of 'majority', 'all'"),
        ({"fold": "all"}, "per= and fold= belong together"),
        ({"per": "response", "fold": "all", "view": "adjusted"}, "leave out per= and fold="),
        ({"first": None, "view": "adjusted"}, "the position is not known"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        contest.estimate([], **wrong)


def test_what_needs_the_position_says_so() -> None:
    unplaced = replace(contest, first=None)
    for read in (unplaced.position, unplaced.consistency):
        with pytest.raises(InputError, match="the position is not known: give first="):
            read(duels(1))
    with pytest.raises(InputError, match="leave out per= and fold="):
        replace(contest, per="response", fold="all").position(UNITS)
    assert "shown_first" not in unplaced.estimate(duels(1, first=True)).counts


def test_it_is_exported() -> None:
    assert {"Contest", "PositionEffect", "Consistency", "WinTest"} <= set(evalr.__all__)

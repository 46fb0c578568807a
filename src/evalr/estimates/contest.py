"""Who wins, by how much, and does the position shown decide it? Wins, ties and losses of pairs.

The net win (wins - losses over all) is the paired difference of two rates, so a shadow comparison, a paired run and
McNemar's table are one thing. Other views of the same counts: `rate_interval(contest.won())` has ties count as not won,
`rate_interval(contest.decided())` leaves them out, `half_tie_interval` has them count half.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, NamedTuple

from evalr.errors import InputError
from evalr.estimates.compare import Difference, padded_correlation, square_and_add
from evalr.estimates.interval import (
    ALL_ALIKE,
    NOTHING_COUNTED,
    SINGLE_CLUSTER,
    Interval,
    around,
    no_interval,
    normal_quantile,
    t_quantile,
    tail,
)
from evalr.estimates.mean import mean_interval
from evalr.estimates.p_values import binomial_tail, inverted_p, log_binomial, normal_p, t_p
from evalr.estimates.rate import rate_interval
from evalr.estimates.scores import tango
from evalr.tallies.contests import ContestMoments
from evalr.tallies.moments import Moments
from evalr.tallies.shared import SharedMoments

NetMethod = Literal["bonett_price", "tango"]
NET_METHODS: tuple[NetMethod, ...] = ("bonett_price", "tango")

ONE_POSITION = "the treatment was never shown in one of the two positions"


class SignTest(NamedTuple):
    """Two-sided p of as many wins and losses, if each were a coin's toss: McNemar's test of the pairs that differ."""

    exact: float
    mid_p: float
    """Counts half of what was seen: less careful than needed no more (Fagerland, Lydersen & Laake 2013)."""


class Position(NamedTuple):
    """A half-tie rate freed of the position shown, and what the position does."""

    adjusted: float | None
    interval: Interval
    bias: float | None
    """Half of what being shown first adds to the half-tie rate."""
    bias_interval: Interval
    first_slot: float | None
    """Share of the decided comparisons that the answer shown first won, whichever it was."""
    first_slot_interval: Interval
    p: float | None
    """Two-sided, of no preference for a slot."""


class BothOrders(NamedTuple):
    """Pairs judged in both orders: a winner is one that won in both, all else a tie."""

    contest: ContestMoments
    net: Difference
    consistency: float | None
    """Share of the pairs with the same answer in both orders."""
    consistency_interval: Interval
    position: SignTest
    """Of the pairs won in one order and lost in the other: those won by the first slot against the second."""


def bonett_price(wins: float, losses: float, n: float, q: float) -> tuple[float, float]:
    """Limits of (wins - losses) / n at the quantile `q`: Wald after one win and one loss were added.

    Bonett & Price 2012. Counts need not be whole.
    """
    middle, error = _with_two_added(wins, losses, n)
    return middle - q * error, middle + q * error


def net_win(contest: ContestMoments, *, level: float = 0.95, method: NetMethod = "bonett_price") -> Difference:
    """(wins - losses) / n, from -1 to 1, with its interval and p.

    One comparison a cluster: Bonett & Price's interval, or Tango's score interval by name; p by the sign test, mid-p.
    Several: Bonett & Price's at the effective n (`clustered_effective_n`) with Student's t, whatever `method` is; p is
    of that t. Its degrees of freedom are Kish's n of the clusters - 1, so that unequal clusters count for fewer, in the
    spirit of Carter, Schnepel & Steigerwald 2017. Where all clusters are alike, each counts as one comparison (Kish).
    A single cluster of several: no interval. `variance` is the cluster-robust one (CR1) as measured.

    Raises InputError for an unknown method or a level outside 0..1.
    """
    if method not in NET_METHODS:
        raise InputError(f"method must be one of {', '.join(NET_METHODS)}, not {method!r}")
    tail(level)
    moments = contest.net()
    if moments.ratio is None:
        return Difference(None, no_interval(NOTHING_COUNTED), None, "none")
    value = float(moments.ratio)
    if contest.singles():
        low, high = _of_pairs(contest, level, method)
        limits = around(low, value, high, floor=-1.0, ceiling=1.0)
        decided = Fraction(contest.wins + contest.losses) / contest.n
        variance = float((decided - moments.ratio**2) / contest.n)
        interval = Interval(*limits, variance, f"{method.replace('_', '-')}/1", float(contest.n))
        p = sign_test(int(contest.wins), int(contest.losses)).mid_p
        return Difference(value, interval, p, "sign-mid-p/1")
    variance_found, kish = moments.robust_variance(), moments.kish
    if variance_found is None or kish is None:
        return Difference(value, no_interval(SINGLE_CLUSTER), None, "none")
    n = clustered_effective_n(contest)
    part = n / float(contest.n)
    middle, error = _with_two_added(float(contest.wins) * part, float(contest.losses) * part, n)
    if variance_found == 0:
        q, p, df = normal_quantile(level), normal_p(middle / error), None
        test, named, reason = "net-kish/1", "bonett-price-kish/1", ALL_ALIKE
    else:
        df = max(1.0, kish - 1)
        q, p = t_quantile(level, df), t_p(middle / error, df)
        test, named, reason = "net-t/1", "bonett-price-effective-n/1", None
    limits = around(middle - q * error, value, middle + q * error, floor=-1.0, ceiling=1.0)
    return Difference(value, Interval(*limits, float(variance_found), named, n, reason), p, test, df)


def clustered_effective_n(contest: ContestMoments) -> float:
    """How many independent comparisons have the variance of the net win over clusters; at most as many as there are.

    n over the design effect, which is measured after one comparison more was decided and took its whole cluster with
    it: with few decided, all in one direction, the variance is too small just where the net win is too near to 0.
    Where none was decided or all clusters are alike, it is Kish's n. Two whole clusters, which a rate is padded with,
    would double the width where few are decided (benchmarks/coverage_net.md). The addition is ours.

    Raises ZeroDivisionError for fewer than two clusters.
    """
    moments = contest.net()
    n, net = Fraction(moments.m), Fraction(moments.y) / moments.m
    size = moments.mm / n
    robust = moments.squares_around(net) * n * n * moments.clusters / (moments.clusters - 1)
    if robust == 0:
        return float(n / size)
    independent = contest.wins + contest.losses - n * net * net
    return float(n / max(Fraction(1), (robust + size) / (independent + 1)))


def half_tie_interval(contest: ContestMoments, *, level: float = 0.95, method: NetMethod = "bonett_price") -> Interval:
    """The interval of `contest.half_tie`, wins and half of the ties over all: that of the net win, moved to 0..1."""
    net = net_win(contest, level=level, method=method).interval
    if net.low is None or net.high is None:
        return net
    variance = None if net.variance is None else net.variance / 4
    value = float(contest.half_tie or 0)
    low, high = around((1 + net.low) / 2, value, (1 + net.high) / 2, floor=0.0, ceiling=1.0)
    return net._replace(low=low, high=high, variance=variance)


def sign_test(wins: int, losses: int) -> SignTest:
    """The sign test of wins against losses, 1 where there are none. Raises InputError for a negative count."""
    if min(wins, losses) < 0:
        raise InputError(f"wins and losses are counted from 0, not {wins} and {losses}")
    n, fewer = wins + losses, min(wins, losses)
    if wins == losses:
        return SignTest(1.0, 1.0)
    below = binomial_tail(fewer, n, 0.5)
    return SignTest(min(1.0, 2 * below), min(1.0, 2 * below - math.exp(log_binomial(fewer, n, 0.5))))


def paired_difference(
    moments: Moments, *, bounds: tuple[float, float] | None = None, level: float = 0.95
) -> Difference:
    """The mean of differences within pairs, `moments.y / moments.m`: `y` sums them by cluster, `m` counts the pairs.

    The interval is that of `mean_interval`; `bounds` are those of a difference (-4 to 4 for ratings of 1 to 5). Without
    bounds it is the paired t (Miller 2024; clustered: CR1 with t). p is of that t, or with bounds one minus the highest
    level at which the interval leaves 0 out. Raises InputError as `mean_interval` does.
    """
    interval = mean_interval(moments, level=level, bounds=bounds)
    value = None if moments.ratio is None else float(moments.ratio)
    if value is None or interval.low is None:
        return Difference(value, interval, None, "none")
    if bounds is None and interval.variance:
        df = moments.clusters - 1
        return Difference(value, interval, t_p(value / math.sqrt(interval.variance), df), interval.method, df)

    def leaves_out(p: float) -> bool:
        return _leaves_out(mean_interval(moments, level=1 - p, bounds=bounds))

    return Difference(value, interval, inverted_p(leaves_out, value), "paired-inverted/1")


def position_adjusted(
    first: ContestMoments,
    second: ContestMoments,
    *,
    shared: SharedMoments | None = None,
    slots: ContestMoments | None = None,
    level: float = 0.95,
) -> Position:
    """The half-tie rate as if the treatment had been shown first in half of the comparisons.

    `first` counts its wins, ties and losses where it was shown first, `second` where second; `shared` has the sums of
    `first.net()` and `second.net()` over the clusters in both. With s1 and s2 the two half-tie rates: adjusted is their
    mean, bias half of s1 - s2, each with MOVER's limits over theirs. A random order leaves a remainder of unequal
    numbers, which this removes.

    `first_slot` and its p are of all decided comparisons: an exact sign test, or as `net_win` where a cluster has
    several. `slots` counts by cluster how often the answer shown first won, tied and lost; without it a cluster in both
    positions counts there as two.
    """
    shared = shared or SharedMoments()
    slots = first.merge(second.swapped()) if slots is None else slots
    picked = slots.decided()
    pick_interval = rate_interval(picked, level=level)
    if slots.singles():
        p: float | None = sign_test(int(slots.wins), int(slots.losses)).exact
    else:
        p = net_win(slots, level=level).p
    slot_share = None if picked.ratio is None else float(picked.ratio)
    slot = (slot_share, pick_interval, p if slot_share is not None else None)
    s1, s2 = first.half_tie, second.half_tie
    arms = half_tie_interval(first, level=level), half_tie_interval(second, level=level)
    if s1 is None or s2 is None:
        return Position(None, no_interval(ONE_POSITION), None, no_interval(ONE_POSITION), *slot)
    adjusted, bias = (s1 + s2) / 2, (s1 - s2) / 2
    if None in (arms[0].low, arms[1].low):
        none = no_interval(arms[0].reason or arms[1].reason or SINGLE_CLUSTER)
        return Position(adjusted, none, bias, none, *slot)
    apart = padded_correlation(first.net(), second.net(), shared, (-1, 1))
    # the sum is the difference from the mirror image, whose correlation is guessed as carefully
    together = padded_correlation(first.net(), second.swapped().net(), shared.mirrored(), (-1, 1))
    one, other = ((each.low or 0.0, share, each.high or 0.0) for each, share in zip(arms, (s1, s2), strict=True))
    variances = [each.variance or 0.0 for each in arms]
    covariance = shared.robust_covariance(first.net(), second.net()) / 4
    mirrored = (-other[2], -other[1], -other[0])
    return Position(
        adjusted,
        _halved(square_and_add(one, mirrored, together), adjusted, sum(variances) + 2 * covariance, arms, 0.0),
        bias,
        _halved(square_and_add(one, other, apart), bias, sum(variances) - 2 * covariance, arms, -0.5),
        *slot,
    )


def both_orders(
    won_both: int,
    lost_both: int,
    tied_both: int,
    won_first: int,
    won_second: int,
    with_one_tie: int,
    *,
    level: float = 0.95,
) -> BothOrders:
    """Pairs judged twice, once in each order; any disagreement is a tie (Zheng et al. 2023).

    `won_first` counts pairs that the treatment won when it was shown first and lost when second, `won_second` those the
    other way round, `with_one_tie` those with a tie in one order only. The sign test of `won_first` against
    `won_second` is McNemar's test of a preference for a slot (Shi et al. 2024).

    Raises InputError for a negative count or a level outside 0..1.
    """
    counts = (won_both, lost_both, tied_both, won_first, won_second, with_one_tie)
    if min(counts) < 0:
        raise InputError(f"pairs are counted from 0, not {counts}")
    n, alike = sum(counts), won_both + lost_both + tied_both
    contest = ContestMoments.of_counts(won_both, n - won_both - lost_both, lost_both)
    return BothOrders(
        contest,
        net_win(contest, level=level),
        alike / n if n else None,
        rate_interval(Moments(n, n, alike, n, alike, alike, n), level=level),
        sign_test(won_first, won_second),
    )


def _of_pairs(contest: ContestMoments, level: float, method: NetMethod) -> tuple[float, float]:
    q = normal_quantile(level)
    limits = tango if method == "tango" else bonett_price
    return limits(float(contest.wins), float(contest.losses), float(contest.n), q)


def _with_two_added(wins: float, losses: float, n: float) -> tuple[float, float]:
    """The net win and its standard error after one win and one loss were added."""
    won, lost = (wins + 1) / (n + 2), (losses + 1) / (n + 2)
    return won - lost, math.sqrt((won + lost - (won - lost) ** 2) / (n + 2))


def _leaves_out(interval: Interval) -> bool:
    return interval.low is not None and interval.high is not None and (interval.low > 0 or interval.high < 0)


def _halved(
    limits: tuple[float, float], value: float, variance: float, arms: tuple[Interval, Interval], floor: float
) -> Interval:
    low, high = around(limits[0] / 2, value, limits[1] / 2, floor=floor, ceiling=floor + 1)
    methods = dict.fromkeys(arm.method.removesuffix("/1") for arm in arms)
    reason = arms[0].reason or arms[1].reason
    return Interval(low, high, max(0.0, variance / 4), f"mover-{'+'.join(methods)}/1", None, reason)

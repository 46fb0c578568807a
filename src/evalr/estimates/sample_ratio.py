"""Are the arms as large as they were meant to be? An experiment whose assignment broke measures something else.

Counts are of users as assigned, before any filter: what filters leave is the other question, `coverage_by_arm`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

from evalr.errors import InputError
from evalr.estimates import display
from evalr.estimates.p_values import binomial_p, chi_square_p, hypergeometric_p
from evalr.estimates.words import p_words

ALARM_BELOW = 0.001
"""Fabijan et al. 2019: a check that runs on every experiment must seldom cry wolf."""

FEW = 5
"""Expected counts under this are too few for the chi-square."""

MOST = 1e100
LEAST_SHARE = 1e-12
"""Of a split. A smaller one is lost in the rounding of the others, and nobody declares it."""

NOBODY = "nobody was assigned"
NO_SPLIT = "one arm alone has no split to keep"
NO_DIFFERENCE = "all were evaluated, or none, so arms cannot differ"


class SampleRatio(NamedTuple):
    """Whether counts by arm are what a split makes likely."""

    p: float | None
    statistic: float | None
    """Pearson's chi-square over the arms that were meant to have users."""
    df: int | None
    alarm: bool
    method: str
    """Name and version of what gave `p`; `none` where nothing did."""
    reason: str | None = None
    """Why there is no p, or why there is an alarm whatever p is."""

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        found = [] if self.p is None else [f"{p_words(self.p)} ({self.method})"]
        return f"{'alarm' if self.alarm else 'no alarm'}: {', '.join([*found, *filter(None, [self.reason])])}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # What a notebook shows; the repr has every digit.
        printer.text(str(self))


def sample_ratio(assigned: Sequence[int], weights: Sequence[float]) -> SampleRatio:
    """Users assigned to each arm, against the weights of the split (not necessarily adding up to 1).

    Pearson's chi-square with one degree of freedom less than arms with a weight. Where one of them expects fewer than 5
    users: exact binomials, of the two arms or (Bonferroni's smallest) of each arm against the others. An arm of weight
    0 takes no part, and any user in it is an alarm by itself.

    Raises InputError for counts and weights of different numbers, negative ones, or no positive weight.
    """
    _check(assigned, weights)
    stray = sum(count for count, weight in zip(assigned, weights, strict=True) if weight == 0)
    strayed = f"{stray} assigned to an arm that was to have none" if stray else None
    arms = [(count, weight) for count, weight in zip(assigned, weights, strict=True) if weight > 0]
    users, weight_sum = sum(count for count, _ in arms), math.fsum(weight for _, weight in arms)
    if len(arms) == 1 or users == 0:
        return SampleRatio(None, None, None, bool(stray), "none", strayed or (NO_SPLIT if users else NOBODY))
    shares = [weight / weight_sum for _, weight in arms]
    expected = [share * users for share in shares]
    statistic = math.fsum((count - meant) ** 2 / meant for (count, _), meant in zip(arms, expected, strict=True))
    df = len(arms) - 1
    if min(expected) >= FEW:
        p, method = chi_square_p(statistic, df), "chi-square/1"
    else:
        method = "binomial/1"
        each = [binomial_p(count, users, share) for (count, _), share in zip(arms, shares, strict=True)]
        p = each[0] if df == 1 else min(1.0, len(arms) * min(each))
    return SampleRatio(p, statistic, df, bool(stray) or p < ALARM_BELOW, method, strayed)


def sequential_sample_ratio(assigned: Sequence[int], weights: Sequence[float], *, prior: float = 100.0) -> SampleRatio:
    """The same for a look that is one of many: p holds at all looks together (join them by `running_p`).

    One over the Bayes factor of a Dirichlet around the split, `prior` users strong, against the split itself (Lindon &
    Malek 2022). `statistic` is the logarithm of that factor. Raises InputError as `sample_ratio`, and for a prior that
    is not positive.
    """
    _check(assigned, weights)
    if not 0 < prior < math.inf:
        raise InputError(f"a prior is so many users, more than 0, not {prior}")
    stray = sum(count for count, weight in zip(assigned, weights, strict=True) if weight == 0)
    strayed = f"{stray} assigned to an arm that was to have none" if stray else None
    arms = [(count, weight) for count, weight in zip(assigned, weights, strict=True) if weight > 0]
    users, weight_sum = sum(count for count, _ in arms), math.fsum(weight for _, weight in arms)
    if len(arms) == 1 or users == 0:
        return SampleRatio(None, None, None, bool(stray), "none", strayed or (NO_SPLIT if users else NOBODY))
    log_factor = math.lgamma(prior) - math.lgamma(prior + users)
    for count, weight in arms:
        share = weight / weight_sum
        log_factor += math.lgamma(prior * share + count) - math.lgamma(prior * share) - count * math.log(share)
    p = math.exp(min(0.0, -log_factor))
    return SampleRatio(p, log_factor, None, bool(stray) or p < ALARM_BELOW, "dirichlet-multinomial/1", strayed)


def coverage_by_arm(evaluated: Sequence[int], assigned: Sequence[int]) -> SampleRatio:
    """Whether the arms lost equal shares of those assigned: users evaluated, of users assigned, by arm.

    An arm whose users are evaluated more seldom compares those who are left. Pearson's chi-square of homogeneity, df
    arms - 1; with expected counts under 5 Fisher's exact test, of two arms or (Bonferroni's smallest) of each arm
    against the others. Arms without users take no part.

    Raises InputError for different numbers of arms, or more evaluated than assigned.
    """
    if len(evaluated) != len(assigned):
        raise InputError(f"{len(evaluated)} arms evaluated and {len(assigned)} assigned")
    if any(not 0 <= seen <= users for seen, users in zip(evaluated, assigned, strict=True)):
        raise InputError("of the users assigned to an arm, 0 to all are evaluated")
    arms = [(seen, users) for seen, users in zip(evaluated, assigned, strict=True) if users]
    seen_sum, users_sum = sum(seen for seen, _ in arms), sum(users for _, users in arms)
    if len(arms) < 2:
        return SampleRatio(None, None, None, False, "none", NO_SPLIT if arms else NOBODY)
    if seen_sum in {0, users_sum}:
        return SampleRatio(None, None, None, False, "none", NO_DIFFERENCE)
    share, df = seen_sum / users_sum, len(arms) - 1
    statistic = math.fsum((seen - share * users) ** 2 / (share * (1 - share) * users) for seen, users in arms)
    if min(users for _, users in arms) * min(share, 1 - share) >= FEW:
        p, method = chi_square_p(statistic, df), "chi-square/1"
    else:
        method = "fisher/1"
        each = [hypergeometric_p(seen, users, seen_sum, users_sum) for seen, users in arms]
        p = each[0] if df == 1 else min(1.0, len(arms) * min(each))
    return SampleRatio(p, statistic, df, p < ALARM_BELOW, method)


def _check(assigned: Sequence[int], weights: Sequence[float]) -> None:
    if len(assigned) != len(weights):
        raise InputError(f"{len(assigned)} arms were assigned and {len(weights)} have a weight")
    if any(not isinstance(number, Real) for number in (*assigned, *weights)):
        raise InputError("users assigned and weights are numbers")
    if any(not 0 <= number <= MOST for number in (*assigned, *weights)):
        raise InputError(f"users assigned and weights are 0 or more, and at most {MOST:.0e}")
    if not any(weights):
        raise InputError("a split needs an arm with a positive weight")
    if any(0 < weight < LEAST_SHARE * math.fsum(weights) for weight in weights):
        raise InputError(f"a weight is less than {LEAST_SHARE:.0e} of all: give that arm 0 where it was to have nobody")

"""How far do raters agree beyond chance? Kappa, Gwet's AC1 and AC2, Krippendorff's alpha, from one account of items.

Each is `1 - observed / expected` disagreement, and they differ in what they expect. All limits are made alike: what one
item adds to a coefficient (its linearised influence) gives its variance, over items or over clusters of items; that
variance gives the agreement an effective n; and Wilson's limits of the agreement at that n, divided by the expected
disagreement, are the coefficient's. So no limit is above 1, and none is 1 for certain because few items all agree. The
composition is ours (benchmarks/coverage_judged.md).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from evalr.estimates.interval import Interval, around, normal_quantile, t_quantile
from evalr.estimates.mean import mean_interval
from evalr.estimates.rate import wilson
from evalr.tallies.moments import Exact, Moments, exact

Weights = Sequence[Sequence[float]]
"""How much two categories agree: 1 on the diagonal, 0 where they are as far apart as can be."""
WeightName = Literal["identity", "linear", "quadratic", "ordinal"]

Item = Sequence[int]
"""How many raters gave it each category."""


_ROUNDING = 1e-24


class Coefficient(NamedTuple):
    """A coefficient, and what it takes to say how sure we are of it."""

    value: float
    agreement: Sequence[float]
    """Of each item, 0 to 1."""
    weights: Sequence[int]
    """Of each item in the mean agreement."""
    scale: float
    """`value = 1 - scale (1 - mean agreement)`: one over the disagreement that chance would bring."""
    influence: Sequence[float]
    """How far each item moves the value; they add up to 0."""
    least: float = -1.0
    """What no value is below."""


def weight_matrix(scale: Sequence[Hashable], name: WeightName) -> Weights:
    """Weights of the categories of a scale, which differ; numbers in order, unless the weights are the identity.

    `linear` and `quadratic` go by the distance between the categories' own numbers, `ordinal` by the number of pairs of
    categories between and at their ranks (Gwet 2014, chapter 3).
    """
    size = len(scale)
    numbers = [] if name == "identity" else [float(each) for each in scale if isinstance(each, int | float)]
    reach = numbers[-1] - numbers[0] if size > 1 and numbers else 1.0

    def weight(i: int, j: int) -> float:
        if i == j:
            return 1.0
        if name == "identity":
            return 0.0
        if name == "ordinal":
            return 1 - math.comb(abs(i - j) + 1, 2) / math.comb(size, 2)
        part = abs(numbers[i] - numbers[j]) / reach
        return 1 - part if name == "linear" else 1 - part * part

    return [[weight(i, j) for j in range(size)] for i in range(size)]


def kappa(pairs: Sequence[tuple[int, int]], weights: Weights) -> Coefficient | None:
    """Cohen's kappa of two raters' categories (Cohen 1960; weighted: Cohen 1968); None where one never varies.

    The influence is that of Fleiss, Cohen & Everitt 1969. A rater who never varies agrees as often as chance has it,
    whatever the other says: the 0 that the formula then gives says nothing.
    """
    n, size = len(pairs), len(weights)
    one, other = ([0] * size for _ in range(2))
    for i, j in pairs:
        one[i] += 1
        other[j] += 1
    if n == 0 or max(one) == n or max(other) == n:
        return None
    by_row = [_dot(row, other) / n for row in weights]
    by_column = [_dot(column, one) / n for column in zip(*weights, strict=True)]
    chance = _dot(by_row, one) / n
    agreement = [weights[i][j] for i, j in pairs]
    scale = 1 / (1 - chance)
    left = scale * (1 - _mean(agreement))
    center = 1 - left - chance * left
    influence = [scale * (weights[i][j] - left * (by_row[i] + by_column[j]) - center) / n for i, j in pairs]
    return Coefficient(1 - left, agreement, [1] * n, scale, influence)


def matthews(pairs: Sequence[tuple[int, int]]) -> Coefficient | None:
    """Matthews' correlation of two raters' verdicts, 0 or 1: Pearson's, whose influence is known; None as for kappa."""
    n = len(pairs)
    hits, others = sum(i for i, _ in pairs), sum(j for _, j in pairs)
    if hits in {0, n} or others in {0, n}:
        return None
    p, q = hits / n, others / n
    spread = math.sqrt(p * (1 - p)), math.sqrt(q * (1 - q))
    standard = [((i - p) / spread[0], (j - q) / spread[1]) for i, j in pairs]
    value = math.fsum(x * y for x, y in standard) / n
    # rounding of a correlation of 1 is no disagreement
    value = max(-1.0, min(1.0, value))
    agreement = [float(i == j) for i, j in pairs]
    missed = 1 - _mean(agreement)
    scale = (1 - value) / missed if missed else 1 / (p + q - 2 * p * q)
    influence = [(x * y - value / 2 * (x * x + y * y)) / n for x, y in standard]
    return Coefficient(value, agreement, [1] * n, scale, influence)


def gwet(items: Sequence[Item], weights: Weights) -> Coefficient | None:
    """Gwet's AC1, or AC2 with weights: chance agreement of raters who are unsure of some items (Gwet 2008, 2014).

    Items have a rating or more. Those with one take part in how often each category is given, not in the agreement.
    None without an item that two raters rated, or with a single category. AC2 may be below -1, where raters are as far
    apart as can be and chance would have them near.
    """
    n, size = len(items), len(weights)
    paired = sum(sum(item) > 1 for item in items)
    if not paired or size < 2:
        return None
    shares = [math.fsum(item[k] / sum(item) for item in items) / n for k in range(size)]
    factor = math.fsum(map(math.fsum, weights)) / (size * (size - 1))
    chance = factor * math.fsum(share * (1 - share) for share in shares)
    scale = 1 / (1 - chance)
    agreement = [_agreement(item, weights) if sum(item) > 1 else 0.0 for item in items]
    taking_part = [int(sum(item) > 1) for item in items]
    left = scale * (1 - math.fsum(agreement) / paired)
    influence = []
    for item, agreed, paired_here in zip(items, agreement, taking_part, strict=True):
        own = factor * math.fsum(count / sum(item) * (1 - share) for count, share in zip(item, shares, strict=True))
        gained = paired_here * n / paired * scale * (agreed - chance)
        influence.append((gained - (1 - left) - 2 * left * scale * (own - chance)) / n)
    return Coefficient(1 - left, agreement, taking_part, scale, influence, 1 - scale)


def alpha(items: Sequence[Item], weights: Weights) -> Coefficient | None:
    """Krippendorff's alpha, of any number of raters, some of whom may be missing (Krippendorff 2011).

    Items have two ratings or more; one weighs as much as it has ratings. The influence takes the weights for known, and
    leaves out the factor for small samples, which widens (Gwet 2014, chapter 6). None where all ratings are alike.
    """
    ratings = [sum(item) for item in items]
    total = sum(ratings)
    totals = [sum(item[k] for item in items) for k in range(len(weights))]
    if max(totals, default=0) == total:
        return None
    by_category = [_dot(row, totals) / total for row in weights]
    chance = _dot(by_category, totals) / total
    agreement = [_agreement(item, weights) for item in items]
    observed = _dot(ratings, agreement) / total
    scale = 1 / (1 - chance)
    left = scale * (1 - observed)
    influence = [
        (count * (agreed - observed) - 2 * left * (_dot(by_category, item) - chance * count)) * scale / total
        for item, count, agreed in zip(items, ratings, agreement, strict=True)
    ]
    small = 1 - 1 / total
    return Coefficient(1 - small * left, agreement, ratings, small * scale, influence)


def coefficient_interval(found: Coefficient, clusters: Sequence[Hashable], *, level: float, method: str) -> Interval:
    """The interval of a coefficient over the clusters of its items: Wilson's of its agreement, at its effective n.

    The agreement has an effective n of its own (`mean_interval`); the coefficient's is that, divided by how much more
    its variance is than what the agreement alone explains. Where no item moves it (all agree, or none), the agreement's
    own. A single cluster of several items has no interval.
    """
    sums: dict[Hashable, tuple[Exact, int]] = {}
    moved: dict[Hashable, list[float]] = {}
    for cluster, agreed, weight, influence in zip(
        clusters, found.agreement, found.weights, found.influence, strict=True
    ):
        moved.setdefault(cluster, []).append(influence)
        y, m = sums.get(cluster, (0, 0))
        sums[cluster] = (y + weight * exact(agreed), m + weight)
    unit = math.gcd(*found.weights)
    moments = Moments.of_clusters((Fraction(y, unit), m // unit, m // unit) for y, m in sums.values())
    of_agreement = mean_interval(moments, level=level, bounds=(0, 1))
    if of_agreement.effective_n is None or moments.ratio is None:
        return of_agreement
    squares = math.fsum(math.fsum(each) ** 2 for each in moved.values())
    explained = found.scale**2 * float(moments.squares_around(moments.ratio))
    variance = squares * len(moved) / (len(moved) - 1) if len(moved) > 1 else None
    n = of_agreement.effective_n
    # far above what rounding leaves of none
    if min(squares, explained) > _ROUNDING * found.scale**2:
        n *= explained / squares
    q = normal_quantile(level) if moments.singletons() else t_quantile(level, moments.clusters - 1)
    limits = wilson(float(moments.ratio), n, q)
    low, high = (1 - found.scale * (1 - limit) for limit in limits)
    named = f"{method}-{of_agreement.method}"
    return Interval(
        *around(low, found.value, high, floor=found.least, ceiling=1.0), variance, named, n, of_agreement.reason
    )


def ordinal_weights(items: Sequence[Item], size: int) -> Weights:
    """Of Krippendorff's ordinal metric: how many ratings lie between two categories, half of each category's own."""
    totals = [sum(item[k] for item in items) for k in range(size)]

    def apart(i: int, j: int) -> float:
        low, high = min(i, j), max(i, j)
        return (sum(totals[low : high + 1]) - (totals[low] + totals[high]) / 2) ** 2 if low < high else 0.0

    widest = max((apart(i, j) for i in range(size) for j in range(size)), default=0.0) or 1.0
    return [[1 - apart(i, j) / widest for j in range(size)] for i in range(size)]


def _agreement(item: Item, weights: Weights) -> float:
    """Of two raters of the item, drawn without replacement."""
    raters = sum(item)
    rows = enumerate(zip(item, weights, strict=True))
    pairs = math.fsum(count * (_dot(row, item) - row[k]) for k, (count, row) in rows if count)
    return pairs / (raters * (raters - 1))


def _dot(one: Iterable[float], other: Iterable[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)

"""What would people have said of all that a judge read? Its rate or mean, corrected for its errors by their labels.

A judge's own rate is no measurement: its interval is of what the judge says, and may hold the truth in none of a
hundred runs (benchmarks/coverage_judged.md). Which correction is right depends on where the labels are from:

- `double_sampling`: verdicts of yes or no, some of them labelled, drawn at random.
- `ppi_plus_plus`: scores, some of them labelled, drawn at random.
- `rogan_gladen`: labels of other cases, as where a judge was checked once and is used elsewhere.

Labels count only where they are of the same version of the judge (model and prompt), and were not used to make it: on
cases that it was tuned with, a judge looks better than it is.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

from evalr.errors import InputError
from evalr.estimates.compare import on_t
from evalr.estimates.interval import (
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
from evalr.estimates.rate import rate_interval
from evalr.tallies.moments import Exact, Moments, exact
from evalr.tallies.shared import SharedMoments

NOTHING_LABELLED = "nobody labelled any of it, so the judge's errors are not known"
ALL_LABELLED = "all of it is labelled"
ALWAYS_THE_SAME = "the judge always says the same"
SAYS_NOTHING = "the judge's scores do not rise with people's"
PASSES_UNLABELLED = "nothing that the judge passed is labelled"
FAILS_UNLABELLED = "nothing that the judge failed is labelled"
ONE_USERS_LABELS = "all labels of what the judge passed, or of what it failed, are of one cluster"
NO_MISSES = "judge and people differ by the same in every label, and no bounds say how far the next may be"
OUT_OF_BOUNDS = "the corrected mean lies outside its bounds"
ONE_CLUSTER = "all labelled rows, or all others, are of one cluster"
NO_ERRORS_KNOWN = "the judge's errors take labels of some that people passed, and of some that they failed"
DRAWN_BY_VERDICT = "labels were drawn by the judge's verdict: alone they are of no rate"
LABELS_ELSEWHERE = "labels are of other cases"
NO_BETTER_THAN_CHANCE = "the judge is no better than chance: it passes what people fail as often as what they pass"
PERHAPS_CHANCE = "too few labels to tell the judge from chance"
IMPOSSIBLE = (
    "the judge passes {judged:.1%} here, outside of the {least:.1%} to {most:.1%} that its errors allow: they are "
    "known too roughly, or other here"
)

Status = Literal["ok", "undefined", "degenerate", "inconsistent"]


class Part(NamedTuple):
    """A number by itself, and how sure we are of it."""

    value: float | None
    interval: Interval


class Corrected(NamedTuple):
    """What people would have said of everything, with what judge and labels say without each other beside it."""

    value: float | None
    """None where it is not defined; `interval.reason` says why."""
    interval: Interval
    """With a reason beside limits where they are those of the labels alone."""
    status: Status
    """`degenerate`: a value without an interval; `inconsistent`: no rate makes such labels and verdicts likely."""
    labels_only: Part
    judge_only: Part
    """Of what the judge says, whatever people would."""
    slope: float | None = None
    """How much one more of the judge's is worth; None where the judge is not used."""


# --- verdicts of yes or no -----------------------------------------------------------------------------------------


class Counts(NamedTuple):
    """Rows of one cluster (a user), by what the judge and people said."""

    passed: int = 0
    """Rows that the judge passed, labelled or not."""
    failed: int = 0
    passed_labelled: int = 0
    passed_hits: int = 0
    """Labelled rows that the judge passed, and people too."""
    failed_labelled: int = 0
    failed_hits: int = 0
    """Labelled rows that the judge failed, and people passed."""


class DoubleSample(NamedTuple):
    """Exact sums over clusters of what was judged, and of its labelled part: what `double_sampling` needs.

    Samples that share no cluster add up by `merge`.
    """

    judged: Moments
    """Passes by the judge, of all rows."""
    passed: Moments
    """Passes by people, of labelled rows that the judge passed: its positive predictive value."""
    failed: Moments
    """Passes by people, of labelled rows that the judge failed: one minus its negative predictive value."""
    labelled: Moments
    """Passes by people, of labelled rows."""
    judged_passed: SharedMoments
    judged_failed: SharedMoments
    passed_failed: SharedMoments

    @classmethod
    def of_clusters(cls, clusters: Iterable[Counts]) -> DoubleSample:
        """Of the counts of each cluster. Raises InputError for counts that are negative or more than they are of."""
        known = [_checked(each) for each in clusters]
        judged = [(each.passed, each.passed + each.failed) for each in known]
        passed = [(each.passed_hits, each.passed_labelled) for each in known]
        failed = [(each.failed_hits, each.failed_labelled) for each in known]
        labelled = [(y1 + y2, m1 + m2) for (y1, m1), (y2, m2) in zip(passed, failed, strict=True)]
        return cls(
            _moments(judged),
            _moments(passed),
            _moments(failed),
            _moments(labelled),
            SharedMoments.of_clusters(zip(judged, passed, strict=True)),
            SharedMoments.of_clusters(zip(judged, failed, strict=True)),
            SharedMoments.of_clusters(zip(passed, failed, strict=True)),
        )

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[Hashable | None, bool, bool | None]]) -> DoubleSample:
        """Of rows: cluster (None is the row itself), the judge's verdict, people's (None where there is no label)."""
        clusters: dict[Hashable, list[int]] = {}
        for number, (cluster, verdict, label) in enumerate(rows):
            counts = clusters.setdefault((number, None) if cluster is None else (cluster,), [0] * 6)
            counts[0 if verdict else 1] += 1
            if label is not None:
                place = 2 if verdict else 4
                counts[place] += 1
                counts[place + 1] += bool(label)
        return cls.of_clusters(Counts(*counts) for counts in clusters.values())

    def merge(self, other: DoubleSample) -> DoubleSample:
        """The sums of both, which must not share a cluster."""
        return DoubleSample(
            self.judged.merge(other.judged),
            self.passed.merge(other.passed),
            self.failed.merge(other.failed),
            self.labelled.merge(other.labelled),
            self.judged_passed.merge(other.judged_passed),
            self.judged_failed.merge(other.judged_failed),
            self.passed_failed.merge(other.passed_failed),
        )


def double_sampling(sample: DoubleSample, *, level: float = 0.95, by_verdict: bool = False) -> Corrected:
    """The share that people would pass: `q PPV + (1 - q) (1 - NPV)`, where the judge passes q of all rows.

    Tenenbein 1970; the same number as the regression estimator of people's verdict on the judge's, whose slope is
    `PPV - (1 - NPV)`. Limits by MOVER (Zou & Donner 2008) over the default intervals of the three shares, Wilson's or
    those at the effective n: distances from the shares, times q, 1 - q and the slope, are squared and added. That is
    our composition (benchmarks/coverage_judged.md).

    Users with several rows: the three shares are correlated through users who are in several of them, so twice the
    products of their distances are added, times their cluster-robust correlations where those are positive.

    The labelled rows must be a random part of all. With `by_verdict` a random part of what the judge passed and one of
    what it failed, in whatever proportion; labels alone are then of no rate.

    Labels alone, with the reason, where all rows are labelled, the judge always says the same, or nothing that it
    passed (or failed) is labelled; in the last case no value where labels were drawn by verdict. Raises InputError for
    a level outside 0..1.
    """
    tail(level)
    judge = _part(sample.judged, level)
    labels = _part(sample.labelled, level)
    reason = _why_not_double(sample)
    if by_verdict and reason not in {ALL_LABELLED, ALWAYS_THE_SAME}:
        labels = Part(None, no_interval(DRAWN_BY_VERDICT))
    if reason:
        return _alone(labels, judge, reason)
    q, ppv, missed = (part.ratio or Fraction(0) for part in (sample.judged, sample.passed, sample.failed))
    slope = ppv - missed
    value = q * ppv + (1 - q) * missed
    parts = [rate_interval(part, level=level) for part in (sample.judged, sample.passed, sample.failed)]
    if any(part.low is None for part in parts):
        if by_verdict:
            return Corrected(float(value), no_interval(SINGLE_CLUSTER), "degenerate", labels, judge, float(slope))
        return _alone(labels, judge, ONE_USERS_LABELS)
    slopes = (float(slope), float(q), float(1 - q))
    distances = [
        _distances(float(share), part, weight)
        for share, part, weight in zip((q, ppv, missed), parts, slopes, strict=True)
    ]
    correlations = {
        (i, j): _widening(shared, first, second, slopes[i] * slopes[j])
        for (i, j), shared, first, second in _pairs(sample)
    }
    down, up = (_together([each[side] for each in distances], correlations) for side in (0, 1))
    interval = Interval(
        *around(float(value) - down, float(value), float(value) + up, floor=0.0, ceiling=1.0),
        _variance(sample, slopes),
        _joint("double-sampling-mover", parts, any(correlations.values())),
        None,
        _reason(parts),
    )
    return Corrected(float(value), interval, "ok", labels, judge, float(slope))


def _why_not_double(sample: DoubleSample) -> str | None:
    judged, labelled = sample.judged, sample.labelled
    if not judged.m:
        return NOTHING_COUNTED
    if not labelled.m:
        return NOTHING_LABELLED
    if judged.m == labelled.m:
        return ALL_LABELLED
    if judged.y in {0, judged.m}:
        return ALWAYS_THE_SAME
    if not sample.passed.m:
        return PASSES_UNLABELLED
    return None if sample.failed.m else FAILS_UNLABELLED


def _pairs(sample: DoubleSample) -> list[tuple[tuple[int, int], SharedMoments, Moments, Moments]]:
    """Two of the three shares each, by number: judged, passed, failed."""
    return [
        ((0, 1), sample.judged_passed, sample.judged, sample.passed),
        ((0, 2), sample.judged_failed, sample.judged, sample.failed),
        ((1, 2), sample.passed_failed, sample.passed, sample.failed),
    ]


def _variance(sample: DoubleSample, weights: Sequence[float]) -> float:
    """As measured: Tenenbein's where rows are independent, else cluster-robust (CR1 of each share)."""
    shares = (sample.judged, sample.passed, sample.failed)
    variances = [
        float(share.ratio * (1 - share.ratio) / share.m)
        if share.ratio is not None and share.singletons()
        else float(share.robust_variance() or 0)
        for share in shares
    ]
    squares = math.fsum(weight * weight * each for weight, each in zip(weights, variances, strict=True))
    products = (
        weights[i] * weights[j] * shared.robust_covariance(first, second)
        for (i, j), shared, first, second in _pairs(sample)
    )
    return max(0.0, squares + 2 * math.fsum(products))


def _moments(sums: Iterable[tuple[Exact, int]]) -> Moments:
    return Moments.of_clusters((y, m, m) for y, m in sums)


def _part(moments: Moments, level: float) -> Part:
    value = None if moments.ratio is None else float(moments.ratio)
    return Part(value, rate_interval(moments, level=level))


def _alone(labels: Part, judge: Part, reason: str) -> Corrected:
    """What the labels say, for want of a way to use the judge."""
    if labels.value is None:
        return Corrected(None, no_interval(reason), "undefined", labels, judge)
    told = [f"{reason}: labels alone", labels.interval.reason]
    interval = labels.interval._replace(reason="; ".join(filter(None, told)))
    return Corrected(labels.value, interval, "degenerate" if interval.low is None else "ok", labels, judge)


def _checked(counts: Counts) -> Counts:
    passed, failed = (counts.passed, counts.passed_labelled, counts.passed_hits), counts[1:2] + counts[4:]
    for rows, labelled, hits in (passed, failed):
        if not 0 <= hits <= labelled <= rows:
            raise InputError(
                f"of {rows} rows judged, {labelled} labelled and {hits} passed by people: each is of the former"
            )
    return counts


# --- sums by MOVER -------------------------------------------------------------------------------------------------


def _distances(value: float, part: Interval, weight: float) -> tuple[float, float]:
    """How far weight * value may be below, and above, what it is."""
    down = value - (value if part.low is None else part.low)
    up = (value if part.high is None else part.high) - value
    return (weight * down, weight * up) if weight >= 0 else (-weight * up, -weight * down)


def _together(distances: Sequence[float], correlations: Mapping[tuple[int, int], float]) -> float:
    squares = math.fsum(each * each for each in distances)
    products = math.fsum(r * distances[i] * distances[j] for (i, j), r in correlations.items())
    return math.sqrt(squares + 2 * products)


def _widening(shared: SharedMoments, first: Moments, second: Moments, sign: float = 1.0) -> float:
    """The cluster-robust correlation of two numbers that are added (subtracted: a negative `sign`), if it widens.

    One that would narrow the sum is not trusted: with few clusters it is hardly known.
    """
    variances = (first.robust_variance() or 0) * (second.robust_variance() or 0)
    if not variances:
        return 0.0
    correlation = math.copysign(1.0, sign) * shared.robust_covariance(first, second) / math.sqrt(variances)
    return min(1.0, max(0.0, correlation))


def _joint(name: str, parts: Sequence[Interval], correlated: bool) -> str:
    names = "+".join(dict.fromkeys(part.method.removesuffix("/1") for part in parts))
    return f"{name}-{names}-correlated/1" if correlated else f"{name}-{names}/1"


def _reason(parts: Sequence[Interval]) -> str | None:
    return next((part.reason for part in parts if part.reason), None)


# --- scores --------------------------------------------------------------------------------------------------------

Scored = tuple[Hashable | None, float, float | None]
"""A row: its cluster (None where it is one by itself), the judge's score, and people's where there is one."""


def ppi_plus_plus(
    rows: Iterable[Scored],
    *,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    slope: float | None = None,
) -> Corrected:
    """The mean score that people would give: `slope * mean judged + mean(label - slope * judged)`.

    The first mean is of rows without a label, the second of those with one: prediction-powered inference with power
    tuning (Angelopoulos, Duchi & Zrnic 2023). The slope is `cov / ((1 + n / N) var)` between 0 and 1, of n labelled
    rows and N others, where the covariance of judge and label is over the labelled rows and the judge's variance over
    all; or the one that is given. It is found over rows, whatever their clusters: at any slope the sum is right on
    average, and a judge who always says the same gets 0.

    With bounds: MOVER over the bounded intervals of the two means (`mean_interval`), with their correlation through
    clusters with rows of both where it is positive, as in `double_sampling`; our composition.

    Without: Student's t on the cluster-robust variances (CR1) of the two means and their covariance, with
    Satterthwaite's degrees of freedom over clusters. With skewed scores and fewer than a hundred labels it is too
    narrow (benchmarks/coverage_judged.md), so give the bounds where there are some.

    The labelled rows must be a random part of all. Labels alone, with the reason, where the slope is 0, all rows are
    labelled, or the sum leaves the bounds or shows no variation. Raises InputError for scores that are not finite or
    out of bounds, a slope outside 0..1, or as `mean_interval`.
    """
    tail(level)
    if slope is not None and not 0 <= slope <= 1:
        raise InputError(f"a slope lies between 0 and 1, not {slope}")
    clusters: dict[Hashable, _Sums] = {}
    for number, (cluster, judged, label) in enumerate(rows):
        _check_scores(number, judged, label, bounds)
        sums = clusters.setdefault((number, None) if cluster is None else (cluster,), _Sums())
        sums.add(exact(judged), None if label is None else exact(label))
    return _powered(list(clusters.values()), bounds, level, slope)


class _Sums:
    """Sums over the rows of a cluster; f is the judge's score and y the label."""

    __slots__ = ("f", "ff", "labelled_f", "labelled_fy", "labelled_n", "labelled_y", "n")

    def __init__(self) -> None:
        self.n = self.labelled_n = 0
        self.f: Exact = 0
        self.ff: Exact = 0
        self.labelled_f: Exact = 0
        self.labelled_y: Exact = 0
        self.labelled_fy: Exact = 0

    def add(self, f: Exact, y: Exact | None) -> None:
        self.n += 1
        self.f += f
        self.ff += f * f
        if y is not None:
            self.labelled_n += 1
            self.labelled_f += f
            self.labelled_y += y
            self.labelled_fy += f * y


def _powered(
    clusters: Sequence[_Sums], bounds: tuple[float, float] | None, level: float, slope: float | None
) -> Corrected:
    def mean(moments: Moments) -> Part:
        value = None if moments.ratio is None else float(moments.ratio)
        return Part(value, mean_interval(moments, level=level, bounds=bounds))

    judge = mean(Moments.of_clusters((each.f, each.n, each.n) for each in clusters))
    labels = mean(Moments.of_clusters((each.labelled_y, each.labelled_n, each.labelled_n) for each in clusters))
    n, labelled = sum(each.n for each in clusters), sum(each.labelled_n for each in clusters)
    if not labelled:
        return _alone(labels, judge, NOTHING_LABELLED if n else NOTHING_COUNTED)
    if n == labelled:
        return _alone(labels, judge, ALL_LABELLED)
    tuned, reason = _tuned(clusters, n, labelled)
    weight = exact(tuned if slope is None else slope)
    if not weight:
        return _alone(labels, judge, reason or SAYS_NOTHING)
    left = [(each.labelled_y - weight * each.labelled_f, each.labelled_n) for each in clusters]
    others = [(each.f - each.labelled_f, each.n - each.labelled_n) for each in clusters]
    shared = SharedMoments.of_clusters(zip(left, others, strict=True))
    two = _Two(_moments(left), _moments(others), shared, Fraction(weight))
    interval = _sum_on_t(two, level) if bounds is None else _sum_within(two, bounds, level)
    if interval.low is None:
        return _alone(labels, judge, interval.reason or SINGLE_CLUSTER)
    if bounds is not None and not bounds[0] <= two.value <= bounds[1]:
        return _alone(labels, judge, OUT_OF_BOUNDS)
    return Corrected(two.value, interval, "ok", labels, judge, float(weight))


class _Two(NamedTuple):
    """What the slope leaves of the labels, and the judge's scores of the other rows."""

    left: Moments
    others: Moments
    shared: SharedMoments
    slope: Fraction

    @property
    def value(self) -> float:
        return float((self.left.ratio or 0) + self.slope * (self.others.ratio or 0))

    @property
    def covariance(self) -> float:
        return float(self.slope) * self.shared.robust_covariance(self.left, self.others)


def _sum_on_t(two: _Two, level: float) -> Interval:
    of_left, of_others = two.left.robust_variance(), two.others.robust_variance()
    if of_left is None or of_others is None:
        return no_interval(ONE_CLUSTER)
    if of_left == 0:
        return no_interval(NO_MISSES)
    variances = float(of_left), float(two.slope**2 * of_others)
    counts = (two.left.clusters, two.others.clusters, two.shared.clusters)
    # a sum is the difference from the mirror image
    found = on_t(two.value, variances, -two.covariance, counts, level, "ppi++-cr1-t/1").interval
    return found if found.low is not None else no_interval(NO_MISSES)


def _sum_within(two: _Two, bounds: tuple[float, float], level: float) -> Interval:
    low, high = exact(bounds[0]), exact(bounds[1])
    least, most = low - two.slope * high, high - two.slope * low
    # as shares of the way between its exact bounds, which as floats might leave it outside
    of_left = mean_interval(two.left.rescaled(least, most), level=level, bounds=(0, 1))
    of_others = mean_interval(two.others, level=level, bounds=bounds)
    if of_left.low is None or of_others.low is None:
        return no_interval(ONE_CLUSTER)
    left = float(((two.left.ratio or 0) - least) / (most - least))
    slope, width = float(two.slope), float(most - least)
    distances = [_distances(left, of_left, width), _distances(float(two.others.ratio or 0), of_others, slope)]
    correlation = _widening(two.shared, two.left, two.others)
    down, up = (_together([each[side] for each in distances], {(0, 1): correlation}) for side in (0, 1))
    variance = width**2 * (of_left.variance or 0.0) + slope**2 * (of_others.variance or 0.0) + 2 * two.covariance
    parts = (of_left, of_others)
    limits = around(two.value - down, two.value, two.value + up, floor=bounds[0], ceiling=bounds[1])
    return Interval(*limits, max(0.0, variance), _joint("ppi++-mover", parts, bool(correlation)), None, _reason(parts))


def _tuned(clusters: Sequence[_Sums], n: int, labelled: int) -> tuple[float, str | None]:
    f = sum(each.f for each in clusters)
    variance = (sum(each.ff for each in clusters) - Fraction(f) * f / n) / (n - 1)
    if not variance:
        return 0.0, ALWAYS_THE_SAME
    f, y = sum(each.labelled_f for each in clusters), sum(each.labelled_y for each in clusters)
    covariance = (sum(each.labelled_fy for each in clusters) - Fraction(f) * y / labelled) / labelled
    slope = covariance / ((1 + Fraction(labelled, n - labelled)) * variance)
    return float(min(max(slope, Fraction(0)), Fraction(1))), None


def _check_scores(number: int, judged: float, label: float | None, bounds: tuple[float, float] | None) -> None:
    for score in (judged,) if label is None else (judged, label):
        if not math.isfinite(score):
            raise InputError(f"row {number}: scores are finite numbers, not {score}")
        if bounds is not None and not bounds[0] <= score <= bounds[1]:
            raise InputError(f"row {number}: a score of {score} lies outside its bounds, {bounds[0]} to {bounds[1]}")


# --- labels of other cases -----------------------------------------------------------------------------------------


def rogan_gladen(judged: Moments, sensitivity: Moments, specificity: Moments, *, level: float = 0.95) -> Corrected:
    """The share that people would pass, from a judge's errors on other cases: `(q + sp - 1) / (se + sp - 1)`.

    Rogan & Gladen 1978, with the interval of Lang & Reiczigel 2014. `judged` counts the judge's passes of all it read,
    `sensitivity` those of what people passed, `specificity` its fails of what people failed. That the errors are the
    same here as there is assumed. Where the labelled cases are a random part of those judged, `double_sampling` is
    narrower and always defined. Clustered counts enter at their effective n (`rate_interval`) with Student's t on the
    fewest clusters less one, which is our composition.

    No value: `undefined` where se + sp is 1 or less; `inconsistent` where the value is outside 0..1, which no limits
    can repair. Raises InputError as `rate_interval` does.
    """
    shares = (judged, sensitivity, specificity)
    parts = [rate_interval(each, level=level) for each in shares]
    judge = Part(None if judged.ratio is None else float(judged.ratio), parts[0])
    labels = Part(None, no_interval(LABELS_ELSEWHERE))

    def none(status: Status, reason: str) -> Corrected:
        return Corrected(None, no_interval(reason), status, labels, judge)

    q, se, sp = (each.ratio for each in shares)
    if q is None:
        return none("undefined", NOTHING_COUNTED)
    if se is None or sp is None:
        return none("undefined", NO_ERRORS_KNOWN)
    if se + sp <= 1:
        return none("undefined", NO_BETTER_THAN_CHANCE)
    value = (q + sp - 1) / (se + sp - 1)
    if not 0 <= value <= 1:
        told = IMPOSSIBLE.format(judged=float(q), least=float(1 - sp), most=float(se))
        return none("inconsistent", told)
    interval = _lang_reiczigel(float(value), shares, parts, level)
    status: Status = "degenerate" if interval.low is None else "ok"
    return Corrected(float(value), interval, status, labels, judge, float(1 / (se + sp - 1)))


def _lang_reiczigel(value: float, shares: Sequence[Moments], parts: Sequence[Interval], level: float) -> Interval:
    sizes = [part.effective_n for part in parts]
    if sizes[0] is None or sizes[1] is None or sizes[2] is None:
        return no_interval(SINGLE_CLUSTER)
    clustered = [each.clusters for each in shares if not each.singletons()]
    z = t_quantile(level, min(clustered) - 1) if clustered else normal_quantile(level)
    q, se, sp = (float(each.ratio or 0) for each in shares)
    variances = [part.variance or 0.0 for part in parts]
    n, n_se, n_sp = sizes[0] + z * z, sizes[1] + 2, sizes[2] + 2
    youden = se + sp - 1
    variance = (variances[0] + value * value * variances[1] + (1 - value) ** 2 * variances[2]) / youden**2
    q = (sizes[0] * q + z * z / 2) / n
    se, sp = (sizes[1] * se + 1) / n_se, (sizes[2] * sp + 1) / n_sp
    youden = se + sp - 1
    if youden <= 0:
        return no_interval(PERHAPS_CHANCE, variance)
    center = (q + sp - 1) / youden
    of_se, of_sp = se * (1 - se) / n_se, sp * (1 - sp) / n_sp
    shift = 2 * z * z * (center * of_se - (1 - center) * of_sp)
    half = z * math.sqrt(q * (1 - q) / n + center * center * of_se + (1 - center) ** 2 * of_sp) / youden
    limits = around(center + shift - half, value, center + shift + half, floor=0.0, ceiling=1.0)
    method = "lang-reiczigel-effective-n/1" if clustered else "lang-reiczigel/1"
    return Interval(*limits, variance, method, None)

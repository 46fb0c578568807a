"""How far apart two runs are over pairs of examples, and how sure that is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from evalr.estimates.compare import Difference, mean_difference, rate_difference
from evalr.estimates.contest import net_win, paired_difference
from evalr.estimates.interval import around
from evalr.runs.pairing import Pair
from evalr.summaries import Mean, Rate, Summary
from evalr.tallies.contests import ContestMoments
from evalr.tallies.moments import Exact, Moments, exact
from evalr.tallies.shared import SharedMoments


class Found(NamedTuple):
    """A difference, the values that it is of, and how many pairs went which way. A ratio has no bounds yet."""

    difference: Difference
    before: float | None
    after: float | None
    counts: Mapping[str, float]
    gained: int | None = None
    lost: int | None = None
    ratio: bool = False


def paired(summary: Summary[Any], pairs: list[Pair], level: float) -> Found:
    """The difference of a summary over pairs, after minus before, as `compare` says for each kind."""
    total = sum(pair.weight for pair in pairs)
    if _is_ratio(summary):
        return _of_ratios(summary, pairs, level)
    before = float(sum(pair.weight * pair.before.value for pair in pairs) / Fraction(total)) if total else None
    after = float(sum(pair.weight * pair.after.value for pair in pairs) / Fraction(total)) if total else None
    if isinstance(summary, Rate) and all(_is_single(pair) for pair in pairs):
        contest = _contest(pairs)
        won, lost = int(contest.wins), int(contest.losses)
        counts = {"gained": won, "lost": lost, "same": int(contest.ties)}
        return Found(net_win(contest, level=level), before, after, counts, won, lost)
    counts = {
        "higher": sum(pair.change > 0 for pair in pairs),
        "lower": sum(pair.change < 0 for pair in pairs),
        "same": sum(pair.change == 0 for pair in pairs),
    }
    if isinstance(summary, Rate):
        contest = _contest(pairs, times=1 if summary.fold else _repeats(pairs))
        return Found(net_win(contest, level=level), before, after, counts)
    sums: defaultdict[Hashable, list[Any]] = defaultdict(lambda: [0, 0, 0])
    for pair in pairs:
        cell = sums[pair.cluster]
        cell[0] += pair.weight * pair.change
        cell[1] += pair.weight
        cell[2] += 1
    moments = Moments.of_clusters((y, m, rows) for y, m, rows in sums.values())
    return Found(_of_means(summary, moments, level), before, after, counts)


def _of_means(summary: Summary[Any], moments: Moments, level: float) -> Difference:
    bounds = summary.bounds if isinstance(summary, Mean) else None
    if bounds is None:
        return paired_difference(moments, level=level)
    width = bounds[1] - bounds[0]
    found = _paired_t(moments, (-width, width), level)
    return found or paired_difference(moments, bounds=(-width, width), level=level)


def _paired_t(moments: Moments, bounds: tuple[float, float], level: float) -> Difference | None:
    """The paired t over clusters, within bounds; None where it has no limits, as of clusters that all differ alike."""
    found = paired_difference(moments, level=level)
    low, high = found.interval.low, found.interval.high
    if found.value is None or low is None or high is None:
        return None
    limits = around(low, found.value, high, floor=bounds[0], ceiling=bounds[1])
    return found._replace(interval=found.interval._replace(low=limits[0], high=limits[1]))


def _of_ratios(summary: Summary[Any], pairs: list[Pair], level: float) -> Found:
    """The pooled ratios of two runs, and the interval over the clusters that both have."""
    sums: defaultdict[Hashable, list[list[Any]]] = defaultdict(lambda: [[0, 0, 0], [0, 0, 0]])
    for pair in pairs:
        for cell, side in zip(sums[pair.cluster], (pair.after, pair.before), strict=True):
            cell[0] += side.y
            cell[1] += side.m
            cell[2] += 1
    treatment, control = (Moments.of_clusters(tuple(each[at]) for each in sums.values()) for at in (0, 1))
    shared = SharedMoments.of_clusters(((a[0], a[1]), (b[0], b[1])) for a, b in sums.values())
    if isinstance(summary, Rate):
        found = rate_difference(treatment, control, shared=shared, level=level)
    else:
        bounds = summary.bounds if isinstance(summary, Mean) else None
        found = mean_difference(treatment, control, bounds=bounds, shared=shared, level=level)
    ratios = [None if each.ratio is None else float(each.ratio) for each in (control, treatment)]
    counts = {"total before": float(control.m), "total after": float(treatment.m)}
    return Found(found, ratios[0], ratios[1], counts, ratio=True)


def _is_ratio(summary: Summary[Any]) -> bool:
    if summary.fold is not None:
        return False
    return (isinstance(summary, Rate) and summary.total is not None) or (
        isinstance(summary, Mean) and summary.weight is not None
    )


def _is_single(pair: Pair) -> bool:
    """Whether it is one hit or miss against another."""
    return pair.weight == 1 and pair.before.value in (0, 1) and pair.after.value in (0, 1)


def _contest(pairs: list[Pair], *, times: Exact = 1) -> ContestMoments:
    """What was gained, stayed the same and was lost, by cluster, where each pair counts `times`.

    A pair whose share rose by a third counts a third of that as gained. Sampling weights are scaled to one on average.
    """
    scale = exact(Fraction(times) * len(pairs) / (sum(pair.weight for pair in pairs) or 1))
    sums: defaultdict[Hashable, list[Exact]] = defaultdict(lambda: [0, 0, 0])
    for pair in pairs:
        cell = sums[pair.cluster]
        weight, change = pair.weight * scale, exact(pair.change)
        won, lost = max(change, 0), max(-change, 0)
        for place, part in enumerate((won, 1 - won - lost, lost)):
            cell[place] += weight * part
    return ContestMoments.of_clusters((won, same, lost) for won, same, lost in sums.values())


def _repeats(pairs: list[Pair]) -> Exact:
    """How often an example was asked, on average over both runs."""
    sides = [side for pair in pairs for side in (pair.before, pair.after)]
    asked = sum(Fraction(side.m) / exact(side.about.weight or 1) for side in sides)
    return Fraction(asked) / len(sides) if sides else 1

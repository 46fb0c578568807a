"""Comparing two runs: the same examples in both, paired by their ids."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from evalr.errors import InputError, MixedVersionsError
from evalr.estimates.compare import Difference, mean_difference, rate_difference
from evalr.estimates.contest import net_win, paired_difference
from evalr.estimates.estimate import Estimate, Status
from evalr.estimates.interval import around
from evalr.estimates.many import benjamini_hochberg, holm
from evalr.inputs import About
from evalr.labels.examples import GROUP
from evalr.quoting import quoted
from evalr.runs.comparison import Comparison, Correction, PairedDifference
from evalr.runs.experiments import Experiment
from evalr.summaries import Key, Mean, Rate, Summary
from evalr.summaries.keys import cluster_reader
from evalr.summaries.summary import LOW_CONFIDENCE_UNDER
from evalr.tallies.contests import ContestMoments
from evalr.tallies.moments import Exact, Moments, exact
from evalr.tallies.shared import SharedMoments
from evalr.verdicts import Duplicates, Result, Skip, Verdict, about_of, one_per_subject

Run = Experiment | Iterable[Result[Any]]
"""One side of a comparison: an experiment, or the results of a run."""

_ADJUSTED = {"holm": holm, "bh": benjamini_hochberg}


def compare(
    before: Run,
    after: Run,
    summaries: Summary[Any] | Sequence[Summary[Any]],
    *,
    cluster: Key | None = None,
    correction: Correction | None = "holm",
    level: float = 0.95,
    duplicates: Duplicates = "error",
    mix_versions: bool = False,
    mix_datasets: bool = False,
) -> Comparison:
    """Compare two runs over the same examples, after minus before.

    Examples are paired by their ids; repeats of one are first its mean. How the difference is found:

    - a share: McNemar's mid-p and the interval of Bonett & Price; where examples are clustered or repeated, as a score.
    - a score: the paired t, clustered (CR1) where examples are (Miller 2024). Where all of them differ alike it has no
      limits, and a share or a score with bounds has those of as many pairs as there are clusters.
    - a ratio (a `Rate` with a `total`, a `Mean` with a `weight`): the pooled values of the two runs, by MOVER or
      Welch's t; the interval counts what the runs have in common.

    Args:
        before: the first run.
        after: the second.
        summaries: one or several, rates or means.
        cluster: what the interval is computed over: by default the example's group, else its user, where it has one;
            "id" takes each example for itself. A cluster named here must be known of every result.
        correction: how p is adjusted for several summaries: "holm" (no false finding at all, for gates), "bh" (few
            among the findings, for screens), or None.
        level: of the two-sided intervals, which are not adjusted.
        duplicates: what to do with a second result of one subject: "error", "first" or "latest".
        mix_versions: compare verdicts of different evaluators, or different versions of one, and flag it. Then the
            difference may be the evaluator's.
        mix_datasets: compare experiments over different datasets, by the examples that are the same in both.

    Raises:
        InputError: the experiments are of different datasets, an example has no id, or a summary cannot be compared.
        MixedVersionsError: the runs were judged by different evaluators or versions.
        DuplicateError: see `duplicates`.
    """
    several = list(summaries) if isinstance(summaries, Sequence) else [summaries]
    _check(several, correction)
    sides = _Side.of(before), _Side.of(after)
    changed = _changed(before, after, mix_datasets=mix_datasets)
    found = [
        _compared(summary, sides, changed, cluster, level, duplicates, mix_versions=mix_versions) for summary in several
    ]
    adjusted = _ADJUSTED[correction]([row.p for row in found]) if correction and len(found) > 1 else [None] * len(found)
    rows = [replace(row, adjusted_p=p) for row, p in zip(found, adjusted, strict=True)]
    ids = [side.ids() for side in sides]
    return Comparison(
        rows,
        names=_names(*sides),
        correction=correction,
        only_before=tuple(name for name in ids[0] if name not in ids[1]),
        only_after=tuple(name for name in ids[1] if name not in ids[0]),
        changed=tuple(name for name in ids[0] if name in changed),
    )


def _check(summaries: list[Summary[Any]], correction: object) -> None:
    if not summaries:
        raise InputError("compare needs at least one summary, such as completion_rate")
    names = Counter(getattr(summary, "name", None) for summary in summaries)
    for summary in summaries:
        if not isinstance(summary, Rate | Mean):
            raise InputError(
                f"{getattr(summary, 'name', summary)!r} is a {type(summary).__name__}: compare takes rates and means; "
                "of a time to an event, compare a Rate of those that ended in time"
            )
        if names[summary.name] > 1:
            raise InputError(f"two summaries are named {summary.name!r}: give each a name of its own")
        if summary.fold is not None and summary.per != "id":
            raise InputError(
                f"summary {summary.name!r} is folded per={summary.per!r}, and pairs are examples: fold it per='id'"
            )
    if correction not in (None, "holm", "bh"):
        raise InputError(f"correction={correction!r} must be 'holm', 'bh' or None")


def _changed(before: Run, after: Run, *, mix_datasets: bool) -> set[str]:
    """The examples in both of two experiments whose content differs."""
    if not (isinstance(before, Experiment) and isinstance(after, Experiment)):
        return set()
    if before.dataset_hash == after.dataset_hash:
        return set()
    shared = before.examples.keys() & after.examples.keys()
    changed = {name for name in shared if before.examples[name] != after.examples[name]}
    if not mix_datasets:
        raise InputError(
            f"the runs are of different datasets, {quoted(before.dataset)} with {len(before.examples):,} examples and "
            f"{quoted(after.dataset)} with {len(after.examples):,}, of which {len(shared) - len(changed):,} are the "
            "same in both: pass mix_datasets=True to compare those alone"
        )
    return changed


# ---------------------------------------------------------------------------------------------------------------------
# One side
# ---------------------------------------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """A run, and what it is called."""

    name: str | None
    experiment: Experiment | None
    results: list[Result[Any]]

    @classmethod
    def of(cls, run: Run) -> _Side:
        if isinstance(run, Experiment):
            return cls(run.name, run, run.results)
        return cls(None, None, list(run))

    def ids(self) -> dict[str, None]:
        """The ids of its examples, in order."""
        if self.experiment is not None:
            return dict.fromkeys(self.experiment.examples)
        return dict.fromkeys(_id(result) for result in self.results)

    def results_for(self, summary: Summary[Any]) -> list[Result[Any]]:
        """The results that a summary reads, those without a verdict among them."""
        if self.experiment is not None:
            return self.experiment.results_for(summary)
        verdicts = [each for each in self.results if isinstance(each, Verdict)]
        names = {each.evaluator for each in verdicts if isinstance(each.value, summary.of)}
        if len(names) > 1:
            listed = " and ".join(sorted(quoted(name) for name in names))
            raise InputError(f"summary {summary.name!r} would read verdicts by {listed}: pass the results of one")
        others = {each.evaluator for each in verdicts} - names
        # Of evaluators without a single verdict nobody knows the type: what failed is counted rather than dropped.
        return [each for each in self.results if each.evaluator not in others]


def _names(before: _Side, after: _Side) -> tuple[str, str]:
    """What the runs are called; where that is the same, with the versions of their tasks."""
    names = before.name or "before", after.name or "after"
    if names[0] != names[1] or before.experiment is None or after.experiment is None:
        return names
    versions = before.experiment.task_version, after.experiment.task_version
    return names if versions[0] == versions[1] else (f"{names[0]}@{versions[0]}", f"{names[1]}@{versions[1]}")


def _id(result: Result[Any]) -> str:
    about = about_of(result)
    if about is None or about.id is None:
        raise InputError("a result is about nothing with an id, by which results of two runs are paired")
    return about.id


class _Value(NamedTuple):
    """What one run says of one example: y of m, and where y / m could lie whatever its missing results were."""

    about: About
    y: Exact
    m: Exact
    bounds: tuple[Exact, Exact] | None = None
    unbounded: bool = False

    @property
    def value(self) -> Fraction:
        return Fraction(self.y) / self.m


class _Account(NamedTuple):
    """The examples of one run, and what was read of them."""

    values: dict[str, _Value]
    left_out: Counter[str]
    versions: Counter[tuple[str, str]]
    flags: Counter[str]


def _account(summary: Summary[Any], results: Iterable[Result[Any]], duplicates: Duplicates) -> _Account:
    by_example: defaultdict[str, list[Result[Any]]] = defaultdict(list)
    for result in one_per_subject(results, duplicates=duplicates):
        by_example[_id(result)].append(result)
    tally, add = summary.collector(cluster=lambda about: about.id)
    for found in by_example.values():
        for result in found:
            add(result)
    entry = tally.entries.get(None)
    if entry is None:
        return _Account({}, Counter(), Counter(), Counter())
    # Where nothing is missing, one tally has the sums of each example; else each is looked at by itself.
    if summary.fold is None and not entry.left_out:
        sums = entry.cells.clusters
        values = {
            name: _Value(_about(found[0]), sums["named", name][0], sums["named", name][1])
            for name, found in by_example.items()
        }
    else:
        values = {name: _one(summary, found) for name, found in by_example.items()}
    return _Account(values, entry.left_out, entry.versions, entry.flags)


def _one(summary: Summary[Any], found: list[Result[Any]]) -> _Value:
    """What the results of one example say, and where that could lie whatever the missing ones were."""
    tally = summary.tally(found)
    entry = tally.entries[None]
    estimate = summary.estimate(tally, mix_versions=True)
    if summary.fold is None:
        moments = entry.cells.moments()
        y, m = moments.y, moments.m
    else:
        y, m = (0, 0) if estimate.value is None else (exact(estimate.value), 1)
    low_high = None if estimate.bounds is None else (exact(estimate.bounds[0]), exact(estimate.bounds[1]))
    return _Value(_about(found[0]), y, m, low_high, unbounded=bool(entry.unknown) and low_high is None)


def _about(result: Result[Any]) -> About:
    about = about_of(result)
    assert about is not None  # results without one were refused
    return about


# ---------------------------------------------------------------------------------------------------------------------
# Both sides
# ---------------------------------------------------------------------------------------------------------------------


class _Pair(NamedTuple):
    """One example with a value in both runs."""

    before: _Value
    after: _Value
    cluster: Hashable

    @property
    def weight(self) -> Exact:
        weight = self.after.about.weight
        return 1 if weight is None else exact(weight)

    @property
    def change(self) -> Fraction:
        return self.after.value - self.before.value


def _compared(
    summary: Summary[Any],
    sides: tuple[_Side, _Side],
    changed: set[str],
    cluster: Key | None,
    level: float,
    duplicates: Duplicates,
    *,
    mix_versions: bool,
) -> PairedDifference:
    first, second = (_account(summary, side.results_for(summary), duplicates) for side in sides)
    mixed = _mixed(summary, first.versions, second.versions, allowed=mix_versions)
    cluster_of = _cluster_reader(cluster)
    both = [name for name in first.values if name in second.values and name not in changed]
    pairs = [
        _Pair(first.values[name], second.values[name], cluster_of(second.values[name].about))
        for name in both
        if first.values[name].m and second.values[name].m
    ]
    left_out = Counter({f"{reason} before": n for reason, n in first.left_out.items()})
    left_out.update({f"{reason} after": n for reason, n in second.left_out.items()})
    left_out["only before"] = len(first.values.keys() - second.values.keys())
    left_out["only after"] = len(second.values.keys() - first.values.keys())
    left_out["changed"] = sum(name in changed for name in first.values if name in second.values)
    found = _difference(summary, pairs, level)
    clusters = len({pair.cluster for pair in pairs})
    named = Counter(_cluster_word(pair.cluster, cluster) for pair in {pair.cluster: pair for pair in pairs}.values())
    flags = sorted({*first.flags, *second.flags} | ({"mixed_versions"} if mixed else set()))
    if pairs and clusters < LOW_CONFIDENCE_UNDER:
        flags.insert(0, "low_confidence")
    value, interval = found.difference.value, found.difference.interval
    no_limits = interval.low is None and interval.high is None
    status: Status = "undefined" if value is None else "degenerate" if no_limits else "ok"
    unit = summary.estimate([]).unit
    return PairedDifference(
        name=summary.name,
        before=found.before,
        after=found.after,
        unit=unit,
        difference=Estimate(
            name=summary.name,
            value=value,
            low=interval.low,
            high=interval.high,
            level=level,
            unit="points" if unit == "share" else unit,
            noun="pair",
            counts=found.counts,
            n=len(pairs),
            clusters=clusters,
            clustered_by={} if clusters == len(pairs) else dict(named),
            variance=interval.variance,
            bounds=None if found.ratio else _bounds([(first.values[name], second.values[name]) for name in both]),
            method=interval.method,
            status=status,
            reason=None if status == "ok" else interval.reason or "no pairs",
            flags=tuple(flags),
            left_out={reason: n for reason, n in sorted(left_out.items(), key=lambda item: (-item[1], item[0])) if n},
            versions={f"{evaluator}@{version}": n for (evaluator, version), n in sorted(second.versions.items())},
        ),
        p=found.difference.p,
        adjusted_p=None,
        test=found.difference.test,
        gained=found.gained,
        lost=found.lost,
    )


class _Found(NamedTuple):
    difference: Difference
    before: float | None
    after: float | None
    counts: Mapping[str, float]
    gained: int | None = None
    lost: int | None = None
    ratio: bool = False


def _difference(summary: Summary[Any], pairs: list[_Pair], level: float) -> _Found:
    total = sum(pair.weight for pair in pairs)
    if _is_ratio(summary):
        return _of_ratios(summary, pairs, level)
    before = float(sum(pair.weight * pair.before.value for pair in pairs) / Fraction(total)) if total else None
    after = float(sum(pair.weight * pair.after.value for pair in pairs) / Fraction(total)) if total else None
    if isinstance(summary, Rate) and all(_is_single(pair) for pair in pairs):
        contest = ContestMoments.of_clusters(_contests(pairs))
        won, lost = int(contest.wins), int(contest.losses)
        counts = {"gained": won, "lost": lost, "same": int(contest.ties)}
        found = None if contest.singles() else _paired_t(contest.net(), (-1.0, 1.0), level)
        return _Found(found or net_win(contest, level=level), before, after, counts, won, lost)
    sums: defaultdict[Hashable, list[Any]] = defaultdict(lambda: [0, 0, 0])
    for pair in pairs:
        cell = sums[pair.cluster]
        cell[0] += pair.weight * pair.change
        cell[1] += pair.weight
        cell[2] += 1
    moments = Moments.of_clusters((y, m, rows) for y, m, rows in sums.values())
    counts = {
        "higher": sum(pair.change > 0 for pair in pairs),
        "lower": sum(pair.change < 0 for pair in pairs),
        "same": sum(pair.change == 0 for pair in pairs),
    }
    return _Found(_of_means(summary, moments, level), before, after, counts)


def _of_means(summary: Summary[Any], moments: Moments, level: float) -> Difference:
    bounds = (0.0, 1.0) if isinstance(summary, Rate) else summary.bounds if isinstance(summary, Mean) else None
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


def _of_ratios(summary: Summary[Any], pairs: list[_Pair], level: float) -> _Found:
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
    return _Found(found, ratios[0], ratios[1], counts, ratio=True)


def _is_ratio(summary: Summary[Any]) -> bool:
    if summary.fold is not None:
        return False
    return (isinstance(summary, Rate) and summary.total is not None) or (
        isinstance(summary, Mean) and summary.weight is not None
    )


def _is_single(pair: _Pair) -> bool:
    """Whether it is one hit or miss against another."""
    return pair.weight == 1 and pair.before.value in (0, 1) and pair.after.value in (0, 1)


def _contests(pairs: list[_Pair]) -> list[tuple[int, int, int]]:
    """(gained, same, lost) of each cluster."""
    counts: defaultdict[Hashable, list[int]] = defaultdict(lambda: [0, 0, 0])
    for pair in pairs:
        counts[pair.cluster][1 - int(pair.change)] += 1
    return [(won, same, lost) for won, same, lost in counts.values()]


def _bounds(both: list[tuple[_Value, _Value]]) -> tuple[float, float] | None:
    """Where the mean difference could lie, whatever the results without a value were."""
    low: Exact = 0
    high: Exact = 0
    total: Exact = 0
    for before, after in both:
        if before.unbounded or after.unbounded:
            return None
        if not all(side.m or side.bounds for side in (before, after)):
            continue  # left out for a reason that no value would change
        weight = 1 if after.about.weight is None else exact(after.about.weight)
        (b_low, b_high), (a_low, a_high) = (side.bounds or (side.value, side.value) for side in (before, after))
        low += weight * (a_low - b_high)
        high += weight * (a_high - b_low)
        total += weight
    return (float(Fraction(low) / total), float(Fraction(high) / total)) if total else None


def _cluster_reader(cluster: Key | None) -> Callable[[About], Hashable]:
    """The cluster of an example: by default its group, else its user, else itself."""
    if cluster is not None:
        read = cluster_reader(cluster)
        return lambda about: read(about, Skip("", about=about))

    def by_group(about: About) -> Hashable:
        group = (about.attributes or {}).get(GROUP)
        if isinstance(group, str):
            return (GROUP, group)
        return ("user", about.user) if about.user is not None else ("own", about.id)

    return by_group


def _cluster_word(key: Hashable, cluster: Key | None) -> str:
    if cluster is not None:
        return cluster if isinstance(cluster, str) and "/" not in cluster else "cluster"
    return str(key[0]) if isinstance(key, tuple) and key[0] != "own" else "example"


def _mixed(
    summary: Summary[Any], before: Mapping[tuple[str, str], int], after: Mapping[tuple[str, str], int], *, allowed: bool
) -> bool:
    """Whether the runs were judged by different evaluators or versions."""
    mixed = len(before) > 1 or len(after) > 1 or bool(before and after and before.keys() != after.keys())
    if mixed and not allowed:
        sides = [
            " and ".join(f"{quoted(name)} version {quoted(version)}" for name, version in sorted(side))
            for side in (before, after)
        ]
        raise MixedVersionsError(
            f"summary {summary.name!r}: before was judged by {sides[0]}, after by {sides[1]}, so that a difference may "
            "be the evaluator's: judge both runs by one, or pass mix_versions=True"
        )
    return mixed

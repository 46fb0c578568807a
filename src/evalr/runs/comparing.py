"""Comparing two runs: the same examples in both, paired by their ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from evalr.errors import InputError, MixedVersionsError
from evalr.estimates.estimate import Estimate, Status
from evalr.estimates.many import benjamini_hochberg, holm
from evalr.measures.measure import installed_measures
from evalr.quoting import quoted, safe_text
from evalr.runs.comparison import Comparison, Correction, PairedDifference
from evalr.runs.experiments import Experiment
from evalr.runs.paired import Found, paired
from evalr.runs.pairing import (
    Account,
    Compared,
    Naming,
    Pair,
    Side,
    account_of,
    cluster_reader_of,
    cluster_word,
    difference_bounds,
)
from evalr.runs.reasons import reason_lines
from evalr.summaries import Key, Mean, Rate, Summary
from evalr.summaries.summary import LOW_CONFIDENCE_UNDER
from evalr.verdicts import Duplicates, Result

_ADJUSTED = {"holm": holm, "bh": benjamini_hochberg}


def compare(
    before: Compared,
    after: Compared,
    summaries: Summary[Any] | Sequence[Summary[Any]] | None = None,
    *,
    cluster: Key | None = None,
    correction: Correction | None = "holm",
    level: float = 0.95,
    duplicates: Duplicates = "error",
    mix_versions: bool = False,
    mix_datasets: bool = False,
) -> Comparison:
    """Compare two runs over the same examples, after minus before.

    Examples are paired by their ids (results of logs by session and user, too); repeats of one are first its mean. How
    the difference is found:

    - a share: the net win of a contest, gained against lost: McNemar's mid-p and the interval of Bonett & Price; where
      examples are clustered or repeated, theirs at the effective number of pairs, with Student's t. An example that was
      repeated is a cluster of its repeats.
    - a score: the paired t, clustered (CR1) where examples are (Miller 2024). Where all of them differ alike it has no
      limits, and a score with bounds has those of as many pairs as there are clusters.
    - a ratio (a `Rate` with a `total`, a `Mean` with a `weight`): the pooled values of the two runs, by MOVER or
      Welch's t; the interval counts what the runs have in common.

    Args:
        before: the first run.
        after: the second.
        summaries: one or several, rates or means; by default those of the installed measures that both runs have
            verdicts of, as the command takes them.
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
        InputError: the experiments are of different datasets, an example has no id, a summary cannot be compared, or
            none was named and the runs share none.
        MixedVersionsError: the runs were judged by different evaluators or versions.
        DuplicateError: see `duplicates`.
    """
    sides = Side.of(before), Side.of(after)
    if summaries is None:
        several = _shared(*sides)
    else:
        several = list(summaries) if isinstance(summaries, Sequence) else [summaries]
    _check(several, correction)
    changed = _changed(before, after, mix_datasets=mix_datasets)
    naming = Naming.of(*sides)
    asked = _Asked(naming, cluster, level, duplicates, mix_versions, changed)
    found = [_compared(summary, sides, asked) for summary in several]
    adjusted = _ADJUSTED[correction]([row.p for row in found]) if correction and len(found) > 1 else [None] * len(found)
    rows = [replace(row, adjusted_p=p) for row, p in zip(found, adjusted, strict=True)]
    ids = [side.names(naming) for side in sides]
    return Comparison(
        rows,
        names=_names(*sides),
        correction=correction,
        only_before=tuple(naming.shown(name) for name in ids[0] if name not in ids[1]),
        only_after=tuple(naming.shown(name) for name in ids[1] if name not in ids[0]),
        changed=tuple(name for name in ids[0] if name in changed),
    )


def _shared(before: Side, after: Side) -> list[Summary[Any]]:
    """The rates and means of the installed measures that both runs have verdicts of."""
    sides = before.verdict_types(), after.verdict_types()
    found: list[Summary[Any]] = [
        summary
        for measure in installed_measures().loaded.values()
        for summary in measure.summaries(**measure.settings)
        if isinstance(summary, Rate | Mean) and (summary.fold is None or summary.per == "id")
        if all(any(issubclass(kind, summary.of) for kind in kinds) for kinds in sides)
    ]
    if not found:
        named = " and ".join(", ".join(sorted(kind.__name__ for kind in kinds)) or "none" for kinds in sides)
        raise InputError(
            f"the runs share no rate or mean of an installed measure (their verdict types: {safe_text(named)}): pass "
            "summaries in Python, such as compare(before, after, Rate('good', of=Good, hits=lambda v: v.good)); the "
            "command compares what `evalr measures` lists"
        )
    return found


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


def _changed(before: Compared, after: Compared, *, mix_datasets: bool) -> set[str]:
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
            "same in both: pass mix_datasets=True (--mix-datasets) to compare those alone"
        )
    return changed


def _names(before: Side, after: Side) -> tuple[str, str]:
    """What the runs are called; where that is the same, with the versions of their tasks."""
    names = before.name or "before", after.name or "after"
    if names[0] != names[1] or before.experiment is None or after.experiment is None:
        return names
    versions = before.experiment.task_version, after.experiment.task_version
    return names if versions[0] == versions[1] else (f"{names[0]}@{versions[0]}", f"{names[1]}@{versions[1]}")


class _Asked(NamedTuple):
    """How runs are compared, and which of their examples are not."""

    naming: Naming
    cluster: Key | None
    level: float
    duplicates: Duplicates
    mix_versions: bool
    changed: set[str]


def _compared(summary: Summary[Any], sides: tuple[Side, Side], asked: _Asked) -> PairedDifference:
    results = [side.results_for(summary) for side in sides]
    before, after = (account_of(summary, each, asked.naming, asked.duplicates) for each in results)
    mixed = _mixed(summary, before.versions, after.versions, allowed=asked.mix_versions)
    both = [name for name in before.values if name in after.values and name not in asked.changed]
    cluster_of = cluster_reader_of(asked.cluster)
    pairs = [
        Pair(before.values[name], after.values[name], cluster_of(after.values[name].about))
        for name in both
        if before.values[name].m and after.values[name].m
    ]
    found = paired(summary, pairs, asked.level)
    bounds = None if found.ratio else difference_bounds([(before.values[name], after.values[name]) for name in both])
    flags = sorted({*before.flags, *after.flags} | ({"mixed_versions"} if mixed else set()))
    unit = summary.estimate([]).unit
    difference = _estimate(found, pairs, asked)
    if difference.value is None:
        difference = replace(difference, reason=_why_nothing((before, after), results) or difference.reason)
    return PairedDifference(
        name=summary.name,
        before=found.before,
        after=found.after,
        unit=unit,
        difference=replace(
            difference,
            name=summary.name,
            unit="points" if unit == "share" else unit,
            bounds=bounds,
            flags=(*(["low_confidence"] if _few(pairs) else []), *flags),
            left_out=_left_out(before, after, asked.changed),
            versions={f"{evaluator}@{version}": n for (evaluator, version), n in sorted(after.versions.items())},
        ),
        p=found.difference.p,
        adjusted_p=None,
        test=found.difference.test,
        gained=found.gained,
        lost=found.lost,
    )


def _estimate(found: Found, pairs: list[Pair], asked: _Asked) -> Estimate:
    """The difference with its interval, before it has its account."""
    value, interval = found.difference.value, found.difference.interval
    no_limits = interval.low is None and interval.high is None
    status: Status = "undefined" if value is None else "degenerate" if no_limits else "ok"
    clusters = {pair.cluster for pair in pairs}
    return Estimate(
        name="",
        value=value,
        low=interval.low,
        high=interval.high,
        level=asked.level,
        noun="pair",
        counts=found.counts,
        n=len(pairs),
        clusters=len(clusters),
        clustered_by={}
        if len(clusters) == len(pairs)
        else dict(Counter(cluster_word(each, asked.cluster) for each in clusters)),
        variance=interval.variance,
        method=interval.method,
        status=status,
        reason=None if status == "ok" else interval.reason,
    )


def _why_nothing(sides: tuple[Account, Account], results: list[list[Result[Any]]]) -> str:
    """Which run has nothing to count, and what its results say instead of a verdict."""
    return "; ".join(
        f"nothing {word} counts" + (f", {', '.join(lines)}" if (lines := reason_lines(each)) else "")
        for word, side, each in zip(("before", "after"), sides, results, strict=True)
        if not any(value.m for value in side.values.values())
    )


def _few(pairs: list[Pair]) -> bool:
    return 0 < len({pair.cluster for pair in pairs}) < LOW_CONFIDENCE_UNDER


def _left_out(before: Account, after: Account, changed: set[str]) -> dict[str, int]:
    """Results that are not counted and examples that have no pair, by reason, the most first."""
    counts = Counter({f"{reason} before": n for reason, n in before.left_out.items()})
    counts.update({f"{reason} after": n for reason, n in after.left_out.items()})
    counts["only before"] = len(before.values.keys() - after.values.keys())
    counts["only after"] = len(after.values.keys() - before.values.keys())
    counts["changed"] = len(changed & before.values.keys() & after.values.keys())
    return {reason: n for reason, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if n}


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
            "be the evaluator's: judge both runs by one, or pass mix_versions=True (--mix-versions)"
        )
    return mixed

"""Two arms of one tally compared: what `Summary.lift` does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from evalr.errors import InputError
from evalr.estimates.compare import Difference
from evalr.estimates.cuped import Adjusted, Row, cuped_difference
from evalr.estimates.estimate import Estimate, Groups, Status
from evalr.estimates.interval import around, no_interval, spread_of
from evalr.estimates.lift import MISMATCH, UNEVEN, Allocation, Lift
from evalr.estimates.sample_ratio import SampleRatio, coverage_by_arm, sample_ratio
from evalr.estimates.sequential import always_valid, planned_tau2
from evalr.estimates.words import Unit, choice_words
from evalr.inputs import About, Assignment
from evalr.quoting import quoted, safe_text
from evalr.summaries.assigned import Who, read_assigned
from evalr.summaries.keys import Key, cluster_reader, group_reader
from evalr.summaries.two_arms import TwoArms
from evalr.tallies.counts import Counts
from evalr.tallies.tally import Entry, Tally
from evalr.verdicts import NO_VERDICT, Duplicates, Verdict, about_of, one_per_subject

if TYPE_CHECKING:
    from evalr.summaries.summary import Summary, Terms

CONTROLS = ("control", "holdout")
OTHER_ARMS = 20
"""How many arms beside the two get an estimate of their own: the largest."""

MOST_PLANNED = 10**15
"""More than there are people, and little enough for floating point."""

NOT_SUMS = "the summary has no sum for each user, from which a past could be taken off"
NO_USERS = "some results have no user, whose past could be known"
IN_BOTH = "some users are in both arms"
NO_PAST = "no user here has a past"


@dataclass(frozen=True)
class Asked:
    """What a caller asks of a lift."""

    treatment: str
    control: str | None
    by: Key
    randomised: bool
    assignments: Iterable[Assignment] | None
    weights: Mapping[str, float] | None
    before: Iterable[Any] | Tally[Any] | None
    planned: int
    interval: str
    cluster: Key | None
    duplicates: Duplicates


def lift_of(summary: Summary[Any], results: Iterable[Any] | Tally[Any], asked: Asked, terms: Terms) -> Lift:
    """The lift that `Summary.lift` promises."""
    _check(asked)
    watched = None if isinstance(results, Tally) else _Watched(summary, asked)
    tally = _tallied(summary, results, asked, watched)
    arms = tally.named_groups()
    treatment, control = asked.treatment, _control(asked, arms)
    if treatment == control:
        raise InputError(f"treatment and control are both {treatment!r}: name two arms")
    if tally.overlap:
        raise InputError(f"some results are in several groups of by={asked.by!r}: a lift compares arms, one a result")
    _check_arms(arms, treatment, control)

    entries = [tally.entries.get(arm) or Entry(summary._cells()) for arm in (treatment, control)]
    compared = summary._compare(entries[0], entries[1], terms.level, asked.interval)
    allocation = _allocation(asked, (treatment, control), watched)
    flags = _flags(summary, entries, terms, allocation, asked.randomised)
    estimates = _estimates(summary, tally, (treatment, control), terms)
    account = _Account(summary, (estimates[treatment], estimates[control]), (treatment, control), compared, flags)

    difference = account.estimate("difference", compared.difference, compared.unit)
    valid, valid_p = _always_valid(account, compared, asked.planned)
    adjusted = None if asked.before is None else _adjusted(account, compared, asked, watched)
    return Lift(
        name=summary.name,
        treatment_arm=treatment,
        control_arm=control,
        arms=Groups(asked.by if isinstance(asked.by, str) else "arm", estimates),
        other_arms=len({treatment, control, *arms} - set(estimates)),
        difference=difference,
        relative=account.estimate("relative", compared.relative, "change"),
        p=compared.difference.p,
        test=compared.difference.test,
        shared_clusters=compared.shared,
        always_valid=valid,
        always_valid_p=valid_p,
        adjusted=adjusted,
        allocation=allocation,
        randomised=asked.randomised,
    )


def _check(asked: Asked) -> None:
    if asked.assignments is None and asked.weights is not None:
        raise InputError("weights are those of a split: pass the assignments that they are checked against, too")
    if not isinstance(asked.planned, int) or isinstance(asked.planned, bool) or not 0 < asked.planned <= MOST_PLANNED:
        raise InputError(f"planned={asked.planned!r} must be a number of clusters, both arms together, from 1")
    for name, arm in (("treatment", asked.treatment), ("control", asked.control)):
        if not isinstance(arm, str) and not (arm is None and name == "control"):
            raise InputError(f"{name}={safe_text(repr(arm))} must be the name of an arm")
    if not isinstance(asked.interval, str):
        raise InputError(f"interval={safe_text(repr(asked.interval))} must be the name of an interval, such as 'mover'")
    if not isinstance(asked.randomised, bool):  # a text such as "no" would say yes
        raise InputError(f"randomised={safe_text(repr(asked.randomised))} must be True or False")
    if asked.weights is not None and not isinstance(asked.weights, Mapping):
        raise InputError("weights are a mapping from arm to weight, such as {'treatment': 0.9, 'control': 0.1}")


def _control(asked: Asked, arms: list[str]) -> str:
    if asked.control is not None:
        return asked.control
    return next((name for name in CONTROLS if name in arms), CONTROLS[0])


def _check_arms(arms: list[str], treatment: str, control: str) -> None:
    """An arm may be empty; one that is not there, while others are, was mistyped.

    Raises:
        InputError: names the arms that there are.
    """
    others = sorted(set(arms) - {treatment, control})
    for role, name in (("treatment", treatment), ("control", control)):
        if name not in arms and others:
            raise InputError(f"no result is in the {role} arm {name!r}: {choice_words(name, sorted(arms))}")


# ---------------------------------------------------------------------------------------------------------------------
# Reading results
# ---------------------------------------------------------------------------------------------------------------------


class _Watched:
    """What a lift has to know of each result beside what the tally keeps."""

    def __init__(self, summary: Summary[Any], asked: Asked) -> None:
        self._summary = summary
        self._groups_of = group_reader(asked.by)
        self._cluster_of = cluster_reader(asked.cluster, asked.by)
        self._wants_arms = asked.assignments is not None
        self._wants_times = asked.before is not None
        self.arms: dict[Who, set[str | None]] = {}
        """Of users that were evaluated, and of their sessions."""
        self.first: dict[Hashable, datetime] = {}
        """When each cluster's first result happened."""

    def see(self, result: Any) -> None:
        about = about_of(result) or About("value")
        if self._wants_arms and self._counts(result):
            for who in {(about.user, None), (about.user, about.session or about.id)}:
                self.arms.setdefault(who, set()).update(self._groups_of(about))
        if self._wants_times and about.at is not None:
            cluster = self._cluster_of(about, result)
            if cluster is not None:
                self.first[cluster] = min(about.at, self.first.get(cluster, about.at))

    def _counts(self, result: Any) -> bool:
        if isinstance(result, NO_VERDICT):
            return False
        value = result.value if isinstance(result, Verdict) else result
        leaves_out = self._summary.leaves_out
        return leaves_out is None or leaves_out(value) is None


def _tallied(
    summary: Summary[Any], results: Iterable[Any] | Tally[Any], asked: Asked, watched: _Watched | None
) -> Tally[Any]:
    if isinstance(results, Tally) or watched is None:
        return summary._tallied(results, asked.by, asked.cluster, asked.duplicates)
    return _collected(summary, results, asked, asked.by, watched.see)


def _collected(
    summary: Summary[Any], results: Iterable[Any], asked: Asked, by: Key | None, see: Callable[[Any], None]
) -> Tally[Any]:
    tally, add = summary.collector(by=by, cluster=asked.cluster)
    for result in one_per_subject(results, duplicates=asked.duplicates):
        add(result)
        see(result)
    return tally


def _estimates(
    summary: Summary[Any], tally: Tally[Any], pair: tuple[str, str], terms: Terms
) -> dict[str | None, Estimate]:
    others = sorted(set(tally.named_groups()) - set(pair), key=lambda arm: (-tally.entries[arm].results, arm))
    names: list[str | None] = [*sorted([*pair, *others[:OTHER_ARMS]])]
    if None in tally.entries:
        names.append(None)
    return {name: summary._group(tally, name, terms.level, terms.mix_versions) for name in names}


def _flags(
    summary: Summary[Any],
    entries: list[Entry[Any]],
    terms: Terms,
    allocation: Allocation | None,
    randomised: bool,
) -> tuple[str, ...]:
    both: Entry[Any] = Entry(summary._cells())
    for entry in entries:
        both.versions.update(entry.versions)
        both.flags.update(entry.flags)
    # arms that were judged by different versions differ by more than what sets them apart
    flags = list(summary._flags(both, terms, few=False))
    if allocation is not None and allocation.sample_ratio is not None and allocation.sample_ratio.alarm:
        flags.append(MISMATCH)
    if allocation is not None and allocation.coverage is not None and allocation.coverage.alarm:
        flags.append(UNEVEN)
    return (*([] if randomised else ["observational"]), *flags)


# ---------------------------------------------------------------------------------------------------------------------
# Estimates of the difference
# ---------------------------------------------------------------------------------------------------------------------


class _Account:
    """What every estimate of one lift counts and left out."""

    def __init__(
        self,
        summary: Summary[Any],
        arms: tuple[Estimate, Estimate],
        names: tuple[str, str],
        compared: TwoArms,
        flags: tuple[str, ...],
    ) -> None:
        self.summary, self.arms, self.names, self.compared = summary, arms, names, compared
        treatment, control = arms
        few = any("low_confidence" in arm.flags or not arm.n for arm in arms)
        self.flags = (*flags, *(["low_confidence"] if few else []))
        self.clusters = treatment.clusters + control.clusters - compared.shared
        self.left_out = dict(sorted((Counter(treatment.left_out) + Counter(control.left_out)).items()))
        self.versions = dict(sorted((Counter(treatment.versions) + Counter(control.versions)).items()))

    def estimate(
        self,
        name: str,
        found: Difference,
        unit: Unit,
        *,
        counts: Mapping[str, float] | None = None,
        reason: str | None = None,
    ) -> Estimate:
        treatment, control = self.arms
        interval = found.interval
        no_limits = interval.low is None and interval.high is None
        status: Status = "undefined" if found.value is None else "degenerate" if no_limits else "ok"
        return Estimate(
            name=f"{self.summary.name}_{name}",
            value=found.value,
            low=interval.low,
            high=interval.high,
            level=treatment.level,
            unit=unit,
            noun=treatment.noun,
            counts={"treatment": treatment.n, "control": control.n, **(counts or {})},
            n=treatment.n + control.n,
            clusters=self.clusters,
            variance=interval.variance,
            bounds=self._bounds() if name == "difference" else None,
            method=interval.method,
            status=status,
            reason=reason or (None if status == "ok" else self._why(found)),
            flags=self.flags,
            left_out=self.left_out,
            versions=self.versions,
        )

    def _why(self, found: Difference) -> str | None:
        named = zip(self.names, self.arms, strict=True)
        told = [f"{safe_text(name)}: {arm.reason or 'nothing was counted'}" for name, arm in named if arm.value is None]
        if found.value is None and told:
            return f"no estimate: {'; '.join(told)}"
        return found.interval.reason

    def _bounds(self) -> tuple[float, float] | None:
        """Where the difference could lie, had the missing verdicts come."""
        treatment, control = (arm.bounds for arm in self.arms)
        if treatment is None or control is None:
            return None
        return treatment[0] - control[1], treatment[1] - control[0]


def _always_valid(account: _Account, compared: TwoArms, planned: int) -> tuple[Estimate, float | None]:
    """The interval for all looks. `tau2` follows from the clusters planned for, which no look may change."""
    found, value = compared.difference, compared.difference.value
    level = account.arms[0].level
    if value is None:
        return account.estimate("always_valid", found._replace(p=None), compared.unit), None
    variance = spread_of(found.interval, value, level)
    tau2 = planned_tau2(variance * account.clusters / planned, level) if variance else 1.0
    smaller = min(arm.clusters for arm in account.arms)
    valid = always_valid(value, variance, tau2=tau2, level=level, clusters=smaller, bounds=compared.bounds)
    return account.estimate("always_valid", found._replace(interval=valid.interval), compared.unit), valid.p


def _adjusted(account: _Account, compared: TwoArms, asked: Asked, watched: _Watched | None) -> Estimate:
    """The difference after each user's past is taken off, where users have one."""
    past = _past(account.summary, asked, watched)
    sums, raw = compared.sums, compared.difference
    reason = _why_not(compared, past)
    if sums is None or reason is not None:
        return account.estimate(
            "adjusted", Difference(raw.value, no_interval(reason or NOT_SUMS), None, "none"), compared.unit
        )
    found = cuped_difference(*(_rows(each, past) for each in sums), level=account.arms[0].level)
    with_past = sum(cluster in past for each in sums for cluster in each.clusters)
    counts = {"with_past": with_past, "clusters": account.clusters, **_worth(found, raw)}
    difference = _within(found.difference, compared.bounds)
    return account.estimate("adjusted", difference, compared.unit, counts=counts, reason=difference.interval.reason)


def _why_not(compared: TwoArms, past: Mapping[Hashable, float]) -> str | None:
    """Why no past can be taken off; None where it can."""
    if compared.sums is None:
        return NOT_SUMS
    if compared.shared:
        return IN_BOTH
    if any(each.loose_clusters() for each in compared.sums):
        return NO_USERS
    known = any(cluster in past for each in compared.sums for cluster in each.clusters)
    return None if known else NO_PAST


def _within(found: Difference, bounds: tuple[float, float]) -> Difference:
    """A difference whose limits do not leave the bounds."""
    low, value, high = found.interval.low, found.value, found.interval.high
    if low is None or value is None or high is None:
        return found
    low, high = around(low, value, high, floor=min(bounds[0], value), ceiling=max(bounds[1], value))
    return found._replace(interval=found.interval._replace(low=low, high=high))


def _worth(found: Adjusted, raw: Difference) -> dict[str, float]:
    """What the past was worth: by which part it made the variance smaller, and the slope."""
    worth = {} if found.theta is None else {"theta": found.theta}
    if raw.interval.variance and found.difference.interval.variance is not None:
        worth["variance_reduction"] = 1 - found.difference.interval.variance / raw.interval.variance
    return worth


def _past(summary: Summary[Any], asked: Asked, watched: _Watched | None) -> dict[Hashable, float]:
    """What each cluster was before: the ratio of all, and its own linearised part of it."""
    tally = asked.before
    if not isinstance(tally, Tally):
        tally = _collected(summary, tally or (), asked, None, _earlier(asked, watched))
    if tally.by is not None:
        raise InputError("the past is one tally without groups: make it with tally(results)")
    entry = tally.entries.get(None)
    if entry is None:
        return {}
    if not isinstance(entry.cells, Counts):
        raise InputError("the past is a tally of a Rate or a Mean without a fold: a sum for each user")
    return dict(_linearised(entry.cells))


def _earlier(asked: Asked, watched: _Watched | None) -> Callable[[Any], None]:
    """A look at each result of the past: what is not past, the treatment may have moved."""
    first = {} if watched is None else watched.first
    cluster_of = cluster_reader(asked.cluster)

    def see(result: Any) -> None:
        about = about_of(result)
        if about is None or about.at is None:
            return
        began = first.get(cluster_of(about, result))
        if began is not None and about.at >= began:
            who = quoted(str(about.user or about.session or about.id))
            raise InputError(
                f"before: {who} has a result at {about.at.isoformat()}, not before the first of those that are "
                f"compared, at {began.isoformat()}: pass results from before the assignment alone"
            )

    return see


def _linearised(sums: Counts) -> Iterator[tuple[Hashable, float]]:
    """Of each cluster, a number whose plain mean over clusters is the ratio, and whose variance is that of the ratio.

    `R + (y - R m) / mean(m)`, the delta method for ratios (Deng, Knoblich & Lu 2018): the value itself where each
    cluster has one row.
    """
    clusters = {key: each for key, each in sums.clusters.items() if each[1]}
    weight = sum(m for _, m, _ in clusters.values())
    if not weight:
        return
    ratio = sum(y for y, _, _ in clusters.values()) / weight
    mean = weight / len(clusters)
    for key, (y, m, _) in clusters.items():
        yield key, float(ratio + (y - ratio * m) / mean)


def _rows(sums: Counts, past: Mapping[Hashable, float]) -> list[Row]:
    """(before, after) of each cluster of an arm; one without a past has the mean of those who have one."""
    typical = math.fsum(past.values()) / len(past)
    return [(past.get(cluster, typical), after) for cluster, after in _linearised(sums)]


# ---------------------------------------------------------------------------------------------------------------------
# Assignments
# ---------------------------------------------------------------------------------------------------------------------


def _allocation(asked: Asked, pair: tuple[str, str], watched: _Watched | None) -> Allocation | None:
    if asked.assignments is None:
        return None
    found = read_assigned(asked.assignments)
    assigned, sizes = found.arm_of, found.sizes()
    counts = {arm: sizes.get(arm, 0) for arm in pair}
    plain = Allocation(
        assigned=counts,
        sample_ratio=None if asked.weights is None else _sample_ratio(sizes, asked.weights),
        in_several=len(found.in_several),
        without_arm=found.without_arm,
    )
    if watched is None:
        return plain
    evaluated = Counter(arm for who, arm in assigned.items() if arm in pair and who in watched.arms)
    by_session = any(session is not None for _, session in assigned)
    here = {who: arms for who, arms in watched.arms.items() if (who[1] is not None) == by_session and arms & {*pair}}
    return replace(
        plain,
        evaluated={arm: evaluated[arm] for arm in pair},
        coverage=coverage_by_arm([evaluated[arm] for arm in pair], list(counts.values())),
        crossed=sum(who in assigned and bool((arms & {*pair}) - {assigned[who]}) for who, arms in here.items()),
        unassigned=sum(who not in assigned for who in here),
    )


def _sample_ratio(sizes: Mapping[str, int], weights: Mapping[str, float]) -> SampleRatio:
    undeclared = next((arm for arm in sorted(sizes) if arm not in weights), None)
    if undeclared is not None:
        raise InputError(
            f"weights name no arm {undeclared!r}, to which {sizes[undeclared]:,} are assigned: "
            "give it a weight, 0 where it was to have nobody"
        )
    return sample_ratio([sizes.get(arm, 0) for arm in weights], list(weights.values()))

"""Summaries: how results become one number. `Rate`, `Mean` and `TimeTo` read results into a tally and a tally into estimates.

A summary reads evaluators' results, and people's values as they are. Failures, skips and hand-offs are counted and widen an
estimate's bounds; nothing leaves the denominator without being named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import timedelta, tzinfo
from fractions import Fraction
from math import isfinite
from typing import Any, Generic, Literal

from evalr.errors import InputError, MixedVersionsError
from evalr.estimates.buckets import Bucket, TimeBucket, buckets_between
from evalr.estimates.estimate import Estimate, Groups, Status, Trend
from evalr.estimates.folds import Fold, fold_function
from evalr.estimates.interval import Interval
from evalr.estimates.rate import RateMethod, rate_interval
from evalr.estimates.words import Unit
from evalr.inputs import About
from evalr.tallies.counts import Counts, Units
from evalr.tallies.durations import COMPETING, EVENT, OPEN, Durations, UnitDurations
from evalr.tallies.fingerprint import fingerprint
from evalr.tallies.moments import Exact, Moments, exact
from evalr.tallies.tally import Entry, Tally
from evalr.verdicts import NO_VERDICT, Duplicates, Result, V, Verdict, describe, one_per_subject

Key = str | Callable[[About], str | Sequence[str] | None]
"""What to group or cluster by: "user", "session", "arm", "kind", an attribute's name, or a function of `About`."""

Per = str | Sequence[str] | Callable[[About], Hashable]
"""What a folded row stands for: as `Key`, or several names that identify it together."""

PENDING = "pending"
UNKNOWN = "unknown"
LOW_CONFIDENCE_UNDER = 30

_NO_VERDICT_WORDS = {"failed": "failed", "skipped": "skipped", "handed_off": "handed off"}
_COULD_COUNT = {PENDING, UNKNOWN, *_NO_VERDICT_WORDS.values()}
"""What is left out for these reasons could have counted either way, and widens the bounds."""


@dataclass(frozen=True)
class Summary(Generic[V]):
    """What every summary shares. Use `Rate`, `Mean` or `TimeTo`.

    Args:
        name: unique among summaries; gates and reports use it.
        of: the verdict type that it reads; values of its subclasses count too.
        leaves_out: why a verdict is not counted, or None where it is. "pending" and "unknown" widen the bounds.
        per, fold: first fold the results of one unit into one: `per="task", fold=pass_k(3)`.
        label: what a report calls it; by default its name in words.
        noun: what one counted row is called, with `/` and its plural where that is not an added s.
        parent: what the sessions or artifacts are called that its rows are parts of.
    """

    name: str
    _: KW_ONLY
    of: type[V]
    leaves_out: Callable[[V], str | None] | None = None
    per: Per | None = None
    fold: Any = None
    label: str | None = None
    noun: str = "result"
    parent: str = "session"

    def __post_init__(self) -> None:
        if (self.per is None) != (self.fold is None):
            raise InputError(f"summary {self.name!r}: per= and fold= belong together")

    # -- what people call ---------------------------------------------------------------------------------------------

    def __call__(self, results: Iterable[Result[V] | V]) -> float | None:
        """The value of the estimate, or None where there is none."""
        return self.estimate(results).value

    def estimate(
        self,
        results: Iterable[Result[V] | V] | Tally[Any],
        *,
        cluster: Key | None = None,
        level: float = 0.95,
        duplicates: Duplicates = "error",
        mix_versions: bool = False,
        **settings: Any,
    ) -> Estimate:
        """The number, its interval, and what was counted and left out.

        Args:
            results: results and plain values, or a tally of this summary.
            cluster: what the interval is computed over. By default the user where one is known, else the session or artifact
                that the result is a part of, else the result itself. A cluster named here must be known of every result.
            level: of the two-sided interval.
            duplicates: what to do with a second result of one subject: "error", "first" or "latest".
            mix_versions: allow verdicts of several versions of one evaluator, and flag them.
            settings: other values for the summary's own fields, such as `method="jeffreys"` or `within=timedelta(hours=1)`.
        """
        summary = replace(self, **settings) if settings else self
        tally = summary._read(results, None, cluster, duplicates)
        entry = tally.entries.get(None)
        if entry is None:
            entry = Entry(summary._cells())
        return summary._estimate(entry, level, mix_versions, _cluster_word(tally.cluster))

    def by(
        self,
        results: Iterable[Result[V] | V] | Tally[Any],
        key: Key,
        *,
        cluster: Key | None = None,
        level: float = 0.95,
        duplicates: Duplicates = "error",
        mix_versions: bool = False,
        **settings: Any,
    ) -> Groups:
        """One estimate for each group. A result with several texts for the key is in several groups."""
        summary = replace(self, **settings) if settings else self
        tally = summary._read(results, key, cluster, duplicates)
        groups = sorted((group for group in tally.entries if group is not None), key=str)
        if None in tally.entries:
            groups.append(None)
        estimates = {
            None if group is None else str(group): summary._estimate(
                tally.entries[group], level, mix_versions, _cluster_word(tally.cluster)
            )
            for group in groups
        }
        return Groups(key if isinstance(key, str) else "group", estimates, overlap=tally.overlap)

    def trend(
        self,
        results: Iterable[Result[V] | V] | Tally[Any],
        *,
        bucket: Bucket = "day",
        tz: str | tzinfo = "UTC",
        cluster: Key | None = None,
        level: float = 0.95,
        duplicates: Duplicates = "error",
        mix_versions: bool = False,
        **settings: Any,
    ) -> Trend:
        """One estimate for each hour, day, week or month of the results' times, in the time zone `tz`.

        Buckets between the first and the last that hold nothing are there too, undefined. Results without a time are in none;
        they come last, under None.
        """
        summary = replace(self, **settings) if settings else self
        tally = summary._read(results, TimeBucket(bucket, tz), cluster, duplicates)
        starts = sorted(group for group in tally.entries if isinstance(group, str))
        groups: list[str | None] = list(buckets_between(starts, bucket))
        if None in tally.entries:
            groups.append(None)
        empty: Entry[Any] = Entry(summary._cells())
        estimates = {
            group: summary._estimate(tally.entries.get(group, empty), level, mix_versions, _cluster_word(tally.cluster))
            for group in groups
        }
        return Trend(bucket, estimates)

    def tally(
        self,
        results: Iterable[Result[V] | V],
        *,
        by: Key | None = None,
        cluster: Key | None = None,
        duplicates: Duplicates = "error",
    ) -> Tally[Any]:
        """The sums that estimates are made of. Tallies of parts add up to that of the whole: `a + b`."""
        tally, add = self.collector(by=by, cluster=cluster)
        for result in one_per_subject(results, duplicates=duplicates):
            add(result)
        return tally

    def collector(
        self, *, by: Key | None = None, cluster: Key | None = None
    ) -> tuple[Tally[Any], Callable[[Result[V] | V], None]]:
        """An empty tally and the function that adds one result to it, for streams. Duplicates are the caller's to refuse."""
        tally: Tally[Any] = Tally(self.reads(), by=fingerprint(by), cluster=fingerprint(cluster))
        return tally, _collector(self, tally, by, cluster)

    def reads(self) -> tuple[Hashable, ...]:
        """What its tally depends on, in plain values: summaries that read alike share one tally."""
        per = self.per if self.per is None or callable(self.per) or isinstance(self.per, str) else tuple(self.per)
        return tuple(
            fingerprint(part) for part in (type(self), self.of, self.leaves_out, per, self.fold, *self._parts())
        )

    # -- what each kind of summary fills in ---------------------------------------------------------------------------

    def _parts(self) -> tuple[object, ...]:
        """The fields of its own that decide what its tally holds."""
        raise NotImplementedError

    def _weighed(self) -> bool:
        """Whether sampling weights count; where they do not, estimates are flagged."""
        return self.fold is None

    def _cells(self) -> Any:
        raise NotImplementedError

    def _put(self, entry: Entry[Any], value: V, weight: Exact, cluster: Hashable, unit: Hashable) -> None:
        """Add one verdict's value to the entry's cells, or account for it as left out."""
        raise NotImplementedError

    def _put_unknown(self, entry: Entry[Any], weight: Exact, cluster: Hashable, unit: Hashable) -> None:
        """Account for a result that could have counted either way."""
        entry.unknown += weight

    def _estimate(self, entry: Entry[Any], level: float, mix_versions: bool, cluster_word: str | None) -> Estimate:
        raise NotImplementedError

    # -- what they share ----------------------------------------------------------------------------------------------

    def _read(
        self, results: Iterable[Any] | Tally[Any], by: Key | None, cluster: Key | None, duplicates: Duplicates
    ) -> Tally[Any]:
        if not isinstance(results, Tally):
            return self.tally(results, by=by, cluster=cluster, duplicates=duplicates)
        if results.reads != self.reads():
            raise InputError(f"summary {self.name!r}: this tally counts other than what the summary reads")
        if results.by != fingerprint(by):
            known, asked = _key_words(results.by), _key_words(fingerprint(by))
            found = "is not grouped" if results.by is None else f"is grouped by {known}, not by {asked}"
            raise InputError(f"summary {self.name!r}: this tally {found}: make it with tally(results, by={asked})")
        if cluster is not None and results.cluster != fingerprint(cluster):
            known, asked = _key_words(results.cluster), _key_words(fingerprint(cluster))
            raise InputError(f"summary {self.name!r}: this tally has the cluster {known}, not {asked}")
        return results

    def _left_out(self, entry: Entry[Any], reason: str, weight: Exact, cluster: Hashable, unit: Hashable) -> None:
        entry.left_out[reason] += 1
        if reason in _COULD_COUNT:
            self._put_unknown(entry, weight, cluster, unit)

    def _account(self, entry: Entry[Any], mix_versions: bool) -> tuple[dict[str, int], list[str]]:
        """Versions and flags of an entry.

        Raises:
            MixedVersionsError: several versions of one evaluator, and `mix_versions` is not set.
        """
        by_evaluator: dict[str, list[str]] = {}
        for evaluator, version in entry.versions:
            by_evaluator.setdefault(evaluator, []).append(version)
        mixed = {evaluator: sorted(found) for evaluator, found in by_evaluator.items() if len(found) > 1}
        if mixed and not mix_versions:
            evaluator, found = next(iter(sorted(mixed.items())))
            raise MixedVersionsError(
                f"summary {self.name!r} would pool versions {', '.join(found)} of evaluator {evaluator!r}: pass the results of "
                "one version, or mix_versions=True"
            )
        flags = ["mixed_versions"] if mixed else []
        flags += sorted(entry.flags)
        versions = {f"{evaluator}@{version}": n for (evaluator, version), n in sorted(entry.versions.items())}
        return versions, flags

    def _finished(
        self,
        entry: Entry[Any],
        mix_versions: bool,
        cluster_word: str | None,
        *,
        value: float | None,
        interval: Interval,
        level: float,
        clusters: Counter[str],
        own: str | None = None,
        **fields: Any,
    ) -> Estimate:
        versions, flags = self._account(entry, mix_versions)
        total = sum(clusters.values())
        words = (
            ("user", "user"),
            ("parent", self.parent),
            ("named", cluster_word or "cluster"),
            ("own", own or self.noun),
        )
        clustered_by: dict[str, int] = {}
        for kind, word in words:
            # Where every row is a cluster of its own, there is nothing to say.
            if clusters[kind] and (kind != "own" or own or clusters[kind] < total):
                clustered_by[word] = clustered_by.get(word, 0) + clusters[kind]
        if value is not None and total < LOW_CONFIDENCE_UNDER:
            flags.insert(0, "low_confidence")
        status: Status = fields.pop("status", None) or (
            "undefined" if value is None else "degenerate" if interval.low is None and interval.high is None else "ok"
        )
        reason = fields.pop("reason", None) or (interval.reason if status != "ok" else None)
        left_out = entry.left_out + fields.pop("also_left_out", Counter())
        return Estimate(
            name=self.name,
            value=value,
            low=interval.low,
            high=interval.high,
            level=level,
            noun=self.noun,
            clusters=total,
            clustered_by=clustered_by,
            variance=interval.variance,
            method=interval.method,
            status=status,
            reason=reason,
            flags=tuple(flags),
            left_out=dict(sorted(left_out.items(), key=lambda item: (-item[1], item[0]))),
            versions=versions,
            **fields,
        )


# ---------------------------------------------------------------------------------------------------------------------
# Reading results: whose they are, and into which group, cluster and unit they go
# ---------------------------------------------------------------------------------------------------------------------

_NOBODY = About("value")


def _collector(
    summary: Summary[V], tally: Tally[Any], by: Key | None, cluster: Key | None
) -> Callable[[Result[V] | V], None]:
    of, leaves_out, entries = summary.of, summary.leaves_out, tally.entries
    groups_of = None if by is None else _reader(by)
    cluster_of = None if cluster is None else _named_cluster(cluster)
    unit_of = None if summary.per is None else _unit_reader(summary.per)
    weighed = summary._weighed()

    def add(result: Result[V] | V) -> None:
        no_verdict = None
        value: Any
        if isinstance(result, Verdict):
            value, about = result.value, result.about or _NOBODY
        elif isinstance(result, NO_VERDICT):
            value, about, no_verdict = None, result.about or _NOBODY, result.status
        else:
            value, about = result, _NOBODY
        if no_verdict is None and not isinstance(value, of):
            raise InputError(
                f"summary {summary.name!r} reads {of.__name__}, not {type(value).__name__}: pass it the results of one measure, "
                "such as [r for r in results if r.evaluator == 'completion']"
            )

        if cluster_of is not None:
            where = cluster_of(about, result)
        elif about.user is not None:
            where = about.user
        else:
            # A part of a session without a user belongs with the session's other parts.
            where = None if about.session is None else (about.session,)
        unit = None if unit_of is None else unit_of(about, result)
        weight: Exact = 1 if about.weight is None or not weighed else exact(about.weight)

        groups: Sequence[str | None] = (None,)
        if groups_of is not None:
            found = groups_of(about)
            if found is not None and not isinstance(found, str):
                groups = _several(found)
                tally.overlap |= len(groups) > 1
            else:
                groups = (found,)
        for group in groups:
            entry = entries.get(group)
            if entry is None:
                entry = entries[group] = Entry(summary._cells())
            entry.results += 1
            if no_verdict is not None:
                summary._left_out(entry, _NO_VERDICT_WORDS[no_verdict], weight, where, unit)
                continue
            if isinstance(result, Verdict):
                entry.versions[result.evaluator, result.version] += 1
                if result.flags:
                    entry.flags.update(result.flags)
            if about.weight is not None:
                if weighed:
                    entry.flags["sampled"] += 1
                elif about.weight != 1:
                    entry.flags["unweighted"] += 1
            reason = None if leaves_out is None else leaves_out(value)
            if reason is not None:
                summary._left_out(entry, reason, weight, where, unit)
            else:
                summary._put(entry, value, weight, where, unit)

    return add


_OWN_FIELDS = ("user", "session", "arm", "kind")


def _several(found: object) -> Sequence[str | None]:
    if isinstance(found, list | tuple) and all(isinstance(text, str) for text in found):
        return list(dict.fromkeys(found)) or (None,)
    raise InputError(f"a group is a text, several texts or None, not {found!r}")


def _reader(key: Key) -> Callable[[About], str | Sequence[str] | None]:
    if not isinstance(key, str):
        return key
    if key == "session":
        return lambda about: about.session or about.id
    if key in _OWN_FIELDS:
        return lambda about: getattr(about, key)
    return lambda about: (about.attributes or {}).get(key)


def _named_cluster(key: Key) -> Callable[[About, object], Hashable]:
    read = _reader(key)
    named = f"cluster={key!r}" if isinstance(key, str) else "the cluster function"

    def cluster_of(about: About, result: object) -> Hashable:
        found = read(about)
        if not isinstance(found, str):
            raise InputError(f"{named}: {describe(result)} has {_no_text(found)}; every result needs exactly one text")
        # Session ids alone repeat across users in real logs.
        return ("named", about.user, found) if key == "session" else ("named", found)

    return cluster_of


def _unit_reader(per: Per) -> Callable[[About, object], Hashable]:
    if callable(per):
        return lambda about, result: _unit(per(about), result)
    names = [per] if isinstance(per, str) else list(per)
    readers = [_reader(name) for name in names]

    def unit_of(about: About, result: object) -> Hashable:
        parts = tuple(read(about) for read in readers)
        for name, part in zip(names, parts, strict=True):
            if not isinstance(part, str):
                raise InputError(
                    f"per={name!r}: {describe(result)} has {_no_text(part)}; every result needs exactly one text"
                )
        # Session ids alone repeat across users in real logs.
        return (about.user, *parts) if "session" in names else parts

    return unit_of


def _unit(found: Hashable, result: object) -> Hashable:
    if found is None:
        raise InputError(f"the per function: {describe(result)} has none; every result needs one")
    return found


def _no_text(found: object) -> str:
    return "none" if found is None else "several" if isinstance(found, list | tuple) else f"{found!r}, which is no text"


def _cluster_word(cluster: Hashable) -> str | None:
    return None if cluster is None else cluster if isinstance(cluster, str) else "cluster"


def _key_words(key: Hashable) -> str:
    """A fingerprinted key as a message names it."""
    return "a function" if isinstance(key, tuple) else repr(key)


def _cluster_kinds(keys: Iterable[Hashable], own: int) -> Counter[str]:
    """How many clusters are users, parents, named by the caller, or rows of their own."""
    kinds: Counter[str] = Counter()
    for key in keys:
        kinds["user" if isinstance(key, str) else "named" if isinstance(key, tuple) and len(key) > 1 else "parent"] += 1
    kinds["own"] = own
    return kinds


# ---------------------------------------------------------------------------------------------------------------------
# The kinds of summary
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rate(Summary[V]):
    """Hits over total: 0 ≤ hits ≤ total in every verdict.

    Args:
        hits: how many of a verdict's units count, or None where that is not known.
        total: how many units a verdict has; one by default.
        pending: how many more units it will have once their time has come; they are counted as pending.
        method: of the interval: "wilson", "jeffreys", "clopper_pearson", or "wilson_cr1".
        fold: "any", "all", "share", "flip" or `pass_k(k)`, with `per`.
    """

    _: KW_ONLY
    hits: Callable[[V], int | None]
    total: Callable[[V], int] | None = None
    pending: Callable[[V], int] | None = None
    method: RateMethod = "wilson"
    fold: Fold | None = None

    def __post_init__(self) -> None:
        Summary.__post_init__(self)
        if self.fold is not None:
            fold_function(self.fold)

    def _parts(self) -> tuple[object, ...]:
        return (self.hits, self.total, self.pending)

    def _cells(self) -> Counts | Units:
        return Counts() if self.fold is None else Units()

    def _put(self, entry: Entry[Any], value: V, weight: Exact, cluster: Hashable, unit: Hashable) -> None:
        hits = self.hits(value)
        total = 1 if self.total is None else self.total(value)
        pending = 0 if self.pending is None else self.pending(value)
        known = 0 if hits is None else hits
        whole = all(isinstance(number, int) for number in (known, total, pending))
        if not whole or not 0 <= known <= total or pending < 0:
            raise InputError(
                f"summary {self.name!r}: a verdict has {hits!r} hits of {total!r}; a rate needs whole numbers with "
                "0 ≤ hits ≤ total"
            )
        missing = {PENDING: pending}
        if hits is None:
            missing[UNKNOWN], total = total, 0
        entry.left_out.update(missing)
        unknown = sum(missing.values())
        entry.unknown += weight * unknown
        entry.counted += total
        if self.fold is None:
            entry.cells.add(weight * known, weight * total, cluster)
        else:
            entry.cells.add(unit, int(known), total, unknown, cluster)

    def _put_unknown(self, entry: Entry[Any], weight: Exact, cluster: Hashable, unit: Hashable) -> None:
        if self.fold is not None:
            entry.cells.add(unit, 0, 0, 1, cluster)
        entry.unknown += weight
        entry.unknown_weight |= self.total is not None

    def _estimate(self, entry: Entry[Any], level: float, mix_versions: bool, cluster_word: str | None) -> Estimate:
        if self.fold is not None:
            return self._folded(entry, level, mix_versions, cluster_word)
        moments = entry.cells.moments()
        clusters = _cluster_kinds(
            (key for key, row in entry.cells.clusters.items() if row[1]), entry.cells.loose_clusters
        )
        ratio = moments.ratio
        bounds = None
        if entry.unknown_weight:
            bounds = (0.0, 1.0)
        elif moments.m + entry.unknown:
            bounds = _share_bounds(moments.y, moments.m, entry.unknown)
        return self._finished(
            entry,
            mix_versions,
            cluster_word,
            value=None if ratio is None else float(ratio),
            interval=rate_interval(moments, level=level, method=self.method, units=entry.counted),
            level=level,
            clusters=clusters,
            # A row of several units is what they are parts of.
            own=self.parent if self.total is not None and entry.counted > sum(clusters.values()) else None,
            unit="share",
            counts={"hits": _number(moments.y), "total": _number(moments.m)},
            n=entry.counted,
            bounds=bounds,
        )

    def _folded(self, entry: Entry[Units], level: float, mix_versions: bool, cluster_word: str | None) -> Estimate:
        fold = fold_function(self.fold)  # type: ignore[arg-type]
        counts, left_out = Counts(), Counter[str]()
        low, high, could_count = Fraction(0), Fraction(0), 0
        for hits, total, missing, cluster in entry.cells.rows.values():
            value = fold(hits, total)
            if isinstance(value, str):
                left_out[f"with {value}"] += 1
            else:
                counts.add(value, 1, cluster)
            # What the unit could have been, had the missing results come: all misses, all hits, or one of them a hit.
            possible = [fold(hits + extra, total + missing) for extra in {0, min(1, missing), missing}]
            values = [each for each in possible if not isinstance(each, str)]
            if values:
                could_count += 1
                low += min(values)
                high += max(values)
        bounds = None
        if could_count:
            bounds = (0.0, 1.0) if entry.unknown_weight else (float(low / could_count), float(high / could_count))
        moments = counts.moments()
        binary = self.fold in ("any", "all", "flip")
        if binary:
            interval = rate_interval(moments, level=level, method=self.method)
        else:
            from evalr.estimates.mean import mean_interval

            interval = mean_interval(moments, level=level, bounds=(0, 1))
        return self._finished(
            entry,
            mix_versions,
            cluster_word,
            value=None if moments.ratio is None else float(moments.ratio),
            interval=interval,
            level=level,
            clusters=_cluster_kinds(counts.clusters, counts.loose_clusters),
            unit="share",
            counts={"hits": _number(moments.y), "total": _number(moments.m)},
            n=int(moments.m),
            bounds=bounds,
            also_left_out=left_out,
        )


@dataclass(frozen=True)
class Mean(Summary[V]):
    """The mean of a number, such as a quality from 1 to 5.

    Args:
        value: the number, None where it is not known.
        weight: what it is weighed by; one by default.
        bounds: the smallest and largest it can be, where there are such; the interval then stays inside.
        fold: "mean", with `per`: first the mean of each unit.
        unit: what the number is in, such as "tokens".
    """

    _: KW_ONLY
    value: Callable[[V], float | None]
    weight: Callable[[V], float] | None = None
    bounds: tuple[float, float] | None = None
    fold: Literal["mean"] | None = None
    unit: Unit = "number"

    def __post_init__(self) -> None:
        Summary.__post_init__(self)
        if self.fold not in (None, "mean"):
            raise InputError(f"summary {self.name!r}: fold={self.fold!r}; a Mean folds by 'mean'")
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise InputError(f"summary {self.name!r}: bounds={self.bounds!r} must be (smallest, largest)")

    def _parts(self) -> tuple[object, ...]:
        return (self.value, self.weight, self.bounds)

    def _cells(self) -> Counts | Units:
        return Counts() if self.fold is None else Units()

    def _put(self, entry: Entry[Any], value: V, weight: Exact, cluster: Hashable, unit: Hashable) -> None:
        number = self.value(value)
        if number is None:
            self._left_out(entry, UNKNOWN, weight, cluster, unit)
            return
        if not isfinite(number):
            self._left_out(entry, "not a number", weight, cluster, unit)
            self._put_unknown(entry, weight, cluster, unit)
            return
        if self.bounds is not None and not self.bounds[0] <= number <= self.bounds[1]:
            raise InputError(
                f"summary {self.name!r}: {number} is outside its bounds, {self.bounds[0]} to {self.bounds[1]}"
            )
        if self.weight is not None:
            weight = weight * exact(self.weight(value))
            if weight < 0:
                raise InputError(f"summary {self.name!r}: a weight is {float(weight)}; it must not be negative")
        amount = weight * exact(number)
        if not weight:
            self._left_out(entry, "without weight", weight, cluster, unit)
        elif self.fold is None:
            entry.cells.add(amount, weight, cluster)
        else:
            entry.cells.add(unit, amount, weight, 0, cluster)

    def _put_unknown(self, entry: Entry[Any], weight: Exact, cluster: Hashable, unit: Hashable) -> None:
        if self.fold is not None:
            entry.cells.add(unit, 0, 0, 1, cluster)
        entry.unknown += weight
        entry.unknown_weight |= self.weight is not None or self.fold is not None

    def _estimate(self, entry: Entry[Any], level: float, mix_versions: bool, cluster_word: str | None) -> Estimate:
        from evalr.estimates.mean import mean_interval

        counts, left_out = entry.cells, Counter[str]()
        if self.fold is not None:
            counts = Counts()
            for total, weight, _, cluster in entry.cells.rows.values():
                if weight:
                    counts.add(Fraction(total) / weight, 1, cluster)
                else:
                    left_out["without a value"] += 1
        moments = counts.moments()
        return self._finished(
            entry,
            mix_versions,
            cluster_word,
            value=None if moments.ratio is None else float(moments.ratio),
            interval=mean_interval(moments, level=level, bounds=self.bounds),
            level=level,
            clusters=_cluster_kinds((key for key, row in counts.clusters.items() if row[1]), counts.loose_clusters),
            unit=self.unit,
            counts={"sum": _number(moments.y), "total": _number(moments.m)},
            n=moments.rows,
            bounds=self._bounds(moments, entry),
            also_left_out=left_out,
        )

    def _bounds(self, moments: Moments, entry: Entry[Any]) -> tuple[float, float] | None:
        if not entry.unknown:
            return None if moments.ratio is None else (float(moments.ratio), float(moments.ratio))
        if self.bounds is None or entry.unknown_weight:
            return self.bounds
        low, high = (exact(bound) for bound in self.bounds)
        total = Fraction(moments.m + entry.unknown)
        return float((moments.y + low * entry.unknown) / total), float((moments.y + high * entry.unknown) / total)


@dataclass(frozen=True)
class TimeTo(Summary[V]):
    """How long until it happened, or until the log ended: nothing that is still open is dropped.

    The value is one of two: the share in which it happened `within` a time (or, with `open=True`, in which it had not yet),
    or the time by which it had happened in a share `quantile` (the median by default).

    Args:
        after: how long, as a timedelta or a number; None where it is not known.
        end: how it ended, as any text, or None where it was still open.
        event: the end that is waited for. Any other is a competing end: it then can no longer happen.
        within: as `after`.
        open: see above.
        quantile: see above; not used where `within` is given.
        fold: "any" (the first of a unit to end) or "all" (the last), with `per`.
        unit: what a number given by `after` is in.
    """

    _: KW_ONLY
    after: Callable[[V], timedelta | float | None]
    end: Callable[[V], str | None]
    event: str
    within: timedelta | float | None = None
    open: bool = False
    quantile: float = 0.5
    fold: Literal["any", "all"] | None = None
    unit: Unit = "seconds"

    def __post_init__(self) -> None:
        Summary.__post_init__(self)
        if self.fold not in (None, "any", "all"):
            raise InputError(f"summary {self.name!r}: fold={self.fold!r}; a TimeTo folds by 'any' or 'all'")
        if not 0 < self.quantile < 1:
            raise InputError(f"summary {self.name!r}: quantile={self.quantile} must be between 0 and 1")
        if self.within is not None and not (isfinite(_length(self.within)) and _length(self.within) >= 0):
            raise InputError(f"summary {self.name!r}: within={self.within!r} must be a length of time from 0")

    def _parts(self) -> tuple[object, ...]:
        return (self.after, self.end, self.event)

    def _weighed(self) -> bool:
        return False

    def _cells(self) -> Durations | UnitDurations:
        if self.fold is None:
            return Durations()
        return UnitDurations(first=self.fold == "any")

    def _put(self, entry: Entry[Any], value: V, weight: Exact, cluster: Hashable, unit: Hashable) -> None:
        after = self.after(value)
        if after is None:
            self._left_out(entry, UNKNOWN, weight, cluster, unit)
            return
        length = _length(after)
        if not (isfinite(length) and length >= 0):
            raise InputError(f"summary {self.name!r}: a verdict has {after!r} as a length of time")
        end = self.end(value)
        code = OPEN if end is None else EVENT if end == self.event else COMPETING
        if self.fold is None:
            entry.cells.add(length, code, cluster)
        else:
            entry.cells.add(unit, length, code, cluster)

    def _put_unknown(self, entry: Entry[Any], weight: Exact, cluster: Hashable, unit: Hashable) -> None:
        entry.unknown += weight
        # It could end before or after the others of its unit, whatever those did.
        entry.unknown_weight |= self.fold is not None

    def _estimate(self, entry: Entry[Any], level: float, mix_versions: bool, cluster_word: str | None) -> Estimate:
        durations = entry.cells if isinstance(entry.cells, Durations) else entry.cells.durations()
        kinds = _cluster_kinds(durations.clusters, durations.loose_clusters())
        if self.within is None:
            return self._quantile(entry, durations, kinds, level, mix_versions, cluster_word)
        return self._share(entry, durations, kinds, level, mix_versions, cluster_word)

    def _share(
        self,
        entry: Entry[Any],
        durations: Durations,
        kinds: Counter[str],
        level: float,
        mix_versions: bool,
        cluster_word: str | None,
    ) -> Estimate:
        from evalr.estimates.duration import incidence

        found = incidence(*durations.arrays(), at=_length(self.within), level=level)
        bounds = _share_bounds(found.ended, len(durations), entry.unknown, found.censored)
        if bounds is not None and entry.unknown_weight:
            bounds = (0.0, 1.0)
        if self.open:
            found = found.complement()
            bounds = None if bounds is None else (1 - bounds[1], 1 - bounds[0])
        return self._finished(
            entry,
            mix_versions,
            cluster_word,
            value=found.value,
            interval=found.interval,
            level=level,
            clusters=kinds,
            unit="share",
            counts={
                "ended": found.ended,
                "ended_otherwise": found.competed,
                "open": len(durations) - found.ended - found.competed - found.censored,
                "censored": found.censored,
            },
            n=len(durations),
            bounds=bounds,
            status=None if found.status == "ok" else found.status,
            reason=found.reason,
        )

    def _quantile(
        self,
        entry: Entry[Any],
        durations: Durations,
        kinds: Counter[str],
        level: float,
        mix_versions: bool,
        cluster_word: str | None,
    ) -> Estimate:
        from evalr.estimates.duration import quantile

        found = quantile(*durations.arrays(), q=self.quantile, level=level)
        return self._finished(
            entry,
            mix_versions,
            cluster_word,
            value=found.value,
            interval=found.interval,
            level=level,
            clusters=kinds,
            unit=self.unit,
            counts={"ended": found.ended, "ended_otherwise": found.competed, "censored": found.censored},
            n=len(durations),
            bounds=None,
            status=None if found.status == "ok" else found.status,
            reason=found.reason,
        )


def _length(time: timedelta | float | None) -> float:
    if isinstance(time, timedelta):
        return time.total_seconds()
    return float("nan") if time is None else float(time)


def _share_bounds(hits: Exact, total: Exact, unknown: Exact, undecided: Exact = 0) -> tuple[float, float] | None:
    """Where a share could lie: `unknown` more could each be a hit or not, and so could `undecided` of the total."""
    whole = Fraction(total + unknown)
    return (float(hits / whole), float((hits + undecided + unknown) / whole)) if whole else None


def _number(value: Exact) -> float:
    """Counts as people read them: whole where they are."""
    return int(value) if value == int(value) else float(value)

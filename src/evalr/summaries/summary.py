"""What every summary shares: reading results into a tally, and a tally into estimates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from datetime import tzinfo
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self

from pydantic import BaseModel

from evalr.errors import InputError, MixedVersionsError
from evalr.estimates.buckets import Bucket, TimeBucket, buckets_between
from evalr.estimates.estimate import Estimate, Groups, Status, Trend
from evalr.estimates.interval import Interval
from evalr.estimates.words import Unit, choice_words
from evalr.inputs import About, Assignment, Input
from evalr.quoting import quoted
from evalr.summaries.columns import Columns
from evalr.summaries.keys import Key, Per, Place, UnitOf, cluster_reader, group_reader, key_words, unit_reader
from evalr.tallies.fingerprint import fingerprint
from evalr.tallies.moments import Exact, exact
from evalr.tallies.numbering import Clusters
from evalr.tallies.tally import Entry, Tally
from evalr.verdicts import NO_VERDICT, NO_VERDICT_WORDS, Duplicates, Result, V, Verdict, about_of, one_per_subject

if TYPE_CHECKING:
    from evalr.estimates.lift import Lift
    from evalr.estimates.trends import Trends
    from evalr.summaries.two_arms import LiftInterval, TwoArms

PENDING = "pending"
UNKNOWN = "unknown"
LOW_CONFIDENCE_UNDER = 30

_COULD_COUNT = {PENDING, UNKNOWN, *NO_VERDICT_WORDS.values()}
"""What is left out for these reasons could have counted either way, and widens the bounds."""

_NOBODY = About("value")

_ASKED = ("cluster", "level", "duplicates", "mix_versions")
"""What every estimate takes beside the fields of its summary."""


class Terms(NamedTuple):
    """What a caller asks of an estimate."""

    level: float
    mix_versions: bool
    cluster_word: str
    """What a cluster is called where the caller named it."""


@dataclass(frozen=True)
class Summary(ABC, Generic[V]):
    """What every summary shares. Use `Rate`, `Mean`, `Contest` or `TimeTo`.

    Args:
        name: unique among summaries; gates and reports use it.
        of: the verdict type that it reads; values of its subclasses count too.
        leaves_out: why a verdict is not counted, or None where it is. "pending" and "unknown" widen the bounds.
        per: what a unit is, where several results of one are first folded into one: `per="task"`.
        fold: how: `fold=pass_k(3)`.
        title: what a report calls it; by default its name in words.
        noun: what one counted row is called, with `/` and its plural where no rule gives it.
        parent: what the sessions or artifacts are called that its rows are parts of.
    """

    name: str
    _: KW_ONLY
    of: type[V]
    leaves_out: Callable[[V], str | None] | None = None
    per: Per | None = None
    fold: Any = None
    title: str | None = None
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
            cluster: what the interval is computed over. By default the user where one is known, else the session or
                artifact that the result is a part of, else the result itself. A cluster named here must be known of
                every result.
            level: of the two-sided interval.
            duplicates: what to do with a second result of one subject: "error", "first" or "latest".
            mix_versions: allow verdicts of several versions of one evaluator, and flag them.
            settings: other values for the summary's own fields, such as `method="jeffreys"` or
                `within=timedelta(hours=1)`.
        """
        summary = self._set(settings)
        tally = summary._tallied(results, None, cluster, duplicates)
        return summary._group(tally, None, level, mix_versions)

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
        summary = self._set(settings)
        tally = summary._tallied(results, key, cluster, duplicates)
        names: list[str | None] = [*sorted(tally.named_groups())]
        if None in tally.entries:
            names.append(None)
        estimates = {name: summary._group(tally, name, level, mix_versions) for name in names}
        return Groups(key if isinstance(key, str) else "group", estimates, overlap=tally.overlap)

    def trend(
        self,
        results: Iterable[Result[V] | V] | Tally[Any],
        bucket: Bucket = "day",
        *,
        tz: str | tzinfo = "UTC",
        cluster: Key | None = None,
        level: float = 0.95,
        duplicates: Duplicates = "error",
        mix_versions: bool = False,
        **settings: Any,
    ) -> Trend:
        """One estimate for each hour, day, week or month of the results' times, in the time zone `tz`.

        Buckets between the first and the last that hold nothing are there too, undefined. Results without a time are
        in none; they come last, under None.
        """
        summary = self._set(settings)
        tally = summary._tallied(results, TimeBucket(bucket, tz), cluster, duplicates)
        names: list[str | None] = list(buckets_between(tally.named_groups(), bucket))
        if None in tally.entries:
            names.append(None)
        return Trend(bucket, {name: summary._group(tally, name, level, mix_versions) for name in names})

    def trends(
        self,
        results: Iterable[Result[V] | V],
        bucket: Bucket = "day",
        *,
        by: Key = "arm",
        tz: str | tzinfo = "UTC",
        cluster: Key | None = None,
        level: float = 0.95,
        duplicates: Duplicates = "error",
        mix_versions: bool = False,
        **settings: Any,
    ) -> Trends:
        """The trend of each arm, and that of results without one, which are shown and never taken for an arm's.

        Args:
            results: as in `estimate`.
            bucket: as in `trend`, as is `tz`.
            by: what says the arm: any key.
            tz: whose calendar days, weeks and months are of.
            cluster: as in `estimate`; so are the others.
            level: of all intervals.
            duplicates: of one subject.
            mix_versions: allow several versions of one evaluator.
            settings: other values for the summary's own fields.
        """
        from evalr.summaries.over_time import OverTime, trends_of

        summary = self._set(settings)
        tally = summary.tally(results, by=OverTime(TimeBucket(bucket, tz), by), cluster=cluster, duplicates=duplicates)
        called = by if isinstance(by, str) else "group"
        return trends_of(summary, tally, bucket, called, level=level, mix_versions=mix_versions)

    def lift(
        self,
        results: Iterable[Result[V] | V] | Tally[Any],
        *,
        treatment: str = "treatment",
        control: str | None = None,
        by: Key = "arm",
        randomised: bool = False,
        assignments: Iterable[Assignment] | None = None,
        weights: Mapping[str, float] | None = None,
        before: Iterable[Result[V] | V] | Tally[Any] | None = None,
        planned: int = 1_000,
        interval: LiftInterval = "mover",
        cluster: Key | None = None,
        level: float = 0.95,
        duplicates: Duplicates = "error",
        mix_versions: bool = False,
        **settings: Any,
    ) -> Lift:
        """Two arms compared: by how much, how sure, and whether the comparison is sound.

        Each arm's estimate is that of `by`; results without an arm are shown, and are in neither. Users in both arms
        are counted as such. Intervals and tests are those of `evalr.estimates.compare`; see `Lift`.

        Args:
            results: as in `estimate`; a tally is grouped by `by`.
            treatment: the arm that is compared.
            control: the arm that it is compared with: by default "control", or "holdout" where there is no "control".
            by: what says the arm: any key, so that two versions or two months can be compared, too.
            randomised: say that arms were assigned at random; without it, the difference is flagged observational.
            assignments: every user (or session) that was assigned, before any filter, to check that the arms are as
                large as the weights make likely, and that they lost equal shares.
            weights: of the split, by arm: `{"treatment": 0.9, "control": 0.1}`.
            before: the same users' results from before they were assigned, or a tally of them, also of another rate or
                mean: what they did then is taken off (CUPED), which narrows the interval. That they are from before is
                checked where results have times; tallies have none.
            planned: how many clusters, both arms together, are planned for; the interval for those who look every day
                is narrowest there. Say it before the first look.
            interval: of the difference: "mover" (Newcombe's for independent rows), "mover_cr1", "agresti_caffo",
                "miettinen_nurminen", or, to compare with what Reflexio shows, "reflexio_sessions" and "reflexio_users".
                All but the first are for rates.
            cluster: as in `estimate`.
            level: of all intervals.
            duplicates: as in `estimate`.
            mix_versions: as in `estimate`; it holds for both arms together.
            settings: as in `estimate`.

        Raises:
            InputError: an argument cannot be used, or an arm is not there while others are.
            MixedVersionsError: the arms were judged by different versions of an evaluator.
        """
        from evalr.summaries.lifting import Asked, lift_of

        summary = self._set(settings)
        asked = Asked(
            treatment, control, by, randomised, assignments, weights, before, planned, interval, cluster, duplicates
        )
        return lift_of(summary, results, asked, Terms(level, mix_versions, _cluster_word(fingerprint(cluster))))

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
        """An empty tally and the function that adds one result to it, for streams.

        Duplicates are the caller's to refuse.
        """
        tally: Tally[Any] = Tally(self.reads(), by=fingerprint(by), cluster=fingerprint(cluster))
        groups_of, cluster_of, unit_of = group_reader(by), cluster_reader(cluster, by), unit_reader(self.per)
        entries, weighed = tally.entries, self._weighed()

        def add(result: Result[V] | V) -> None:
            about = about_of(result) or _NOBODY
            weight: Exact = 1 if about.weight is None or not weighed else exact(about.weight)
            place = Place(cluster_of(about, result), unit_of(about, result), weight)
            groups = groups_of(about)
            tally.overlap |= len(groups) > 1
            for group in groups:
                entry = entries.get(group) or tally.entry(group, self._cells)
                self._count(entry, result, about.weight, place)

        return tally, add

    def columns(self) -> Columns | None:
        """Empty columns for what `batch` counts; None where verdicts are counted one by one alone."""
        return None

    def batch(
        self,
        tally: Tally[Any],
        group: str | None,
        columns: Columns,
        clusters: Clusters,
        version: tuple[str, str],
    ) -> Callable[[], None]:
        """Many verdicts without sampling weights, ready for a group of a tally: calling what this returns counts them.

        Args:
            tally: one that `collector` has made, whose clusters and groups these are.
            group: the group, None where there is no grouping.
            columns: of the kind that `columns` makes; not to be changed before they are counted.
            clusters: of each verdict.
            version: the name and version of the evaluator that gave them all.

        Raises:
            Exception: of any kind, where a column holds what cannot be counted.
        """
        size = len(clusters.numbers)
        if any(len(column) != size for column in columns):
            raise InputError(f"summary {self.name!r}: the columns must have one entry for each verdict")
        put = self._batch(columns, clusters)

        def count() -> None:
            entry = tally.entry(group, self._cells)
            entry.results += size
            entry.versions[version] += size
            put(entry)

        return count

    def reads(self) -> tuple[Hashable, ...]:
        """What its tally depends on, in plain values: summaries that read alike share one tally."""
        per = tuple(self.per) if isinstance(self.per, list) else self.per
        parts = (type(self), self.of, self.leaves_out, per, self.fold, *self._parts())
        return tuple(fingerprint(part) for part in parts)

    def _set(self, settings: Mapping[str, Any]) -> Self:
        """The summary with other values for some of its fields.

        Raises:
            InputError: it has no such field.
        """
        own = [field.name for field in fields(self) if field.init]
        for name in settings:
            if name not in own:
                asked = choice_words(name, [*_ASKED, *own])
                raise InputError(f"summary {self.name!r} has no setting {name!r}; {asked}")
        return replace(self, **settings) if settings else self

    # -- what each kind of summary fills in ---------------------------------------------------------------------------

    @abstractmethod
    def _parts(self) -> tuple[object, ...]:
        """The fields of its own that decide what its tally holds."""

    @abstractmethod
    def _cells(self) -> Any:
        """Empty cells for one group."""

    @abstractmethod
    def _put(self, entry: Entry[Any], value: V, place: Place) -> None:
        """Add one verdict's value to the entry's cells, or account for it as left out."""

    @abstractmethod
    def _put_unknown(self, entry: Entry[Any], place: Place) -> None:
        """Account for a result that could have counted either way."""

    def _put_no_verdict(self, entry: Entry[Any], reason: str, place: Place) -> None:
        """Account for a failure, a skip or a hand-off."""
        self._left_out(entry, reason, place)

    @abstractmethod
    def _estimate(self, entry: Entry[Any], terms: Terms) -> Estimate:
        """The number that the entry's cells give, with its account."""

    def _compare(self, treatment: Entry[Any], control: Entry[Any], level: float, interval: str) -> TwoArms:
        """How far apart two arms are."""
        raise InputError(f"summary {self.name!r} does not say how two arms are compared")

    def _batch(self, columns: Any, clusters: Clusters) -> Callable[[Entry[Any]], None]:
        """What adds many verdicts to an entry; made first, it raises what is wrong with any."""
        raise InputError(f"summary {self.name!r} counts one verdict at a time")

    def _weighed(self) -> bool:
        """Whether sampling weights count; where they do not, estimates say so."""
        return self.fold is None

    # -- reading ------------------------------------------------------------------------------------------------------

    def _count(self, entry: Entry[Any], result: Result[V] | V, sampling_weight: float | None, place: Place) -> None:
        entry.results += 1
        if isinstance(result, NO_VERDICT):
            self._put_no_verdict(entry, NO_VERDICT_WORDS[result.status], place)
            return
        value: Any = result
        if isinstance(result, Verdict):
            value = result.value
            entry.versions[result.evaluator, result.version] += 1
            if result.flags:
                entry.flags.update(result.flags)
        if not isinstance(value, self.of):
            raise InputError(
                f"summary {self.name!r} reads {self.of.__name__}, not {type(value).__name__}: "
                f"{_what_to_pass(result, self.of.__name__)}"
            )
        if sampling_weight is not None:
            if self._weighed():
                entry.flags["sampled"] += 1
            elif sampling_weight != 1:
                entry.flags["unweighted"] += 1
        reason = None if self.leaves_out is None else self.leaves_out(value)
        if reason is None:
            self._put(entry, value, place)
        else:
            self._left_out(entry, reason, place)

    def _left_out(self, entry: Entry[Any], reason: str, place: Place) -> None:
        entry.left_out[reason] += 1
        if reason in _COULD_COUNT:
            self._put_unknown(entry, place)

    def _tallied(
        self, results: Iterable[Any] | Tally[Any], by: Key | None, cluster: Key | None, duplicates: Duplicates
    ) -> Tally[Any]:
        if not isinstance(results, Tally):
            return self.tally(results, by=by, cluster=cluster, duplicates=duplicates)
        if results.reads != self.reads():
            raise InputError(f"summary {self.name!r}: this tally counts other than what the summary reads")
        if results.by != fingerprint(by):
            asked = key_words(fingerprint(by))
            found = (
                f"is grouped by {key_words(results.by)}, not by {asked}" if results.by is not None else "is not grouped"
            )
            raise InputError(f"summary {self.name!r}: this tally {found}: make it with tally(results, by={asked})")
        if cluster is not None and results.cluster != fingerprint(cluster):
            known, asked = key_words(results.cluster), key_words(fingerprint(cluster))
            raise InputError(f"summary {self.name!r}: this tally has the cluster {known}, not {asked}")
        return results

    # -- estimating ---------------------------------------------------------------------------------------------------

    def _group(self, tally: Tally[Any], group: str | None, level: float, mix_versions: bool) -> Estimate:
        return self._estimate(self._entry(tally, group), self._terms(tally, level, mix_versions))

    def _entry(self, tally: Tally[Any], group: str | None) -> Entry[Any]:
        entry = tally.entries.get(group)
        return Entry(self._cells()) if entry is None else entry

    def _terms(self, tally: Tally[Any], level: float, mix_versions: bool) -> Terms:
        return Terms(level, mix_versions, _cluster_word(tally.cluster))

    def _finished(
        self,
        entry: Entry[Any],
        terms: Terms,
        *,
        value: float | None,
        interval: Interval,
        unit: Unit,
        counts: Mapping[str, float],
        n: int,
        clusters: Counter[str],
        bounds: tuple[float, float] | None,
        own: str | None = None,
        reading: str | None = None,
        status: Status | None = None,
        reason: str | None = None,
        also_left_out: Mapping[str, int] | None = None,
        worth: float | None = None,
    ) -> Estimate:
        """The estimate with its account. `own` names the rows that are clusters of their own where `noun` does not.

        `worth` is how many clusters of equal weight those are worth that differ in it.
        """
        if status is None:
            no_limits = interval.low is None and interval.high is None
            status = "undefined" if value is None else "degenerate" if no_limits else "ok"
        total = sum(clusters.values())
        few = min(total, total if worth is None else worth) < LOW_CONFIDENCE_UNDER
        left_out = Counter(entry.left_out)
        left_out.update(also_left_out or {})
        return Estimate(
            name=self.name,
            value=value,
            low=interval.low,
            high=interval.high,
            level=terms.level,
            unit=unit,
            reading=reading,
            noun=self._row_noun(),
            counts=counts,
            n=n,
            clusters=total,
            clustered_by=self._clustered_by(clusters, own, terms, n),
            variance=interval.variance,
            bounds=bounds,
            method=interval.method,
            status=status,
            reason=reason or (None if status == "ok" else interval.reason),
            flags=self._flags(entry, terms, few=value is not None and few),
            left_out={name: n for name, n in sorted(left_out.items(), key=lambda item: (-item[1], item[0])) if n},
            versions={f"{evaluator}@{version}": n for (evaluator, version), n in sorted(entry.versions.items())},
        )

    def _row_noun(self) -> str:
        """What one row is called: a folded one is the unit that it stands for."""
        if self.per is None or self.per == "id":
            return self.noun
        if isinstance(self.per, UnitOf):
            return self.per.noun
        return self.per if isinstance(self.per, str) else "unit"

    def _clustered_by(self, clusters: Counter[str], own: str | None, terms: Terms, n: int) -> dict[str, int]:
        alone = clusters["own"] + (clusters["repeated"] if clusters["repeated"] == n else 0)
        if own is None and alone == sum(clusters.values()):
            return {}  # every row is its own cluster, and has its noun already
        words = {
            "user": "user",
            "parent": self.parent,
            "named": terms.cluster_word,
            "own": own or self._row_noun(),
            "repeated": "item",
        }
        found: dict[str, int] = {}
        for kind, word in words.items():
            if clusters[kind]:
                found[word] = found.get(word, 0) + clusters[kind]
        return found

    def _flags(self, entry: Entry[Any], terms: Terms, *, few: bool) -> tuple[str, ...]:
        """What to know before using the estimate.

        Raises:
            MixedVersionsError: several versions of one evaluator, and `mix_versions` is not set.
        """
        versions: dict[str, list[str]] = {}
        for evaluator, version in sorted(entry.versions):
            versions.setdefault(evaluator, []).append(version)
        mixed = [evaluator for evaluator, found in versions.items() if len(found) > 1]
        if mixed and not terms.mix_versions:
            raise MixedVersionsError(
                f"summary {self.name!r} would pool versions {_quoted(versions[mixed[0]])} of evaluator {mixed[0]!r}: "
                "pass the results of one version, or mix_versions=True"
            )
        return (*(["low_confidence"] if few else []), *(["mixed_versions"] if mixed else []), *sorted(entry.flags))


def _cluster_word(cluster: Hashable) -> str:
    # A slash in a noun separates its plural.
    return cluster if isinstance(cluster, str) and "/" not in cluster else "cluster"


def _what_to_pass(given: object, wanted: str) -> str:
    """What to pass instead of something that is no result or value of a summary's own."""
    if isinstance(given, Verdict):
        return "pass it the results of one measure, such as [r for r in results if r.evaluator == ...]"
    if isinstance(given, Input):
        return f"measure each {given.kind} first, and pass what the evaluator gives"
    result = getattr(given, "result", None)
    if isinstance(result, (Verdict, *NO_VERDICT)):
        return "pass the .result of each"
    if isinstance(given, BaseModel):
        return f"pass values of {wanted}, or results that hold them"
    if isinstance(given, tuple):
        return f"pass a list of {wanted} values or of results, also where there is only one"
    return f"wrap each value in the verdict type, as in {wanted}(...)"


def share_bounds(hits: Exact, total: Exact, unknown: Exact, undecided: Exact = 0) -> tuple[float, float] | None:
    """Where a share could lie: `unknown` more could each be a hit or not, and so could `undecided` of the total."""
    whole = Fraction(total + unknown)
    return (float(hits / whole), float((hits + undecided + unknown) / whole)) if whole else None


def _quoted(names: list[str]) -> str:
    """The first few, as a message names them."""
    more = f" and {len(names) - 5:,} more" if len(names) > 5 else ""
    return ", ".join(quoted(name) for name in names[:5]) + more


def number(value: Exact) -> float:
    """Counts as people read them: whole where they are."""
    return int(value) if value == int(value) else float(value)

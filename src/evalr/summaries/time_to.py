"""Times: how long until it happened, or until the log ended."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from itertools import repeat
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Literal

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.estimates.words import Unit
from evalr.summaries.columns import Times
from evalr.summaries.keys import Key, Place, cluster_kinds
from evalr.summaries.summary import UNKNOWN, Summary, Terms, share_bounds
from evalr.tallies.durations import COMPETING, EVENT, OPEN, Durations, UnitDurations
from evalr.tallies.numbering import Clusters
from evalr.tallies.tally import Entry, Tally
from evalr.verdicts import Duplicates, Result, V

if TYPE_CHECKING:
    from evalr.estimates.duration import Curve, Quantile, RestrictedMean
    from evalr.estimates.survival import SurvivalCurve
    from evalr.summaries.two_arms import TwoArms


@dataclass(frozen=True)
class TimeTo(Summary[V]):
    """How long until it happened, or until the log ended: nothing that has not ended is dropped.

    The value is one of three: the share in which it happened `within` a time (or, with `open=True`, in which it had
    not yet); the time by which it had happened in a share `quantile` (the median by default); or, with `mean=True`, the
    mean time where none counts as longer than `within`. Sampling weights do not count.

    Args:
        after: how long, as a timedelta or a number; None where it is not known.
        end: how it ended, as any text, or None where it had not ended.
        event: the end that is waited for. Any other is a competing end: it then can no longer happen.
        within: as `after`.
        open: see above.
        mean: see above.
        quantile: see above; not used where `within` is given.
        fold: "any" (the first of a unit to end) or "all" (the last), with `per`. "all" is right on average only where
            the rows of a unit were followed equally long.
        unit: what a number given by `after` is in.
    """

    _: KW_ONLY
    after: Callable[[V], timedelta | float | None]
    end: Callable[[V], str | None]
    event: str
    within: timedelta | float | None = None
    open: bool = False
    mean: bool = False
    quantile: float = 0.5
    fold: Literal["any", "all"] | None = None
    unit: Unit = "seconds"

    def __post_init__(self) -> None:
        Summary.__post_init__(self)
        if self.fold not in (None, "any", "all"):
            raise InputError(f"summary {self.name!r}: fold={self.fold!r}; a TimeTo folds by 'any' or 'all'")
        if not 0 < self.quantile < 1:
            raise InputError(f"summary {self.name!r}: quantile={self.quantile} must be between 0 and 1")
        if self.within is not None and not _is_length(_length(self.within)):
            raise InputError(f"summary {self.name!r}: within={self.within!r} must be a length of time from 0")
        if self.mean and (not self.within or self.open):
            raise InputError(f"summary {self.name!r}: mean=True needs a within= above 0, and is of no open=True")

    def _parts(self) -> tuple[object, ...]:
        return (self.after, self.end, self.event)

    def _weighed(self) -> bool:
        return False

    def _cells(self) -> Durations | UnitDurations:
        return Durations() if self.fold is None else UnitDurations(first=self.fold == "any")

    def _put(self, entry: Entry[Any], value: V, place: Place) -> None:
        after = self.after(value)
        if after is None:
            self._left_out(entry, UNKNOWN, place)
            return
        length = _length(after)
        if not _is_length(length):
            raise InputError(f"summary {self.name!r}: a verdict has {after!r} as a length of time")
        end = self.end(value)
        code = OPEN if end is None else EVENT if end == self.event else COMPETING
        if self.fold is None:
            entry.cells.add(length, code, place.cluster)
        else:
            entry.cells.add(place.unit, length, code, place.cluster)

    def _put_unknown(self, entry: Entry[Any], place: Place) -> None:
        entry.unknown += 1
        # It could have ended before or after the others of its unit, whatever those did.
        entry.unknown_weight |= self.fold is not None

    def columns(self) -> Times | None:
        """See `Summary.columns`: none where verdicts are folded."""
        return Times([], []) if self.fold is None else None

    def _batch(self, columns: Times, clusters: Clusters) -> Callable[[Entry[Any]], None]:
        after = array("d", columns.after)
        if not (isfinite(sum(after)) and min(after, default=0.0) >= 0):
            raise InputError(f"summary {self.name!r}: a length of time is not a number from 0")
        codes = {None: OPEN, self.event: EVENT}
        end = array("b", map(codes.get, columns.end, repeat(COMPETING)))
        return lambda entry: entry.cells.extend(after, end, clusters)

    def curve(
        self,
        results: Iterable[Result[V] | V] | Tally[Any],
        *,
        cluster: Key | None = None,
        level: float = 0.95,
        duplicates: Duplicates = "error",
        mix_versions: bool = False,
        points: int = 200,
        **settings: Any,
    ) -> SurvivalCurve:
        """The whole course: the share for which it had happened by each time or, with `open`, had not yet.

        Args:
            results: as in `estimate`; so are the others.
            cluster: what the intervals are computed over.
            level: of the intervals, which hold at each time for itself.
            duplicates: of one subject.
            mix_versions: allow several versions of one evaluator.
            points: how many times it has at most, spread over the rows.
            settings: other values for the summary's own fields.
        """
        summary = self._set(settings)
        tally = summary._tallied(results, None, cluster, duplicates)
        return summary._curve(summary._entry(tally, None), summary._terms(tally, level, mix_versions), points)

    def _curve(
        self,
        entry: Entry[Any],
        terms: Terms,
        points: int,
        estimate: Estimate | None = None,
        found: Curve | None = None,
    ) -> SurvivalCurve:
        """The course; `estimate` is the summary's own of the same, and `found` its curve, where they are known."""
        from evalr.estimates.survival import survival_curve

        durations, estimate = _durations(entry), estimate or self._estimate(entry, terms)
        return survival_curve(
            durations,
            open=self.open,
            within=None if self.within is None else _length(self.within),
            level=terms.level,
            points=points,
            found=found,
            name=self.name,
            n=len(durations),
            noun=estimate.noun,
            counts={
                "ended": durations.end.count(EVENT),
                "ended_otherwise": durations.end.count(COMPETING),
                "censored": durations.end.count(OPEN),
            },
            clustered_by=estimate.clustered_by,
            unit=self.unit,
            left_out=estimate.left_out,
        )

    def _along(self, entry: Entry[Any], level: float, points: int) -> Curve:
        """What the courses of all summaries that read alike have in common."""
        from evalr.estimates.duration import curve

        return curve(*_durations(entry).arrays(), level=level, points=points)

    def _compare(self, treatment: Entry[Any], control: Entry[Any], level: float, interval: str) -> TwoArms:
        from evalr.summaries.two_arms import compared_mean_times, compared_times

        within = None if self.within is None else _length(self.within)
        arms = (_durations(treatment), _durations(control))
        if self.mean and within is not None:
            return compared_mean_times(arms, within, unit=self.unit, level=level, interval=interval)
        return compared_times(arms, within, still_open=self.open, unit=self.unit, level=level, interval=interval)

    def _estimate(self, entry: Entry[Any], terms: Terms) -> Estimate:
        durations = _durations(entry)
        if self.within is None:
            return self._time(entry, durations, terms)
        if self.mean:
            return self._mean(entry, durations, _length(self.within), terms)
        return self._share(entry, durations, _length(self.within), terms)

    def _share(self, entry: Entry[Any], durations: Durations, within: float, terms: Terms) -> Estimate:
        from evalr.estimates.duration import incidence

        found = incidence(*durations.arrays(), at=within, level=terms.level, unit=self.unit)
        shown = found.complement() if self.open else found
        hits = len(durations) - found.ended - found.censored if self.open else found.ended
        bounds = share_bounds(hits, len(durations), entry.unknown, found.censored)
        value = shown.value
        if bounds is not None and value is not None:
            # The curve's products may round to just beyond the counts that bound it.
            value = min(max(value, bounds[0]), bounds[1])
        return self._finished(
            entry,
            terms,
            value=value,
            interval=shown.interval,
            unit="share",
            counts={
                "ended": found.ended,
                "ended_otherwise": found.competed,
                "open": len(durations) - found.ended - found.competed - found.censored,
                "censored": found.censored,
            },
            n=len(durations),
            clusters=cluster_kinds(durations.clusters, durations.loose_clusters()),
            bounds=(0.0, 1.0) if bounds is not None and entry.unknown_weight else bounds,
            status=None if found.status == "ok" else found.status,
            reason=found.reason,
        )

    def _mean(self, entry: Entry[Any], durations: Durations, within: float, terms: Terms) -> Estimate:
        from evalr.estimates.duration import restricted_mean

        found = restricted_mean(*durations.arrays(), at=within, level=terms.level, unit=self.unit)
        return self._of_times(entry, durations, found, terms)

    def _time(self, entry: Entry[Any], durations: Durations, terms: Terms) -> Estimate:
        from evalr.estimates.duration import quantile

        found = quantile(*durations.arrays(), q=self.quantile, level=terms.level, unit=self.unit)
        return self._of_times(entry, durations, found, terms)

    def _of_times(
        self, entry: Entry[Any], durations: Durations, found: Quantile | RestrictedMean, terms: Terms
    ) -> Estimate:
        return self._finished(
            entry,
            terms,
            value=found.value,
            interval=found.interval,
            unit=self.unit,
            counts={"ended": found.ended, "ended_otherwise": found.competed, "censored": found.censored},
            n=len(durations),
            clusters=cluster_kinds(durations.clusters, durations.loose_clusters()),
            bounds=None,
            status=None if found.status == "ok" else found.status,
            reason=found.reason,
        )


def _durations(entry: Entry[Any]) -> Durations:
    cells: Durations | UnitDurations = entry.cells
    return cells if isinstance(cells, Durations) else cells.durations()


def _length(time: timedelta | float) -> float:
    if isinstance(time, timedelta):
        return time.total_seconds()
    try:
        return float(time)
    except OverflowError:  # a whole number that no float holds
        return inf


def _is_length(length: float) -> bool:
    return isfinite(length) and length >= 0

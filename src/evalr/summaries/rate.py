"""Rates: hits over total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.estimates.folds import Fold, fold_function
from evalr.estimates.rate import RateMethod, rate_interval
from evalr.quoting import safe_text
from evalr.summaries.columns import Hits
from evalr.summaries.keys import Place, cluster_kinds
from evalr.summaries.summary import PENDING, UNKNOWN, Summary, Terms, number, share_bounds
from evalr.tallies.counts import Counts, Units
from evalr.tallies.moments import Exact
from evalr.tallies.numbering import Clusters
from evalr.tallies.tally import Entry
from evalr.verdicts import V

if TYPE_CHECKING:
    from evalr.summaries.two_arms import TwoArms


_HIT_OR_MISS = ("any", "all", "flip")
"""The folds that leave a unit as a hit or a miss; others leave a share."""


@dataclass(frozen=True)
class Rate(Summary[V]):
    """Hits over total: 0 ≤ hits ≤ total in every verdict.

    Args:
        hits: how many of a verdict's units count, or None where that is not known.
        total: how many units a verdict has; one by default.
        pending: how many more units it will have once their time has come; they are counted as pending.
        method: of the interval: "wilson", "jeffreys", "clopper_pearson", or "wilson_cr1".
        fold: "any", "all", "share", "flip" or `pass_k(k)`, with `per`.
        without_verdict: what failures, skips and hand-offs are: "left_out", by name, or each a "miss", for a coverage.
    """

    _: KW_ONLY
    hits: Callable[[V], int | None]
    total: Callable[[V], int] | None = None
    pending: Callable[[V], int] | None = None
    method: RateMethod = "wilson"
    fold: Fold | None = None
    without_verdict: Literal["left_out", "miss"] = "left_out"

    def __post_init__(self) -> None:
        Summary.__post_init__(self)
        if self.fold is not None:
            fold_function(self.fold)
        if self.without_verdict not in ("left_out", "miss"):
            given = safe_text(repr(self.without_verdict))
            raise InputError(f"summary {self.name!r}: without_verdict={given} must be 'left_out' or 'miss'")
        if self.without_verdict == "miss" and not (self.total is self.pending is None):
            raise InputError(f"summary {self.name!r}: without a verdict there is no total= or pending=: leave them out")

    def _parts(self) -> tuple[object, ...]:
        return (self.hits, self.total, self.pending, self.without_verdict)

    def _cells(self) -> Counts | Units:
        return Counts() if self.fold is None else Units()

    def _put(self, entry: Entry[Any], value: V, place: Place) -> None:
        hits = self.hits(value)
        total = 1 if self.total is None else self.total(value)
        pending = 0 if self.pending is None else self.pending(value)
        known = 0 if hits is None else hits
        whole = isinstance(known, int) and isinstance(total, int) and isinstance(pending, int)
        if not (whole and 0 <= known <= total and pending >= 0):
            raise InputError(
                f"summary {self.name!r}: a verdict has {hits!r} hits of {total!r}, and {pending!r} pending; a rate "
                "needs whole numbers with 0 ≤ hits ≤ total and 0 ≤ pending"
            )
        unknown, counted = (total, 0) if hits is None else (0, total)
        entry.counted += counted
        if unknown or pending:
            entry.left_out.update({UNKNOWN: unknown, PENDING: pending})
            entry.unknown += place.weight * (unknown + pending)
        if self.fold is None:
            entry.cells.add(place.weight * known, place.weight * counted, place.cluster)
        else:
            entry.cells.add(place.unit, int(known), counted, unknown + pending, place.cluster)

    def _put_no_verdict(self, entry: Entry[Any], reason: str, place: Place) -> None:
        if self.without_verdict == "left_out":
            self._left_out(entry, reason, place)
            return
        entry.counted += 1
        if self.fold is None:
            entry.cells.add(0, place.weight, place.cluster)
        else:
            entry.cells.add(place.unit, 0, 1, 0, place.cluster)

    def _put_unknown(self, entry: Entry[Any], place: Place) -> None:
        if self.fold is not None:
            entry.cells.add(place.unit, 0, 0, 1, place.cluster)
        entry.unknown += place.weight
        entry.unknown_weight |= self.total is not None

    def columns(self) -> Hits | None:
        """See `Summary.columns`: none where verdicts are folded, or have units that are pending."""
        return Hits([]) if self.fold is None and self.pending is None else None

    def _batch(self, columns: Hits, clusters: Clusters) -> Callable[[Entry[Any]], None]:
        of_each = Counter(columns.of)  # few differ
        left_out = {term: n for term, n in of_each.items() if isinstance(term, str)}
        counted = 0
        for term, n in of_each.items():
            if not isinstance(term, str):
                hits, total = term
                if not (isinstance(hits, int) and isinstance(total, int) and 0 <= hits <= total):
                    raise InputError(f"summary {self.name!r}: {hits!r} of {total!r} are no hits of a total")
                counted += n * total
        rows: Any = columns.of
        if left_out:
            kept = [place for place, term in enumerate(columns.of) if not isinstance(term, str)]
            rows = [columns.of[place] for place in kept]
            clusters = clusters._replace(numbers=[clusters.numbers[place] for place in kept])

        def put(entry: Entry[Any]) -> None:
            entry.counted += counted
            entry.cells.extend(rows, clusters)
            for reason, n in left_out.items():
                for _ in range(n):
                    self._left_out(entry, reason, Place(None, None, 1))

        return put

    def _estimate(self, entry: Entry[Any], terms: Terms) -> Estimate:
        if self.fold is not None:
            return self._folded(entry, fold_function(self.fold), terms)
        moments = entry.cells.moments()
        clusters = cluster_kinds(entry.cells.counted(), entry.cells.loose_clusters())
        several_a_row = self.total is not None and entry.counted > sum(clusters.values())
        return self._finished(
            entry,
            terms,
            value=None if moments.ratio is None else float(moments.ratio),
            interval=rate_interval(moments, level=terms.level, method=self.method, units=entry.counted),
            unit="share",
            counts={"hits": number(moments.y), "total": number(moments.m)},
            n=entry.counted,
            clusters=clusters,
            own=self.parent if several_a_row else None,
            bounds=(0.0, 1.0) if entry.unknown_weight else share_bounds(moments.y, moments.m, entry.unknown),
        )

    def _compare(self, treatment: Entry[Any], control: Entry[Any], level: float, interval: str) -> TwoArms:
        from evalr.summaries.two_arms import compared_means, compared_rates

        if self.fold is None:
            units = (treatment.counted, control.counted)
            return compared_rates((treatment.cells, control.cells), units, level, interval)
        fold = fold_function(self.fold)
        sums = (_fold(treatment.cells, fold), _fold(control.cells, fold))
        if self.fold in _HIT_OR_MISS:
            return compared_rates(sums, (None, None), level, interval)
        return compared_means(sums, (0, 1), "points", level, interval)

    def _folded(self, entry: Entry[Units], fold: Callable[[Exact, Exact], Exact | str], terms: Terms) -> Estimate:
        folded, left_out = Counts(), Counter[str]()
        lowest, highest, could_count = Fraction(0), Fraction(0), 0
        for (hits, total, missing, cluster), times in entry.cells.each():
            value = fold(hits, total)
            if isinstance(value, str):
                left_out[f"with {value}"] += times
            else:
                folded.add_alike(value, 1, cluster, times)
            # What the unit could have been, had the missing results come: all misses, all hits, or one of them a hit.
            possible = [fold(hits + extra, total + missing) for extra in {0, min(1, missing), missing}]
            values = [each for each in possible if not isinstance(each, str)]
            if values:
                could_count += times
                lowest += times * min(values)
                highest += times * max(values)
        bounds = None
        if could_count:
            bounds = (float(lowest / could_count), float(highest / could_count))
        moments = folded.moments()
        if self.fold in _HIT_OR_MISS:
            interval = rate_interval(moments, level=terms.level, method=self.method)
        else:
            from evalr.estimates.mean import mean_interval

            interval = mean_interval(moments, level=terms.level, bounds=(0, 1))
        return self._finished(
            entry,
            terms,
            value=None if moments.ratio is None else float(moments.ratio),
            interval=interval,
            unit="share",
            counts={"hits": number(moments.y), "total": number(moments.m)},
            n=int(moments.m),
            clusters=cluster_kinds(folded.keys(), folded.loose_clusters()),
            bounds=(0.0, 1.0) if entry.unknown_weight else bounds,
            also_left_out=left_out,
        )


def _fold(units: Units, fold: Callable[[Exact, Exact], Exact | str]) -> Counts:
    """One row for each unit that has a value."""
    folded = Counts()
    for (hits, total, _, cluster), times in units.each():
        value = fold(hits, total)
        if not isinstance(value, str):
            folded.add_alike(value, 1, cluster, times)
    return folded

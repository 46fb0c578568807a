"""Means: a number over a weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.estimates.words import Unit
from evalr.summaries.keys import Place, cluster_kinds
from evalr.summaries.summary import PENDING, UNKNOWN, Summary, Terms, number
from evalr.tallies.counts import Counts, Units
from evalr.tallies.moments import Exact, Moments, exact
from evalr.tallies.tally import Entry
from evalr.verdicts import V

if TYPE_CHECKING:
    from evalr.summaries.two_arms import TwoArms

_LARGEST = 1e100
"""Sums of squares of larger numbers leave the range of floating point."""


@dataclass(frozen=True)
class Mean(Summary[V]):
    """The mean of a number, such as a quality from 1 to 5.

    Args:
        value: the number, None where it is not known. It is not asked for where the whole weight is pending.
        weight: what it is weighed by; one by default.
        pending: the weight that a verdict will have besides, once its time has come; such verdicts are counted as
            pending. A `weight` of 0 beside it says that all of it is pending.
        bounds: the smallest and largest it can be, where there are such; the interval then stays inside.
        fold: "mean", with `per`: first the mean of each unit.
        unit: what the number is in, such as "tokens".
    """

    _: KW_ONLY
    value: Callable[[V], float | Fraction | None]
    weight: Callable[[V], float] | None = None
    pending: Callable[[V], float] | None = None
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
        return (self.value, self.weight, self.pending, self.bounds)

    def _cells(self) -> Counts | Units:
        return Counts() if self.fold is None else Units()

    def _put(self, entry: Entry[Any], value: V, place: Place) -> None:
        if self.pending is not None and (pending := self._weight(self.pending, value, place)):
            entry.left_out[PENDING] += 1
            entry.unknown += pending
            if self.fold is not None:
                entry.cells.add(place.unit, 0, 0, 1, place.cluster)
                entry.unknown_weight = True
            if self.weight is not None and self.weight(value) == 0:
                return
        found = self.value(value)
        if found is None:
            self._left_out(entry, UNKNOWN, place)
            return
        if not isinstance(found, int | Fraction) and not isfinite(found):  # which takes no number beyond a float
            self._left_out(entry, "not a number", place)
            self._put_unknown(entry, place)
            return
        known = exact(found)
        if not -_LARGEST <= known <= _LARGEST:
            raise InputError(f"summary {self.name!r}: a number is too large for a mean; the largest is {_LARGEST:g}")
        if self.bounds is not None and not self.bounds[0] <= known <= self.bounds[1]:
            low, high = self.bounds
            raise InputError(f"summary {self.name!r}: {found} is outside its bounds, {low} to {high}")
        weight = place.weight if self.weight is None else self._weight(self.weight, value, place)
        if weight == 0:
            self._left_out(entry, "without weight", place)
            return
        weighed = exact(weight * known)  # of whole numbers where it can be: sums of fractions are slow
        if self.fold is None:
            entry.cells.add(weighed, weight, place.cluster)
        else:
            entry.cells.add(place.unit, weighed, weight, 0, place.cluster)

    def _weight(self, of: Callable[[V], float], value: V, place: Place) -> Exact:
        weight = place.weight * exact(of(value))
        if weight < 0:
            raise InputError(f"summary {self.name!r}: a weight is {float(weight)}; it must not be negative")
        return weight

    def _put_unknown(self, entry: Entry[Any], place: Place) -> None:
        if self.fold is not None:
            entry.cells.add(place.unit, 0, 0, 1, place.cluster)
        entry.unknown += place.weight
        entry.unknown_weight |= self.weight is not None or self.fold is not None

    def _estimate(self, entry: Entry[Any], terms: Terms) -> Estimate:
        from evalr.estimates.mean import mean_interval

        counts, without = (entry.cells, 0) if self.fold is None else _fold(entry.cells)
        moments = counts.moments()
        return self._finished(
            entry,
            terms,
            value=None if moments.ratio is None else float(moments.ratio),
            interval=mean_interval(moments, level=terms.level, bounds=self.bounds),
            unit=self.unit,
            counts={"sum": number(moments.y), "total": number(moments.m)},
            n=moments.rows,
            clusters=cluster_kinds(counts.keys(), counts.loose_clusters()),
            bounds=self._where_it_could_lie(moments, entry),
            also_left_out={"without a value": without},
            worth=None if self.weight is None else moments.kish,
        )

    def _compare(self, treatment: Entry[Any], control: Entry[Any], level: float, interval: str) -> TwoArms:
        from evalr.summaries.two_arms import compared_means

        arms = (treatment.cells, control.cells)
        first, second = arms if self.fold is None else (_fold(each)[0] for each in arms)
        return compared_means((first, second), self.bounds, self.unit, level, interval)

    def _where_it_could_lie(self, moments: Moments, entry: Entry[Any]) -> tuple[float, float] | None:
        if not entry.unknown:
            return None if moments.ratio is None else (float(moments.ratio), float(moments.ratio))
        if self.bounds is None or entry.unknown_weight:
            return self.bounds
        low, high = (exact(bound) * entry.unknown for bound in self.bounds)
        total = Fraction(moments.m + entry.unknown)
        return float((moments.y + low) / total), float((moments.y + high) / total)


def _fold(units: Units) -> tuple[Counts, int]:
    """The mean of each unit, and how many have none."""
    folded, without = Counts(), 0
    for (total, weight, _, cluster), times in units.each():
        if weight:
            folded.add_alike(Fraction(total) / weight, 1, cluster, times)
        else:
            without += times
    return folded, without

"""Contests: wins, ties and losses, by the position shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from evalr.errors import InputError
from evalr.estimates.contest import NET_METHODS, NetMethod, half_tie_interval, net_win, position_adjusted, sign_test
from evalr.estimates.contest_results import Consistency, PositionEffect, WinTest
from evalr.estimates.estimate import Estimate
from evalr.estimates.interval import Interval
from evalr.estimates.rate import METHODS, RateMethod, rate_interval
from evalr.estimates.words import Unit
from evalr.quoting import safe_text
from evalr.summaries.keys import Key, Per, Place, cluster_kinds
from evalr.summaries.summary import UNKNOWN, Summary, Terms, number, share_bounds
from evalr.tallies.contests import ContestMoments
from evalr.tallies.counts import Counts
from evalr.tallies.moments import Exact
from evalr.tallies.outcomes import (
    ALL,
    FIRST,
    FIRST_SLOT,
    LOSS,
    POSITION_KNOWN,
    POSITION_UNKNOWN,
    SECOND,
    SHOWN_FIRST,
    SHOWN_SECOND,
    TIE,
    UNKNOWN_POSITION,
    WIN,
    Outcomes,
    Parts,
    Sides,
    UnitOutcomes,
    UnitRow,
)
from evalr.tallies.tally import Entry, Tally
from evalr.verdicts import Duplicates, Result, V

if TYPE_CHECKING:
    from evalr.summaries.two_arms import TwoArms

ContestView = Literal["net", "wins", "decided", "half_tie", "adjusted", "mixed"]
ContestMethod = NetMethod | RateMethod
ContestFold = Literal["majority", "all", "unopposed"]

Ended = tuple[Exact, Exact, Exact]
"""Wins, ties and losses."""


@dataclass(frozen=True)
class Contest(Summary[V]):
    """Wins, ties and losses of a treatment against a control, by the position shown.

    One tally serves all views: `contest.estimate(tally, view="wins")`. Sampling weights are scaled to one on average,
    so that an estimate's `counts` add up to its comparisons.

    Args:
        outcome: how a verdict ended for the treatment, "win", "tie" or "loss"; None where that is not known.
        first: whether the treatment was shown first, None where that is not known.
        view: how the counts are read. "net" is (wins - losses) / n, from -1 to 1. "wins" is wins / n: ties count as not
            won. "decided" is wins / (wins + losses): ties are left out. "half_tie": ties count half. "adjusted": the
            same as if the treatment had been shown first in half of the comparisons. "mixed", with fold="unopposed":
            the share of units that both win and lose.
        method: of the interval, None for the usual one. For "net" and "half_tie" it is "bonett_price" or, by name,
            "tango" (used where no cluster has several comparisons); for "wins" and "decided" one of a `Rate`'s.
        fold: with `per`, how the comparisons of a unit become one. "majority": won where it has more wins than losses,
            lost where fewer, else a tie. "all": won where every comparison was won, lost where every one was lost, else
            a tie. "unopposed": won where any was won and none lost, lost where any was lost and none won, else a tie;
            the ties with wins and losses are also counted on their own, as `mixed`.
    """

    _: KW_ONLY
    outcome: Callable[[V], str | None]
    first: Callable[[V], bool | None] | None = None
    view: ContestView = "net"
    method: ContestMethod | None = None
    fold: ContestFold | None = None
    noun: str = "comparison"

    def __post_init__(self) -> None:
        Summary.__post_init__(self)
        self._check("view", self.view, _VIEWS)
        if self.fold is not None:
            self._check("fold", self.fold, _FOLDS)
        if self.method is not None:
            self._check("method", self.method, _VIEWS[self.view].methods, f" to choose for view={self.view!r}")
        if self.view == "mixed" and self.fold != "unopposed":
            raise InputError(f"summary {self.name!r}: view='mixed' is of units: give per= and fold='unopposed'")
        if self.view == "adjusted" and self.first is None:
            raise InputError(f"summary {self.name!r}: the position is not known: give first=, whether it came first")
        if self.view == "adjusted" and self.fold is not None:
            raise InputError(
                f"summary {self.name!r}: what the position does is read from comparisons one by one, and fold= makes "
                "one of several: leave out per= and fold="
            )

    def _check(self, name: str, given: object, known: Iterable[str], otherwise: str = "") -> None:
        choices = list(known)
        if given not in choices:
            wanted = f"must be one of {', '.join(map(repr, choices))}" if choices else "there is none"
            raise InputError(f"summary {self.name!r}: {name}={safe_text(repr(given))}: {wanted}{otherwise}")

    def _parts(self) -> tuple[object, ...]:
        return (self.outcome, self.first)

    def _cells(self) -> Outcomes | UnitOutcomes:
        return Outcomes() if self.fold is None else UnitOutcomes()

    def _put(self, entry: Entry[Any], value: V, place: Place) -> None:
        outcome = self.outcome(value)
        if outcome is None:
            self._left_out(entry, UNKNOWN, place)
            return
        self._check("outcome", outcome, _ENDINGS, ", or None")
        first = None if self.first is None else self.first(value)
        if not isinstance(first, bool | None):
            raise InputError(f"summary {self.name!r}: first={safe_text(repr(first))} must be True, False or None")
        entry.counted += 1
        ending, position = _ENDINGS[outcome], _POSITIONS[first]
        if self.fold is None:
            entry.cells.add(ending, position, place.weight, place.cluster)
        else:
            entry.cells.add(place.unit, ending, position, place.cluster)

    def _put_unknown(self, entry: Entry[Any], place: Place) -> None:
        if self.fold is not None:
            entry.cells.add_missing(place.unit, place.cluster)
        entry.unknown += place.weight

    # -- the estimate -------------------------------------------------------------------------------------------------

    def _estimate(self, entry: Entry[Any], terms: Terms) -> Estimate:
        if self.view == "adjusted":
            return self._position(entry, terms).adjusted
        if self.view == "mixed":
            return self._mixed_share(entry, terms)
        view, cells = _VIEWS[self.view], self._folded(entry)
        scale = cells.scale()
        contest = cells.moments(scale=scale)
        sides = self._sides()
        n = cells.counts(sides)
        value, low, high = (_share(view.parts(*ended)) for ended in (contest.ended, *self._extremes(entry, cells)))
        return self._finished(
            entry,
            terms,
            value=value,
            interval=self._interval(contest, n, terms.level),
            unit=view.unit,
            reading=view.reading,
            counts=_counts(contest) | _shown(cells, scale) | self._mixed(entry),
            n=n,
            clusters=_clusters(cells, sides),
            bounds=None if low is None or high is None else (low, high),
            also_left_out={"without a verdict": _without_verdict(entry)},
        )

    def _sides(self) -> Sides:
        return ALL.decided() if self.view == "decided" else ALL

    def _folded(self, entry: Entry[Any]) -> Outcomes:
        """The comparisons, or one for each unit that has any."""
        if self.fold is None:
            found: Outcomes = entry.cells
            return found
        folded, fold = Outcomes(), _FOLDS[self.fold]
        for unit, times in entry.cells.each():
            if unit.counted():
                folded.add(fold(*unit.ended()), UNKNOWN_POSITION, 1, unit.cluster, times=times)
        return folded

    def _mixed(self, entry: Entry[Any]) -> dict[str, float]:
        """How many units both win and lose, where the fold makes ties of these as of those that do neither."""
        if self.fold != "unopposed":
            return {}
        ended = ((unit.ended(), times) for unit, times in entry.cells.each())
        return {"mixed": sum(times for (wins, _, losses), times in ended if wins and losses)}

    def _mixed_units(self, entry: Entry[UnitOutcomes]) -> Counts:
        """One row for each unit that has a comparison: whether it both wins and loses."""
        found = Counts()
        for unit, times in entry.cells.each():
            if unit.counted():
                wins, _, losses = unit.ended()
                found.add_alike(int(bool(wins and losses)), 1, unit.cluster, times)
        return found

    def _mixed_share(self, entry: Entry[UnitOutcomes], terms: Terms) -> Estimate:
        method: Any = self.method or _VIEWS["mixed"].methods[0]
        units, mixed = len(entry.cells), self._mixed_units(entry)
        moments = mixed.moments()
        # A unit could be mixed where those that are missing could make up for the sides that it lacks.
        could = 0
        for unit, times in entry.cells.each():
            wins, _, losses = unit.ended()
            could += times * ((not wins) + (not losses) <= unit.missing)
        return self._finished(
            entry,
            terms,
            value=_share((moments.y, moments.m)),
            interval=rate_interval(moments, level=terms.level, method=method),
            unit="share",
            counts={"hits": number(moments.y), "total": number(moments.m)},
            n=moments.rows,
            clusters=cluster_kinds(mixed.keys(), mixed.loose_clusters()),
            bounds=(float(moments.y / Fraction(units)), could / units) if units else None,
            also_left_out={"without a verdict": _without_verdict(entry)},
        )

    def _extremes(self, entry: Entry[Any], cells: Outcomes) -> tuple[Ended, Ended]:
        """The wins, ties and losses if all that is missing were lost, and if it were won."""
        if self.fold is None:
            wins, ties, losses = map(cells.weight, ALL)
            return (wins, ties, losses + entry.unknown), (wins + entry.unknown, ties, losses)
        fold = _FOLDS[self.fold]
        lowest, highest = Counter[int](), Counter[int]()
        for unit, times in entry.cells.each():
            wins, ties, losses = unit.ended()
            lowest[fold(wins, ties, losses + unit.missing)] += times
            highest[fold(wins + unit.missing, ties, losses)] += times
        return (lowest[WIN], lowest[TIE], lowest[LOSS]), (highest[WIN], highest[TIE], highest[LOSS])

    def _interval(self, contest: ContestMoments, n: int, level: float) -> Interval:
        method: Any = self.method or _VIEWS[self.view].methods[0]
        if self.view == "net":
            return net_win(contest, level=level, method=method).interval
        if self.view == "half_tie":
            return half_tie_interval(contest, level=level, method=method)
        moments = contest.won() if self.view == "wins" else contest.decided()
        return rate_interval(moments, level=level, method=method, units=n)

    def _compare(self, treatment: Entry[Any], control: Entry[Any], level: float, interval: str) -> TwoArms:
        from evalr.summaries.two_arms import compared_means, compared_rates

        if self.view == "mixed":
            mixed = (self._mixed_units(treatment), self._mixed_units(control))
            return compared_rates(mixed, (None, None), level, interval)
        view, cells = _VIEWS[self.view], (self._folded(treatment), self._folded(control))
        if self.view == "adjusted":
            raise InputError(f"summary {self.name!r}: two arms are not compared in view='adjusted': choose another")
        sums = (cells[0].ratio(view.parts), cells[1].ratio(view.parts))
        if self.view in ("net", "half_tie"):
            return compared_means(sums, _LIMITS[view.unit], "points", level, interval)
        sides = self._sides()
        return compared_rates(sums, (cells[0].counts(sides), cells[1].counts(sides)), level, interval)

    # -- what stands beside it ----------------------------------------------------------------------------------------

    def sign_test(
        self,
        results: Iterable[Result[V] | V] | Tally[Any],
        *,
        cluster: Key | None = None,
        duplicates: Duplicates = "error",
        mix_versions: bool = False,
    ) -> WinTest:
        """Does the treatment win more often than it loses? The arguments are those of `estimate`."""
        tally = self._tallied(results, None, cluster, duplicates)
        entry = self._entry(tally, None)
        self._flags(entry, self._terms(tally, 0.95, mix_versions), few=False)
        cells = self._folded(entry)
        contest = cells.moments(scale=cells.scale())
        found = net_win(contest)
        signs = sign_test(int(contest.wins), int(contest.losses)) if contest.n and contest.singles() else None
        return WinTest(
            p=found.p,
            exact=None if signs is None else signs.exact,
            mid_p=None if signs is None else signs.mid_p,
            method=found.test,
            wins=number(contest.wins),
            losses=number(contest.losses),
            clusters=contest.clusters,
        )

    def position(
        self,
        results: Iterable[Result[V] | V] | Tally[Any],
        *,
        cluster: Key | None = None,
        level: float = 0.95,
        duplicates: Duplicates = "error",
        mix_versions: bool = False,
    ) -> PositionEffect:
        """What the position shown does, and the contest freed of it. The arguments are those of `estimate`.

        Raises:
            InputError: the summary has no `first`, or folds.
        """
        summary = self._set({"view": "adjusted", "method": None})
        tally = summary._tallied(results, None, cluster, duplicates)
        return summary._position(summary._entry(tally, None), summary._terms(tally, level, mix_versions))

    def _position(self, entry: Entry[Outcomes], terms: Terms) -> PositionEffect:
        cells, scale = entry.cells, entry.cells.scale()
        first, second, slots, unplaced = (
            cells.moments(sides, scale=scale) for sides in (SHOWN_FIRST, SHOWN_SECOND, FIRST_SLOT, POSITION_UNKNOWN)
        )
        found = position_adjusted(first, second, shared=cells.shared(scale=scale), slots=slots, level=terms.level)
        missing = entry.unknown * scale + unplaced.n
        placed = {
            **_counts(cells.moments(POSITION_KNOWN, scale=scale)),
            "shown_first": number(first.n),
            "shown_second": number(second.n),
        }

        def estimate(value: float | None, interval: Interval, sides: Sides, unit: Unit, **its: Any) -> Estimate:
            return self._finished(
                entry,
                terms,
                value=value,
                interval=interval,
                unit=unit,
                n=cells.counts(sides),
                clusters=_clusters(cells, sides),
                also_left_out={"position unknown": cells.counts(POSITION_UNKNOWN)},
                **its,
            )

        slot = estimate(
            found.first_slot,
            found.first_slot_interval,
            FIRST_SLOT.decided(),
            "share",
            counts={"hits": number(slots.wins), "total": number(slots.wins + slots.losses)},
            bounds=share_bounds(slots.wins, slots.wins + slots.losses, missing),
        )
        bias = estimate(
            found.bias,
            found.bias_interval,
            POSITION_KNOWN,
            "signed share",
            counts=placed,
            bounds=_between(
                0.5 - _highest(first.swapped(), second, missing),
                found.bias,
                _highest(first, second.swapped(), missing) - 0.5,
                missing=missing,
            ),
        )
        adjusted = estimate(
            found.adjusted,
            found.interval,
            POSITION_KNOWN,
            "share",
            reading=_VIEWS["adjusted"].reading,
            counts=placed,
            bounds=_between(
                1 - _highest(first.swapped(), second.swapped(), missing),
                found.adjusted,
                _highest(first, second, missing),
                missing=missing,
            ),
        )
        return PositionEffect(
            first_slot=replace(slot, name=f"{self.name}: first slot"),
            p=found.p,
            adjusted=adjusted,
            bias=replace(bias, name=f"{self.name}: position bias"),
        )

    def consistency(
        self,
        results: Iterable[Result[V] | V] | Tally[Any],
        *,
        per: Per = "id",
        cluster: Key | None = None,
        level: float = 0.95,
        duplicates: Duplicates = "error",
        mix_versions: bool = False,
    ) -> Consistency:
        """Do both orders of one pair get the same answer?

        Args:
            results: of both orders, or a tally of the same summary with this `per` and `fold="all"`.
            per: what a pair is; by default the input, which was then judged twice.
            cluster: as in `estimate`; so are the others.
            level: of the interval.
            duplicates: of one subject. Two verdicts of one input are none where their `repeat` differs.
            mix_versions: allow several versions of one evaluator.

        Raises:
            InputError: the summary has no `first`.
        """
        if self.first is None:
            raise InputError(f"summary {self.name!r}: the position is not known: give first=, whether it came first")
        summary = self._set({"per": per, "fold": "all", "view": "net", "method": None})
        tally = summary._tallied(results, None, cluster, duplicates)
        entry, terms = summary._entry(tally, None), summary._terms(tally, level, mix_versions)
        same, slots, left_out = Counts(), Outcomes(), Counter[str]()
        for unit, times in entry.cells.each():
            first, second = unit.ended(SHOWN_FIRST), unit.ended(SHOWN_SECOND)
            if reason := _no_pair(unit):
                left_out[reason] += times
                continue
            same.add_alike(int(first == second), 1, unit.cluster, times)
            slot = second[LOSS] + first[WIN] - first[LOSS] - second[WIN]
            ending = WIN if slot == 2 else LOSS if slot == -2 else TIE
            slots.add(ending, UNKNOWN_POSITION, 1, unit.cluster, times=times)
        moments, preferred = same.moments(), slots.moments()
        estimate = summary._finished(
            entry,
            terms,
            value=None if moments.ratio is None else float(moments.ratio),
            interval=rate_interval(moments, level=level),
            unit="share",
            counts={"hits": number(moments.y), "total": number(moments.m)},
            n=moments.rows,
            clusters=cluster_kinds(same.keys(), same.loose_clusters()),
            bounds=share_bounds(moments.y, moments.m, left_out.total()),
            also_left_out=left_out,
        )
        wins, losses = int(preferred.wins), int(preferred.losses)
        alone = preferred.n > 0 and preferred.singles()
        return Consistency(
            same=replace(estimate, name=f"{self.name}: same in both orders", noun="pair"),
            first_slot=wins,
            second_slot=losses,
            p=sign_test(wins, losses).exact if alone else net_win(preferred).p,
        )


class _View(NamedTuple):
    """One way to read wins, ties and losses as a number."""

    reading: str
    unit: Unit
    methods: tuple[str, ...]
    """Of its interval, the usual one first."""
    parts: Parts


_VIEWS = {
    "net": _View("net win", "signed share", NET_METHODS, lambda w, t, lost: (w - lost, w + t + lost)),
    "wins": _View("win rate", "share", METHODS, lambda w, t, lost: (w, w + t + lost)),
    "decided": _View("decided win rate", "share", METHODS, lambda w, t, lost: (w, w + lost)),
    "half_tie": _View("half-tie win rate", "share", NET_METHODS, lambda w, t, lost: (2 * w + t, 2 * (w + t + lost))),
    "adjusted": _View("position-adjusted win rate", "share", (), lambda w, t, lost: (2 * w + t, 2 * (w + t + lost))),
    "mixed": _View("mixed rate", "share", METHODS, lambda w, t, lost: (0, 0)),  # read from units; see _mixed_share
}
_LIMITS = {"signed share": (-1.0, 1.0), "share": (0.0, 1.0)}
_ENDINGS = {"win": WIN, "tie": TIE, "loss": LOSS}
_POSITIONS = {True: FIRST, False: SECOND, None: UNKNOWN_POSITION}


def _majority(wins: int, ties: int, losses: int) -> int:
    return WIN if wins > losses else LOSS if losses > wins else TIE


def _all(wins: int, ties: int, losses: int) -> int:
    n = wins + ties + losses
    return WIN if wins == n else LOSS if losses == n else TIE


def _unopposed(wins: int, ties: int, losses: int) -> int:
    return TIE if bool(wins) == bool(losses) else WIN if wins else LOSS


_FOLDS = {"majority": _majority, "all": _all, "unopposed": _unopposed}


def _share(parts: tuple[Exact, Exact]) -> float | None:
    part, whole = parts
    return float(Fraction(part) / whole) if whole else None


def _counts(contest: ContestMoments) -> dict[str, float]:
    return {name: number(each) for name, each in zip(("wins", "ties", "losses"), contest.ended, strict=True)}


def _shown(cells: Outcomes, scale: Exact) -> dict[str, float]:
    """How often the treatment was shown first and second, where that is known of any."""
    if not cells.counts(POSITION_KNOWN):
        return {}
    shown = {"shown_first": SHOWN_FIRST, "shown_second": SHOWN_SECOND}
    return {name: number(cells.weight(sides.kinds()) * scale) for name, sides in shown.items()}


def _clusters(cells: Outcomes, sides: Sides) -> Counter[str]:
    return cluster_kinds(cells.counted(sides), cells.loose_clusters(sides))


def _without_verdict(entry: Entry[Any]) -> int:
    """Units of which no comparison has a verdict."""
    if not isinstance(entry.cells, UnitOutcomes):
        return 0
    return sum(times for unit, times in entry.cells.each() if not unit.counted())


def _no_pair(unit: UnitRow) -> str | None:
    """Why a unit is no pair of both orders."""
    first, second, unplaced = (sum(unit.ended(sides)) for sides in (SHOWN_FIRST, SHOWN_SECOND, POSITION_UNKNOWN))
    if not unit.counted():
        return "without a verdict"
    if unplaced:
        return "position unknown"
    if not (first and second):
        return "in one order only"
    return None if first == second == 1 else "judged again in one order"


def _between(low: float, value: float | None, high: float, *, missing: Exact) -> tuple[float, float] | None:
    """Bounds that hold the value, whatever rounding did to them; none where nothing was counted or is missing."""
    if value is None:
        return (low, high) if missing else None
    return min(low, value), max(value, high)


def _highest(first: ContestMoments, second: ContestMoments, more: Exact) -> float:
    """The highest mean of two half-tie rates once `more` wins are added, to either of the two or shared between them.

    The mean of a / (n1 + x) and b / (n2 + more - x), where a and b are what the two lack, is least where n1 + x is to
    n2 + more - x as the roots of a and b are.
    """
    n1, n2, added = float(first.n), float(second.n), float(more)
    lacking1, lacking2 = (float(each.losses + Fraction(each.ties) / 2) for each in (first, second))
    roots = sqrt(lacking1) + sqrt(lacking2)
    if not roots:
        return 1.0
    x = min(max((n1 + n2 + added) * sqrt(lacking1) / roots - n1, 0.0), added)
    parts = ((lacking1, n1 + x), (lacking2, n2 + added - x))
    return 1 - sum(lacking / n for lacking, n in parts if lacking) / 2

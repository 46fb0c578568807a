"""A lift: two arms compared, with all that one has to know before believing the difference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from evalr.errors import InputError
from evalr.estimates import display
from evalr.estimates.estimate import Estimate, Groups, frame, number_line
from evalr.estimates.interval import Interval, normal_quantile, spread_of
from evalr.estimates.plot import Plotted
from evalr.estimates.sample_ratio import SampleRatio
from evalr.estimates.words import count_words, p_words, value_words
from evalr.quoting import safe_text

if TYPE_CHECKING:
    from pandas import DataFrame

OBSERVATIONAL = "observational: arms are not known to be assigned at random"
"""What the flag of that name says in full."""
MISMATCH = "sample_ratio_mismatch"
UNEVEN = "uneven_coverage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation(Plotted):
    """Who was assigned to the two arms, and who of them was evaluated.

    Attributes:
        assigned: users (or sessions) assigned, by arm, before any filter.
        evaluated: those of them with at least one result that counts, by the arm assigned; None where a tally was
            given, which does not say.
        sample_ratio: whether the assigned are what the declared weights make likely; None without weights.
        coverage: whether the arms lost equal shares of those assigned; None where `evaluated` is.
        in_several: how many were assigned to several arms, and are in no count.
        without_arm: how many were assigned to none.
        crossed: evaluated in one of the two arms and assigned to another.
        unassigned: evaluated in one of the two arms and assigned to none.
        noun: what was assigned, such as "user" or "session"; None where nobody said.
    """

    assigned: Mapping[str, int]
    evaluated: Mapping[str, int] | None = None
    sample_ratio: SampleRatio | None = None
    coverage: SampleRatio | None = None
    in_several: int = 0
    without_arm: int = 0
    crossed: int = 0
    unassigned: int = 0
    noun: str | None = None

    def notes(self) -> list[str]:
        """What a reader of the lift should know of it, in words."""
        notes = []
        split = " v ".join(f"{count:,} {safe_text(arm)}" for arm, count in self.assigned.items())
        whose = "assigned" if self.noun is None else f"{self.noun}s assigned:"
        notes.append(f"{whose} {split}{_checked(self.sample_ratio, 'sample ratio', 'mismatch')}")
        if self.evaluated is not None:
            shares = ", ".join(
                f"{safe_text(arm)} {value_words(count / self.assigned[arm], 'share')}"
                for arm, count in self.evaluated.items()
                if self.assigned[arm]
            )
            of = "" if self.noun is None else f" {self.noun}s:"
            checked = _checked(self.coverage, "equal shares", "the arms lost unequal shares")
            notes.append(f"evaluated of those{of} {shares}{checked}")
        counts = {
            "assigned to several arms, and not counted": self.in_several,
            "assigned to no arm": self.without_arm,
            "evaluated in another arm than assigned": self.crossed,
            "evaluated without an assignment": self.unassigned,
        }
        return notes + [f"{count:,} {words}" for words, count in counts.items() if count]

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        """One line to paste."""
        return " · ".join(self.notes())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # What a notebook shows; the repr has every digit.
        printer.text(str(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift(Plotted):
    """Treatment compared with control, over one summary.

    Attributes:
        name: the summary's.
        treatment_arm: the name of the arm that is compared.
        control_arm: the name of the arm that it is compared with.
        arms: one estimate for each arm, the 20 largest others among them; untagged results are under None.
        other_arms: how many further arms there are.
        difference: treatment minus control, with its interval; of shares in points. `bounds` say where it could lie
            whatever the missing verdicts were.
        relative: treatment over control, minus 1.
        p: two-sided, of no difference. It agrees with the interval, but for independent hits and misses: theirs is that
            of the score test, which parts from Newcombe's interval near the edge. None where there is no interval.
        test: name and version of what gave `p`.
        shared_clusters: clusters (users) with results in both arms, which the interval counts as such.
        always_valid: the difference with an interval that holds at all looks together, for those who look every day.
        always_valid_p: of this look; `running_p` joins those of several.
        adjusted: the difference after what users did before was taken off (CUPED), None where no past was given.
        allocation: assignments, None where none were given.
        randomised: whether the caller says that arms were assigned at random. If not, the difference is observational.
    """

    name: str
    treatment_arm: str
    control_arm: str
    arms: Groups
    other_arms: int
    difference: Estimate
    relative: Estimate
    p: float | None
    test: str
    shared_clusters: int
    always_valid: Estimate
    always_valid_p: float | None
    adjusted: Estimate | None
    allocation: Allocation | None
    randomised: bool

    @property
    def treatment(self) -> Estimate:
        """The treatment arm's own estimate."""
        return self.arms[self.treatment_arm]

    @property
    def control(self) -> Estimate:
        """The control arm's own estimate."""
        return self.arms[self.control_arm]

    @property
    def untagged(self) -> Estimate | None:
        """The estimate of results without an arm, None where all have one. They are in neither arm."""
        return self.arms.get(None)

    @property
    def flags(self) -> tuple[str, ...]:
        """What to know before believing the difference, such as "observational" or "low_confidence"."""
        return self.difference.flags

    def detectable(self, power: float = 0.8) -> float | None:
        """The smallest true difference that is seen with that power, as large as the arms are now.

        `(z_a + z_b)` standard errors, as large as the interval of the difference says. It is what to quote beside a
        difference that is not significant. None without an interval.

        Raises:
            InputError: a power not between that of chance and 1.
        """
        level, error = self.difference.level, self._error()
        if not (1 - level) / 2 < power < 1:
            raise InputError(f"power lies between that of chance, {(1 - level) / 2:.3g}, and 1, not {power}")
        return None if error is None else (normal_quantile(level) + NormalDist().inv_cdf(power)) * error

    def power(self, effect: float) -> float | None:
        """The chance that a true difference of `effect` is seen, as large as the arms are now.

        For an effect that was of interest before the data: that of the observed difference says no more than p does.
        """
        error = self._error()
        if error is None:
            return None
        normal, away, q = NormalDist(), effect / error, normal_quantile(self.difference.level)
        return normal.cdf(away - q) + normal.cdf(-away - q)

    def _power_words(self, smallest: float) -> str:
        unit = self.difference.unit
        # Shares differ by 1 at most, and shares won less shares lost by 2: no true difference is larger.
        largest = 2.0 if any(arm.unit == "signed share" for arm in self.arms.values()) else 1.0
        if unit == "points" and smallest > largest:
            words = value_words(largest, unit).removeprefix("+")
            return f"not even a true difference of {words} is seen with 80% power"
        return f"a true difference of {value_words(smallest, unit).removeprefix('+')} is seen with 80% power"

    def _error(self) -> float | None:
        found = self.difference
        if found.value is None:
            return None
        spread = spread_of(Interval(found.low, found.high, None, found.method, None), found.value, found.level)
        return None if spread is None else math.sqrt(spread)

    def __str__(self) -> str:
        """One line to paste."""
        arms = {self.treatment_arm: self.treatment, self.control_arm: self.control}
        compared = " v ".join(f"{safe_text(arm)} {_with_count(estimate)}" for arm, estimate in arms.items())
        return " · ".join([number_line(f"{self.name} lift", self.difference), compared, *self.beside()])

    def beside(self) -> list[str]:
        """What stands beside the difference: warnings, p, the relative and the adjusted difference, and notes."""
        words = self.warnings()
        if self.p is not None:
            words.append(p_words(self.p))
        for name, estimate in (("relative", self.relative), ("adjusted by the past", self.adjusted)):
            if estimate is not None and estimate.value is not None:
                words.append(number_line(name, estimate))
        return words + self.notes()

    def warnings(self) -> list[str]:
        """What is to be known before the number is believed: the flags, in words."""
        words = {"observational": OBSERVATIONAL}
        return [words.get(flag, safe_text(flag.replace("_", " "))) for flag in self.flags]

    def notes(self) -> list[str]:
        """What stands beside the numbers: the reason where there is none, power, assignments, what was left out."""
        notes = [] if self.difference.reason is None else [safe_text(self.difference.reason, longest=500)]
        smallest = self.detectable()
        if smallest is not None:
            notes.append(self._power_words(smallest))
        if self.other_arms:
            notes.append(f"{count_words(self.other_arms, 'further arm')}, not shown")
        if self.shared_clusters:
            notes.append(f"{count_words(self.shared_clusters, 'cluster')} in both arms")
        untagged = self.untagged
        if untagged is not None:
            notes.append(f"{count_words(untagged.n, untagged.noun)} without an arm, in neither")
        if self.difference.left_out:
            left_out = ", ".join(f"{count:,} {safe_text(reason)}" for reason, count in self.difference.left_out.items())
            notes.append(f"left out of the two arms: {left_out}{self._reach()}")
        return notes if self.allocation is None else notes + self.allocation.notes()

    def _reach(self) -> str:
        bounds, unit = self.difference.bounds, self.difference.unit
        if bounds is None:
            return ""
        return f" ({value_words(bounds[0], unit)} to {value_words(bounds[1], unit)} with them)"

    def to_dict(self) -> dict[str, Any]:
        """Every field, in plain types that JSON takes."""
        parts = ("difference", "relative", "always_valid", "adjusted")
        estimates = {part: None if (found := getattr(self, part)) is None else found.to_dict() for part in parts}
        return {
            "name": self.name,
            "treatment_arm": self.treatment_arm,
            "control_arm": self.control_arm,
            "arms": self.arms.to_dicts(),
            "other_arms": self.other_arms,
            **estimates,
            "p": self.p,
            "test": self.test,
            "shared_clusters": self.shared_clusters,
            "always_valid_p": self.always_valid_p,
            "detectable": self.detectable(),
            "allocation": None if self.allocation is None else _plain(self.allocation),
            "randomised": self.randomised,
            "flags": list(self.flags),
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """One plain dict for each number: `name`, `group` (an arm, or "difference", ...), and every other field."""
        return Groups("arm", self._rows()).to_dicts()

    def to_frame(self) -> DataFrame:
        """A pandas frame with one row for each number. Needs pandas."""
        return frame(self.to_dicts())

    def _rows(self) -> dict[str | None, Estimate]:
        found: dict[str | None, Estimate] = {arm: self.arms[arm] for arm in self._in_order()}
        compared = {
            "difference": self.difference,
            "relative": self.relative,
            "always valid": self.always_valid,
            "adjusted by the past": self.adjusted,
        }
        # An arm may have such a name, too.
        return found | {(f"({word})" if word in found else word): each for word, each in compared.items() if each}

    def _in_order(self) -> list[str | None]:
        first = [self.treatment_arm, self.control_arm]
        return [*first, *(arm for arm in self.arms if arm not in first)]

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        rows: list[display.Line | str] = []
        for title, estimate in self._rows().items():
            compared = estimate not in self.arms.values()
            line = display.line(self.arms.group_words(title) if not compared else str(title), estimate)
            rows.append(line._replace(counted="", asides=tuple(_own_words(estimate))) if compared else line)
        notes = [p_words(self.p)] if self.p is not None else []
        rows += notes + self.notes()
        table = display.table("arm", self.difference.level, rows, caption=f"{self.name} lift")
        return display.shown(*map(display.notice, self.warnings()), table)


def _own_words(estimate: Estimate) -> list[str]:
    return [] if estimate.reason is None else [safe_text(estimate.reason, longest=500)]


def _with_count(arm: Estimate) -> str:
    return f"{value_words(arm.value, arm.unit)} ({arm.counted_words()})"


def _checked(found: SampleRatio | None, tested: str, alarm: str) -> str:
    if found is None:
        return ""
    told = [] if found.p is None else [f"{tested}: {p_words(found.p)}"]
    told += [alarm] if found.alarm else []
    told += [found.reason] if found.reason else []
    return f" ({', '.join(told)})"


def _plain(allocation: Allocation) -> dict[str, Any]:
    plain = asdict(allocation)
    for name in ("sample_ratio", "coverage"):
        found = getattr(allocation, name)
        plain[name] = None if found is None else found._asdict()
    return plain

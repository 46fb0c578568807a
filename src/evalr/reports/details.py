"""What a page shows of a number beside the number: over time, by arm, and its whole course."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evalr.errors import EvalrError, error_words
from evalr.estimates.buckets import TimeBucket
from evalr.estimates.estimate import Estimate, Groups, Trend
from evalr.estimates.lift import Lift
from evalr.estimates.survival import SurvivalCurve
from evalr.estimates.trends import Trends
from evalr.summaries import Key, Summary, TimeTo
from evalr.summaries.lifting import CONTROLS
from evalr.summaries.over_time import OverTime, fitting_bucket, of_buckets, of_groups, split_name, trends_of
from evalr.tallies.tally import Tally

if TYPE_CHECKING:
    from evalr.estimates.duration import Curve

BY_DAY_AND_ARM = OverTime(TimeBucket("day"), "arm")
"""From what is counted by day and arm everything else is added up."""

CURVE_POINTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """One summary's details. Each is None where the log does not say it; `missing` has the reasons, by name.

    Attributes:
        trend: over days, weeks or months, whatever makes points that can be read.
        arms: by arm, where any result has one; those without one under None.
        trends: each arm over time.
        lift: treatment and control compared, where the log has arms of these names.
        curve: of a `TimeTo`, its whole course.
        missing: why what is None is not there.
    """

    trend: Trend | None = None
    arms: Groups | None = None
    trends: Trends | None = None
    lift: Lift | None = None
    curve: SurvivalCurve | None = None
    missing: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types."""
        return {
            "trend": None if self.trend is None else {"bucket": self.trend.by, "rows": self.trend.to_dicts()},
            "arms": None if self.arms is None else self.arms.to_dicts(),
            "arm_trends": None if self.trends is None else self.trends.to_dicts(),
            "lift": None if self.lift is None else self.lift.to_dict(),
            "curve": None if self.curve is None else self.curve.to_dict(),
            "missing": dict(self.missing),
        }


class Regrouped:
    """What was counted by day and arm, by other groups: made once for all summaries that read alike, as it is asked."""

    def __init__(self, by_day_and_arm: Tally[Any]) -> None:
        self.by_day_and_arm = by_day_and_arm
        self.along: Curve | None = None
        self.bucket = fitting_bucket(by_day_and_arm)
        self.has_arms = any(split_name(name)[1] is not None for name in by_day_and_arm.entries)

    @cached_property
    def by_bucket(self) -> Tally[Any]:
        """By days, weeks or months."""
        return of_buckets(self.by_day_and_arm, TimeBucket(self.bucket or "day"))

    @cached_property
    def by_arm(self) -> Tally[Any]:
        """By arm."""
        return of_groups(self.by_day_and_arm, "arm")


def details_of(
    summary: Summary[Any],
    whole: Tally[Any],
    regrouped: Regrouped,
    estimate: Estimate,
    *,
    cluster: Key | None,
    level: float,
    randomised: bool,
) -> Details:
    """The details of a summary, from its tallies and what they came to. What cannot be told stops nothing else."""
    missing: list[tuple[str, str]] = []

    def tried(name: str, make: Any) -> Any:
        try:
            return make()
        except EvalrError as error:
            missing.append((name, str(error)))
        except Exception as error:  # noqa: BLE001  another package's summary may raise anything; the page says so
            missing.append((name, error_words(error)))
        return None

    bucket, by_day_and_arm = regrouped.bucket, regrouped.by_day_and_arm
    trend = trends = arms = lift = curve = None
    if bucket is None:
        missing.append(("trend", "all that has a time is of one day" if by_day_and_arm.entries else "nothing was read"))
    else:
        tally, tz = regrouped.by_bucket, TimeBucket(bucket).tz
        trend = tried("trend", lambda: summary.trend(tally, bucket, tz=tz, cluster=cluster, level=level))
    if not regrouped.has_arms:
        missing.append(("arms", "nothing that was read has an arm"))
    else:
        by_arm = regrouped.by_arm
        names = by_arm.named_groups()
        arms = tried("arms", lambda: summary.by(by_arm, "arm", cluster=cluster, level=level))
        if bucket is not None:
            trends = tried("arm trends", lambda: trends_of(summary, by_day_and_arm, bucket, "arm", level=level))
        control = next((name for name in CONTROLS if name in names), None)
        if "treatment" in names and control is not None:
            lift = tried(
                "lift",
                lambda: summary.lift(by_arm, control=control, randomised=randomised, cluster=cluster, level=level),
            )
        else:
            missing.append(("lift", "no arms named treatment and control (or holdout); two others can be compared"))
    if isinstance(summary, TimeTo) and whole.entries:
        entry, terms = whole.entries[None], summary._terms(whole, level, False)

        def course() -> SurvivalCurve:
            regrouped.along = regrouped.along or summary._along(entry, level, CURVE_POINTS)
            return summary._curve(entry, terms, CURVE_POINTS, estimate, regrouped.along)

        curve = tried("curve", course)
    return Details(trend=trend, arms=arms, trends=trends, lift=lift, curve=curve, missing=tuple(missing))

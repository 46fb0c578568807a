"""What a page shows of a number beside the number: over time, by arm, and its whole course."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evalr.errors import EvalrError, error_words
from evalr.estimates.buckets import TimeBucket
from evalr.estimates.estimate import Groups, Trend
from evalr.estimates.lift import Lift
from evalr.estimates.survival import SurvivalCurve
from evalr.estimates.trends import Trends
from evalr.summaries import Key, Summary, TimeTo
from evalr.summaries.over_time import OverTime, fitting_bucket, of_buckets, of_groups, trends_of
from evalr.tallies.tally import Tally

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


def details_of(
    summary: Summary[Any],
    whole: Tally[Any],
    by_day_and_arm: Tally[Any],
    *,
    cluster: Key | None,
    level: float,
    randomised: bool,
) -> Details:
    """The details of a summary, from its tallies. What cannot be told is missing, and stops nothing else."""
    missing: list[tuple[str, str]] = []

    def tried(name: str, make: Any) -> Any:
        try:
            return make()
        except EvalrError as error:
            missing.append((name, str(error)))
        except Exception as error:  # noqa: BLE001  another package's summary may raise anything; the page says so
            missing.append((name, error_words(error)))
        return None

    bucket = fitting_bucket(by_day_and_arm)
    by_arm = of_groups(by_day_and_arm, "arm")
    names = by_arm.named_groups()
    trend = trends = arms = lift = curve = None
    if bucket is None:
        missing.append(("trend", "all that has a time is of one day" if by_day_and_arm.entries else "nothing was read"))
    else:
        over_time = TimeBucket(bucket)
        tally = of_buckets(by_day_and_arm, over_time)
        trend = tried("trend", lambda: summary.trend(tally, bucket, tz=over_time.tz, cluster=cluster, level=level))
    if not names:
        missing.append(("arms", "nothing that was read has an arm"))
    else:
        arms = tried("arms", lambda: summary.by(by_arm, "arm", cluster=cluster, level=level))
        if bucket is not None:
            trends = tried("arm trends", lambda: trends_of(summary, by_day_and_arm, bucket, "arm", level=level))
        control = next((name for name in ("control", "holdout") if name in names), None)
        if "treatment" in names and control is not None:
            lift = tried(
                "lift",
                lambda: summary.lift(by_arm, control=control, randomised=randomised, cluster=cluster, level=level),
            )
        else:
            missing.append(("lift", "no arms named treatment and control (or holdout); two others can be compared"))
    if isinstance(summary, TimeTo) and whole.entries:
        curve = tried("curve", lambda: summary.curve(whole, cluster=cluster, level=level, points=CURVE_POINTS))
    return Details(trend=trend, arms=arms, trends=trends, lift=lift, curve=curve, missing=tuple(missing))

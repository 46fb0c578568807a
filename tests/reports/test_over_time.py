"""Arms over time and the course of a time: each is what asking for its parts one by one would give."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import Contest, Rate, TimeTo, Verdict, pass_k
from evalr.estimates.buckets import TimeBucket
from evalr.inputs import About
from evalr.summaries.over_time import OverTime, fitting_bucket, of_buckets, of_groups, split_name, trends_of

START = datetime(2026, 1, 28, 12, tzinfo=UTC)


class Out(BaseModel):
    ok: bool
    seconds: float
    end: str | None
    winner: str


def results(n: int, days: int, seed: int = 1) -> list[Verdict[Out]]:
    chosen = random.Random(seed)
    made = []
    for number in range(n):
        at = None if number % 17 == 0 else START + timedelta(days=chosen.randrange(days), hours=chosen.randrange(12))
        arm = chosen.choice(["treatment", "control\n=x", None])
        value = Out(
            ok=chosen.random() < 0.7,
            seconds=float(chosen.randrange(1, 500)),
            end=chosen.choice(["returned", "closed", None]),
            winner=chosen.choice(["win", "tie", "loss"]),
        )
        about = About(
            "session", f"s{number}", f"u{number % 23}", None, at, None, arm, None, {"task": f"t{number % 40}"}
        )
        made.append(Verdict(value, "judge", about=about))
    return made


SUMMARIES: list[Any] = [
    Rate("success", of=Out, hits=lambda v: v.ok),
    Rate("steady", of=Out, hits=lambda v: v.ok, per="task", fold=pass_k(1)),
    TimeTo("typical", of=Out, after=lambda v: v.seconds, end=lambda v: v.end, event="returned"),
    TimeTo("soon", of=Out, after=lambda v: v.seconds, end=lambda v: v.end, event="returned", within=200, open=True),
    Contest("contest", of=Out, outcome=lambda v: v.winner),
]


@pytest.mark.parametrize("summary", SUMMARIES, ids=lambda summary: summary.name)
@pytest.mark.parametrize("bucket", ["day", "week", "month"])
def test_one_tally_adds_up_to_trends_groups_and_the_whole(summary: Any, bucket: Any) -> None:
    given = results(400, 40)
    tally = summary.tally(given, by=OverTime(TimeBucket("day")))
    assert summary.trend(of_buckets(tally, TimeBucket(bucket)), bucket) == summary.trend(given, bucket)
    assert dict(summary.by(of_groups(tally, "arm"), "arm")) == dict(summary.by(given, "arm"))
    trends = trends_of(summary, tally, bucket, "arm", level=0.95)
    assert list(trends) == ["control\n=x", "treatment", None]
    for arm, trend in trends.items():
        alone = summary.trend([each for each in given if each.about.arm == arm], bucket)
        assert {at: estimate for at, estimate in trend.items() if at in alone} == dict(alone)
    assert dict(summary.trends(given, bucket)) == dict(trends)


def test_a_name_is_taken_apart_whatever_is_in_it() -> None:
    key = OverTime(TimeBucket("day"))
    for arm in (None, "", "\n", "=a\n=b", "treatment"):
        for at in (None, START):
            (name,) = key(About("session", "s", None, None, at, None, arm))
            assert split_name(name) == (None if at is None else "2026-01-28", arm)


@pytest.mark.parametrize(
    ("days", "bucket"), [(1, None), (2, "day"), (45, "day"), (46, "week"), (420, "week"), (421, "month")]
)
def test_buckets_are_so_long_that_the_points_can_be_read(days: int, bucket: str | None) -> None:
    summary = SUMMARIES[0]
    value = Out(ok=True, seconds=1, end=None, winner="tie")
    given = [
        Verdict(value, "judge", about=About("session", str(day), None, None, START + timedelta(days=day)))
        for day in (0, days - 1)
    ]
    given = given[:1] if days == 1 else given
    assert fitting_bucket(summary.tally(given, by=OverTime(TimeBucket("day")))) == bucket


@pytest.mark.parametrize(
    ("days", "a_day", "bucket"),
    [(28, 5, "day"), (28, 1, "week"), (12, 1, "day"), (28, 4, "week"), (300, 1, "week")],
)
def test_points_are_of_so_many_results_that_they_say_something(days: int, a_day: int, bucket: str) -> None:
    """Where longer buckets make three points or more: two are no course."""
    summary = SUMMARIES[0]
    value = Out(ok=True, seconds=1, end=None, winner="tie")
    monday = datetime(2026, 6, 1, 12, tzinfo=UTC)
    given = [
        Verdict(value, "judge", about=About("session", f"{day}-{each}", None, None, monday + timedelta(days=day)))
        for day in range(days)
        for each in range(a_day)
    ]
    assert fitting_bucket(summary.tally(given, by=OverTime(TimeBucket("day")))) == bucket


def test_trends_are_shown_and_tidy() -> None:
    trends = SUMMARIES[0].trends(results(200, 10))
    rows = trends.to_dicts()
    assert len(rows) == sum(len(trend) for trend in trends.values())
    assert list(rows[0])[:3] == ["name", "arm", "group"]
    page = trends._repr_html_()
    assert "untagged (no arm)" in page
    assert str(trends).count("\n") == len(rows) - 1
    assert len(trends.to_frame()) == len(rows)
    assert repr(trends) == "Trends(by='arm', bucket='day', 3 groups)"


def test_the_curve_goes_through_the_estimate() -> None:
    given = results(300, 10)
    for summary in SUMMARIES[2:4]:
        curve = summary.curve(given)
        for within in (50, 200, 450):
            estimate = summary.estimate(given, within=within)
            assert curve.share_at(within) == pytest.approx(estimate.value, abs=0.01)
    curve = SUMMARIES[3].curve(given)
    assert (curve.share_at(0), curve.within, curve.until) == (1.0, 200, 400)
    assert curve.n == len(given) == sum(curve.counts.values())
    assert sum(n for _, n in curve.pending) == curve.counts["censored"]
    assert curve.waiting[0] == (0, 300)
    assert curve.waiting[-1] == (400, sum(each.value.seconds >= 400 for each in given))
    assert list(curve.shares) == sorted(curve.shares, reverse=True)
    for share, low, high in zip(curve.shares, curve.lows, curve.highs, strict=True):
        assert low is None or high is None or low <= share <= high
    assert "not yet" in curve._repr_html_()
    assert len(curve.to_frame()) == len(curve.times)


def test_of_nothing_there_is_an_empty_curve() -> None:
    curve = SUMMARIES[2].curve([])
    assert (curve.times, curve.n) == ((), 0)
    assert curve.share_at(10) == 0
    assert str(curve) == "typical, by then · 0 results"

"""Buckets follow the calendar of their zone: days of 23 and 25 hours, repeated hours, half-hour zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr import About, InputError
from evalr.estimates.buckets import Bucket, TimeBucket, bucket_of, bucket_words, buckets_between, zone

BERLIN = ZoneInfo("Europe/Berlin")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")
BUCKETS: tuple[Bucket, ...] = ("hour", "day", "week", "month")

zones = st.sampled_from(
    ["UTC", "Europe/Berlin", "Asia/Shanghai", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe"]
)
instants = st.datetimes(datetime(1971, 1, 1), datetime(2190, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type,misc]


def named(at: datetime, bucket: Bucket, tz: tzinfo = UTC) -> str:
    return bucket_words(bucket_of(at, bucket, tz), bucket)


@pytest.mark.parametrize(
    ("bucket", "name"),
    [("hour", "2026-09-30T23:00Z"), ("day", "2026-09-30"), ("week", "2026-09-28"), ("month", "2026-09")],
)
def test_each_bucket_is_named_by_its_beginning(bucket: Bucket, name: str) -> None:
    assert named(utc(2026, 9, 30, 23, 59, 59, 999_999), bucket) == name


def test_a_day_is_the_zones_own() -> None:
    at = utc(2026, 9, 30, 23, 30)
    assert named(at, "day", ZoneInfo("Asia/Shanghai")) == "2026-10-01"
    assert named(at, "month", ZoneInfo("Asia/Shanghai")) == "2026-10"
    assert named(at, "day", ZoneInfo("America/New_York")) == "2026-09-30"
    assert named(at, "day", timezone(timedelta(hours=8))) == "2026-10-01"


def test_a_time_written_in_another_zone_is_the_same_time() -> None:
    at = utc(2026, 9, 30, 23, 30)
    for bucket in BUCKETS:
        assert named(at.astimezone(ZoneInfo("Asia/Tokyo")), bucket, BERLIN) == named(at, bucket, BERLIN)


def test_the_days_on_which_clocks_change_are_one_day_each() -> None:
    spring, autumn = utc(2026, 3, 28, 23), utc(2026, 10, 24, 22)  # midnight in Berlin, before 23 and before 25 hours
    assert {named(spring + timedelta(hours=hour), "day", BERLIN) for hour in range(23)} == {"2026-03-29"}
    assert named(spring + timedelta(hours=23), "day", BERLIN) == "2026-03-30"
    assert {named(autumn + timedelta(hours=hour), "day", BERLIN) for hour in range(25)} == {"2026-10-25"}
    assert named(autumn + timedelta(hours=25), "day", BERLIN) == "2026-10-26"


def test_the_hour_that_clocks_repeat_is_two_buckets() -> None:
    first, again = utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 30)
    assert first.astimezone(BERLIN).hour == again.astimezone(BERLIN).hour == 2
    assert named(first, "hour", BERLIN) == "2026-10-25T00:00Z"
    assert named(again, "hour", BERLIN) == "2026-10-25T01:00Z"


def test_an_hour_begins_when_it_begins_there() -> None:
    assert named(utc(2026, 9, 28, 9, 40), "hour", ZoneInfo("Asia/Kolkata")) == "2026-09-28T09:30Z"
    assert named(utc(2026, 9, 28, 9, 20), "hour", ZoneInfo("Asia/Kolkata")) == "2026-09-28T08:30Z"


def test_weeks_begin_on_monday_and_months_have_their_length() -> None:
    assert named(utc(2027, 1, 3), "week") == "2026-12-28"
    assert named(utc(2027, 1, 4), "week") == "2027-01-04"
    assert buckets_between(["2027-12", "2028-03"], "month") == ["2027-12", "2028-01", "2028-02", "2028-03"]
    assert buckets_between(["2028-02-28", "2028-03-01"], "day") == ["2028-02-28", "2028-02-29", "2028-03-01"]


def test_nothing_is_between_nothing() -> None:
    assert buckets_between([], "day") == []
    assert buckets_between(["2026-09-28"], "day") == ["2026-09-28"]


def test_a_change_by_half_an_hour_moves_the_hours_and_doubles_none() -> None:
    april = [utc(2026, 4, 4, 12, 10) + timedelta(minutes=30 * step) for step in range(16)]
    names = sorted({named(at, "hour", LORD_HOWE) for at in april})
    assert {name[14:16] for name in names} == {"00", "30"}
    assert buckets_between(names, "hour") == names
    assert buckets_between([names[0], names[-1]], "hour")[-1] == names[-1]


def test_a_single_stray_time_does_not_make_a_million_buckets() -> None:
    names = ["1970-01-01T00:00Z", "2026-09-28T09:00Z"]
    assert buckets_between(names, "hour") == names
    assert len(buckets_between(["1970-01-01", "2024-01-01"], "day")) == 19_724


@given(instants, zones, st.sampled_from(BUCKETS))
def test_a_bucket_holds_its_times_and_the_next_begins_after_them(at: datetime, tz: str, bucket: Bucket) -> None:
    where = zone(tz)
    start = bucket_of(at, bucket, where)
    if isinstance(start, datetime):
        assert start <= at < start + timedelta(hours=1)
        return
    local = at.astimezone(where).date()
    days = (local - start).days
    assert 0 <= days < {"day": 1, "week": 7, "month": 31}[bucket]
    assert bucket != "week" or start.weekday() == 0
    assert bucket != "month" or (start.day, start.month) == (1, local.month)


near = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(st.lists(near, min_size=1, max_size=5), zones, st.sampled_from(BUCKETS))
def test_names_sort_by_time_and_the_filled_list_holds_them_once(times: list[datetime], tz: str, bucket: Bucket) -> None:
    names = [named(at, bucket, zone(tz)) for at in sorted(times)]
    assert names == sorted(names)
    filled = buckets_between(names, bucket)
    assert set(names) <= set(filled)
    assert filled == sorted(set(filled))
    assert (filled[0], filled[-1]) == (names[0], names[-1])


@pytest.mark.parametrize("tz", ["", "Mars/Olympus", "../etc/passwd", "UTC+8", "utc\0", "Europe", 5])
def test_a_name_of_no_zone_is_refused(tz: Any) -> None:
    with pytest.raises(InputError, match="is not a known time zone"):
        zone(tz)


def test_a_key_for_a_bucket_reads_the_time_of_a_result() -> None:
    key = TimeBucket("day", "Asia/Shanghai")
    assert key(About("session", at=utc(2026, 9, 28, 17))) == "2026-09-29"
    assert key(About("session")) is None
    assert key == TimeBucket("day", ZoneInfo("Asia/Shanghai"))
    assert key != TimeBucket("day", "UTC")
    with pytest.raises(InputError, match="must be 'hour', 'day', 'week' or 'month'"):
        TimeBucket("fortnight")  # type: ignore[arg-type]

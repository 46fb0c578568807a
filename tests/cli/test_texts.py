"""Lengths of time, times and settings as people write them on the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr import InputError
from evalr.cli.texts import read_length, read_setting, read_time
from evalr.estimates.words import window_words


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90s", timedelta(seconds=90)),
        ("10m", timedelta(minutes=10)),
        ("1h", timedelta(hours=1)),
        ("1h30m", timedelta(minutes=90)),
        ("2d", timedelta(days=2)),
        ("2w", timedelta(weeks=2)),
        ("0.5s", timedelta(milliseconds=500)),
    ],
)
def test_a_length_of_time(text: str, length: timedelta) -> None:
    assert read_length(text) == length


@pytest.mark.parametrize(
    "text", ["", "5", "5x", "-1h", "1h 30m", "1.h", "h", "0s", "1h1h", "1e3s", "99999999999w", "٣h"]
)
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_length(text)


@given(st.integers(1, 10**9))
def test_a_window_reads_back_as_it_is_printed(seconds: int) -> None:
    assert read_length(window_words(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-09-28", datetime(2026, 9, 28, tzinfo=UTC)),
        ("2026-09-28T09:00:00Z", datetime(2026, 9, 28, 9, tzinfo=UTC)),
        ("2026-09-28T09:00+02:00", datetime(2026, 9, 28, 9, tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_a_time(text: str, time: datetime) -> None:
    assert read_time(text) == time


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-13-01", "2026-09-28T09:00:00", "1066-10-14", "9999-01-01T00:00Z"]
)
def test_what_is_no_time_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(InputError, match=r"write a time as|not in the years"):
        read_time(text)


DEFAULTS = {"threshold": 0.2, "window": timedelta(hours=1), "normalize": False, "trials": 3, "style": "plain"}


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("threshold=0.3", ("threshold", 0.3)),
        ("window=2d", ("window", timedelta(days=2))),
        ("normalize=true", ("normalize", True)),
        ("trials=5", ("trials", 5)),
        ("style=a=b", ("style", "a=b")),
    ],
)
def test_a_setting_is_read_as_its_default_is(text: str, setting: tuple[str, object]) -> None:
    name, value = read_setting(text, DEFAULTS)
    assert (name, value, type(value)) == (*setting, type(setting[1]))


@pytest.mark.parametrize("text", ["threshold", "unknown=1", "threshold=much", "normalize=1", "window=1", "trials=1.5"])
def test_a_setting_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_setting(text, DEFAULTS)

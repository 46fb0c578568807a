"""Numbers as people read them: rounded once, with a unit, and never a 0 or 100 that is not one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.estimates.words import (
    choice_words,
    count_words,
    duration_words,
    interval_words,
    method_words,
    number_words,
    plural,
    seconds_text,
    share_digits,
    value_words,
    window_words,
)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (0.4, "0.40s"),
        (9.94, "9.9s"),
        (9.96, "10s"),
        (10, "10s"),
        (59.4, "59s"),
        (59.6, "1m"),
        (130, "2m 10s"),
        (3_590, "59m 50s"),
        (3_599.7, "1h"),
        (3_600, "1h"),
        (5_400, "1h 30m"),
        (86_399, "1d"),
        (86_400, "1d"),
        (100_000, "1d 4h"),
        (8_640_000, "100d"),
        (-130, "-2m 10s"),
    ],
)
def test_durations_have_their_two_largest_units(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


@given(st.floats(0, 1e9))
def test_a_duration_is_read_back_to_within_its_small_unit(seconds: float) -> None:
    sizes = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
    parts = duration_words(seconds).split()
    back = sum(float(part[:-1].replace(",", "")) * sizes[part[-1]] for part in parts)
    unit = {"s": 1, "m": 1, "h": 60, "d": 3_600}[parts[0][-1]]
    assert abs(back - seconds) <= unit / 2 + 1e-9
    assert all(float(part[:-1].replace(",", "")) > 0 for part in parts[1:])


@pytest.mark.parametrize(
    ("window", "words", "seconds"),
    [
        (timedelta(hours=1), "1h", "3600s"),
        (timedelta(days=14), "14d", "1209600s"),
        (timedelta(hours=1, minutes=30), "1h30m", "5400s"),
        (timedelta(seconds=0.5), "0.5s", "0.5s"),
        (timedelta(days=14, microseconds=1), "14d0.000001s", "1209600.000001s"),
        (timedelta(seconds=59.123456), "59.123456s", "59.123456s"),
        (timedelta(seconds=1210), "20m10s", "1210s"),
    ],
)
def test_windows_are_written_in_full(window: timedelta, words: str, seconds: str) -> None:
    assert window_words(window) == words
    assert seconds_text(window) == seconds


@given(st.integers(1, 10**20), st.integers(1, 10**20))
def test_windows_of_different_lengths_have_different_seconds(one: int, other: int) -> None:
    microsecond = timedelta(microseconds=1)
    longest = timedelta.max // microsecond
    one, other = one % longest + 1, other % longest + 1
    texts = {seconds_text(one * microsecond), seconds_text(other * microsecond), seconds_text((one + 1) * microsecond)}
    assert len(texts) == len({one, other, one + 1})
    assert "e" not in "".join(texts)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0.0"),
        (-0.0, "0.0"),
        (1, "100.0"),
        (0.942, "94.2"),
        (0.0004, "<0.1"),
        (0.0005, "0.1"),
        (0.9996, ">99.9"),
        (0.9994, "99.9"),
        (-0.0004, ">-0.1"),
        (-0.021, "-2.1"),
    ],
)
def test_shares_are_percents_and_never_a_zero_or_a_hundred_that_is_not_one(value: float, words: str) -> None:
    assert share_digits(value) == words


@given(st.floats(0, 1))
def test_only_nothing_is_zero_percent_and_only_all_a_hundred(value: float) -> None:
    words = share_digits(value)
    assert (words == "0.0") == (value == 0)
    assert (words == "100.0") == (100 * value >= 100)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3.414, "3.41"),
        (9.996, "10.0"),
        (12_345.6, "12,346"),
        (0.001234, "0.00123"),
        (4.0, "4"),
        (-0.0, "0"),
        (1e20, "1.00e+20"),
        (-1.5e-200, "-1.50e-200"),
        (0.000_002, "0.00000200"),
    ],
)
def test_numbers_have_three_digits(value: float, words: str) -> None:
    assert number_words(value) == words


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_not_printed(value: float) -> None:
    with pytest.raises(ValueError, match="not a number"):
        number_words(value)


def test_a_value_has_its_unit_and_nothing_is_a_dash() -> None:
    assert value_words(0.5, "share") == "50.0%"
    assert value_words(130, "seconds") == "2m 10s"
    assert value_words(2.5, "turns") == "2.50"
    assert value_words(None, "share") == "—"


def test_an_interval_says_which_limit_is_not_reached_and_is_never_empty_brackets() -> None:
    assert interval_words(0.25, 0.75, "share") == "[25.0, 75.0]"
    assert interval_words(60, None, "seconds") == "[1m, …]"
    assert interval_words(None, None, "share") == ""


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [
        (1, "wait", "1 wait"),
        (8_310, "wait", "8,310 waits"),
        (2, "history", "2 histories"),
        (0, "day", "0 days"),
        (2, "child/children", "2 children"),
        (1, "child/children", "1 child"),
        (3, "pass", "3 passes"),
    ],
)
def test_counts_have_their_noun(count: int, noun: str, words: str) -> None:
    assert count_words(count, noun) == words


def test_plurals() -> None:
    assert [plural(noun) for noun in ("box", "batch", "wish", "reply", "key")] == [
        "boxes",
        "batches",
        "wishes",
        "replies",
        "keys",
    ]


def test_methods_are_named_as_statisticians_do_and_a_new_one_by_its_own_name() -> None:
    assert method_words("wilson/1") == "Wilson"
    assert method_words("wilson-padded-effective-n/1") == "Wilson at the effective n"
    assert method_words("something-else/3") == "something-else"


def test_a_name_that_is_none_is_told_which_was_meant() -> None:
    names = ["completion", "completion_quality", "drop_off"]
    assert choice_words("completon", names).endswith("did you mean 'completion'?")
    assert choice_words("quality", names).endswith("did you mean 'completion_quality'?")
    assert choice_words("of", names) == "there are: completion, completion_quality, drop_off"

"""Gates: what is asked, how the bar is read, and what passes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr import Estimate, InputError
from evalr.cli.gates import Condition, read_bar, read_condition, rule


def estimate(value: float | None = 0.5, low: float | None = 0.4, high: float | None = 0.6, **more: Any) -> Estimate:
    return Estimate(name="x", value=value, low=low, high=high, n=100, **more)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("drop_off<0.2", Condition("drop_off", "<", "0.2")),
        (" drop_off <= 20% ", Condition("drop_off", "<=", "20%")),
        ("waits_median<5m", Condition("waits_median", "<", "5m")),
        ("completion>=0.9", Condition("completion", ">=", "0.9")),
        ("completion>.9", Condition("completion", ">", ".9")),
    ],
)
def test_a_condition(text: str, condition: Condition) -> None:
    assert read_condition(text) == condition


@pytest.mark.parametrize(
    "text", ["", "drop_off", "drop_off=0.2", "<0.2", "drop_off<", "a<b<c", "drop_off=<1", "a<0.2 b"]
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="write a condition as"):
        read_condition(text)


@pytest.mark.parametrize(
    ("text", "unit", "bar"),
    [("0.2", "share", 0.2), ("20%", "share", 0.2), ("1", "share", 1), ("5m", "seconds", 300), ("3.5", "number", 3.5)],
)
def test_a_bar_is_read_in_the_unit_of_the_estimate(text: str, unit: str, bar: float) -> None:
    assert read_bar(text, estimate(unit=unit)) == pytest.approx(bar)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("20", "share"),
        ("-0.1", "share"),
        ("120%", "share"),
        ("5m", "share"),
        ("20pp", "share"),
        ("300", "seconds"),
        ("50%", "turns"),
        ("nan", "share"),
        ("nan", "number"),
        ("inf", "number"),
        ("-1e999", "turns"),
    ],
)
def test_a_bar_in_another_unit_is_refused(text: str, unit: str) -> None:
    with pytest.raises(InputError):
        read_bar(text, estimate(unit=unit))


@pytest.mark.parametrize(
    ("condition", "code", "verdict"),
    [
        ("x<0.7", 0, "passed"),
        ("x<0.6", 1, "not cleared"),  # the value is under the bar, and the limit is not
        ("x<=0.6", 0, "passed"),
        ("x<0.55", 1, "not cleared"),
        ("x>0.3", 0, "passed"),
        ("x>0.4", 1, "not cleared"),
        ("x>=40%", 0, "passed"),
        ("x>=0.45", 1, "not cleared"),
    ],
)
def test_a_condition_passes_where_the_limit_of_the_interval_does(condition: str, code: int, verdict: str) -> None:
    ruling = rule(read_condition(condition), estimate())
    assert (ruling.code, ruling.verdict) == (code, verdict)
    assert "50.0% [40.0, 60.0]" in ruling.found


def test_an_undefined_number_never_passes() -> None:
    ruling = rule(read_condition("x<1"), estimate(None, None, None, status="undefined", reason="no verdicts"))
    assert (ruling.code, ruling.verdict, ruling.found) == (2, "undefined", "100 results · no verdicts")


def test_a_number_without_an_interval_never_passes() -> None:
    ruling = rule(read_condition("x<1"), estimate(0.5, None, None, status="degenerate", reason="one cluster"))
    assert (ruling.code, ruling.verdict) == (2, "undefined")
    assert "one cluster" in ruling.found


def test_a_limit_that_the_log_does_not_reach_is_not_cleared() -> None:
    ruling = rule(read_condition("x<5h"), estimate(60, 30, None, unit="seconds"))
    assert (ruling.code, ruling.verdict) == (1, "not cleared")
    assert rule(read_condition("x>20s"), estimate(60, 30, None, unit="seconds")).code == 0


@given(low=st.floats(0, 1), high=st.floats(0, 1), bar=st.floats(0, 1))
def test_both_sides_never_pass(low: float, high: float, bar: float) -> None:
    low, high = sorted((low, high))
    found = estimate((low + high) / 2, low, high)
    codes = {rule(Condition("x", comparison, repr(bar)), found).code for comparison in ("<", ">=")}  # type: ignore[arg-type]
    assert codes in ({1}, {0, 1})

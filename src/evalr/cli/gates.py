"""Gates on a log: how a bar is read in a summary's unit. What passes is decided below, as for comparisons."""

from __future__ import annotations

from math import isfinite, nan

from evalr.cli.texts import read_length
from evalr.errors import InputError
from evalr.estimates import gates
from evalr.estimates.estimate import Estimate
from evalr.estimates.gates import CONDITION_RULE, Condition, Ruling, is_condition, read_condition

__all__ = ["Condition", "Ruling", "is_condition", "read_bar", "read_condition", "rule"]


def rule(condition: Condition, estimate: Estimate) -> Ruling:
    """Hold an estimate against a condition: it passes where the limit of its interval does, never where undefined."""
    return gates.rule(condition, estimate, read_bar)


def read_bar(text: str, estimate: Estimate) -> float:
    """The bar in the estimate's unit: a share as 0.2, 20% or -5%, a time as 5m, any other number as it is."""
    if estimate.unit == "seconds":
        return read_length(text).total_seconds()
    percent = text.endswith("%")
    if text.endswith("pp"):
        raise InputError(f"{estimate.name}: {text} would be a difference in points: write a bar such as 20% or 0.2")
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = nan
    # A bar of infinity would let anything pass, and one that is no number nothing.
    if not isfinite(number):
        raise InputError(f"{estimate.name}: the bar {text!r} is not a number: {CONDITION_RULE}")
    lowest = {"share": 0, "signed share": -1}.get(estimate.unit)
    if lowest is None:
        if percent:
            raise InputError(f"{estimate.name} is in {estimate.unit}, not a share: write the bar without %")
        return number
    share = number / 100 if percent else number
    if not lowest <= share <= 1:
        limits = f"from {lowest} to 1, or from {lowest:.0%} to 100%"
        raise InputError(f"{estimate.name} is a share: write the bar {limits}, not {text}")
    return share

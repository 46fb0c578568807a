"""Differences: two arms and what lies between them, and the lifts of several measures below each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import Lift
from evalr.estimates.words import p_words
from evalr.quoting import safe_text
from evalr.reports.plots.looks import INK
from evalr.reports.plots.rows import interval_rows


def lift_figure(lift: Lift, *, width: int | None = None) -> tuple[dict[str, Any], list[str]]:
    """Both arms, those without one, and below them the difference; with what is to be known before it is believed.

    Where there is no difference, as of typical times, the arms stand alone, and it is said why.
    """
    arms = [lift.treatment_arm, lift.control_arm]
    named: list[tuple[str, Estimate]] = [(arm, lift.arms[arm]) for arm in arms]
    named += [(lift.arms.group_words(arm), each) for arm, each in lift.arms.items() if arm not in arms]
    difference = [(f"{lift.treatment_arm} less {lift.control_arm}", lift.difference)]
    notes = lift.warnings() + ([] if lift.p is None else [p_words(lift.p)])
    if lift.difference.value is None:
        reason = lift.difference.reason
        return interval_rows(named, width=width), [*notes, *([reason] if reason and reason not in notes else [])]
    parts = [
        interval_rows(named, width=width),
        interval_rows(difference, width=width, counted=False, color=INK, difference=True),
    ]
    return {"vconcat": parts, "spacing": 18}, notes


def forest_figure(
    differences: Mapping[str, tuple[Estimate, str]] | Sequence[tuple[str, Estimate, str]], *, width: int | None = None
) -> dict[str, Any]:
    """Differences of several measures, those of one unit on one axis, each with the n of both sides in words."""
    rows = (
        [(name, estimate, words) for name, (estimate, words) in differences.items()]
        if isinstance(differences, Mapping)
        else list(differences)
    )
    units = list(dict.fromkeys(estimate.unit for _, estimate, _ in rows))
    parts = []
    for unit in units:
        fitting = [row for row in rows if row[1].unit == unit]
        named = [(name, each) for name, each, _ in fitting]
        part = interval_rows(named, width=width, counted=False, color=INK, difference=True)
        for value, (_, _, words) in zip(part["data"]["values"], fitting, strict=True):
            value["n"] = safe_text(words, longest=60)
            value["beside"] = f"{value['shown']} · {value['n']}"
        parts.append(part)
    return parts[0] if len(parts) == 1 else {"vconcat": parts, "spacing": 18}

"""One line for each number: a point, its interval, and in words beside it what it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalr.estimates.estimate import Estimate
from evalr.estimates.stating import number_cell
from evalr.estimates.words import count_words
from evalr.quoting import safe_text
from evalr.reports.plots.looks import BLUE, INK, SOFT, distinct
from evalr.reports.plots.scales import Scale, scale_for

WIDTH = 240
STEP = 22
_NAMES = {"domain": False, "ticks": False, "labelPadding": 10}
"""With room for a point that lies at the beginning of the axis."""


def n_words(estimate: Estimate) -> str:
    """`8,310 waits`, and why there is no number where there is none."""
    counted = count_words(estimate.n, safe_text(estimate.noun))
    if estimate.value is None and estimate.reason:
        return f"{counted} · {safe_text(estimate.reason, longest=60)}"
    return counted


def point_of(estimate: Estimate, scale: Scale) -> dict[str, Any]:
    """Where an estimate is on a scale. A limit that the log does not reach is at the scale's end, and said to be."""
    some = estimate.low is not None or estimate.high is not None
    low, high = scale.at(estimate.low), scale.at(estimate.high)
    return {
        "value": scale.at(estimate.value),
        "low": (scale.low if low is None else max(low, scale.low)) if some else None,
        "high": (scale.high if high is None else min(high, scale.high)) if some else None,
        "open": some and (low is None or high is None),
        "shown": number_cell(estimate),
        "n": n_words(estimate),
        "count": estimate.n,
    }


def interval_rows(
    named: Mapping[str, Estimate] | Sequence[tuple[str, Estimate]],
    *,
    scale: Scale | None = None,
    width: int | None = None,
    axis: str | None = None,
    counted: bool = True,
    color: str = BLUE,
    difference: bool = False,
) -> dict[str, Any]:
    """Estimates of one unit, a line each, in the order in which they are given.

    Args:
        named: by what each is called.
        scale: of all; by default what holds them.
        width: in pixels.
        axis: what stands below the numbers; by default what they are in.
        counted: whether each has an n of its own to be shown.
        color: of the points.
        difference: whether they lie between two numbers, so that 0 is in the middle.
    """
    pairs = list(named.items() if isinstance(named, Mapping) else named)
    scale = scale or scale_for((estimate for _, estimate in pairs), difference=difference)
    names, width = distinct([name for name, _ in pairs]), width or WIDTH
    values = [{"name": name, **point_of(each, scale)} for name, (_, each) in zip(names, pairs, strict=True)]
    for row in values:
        row["beside"] = f"{row['shown']} · {row['n']}" if counted else row["shown"]
    y = {"field": "name", "type": "nominal", "sort": None, "title": None, "axis": _NAMES}
    x = {
        "field": "value",
        "type": "quantitative",
        "scale": scale.spec(),
        "title": axis or scale.words(),
        "axis": {"tickCount": 6},
    }
    tooltip = [
        {"field": "name", "type": "nominal", "title": "of"},
        {"field": "shown", "type": "nominal", "title": "value"},
        {"field": "n", "type": "nominal", "title": "n"},
    ]
    zero: list[dict[str, Any]] = []
    if scale.difference:
        at_zero = {"datum": 0, "type": "quantitative"}
        zero = [{"data": {"values": [{}]}, "mark": {"type": "rule", "color": INK}, "encoding": {"x": at_zero}}]
    limits = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}
    dashed = {"condition": {"test": {"field": "open", "equal": True}, "value": [3, 3]}, "value": [1, 0]}
    return {
        "width": width,
        "height": {"step": STEP},
        "data": {"values": values},
        "layer": [
            *zero,
            {
                "mark": {"type": "rule", "color": color, "size": 2},
                "encoding": {**limits, "strokeDash": dashed},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60, "color": color, "opacity": 1},
                "encoding": {"y": y, "x": x, "tooltip": tooltip},
            },
            {
                "mark": {"type": "text", "align": "left", "baseline": "middle", "color": SOFT},
                "encoding": {"y": y, "x": {"value": width + 12}, "text": {"field": "beside"}},
            },
        ],
    }

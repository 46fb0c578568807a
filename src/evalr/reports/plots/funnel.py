"""From what a log holds to what was counted: what was left out on the way, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from evalr.estimates.words import value_words
from evalr.reports.plots.looks import BLUE, GREY, SOFT, distinct

WIDTH = 260
MOST = 12
"""Reasons that have a bar of their own; the others share one."""


class Exclusion(NamedTuple):
    """Why so many were left out."""

    reason: str
    n: int


class Funnel(NamedTuple):
    """`whole` of something, of which some were left out."""

    whole: int
    called: str
    excluded: Sequence[Exclusion]
    counted: str


def funnel_figure(funnel: Funnel, *, width: int | None = None) -> dict[str, Any]:
    """A bar for all, one for each reason that takes some away, and one for what is left. Bars begin at 0."""
    width = width or WIDTH
    excluded = sorted(funnel.excluded, key=lambda each: -each.n)
    if len(excluded) > MOST:
        rest = excluded[MOST - 1 :]
        excluded = [*excluded[: MOST - 1], Exclusion(f"{len(rest):,} other reasons", sum(each.n for each in rest))]
    left = funnel.whole
    bars: list[tuple[str, int, int, str]] = [(funnel.called, 0, funnel.whole, "kept")]
    for each in excluded:
        bars.append((f"less {each.reason}", left - each.n, left, "left out"))
        left -= each.n
    bars.append((funnel.counted, 0, left, "kept"))
    names = distinct([name for name, *_ in bars])
    values = [
        {
            "name": name,
            "from": start,
            "to": end,
            "kind": kind,
            "n": f"{end - start:,}",
            "beside": _with_share(end - start, funnel.whole),
        }
        for name, (_, start, end, kind) in zip(names, bars, strict=True)
    ]
    y = {"field": "name", "type": "nominal", "sort": None, "title": None, "axis": {"domain": False, "ticks": False}}
    x = {
        "field": "from",
        "type": "quantitative",
        "scale": {"domain": [0, max(1, funnel.whole)], "nice": False},
        "title": None,
        "axis": {"tickCount": 4, "format": ",d", "tickMinStep": 1},
    }
    color = {
        "field": "kind",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": ["kept", "left out"], "range": [BLUE, GREY]},
    }
    tooltip = [{"field": "name", "type": "nominal", "title": "what"}, {"field": "n", "type": "nominal", "title": "n"}]
    return {
        "width": width,
        "height": {"step": 22},
        "data": {"values": values},
        "layer": [
            {
                "mark": {"type": "bar", "height": 13},
                "encoding": {"y": y, "x": x, "x2": {"field": "to"}, "color": color, "tooltip": tooltip},
            },
            {
                "mark": {"type": "text", "align": "left", "baseline": "middle", "color": SOFT},
                "encoding": {"y": y, "x": {"value": width + 12}, "text": {"field": "beside"}},
            },
        ],
    }


def _with_share(part: int, whole: int) -> str:
    return f"{part:,} · {value_words(part / whole, 'share')}" if whole else f"{part:,}"

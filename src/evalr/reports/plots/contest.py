"""Wins, ties and losses as one bar, with each number in it, and the number that is read from them below."""

from __future__ import annotations

from typing import Any

from evalr.estimates.estimate import Estimate
from evalr.estimates.words import number_words, value_words
from evalr.reports.plots.looks import BLUE, INK, VERMILLION
from evalr.reports.plots.rows import WIDTH, interval_rows

ENDINGS = ("wins", "ties", "losses")
_COLORS = (BLUE, "#c9c9c9", VERMILLION)
_TEXTS = ("#ffffff", "#111111", "#ffffff")
_NARROW = 0.11
"""Of the bar: a part that is less has no room for its words, which then stand above it alone."""


def is_contest(estimate: Estimate) -> bool:
    """Whether wins, ties and losses were counted."""
    return all(ending in estimate.counts for ending in ENDINGS) and sum(estimate.counts[e] for e in ENDINGS) > 0


def contest_figure(estimate: Estimate, *, width: int | None = None) -> dict[str, Any]:
    """The bar of a contest, and below it the estimate with its interval."""
    width = width or WIDTH
    counts = [estimate.counts[ending] for ending in ENDINGS]
    whole, start, parts = sum(counts), 0.0, []
    for ending, count in zip(ENDINGS, counts, strict=True):
        share = count / whole
        words = f"{number_words(count)} {ending}"
        parts.append(
            {
                "ending": ending,
                "from": start,
                "to": start + share,
                "middle": start + share / 2,
                "within": number_words(count) if share >= _NARROW else "",
                "words": f"{words} ({value_words(share, 'share')})",
                "shown": value_words(share, "share"),
            }
        )
        start += share
    color = {
        "field": "ending",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [part["words"] for part in parts], "range": list(_COLORS)},
        "legend": {"symbolType": "square"},
    }
    x = {"field": "from", "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": None}
    middle = {"field": "middle", "type": "quantitative"}
    bar = {
        "width": width,
        "height": 26,
        "data": {"values": parts},
        "layer": [
            {
                "mark": {"type": "rect", "stroke": INK, "strokeWidth": 0.6},
                "encoding": {
                    "x": x,
                    "x2": {"field": "to"},
                    "color": {**color, "field": "words"},
                    "tooltip": [{"field": "words", "type": "nominal", "title": "counted"}],
                },
            },
            {
                "mark": {"type": "text", "fontWeight": 600},
                "encoding": {
                    "x": middle,
                    "text": {"field": "within"},
                    "color": {
                        "field": "ending",
                        "type": "nominal",
                        "legend": None,
                        "scale": {"domain": list(ENDINGS), "range": list(_TEXTS)},
                    },
                },
            },
        ],
        "resolve": {"scale": {"color": "independent"}},
    }
    below = interval_rows([(estimate.reading or estimate.name, estimate)], width=width)
    return {"vconcat": [bar, below], "spacing": 14}

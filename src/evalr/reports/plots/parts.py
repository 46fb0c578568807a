"""What became of each of several wholes: a bar for each, in parts, with their counts beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalr.reports.plots.looks import BLUE, CONFIG, GREY, INK, SOFT, VERMILLION, distinct

WIDTH = 240
COLORS = (BLUE, GREY, VERMILLION)


def parts_figure(
    wholes: Sequence[tuple[str, Mapping[str, int]]], *, width: int | None = None, unit: str = "% of all"
) -> dict[str, Any]:
    """A bar for each whole, from 0 to 100%, in at most three parts, and their counts in words beside it.

    Args:
        wholes: what each is called, and how many there are of each of its parts; all have the same parts.
        width: of the bars, in pixels.
        unit: what stands below the bars.
    """
    width = width or WIDTH
    parts = list(wholes[0][1])
    names = distinct([name for name, _ in wholes])
    values, beside = [], []
    for name, (_, counts) in zip(names, wholes, strict=True):
        whole, start = sum(counts.values()), 0.0
        for part, count in counts.items():
            end = start + (100 * count / whole if whole else 0.0)
            words = f"{count:,} {part}"
            values.append({"name": name, "part": part, "from": start, "to": end, "words": words})
            start = end
        said = [f"{count:,} {part}" for part, count in counts.items() if count]
        beside.append({"name": name, "beside": " · ".join(said) or "nothing"})
    y = {
        "field": "name",
        "type": "nominal",
        "sort": None,
        "title": None,
        "axis": {"domain": False, "ticks": False, "labelPadding": 6},
    }
    x = {"field": "from", "type": "quantitative", "scale": {"domain": [0, 100], "nice": False}, "title": unit}
    color = {
        "field": "part",
        "type": "nominal",
        "title": None,
        "scale": {"domain": parts, "range": list(COLORS[: len(parts)])},
        "legend": {"symbolType": "square"},
    }
    tooltip = [{"field": "name", "type": "nominal", "title": "of"}, {"field": "words", "type": "nominal", "title": "n"}]
    return {
        "config": CONFIG,
        "width": width,
        "height": {"step": 24},
        "layer": [
            {
                "data": {"values": values},
                "mark": {"type": "bar", "height": 13, "stroke": INK, "strokeWidth": 0.4},
                "encoding": {"y": y, "x": x, "x2": {"field": "to"}, "color": color, "tooltip": tooltip},
            },
            {
                "data": {"values": beside},
                "mark": {"type": "text", "align": "left", "baseline": "middle", "color": SOFT},
                "encoding": {"y": y, "x": {"value": width + 12}, "text": {"field": "beside"}},
            },
        ],
    }

"""How long until it happened: a curve with its band, marks where waiting was cut off, and how many still waited."""

from __future__ import annotations

from typing import Any

from evalr.estimates.survival import SurvivalCurve
from evalr.estimates.words import duration_words
from evalr.reports.plots.looks import BLUE, INK, SOFT
from evalr.reports.plots.scales import scale_of

WIDTH, HEIGHT = 400, 150
_TICKS = 6


def survival_figure(curve: SurvivalCurve, *, width: int | None = None) -> tuple[dict[str, Any], list[str]]:
    """The layers of a curve, and what is to be said beside it."""
    width = width or WIDTH
    time = scale_of(curve.unit, [curve.until])
    end = curve.until * time.factor
    begin = float(curve.open)
    steps: list[tuple[float, float, float | None, float | None]] = [(0.0, begin, begin, begin)]
    steps += [
        (at * time.factor, share, low, high)
        for at, share, low, high in zip(curve.times, curve.shares, curve.lows, curve.highs, strict=True)
        if at <= curve.until
    ]
    steps.append((end, *steps[-1][1:]))
    values = [
        {
            "time": round(at, 6),
            "share": round(100 * share, 4),
            "low": None if low is None else round(100 * low, 4),
            "high": None if high is None else round(100 * high, 4),
        }
        for at, share, low, high in steps
    ]
    marks = [
        {"time": round(at * time.factor, 6), "share": 100 * curve.share_at(at), "n": f"{n:,}"}
        for at, n in curve.pending
        if at <= curve.until
    ]
    risk = [{"time": at * time.factor, "n": f"{n:,}", "of": "at risk"} for at, n in curve.waiting]
    x = {"field": "time", "type": "quantitative", "scale": {"domain": [0, end], "nice": False}, "title": None}
    y = {"field": "share", "type": "quantitative", "scale": {"domain": [0, 100]}}
    y["title"] = f"% {curve.says}"
    banded = {"filter": {"field": "low", "valid": True}}
    layers: list[dict[str, Any]] = [
        {
            "transform": [banded],
            "mark": {"type": "area", "opacity": 0.2, "color": BLUE, "interpolate": "step-after"},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "color": BLUE, "interpolate": "step-after", "strokeWidth": 1.8},
            "encoding": {"x": x, "y": y},
        },
    ]
    if marks:
        tooltip = [
            {"field": "time", "type": "quantitative", "title": time.title, "format": ".3~g"},
            {"field": "n", "type": "nominal", "title": "still open then"},
        ]
        layers.append(
            {
                "data": {"values": marks},
                "mark": {"type": "tick", "orient": "vertical", "color": INK, "size": 9, "thickness": 1},
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            }
        )
    if curve.within is not None and curve.within <= curve.until:
        layers.append(
            {
                "data": {"values": [{"time": curve.within * time.factor, "share": 100 * curve.share_at(curve.within)}]},
                "mark": {"type": "rule", "color": SOFT, "strokeDash": [2, 2]},
                "encoding": {"x": x},
            }
        )
    bottom = {
        "width": width,
        "height": 16,
        "data": {"values": risk},
        "mark": {"type": "text", "fontSize": 10, "color": SOFT},
        "encoding": {
            "x": {**x, "title": time.title, "axis": {"tickCount": _TICKS, "orient": "bottom"}},
            "y": {
                "field": "of",
                "type": "nominal",
                "title": None,
                "axis": {"domain": False, "ticks": False, "labelPadding": 22},
            },
            "text": {"field": "n"},
        },
    }
    top_x = {**x, "axis": {"labels": False, "tickCount": _TICKS}}
    for layer in layers:
        layer["encoding"] = {**layer["encoding"], "x": top_x}
    top = {"width": width, "height": HEIGHT, "data": {"values": values}, "layer": layers}
    notes = (
        [f"of {curve.counted_words()}; a mark is where the log ended for some"] if marks else [curve.counted_words()]
    )
    notes.append(curve.method_words())
    if curve.longest > curve.until:
        notes.append(f"drawn up to {_words(curve.until, curve.unit)}; {curve.waiting[-1][1]:,} lasted as long")
    return {"vconcat": [top, bottom], "spacing": 4}, notes


def _words(time: float, unit: str) -> str:
    return duration_words(time) if unit == "seconds" else f"{time:g} {unit}"

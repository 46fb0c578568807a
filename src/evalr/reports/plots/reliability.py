"""Does a judge know when it is right? How often it was, by how sure it said it was."""

from __future__ import annotations

from typing import Any

from evalr.estimates.calibration import Reliability
from evalr.estimates.words import interval_words, number_words, value_words
from evalr.reports.plots.looks import BLUE, GREY, SOFT

SIDE = 260


def reliability_figure(found: Reliability, *, width: int | None = None) -> tuple[dict[str, Any], list[str]]:
    """The share right in each bin against its mean confidence, and the line on which a calibrated judge would be."""
    side = width or SIDE
    values = [
        {
            "confidence": 100 * each.confidence,
            "right": 100 * each.right,
            "low": None if each.interval.low is None else 100 * each.interval.low,
            "high": None if each.interval.high is None else 100 * each.interval.high,
            "n": f"n={each.n:,}",
            "shown": " ".join(
                [value_words(each.right, "share"), interval_words(each.interval.low, each.interval.high, "share")]
            ),
        }
        for each in found.bins
    ]
    whole = {"domain": [0, 100]}
    x = {"field": "confidence", "type": "quantitative", "scale": whole, "title": "confidence, mean of the bin (%)"}
    y = {"field": "right", "type": "quantitative", "scale": whole, "title": "right (%)"}
    tooltip = [
        {"field": "confidence", "type": "quantitative", "title": "confidence (%)", "format": ".1f"},
        {"field": "shown", "type": "nominal", "title": "right"},
        {"field": "n", "type": "nominal", "title": "n"},
    ]
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": [{"confidence": 0, "right": 0}, {"confidence": 100, "right": 100}]},
            "mark": {"type": "line", "color": GREY, "strokeDash": [4, 3]},
            "encoding": {"x": x, "y": y},
        },
        {
            "mark": {"type": "rule", "color": BLUE, "size": 2},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "color": BLUE, "opacity": 1},
            "encoding": {"x": x, "y": y, "tooltip": tooltip},
        },
        {
            "mark": {"type": "text", "color": SOFT, "fontSize": 10, "angle": 270, "align": "left"},
            "encoding": {"x": x, "y": {"value": -6}, "text": {"field": "n"}},
        },
    ]
    notes = []
    if found.ece is not None:
        chance = "" if found.ece_if_calibrated is None else f", {number_words(found.ece_if_calibrated)} if calibrated"
        notes.append(f"calibration error {number_words(found.ece)}{chance} · bins: {found.rule}")
    notes.append("dashed: a judge that is right as often as it says")
    return {"width": side, "height": side, "data": {"values": values}, "layer": layers}, notes

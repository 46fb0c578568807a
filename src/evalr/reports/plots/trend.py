"""A number over time: its interval as a band, and the n of each point above it, where it can be read on paper too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from evalr.estimates.estimate import Estimate, Trend
from evalr.reports.plots.looks import GREY, SERIES, SHAPES, SOFT, distinct
from evalr.reports.plots.rows import point_of
from evalr.reports.plots.scales import Scale, scale_for

MOST = 60
"""Buckets that are drawn, the latest ones: of more, no n could be read."""
HEIGHT = 150
_STEPS = ((6, 72), (10, 46), (18, 26), (31, 15), (MOST, 12))
_UPRIGHT = 40
"""Pixels between two buckets from which words fit beside each other."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Curve(NamedTuple):
    """One of the lines of a plot: the arm that it is of, and its estimates by bucket."""

    name: str
    trend: Mapping[str | None, Estimate]
    untagged: bool = False


def trend_figure(trend: Trend, *, width: int | None = None) -> tuple[dict[str, Any], list[str]]:
    """The layers of one trend, and what is to be said beside them."""
    return curves_figure([Curve("", trend)], trend.by, width=width)


def curves_figure(curves: Sequence[Curve], by: str, *, width: int | None = None) -> tuple[dict[str, Any], list[str]]:
    """The layers of the trends of several arms, each with a row of its own for its n."""
    buckets = sorted({bucket for curve in curves for bucket in curve.trend if bucket is not None})
    if len(curves) == 1:
        buckets = [bucket for bucket in curves[0].trend if bucket is not None]
    shown = buckets[-MOST:]
    scale = scale_for(curve.trend[b] for curve in curves for b in shown if b in curve.trend)
    labels, year = bucket_labels(shown, by)
    names = distinct([curve.name for curve in curves])
    values = [
        row
        for place, (name, curve) in enumerate(zip(names, curves, strict=True))
        for row in _points(name, place, curve.trend, shown, labels, scale)
    ]
    step = next(pixels for most, pixels in _STEPS if len(shown) <= most)
    if width is not None:
        step = max(8, width // max(1, len(shown)))
    notes = [f"the latest {len(shown):,} of {len(buckets):,}"] if len(buckets) > len(shown) else []
    return _layers(names, curves, values, labels, scale, step, f"{by}{year}"), notes


def bucket_labels(buckets: Sequence[str], by: str) -> tuple[list[str], str]:
    """The buckets as an axis names them, short where all are of one year, and what is left to say of it."""
    if by not in ("hour", "day", "week", "month") or len({bucket[:4] for bucket in buckets}) != 1:
        return list(buckets), ""
    form = {"hour": "%Y-%m-%dT%H:%MZ", "month": "%Y-%m"}.get(by, "%Y-%m-%d")
    starts = [datetime.strptime(bucket, form) for bucket in buckets]  # noqa: DTZ007  only its words are shown
    months = [_MONTHS[start.month - 1] for start in starts]
    if by == "month":
        labels = months
    elif by == "hour":
        labels = [f"{start.day} {month} {start:%H:%M}" for start, month in zip(starts, months, strict=True)]
    else:
        labels = [f"{start.day} {month}" for start, month in zip(starts, months, strict=True)]
    return labels, f" of {buckets[0][:4]}" if by != "hour" else f" of {buckets[0][:4]} (UTC)"


def _points(
    name: str,
    place: int,
    trend: Mapping[str | None, Estimate],
    buckets: Sequence[str],
    labels: Sequence[str],
    scale: Scale,
) -> list[dict[str, Any]]:
    """A row for each bucket. A segment ends where there is no value: no line says what nobody knows."""
    rows: list[dict[str, Any]] = []
    segment = 0
    for bucket, label in zip(buckets, labels, strict=True):
        estimate = trend.get(bucket)
        if estimate is None or estimate.value is None:
            segment += 1
        n = 0 if estimate is None else estimate.n
        where = {"value": None, "low": None, "high": None, "shown": "—"}
        where |= {} if estimate is None else point_of(estimate, scale)
        rows.append({"arm": name, "place": place, "at": label, "segment": f"{place}/{segment}", **where, "n": f"{n:,}"})
    sizes = Counter(row["segment"] for row in rows if row["value"] is not None)
    for row in rows:
        row["alone"] = row["value"] is not None and sizes[row["segment"]] == 1
    return rows


def _layers(
    names: Sequence[str],
    curves: Sequence[Curve],
    values: list[dict[str, Any]],
    labels: Sequence[str],
    scale: Scale,
    step: int,
    title: str,
) -> dict[str, Any]:
    several, upright = len(names) > 1, step >= _UPRIGHT
    x = {
        "field": "at",
        "type": "ordinal",
        "sort": None,  # in the order of the data: a list of names would become part of an expression
        "title": title,
        "axis": {"labelAngle": 0 if upright else -90, "labelOverlap": False, "domain": True},
        "scale": {"paddingInner": 0, "paddingOuter": 0.5, "type": "point"},
    }
    y = {"field": "value", "type": "quantitative", "scale": scale.spec(), "title": scale.words()}
    y |= {"axis": {"tickCount": 5}}
    color, shape, dash = _told_apart(names, curves)
    tooltip = [{"field": field, "type": "nominal", "title": title} for field, title in _told(several)]
    lone = {"filter": {"field": "alone", "equal": True}}
    known = {"filter": {"field": "value", "valid": True}}
    zero = {"data": {"values": [{}]}, "mark": {"type": "rule", "color": GREY}, "encoding": {"y": {"datum": 0}}}
    # First, as they are of every bucket: those without a value have their place, too.
    counts = [
        {
            "transform": [{"filter": {"field": "place", "equal": place}}],
            "mark": {"type": "text", "angle": 0 if upright else 270, "align": "center" if upright else "left"}
            | {"baseline": "bottom" if upright else "middle", "color": colors, "fontSize": 10},
            "encoding": {"x": x, "y": {"value": -6 - place * (13 if upright else 34)}, "text": {"field": "n"}},
        }
        for place, colors in enumerate(color["scale"]["range"])
    ]
    beside = [
        {
            "data": {"values": [{"says": "n"}]},
            "mark": {"type": "text", "align": "right", "color": SOFT, "baseline": "bottom" if upright else "middle"},
            "encoding": {
                "x": {"value": -8},
                "y": {"value": -6 if upright else -12},
                "text": {"field": "says"},
            },
        }
    ]
    marked = {"x": x, "color": color if several else {"value": SERIES[0]}, "detail": {"field": "segment"}}
    return {
        "width": step * len(labels),
        "height": HEIGHT,
        "data": {"values": values},
        "layer": [
            *counts,
            *beside,
            *([zero] if scale.difference else []),
            {
                "transform": [known],
                "mark": {"type": "area", "opacity": 0.13 if several else 0.2, "line": False},
                "encoding": {**marked, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "transform": [known] if not several else [lone],
                "mark": {"type": "rule", "opacity": 0.7},
                "encoding": {**marked, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "transform": [known],
                "mark": {"type": "line", "strokeWidth": 1.8},
                "encoding": {**marked, "y": y} | ({"strokeDash": dash} if several else {}),
            },
            {
                "transform": [known],
                "mark": {"type": "point", "filled": True, "size": 42, "opacity": 1},
                "encoding": {**marked, "y": y, "tooltip": tooltip} | ({"shape": shape} if several else {}),
            },
        ],
    }


def _told(several: bool) -> list[tuple[str, str]]:
    return [*([("arm", "arm")] if several else []), ("at", "from"), ("shown", "value"), ("n", "n")]


def _told_apart(names: Sequence[str], curves: Sequence[Curve]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Color, shape and dashes of the arms; what has none is grey and dashed."""
    tagged = [name for name, curve in zip(names, curves, strict=True) if not curve.untagged]
    place = {name: tagged.index(name) % len(SERIES) for name in tagged}
    colors = [SERIES[place[name]] if name in place else GREY for name in names]
    shapes = [SHAPES[place[name]] if name in place else "cross" for name in names]
    dashes = [[1, 0] if name in place else [4, 3] for name in names]
    domain = list(names)

    def channel(given: list[Any]) -> dict[str, Any]:
        return {
            "field": "arm",
            "type": "nominal",
            "title": None,
            "scale": {"domain": domain, "range": given},
            "legend": {"symbolOpacity": 1},
        }

    return channel(colors), channel(shapes), channel(dashes)

"""How plots look: colors that people tell apart whatever they see of color, and as few lines as can be."""

from __future__ import annotations

from typing import Any

from evalr.quoting import safe_text

# Okabe & Ito 2008.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
INK, SOFT, FAINT, GREY = "#222222", "#666666", "#dddddd", "#8a8a8a"
SERIES = (BLUE, VERMILLION, GREEN, PURPLE)
SHAPES = ("circle", "square", "triangle-up", "diamond")

NAME_LONGEST = 40
TITLE_LONGEST = 90
SMALL = 10

CONFIG: dict[str, Any] = {
    "font": "Helvetica, Arial, Liberation Sans, sans-serif",
    "padding": {"left": 16, "right": 30, "top": 6, "bottom": 6},
    "background": "white",
    "view": {"stroke": None},
    "axis": {
        "domainColor": GREY,
        "gridColor": FAINT,
        "labelColor": INK,
        "labelFontSize": 11,
        "labelLimit": 260,
        "tickColor": GREY,
        "titleColor": SOFT,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    },
    "legend": {
        "labelColor": INK,
        "labelFontSize": 11,
        "labelLimit": 260,
        "orient": "bottom",
        "titleColor": SOFT,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    },
    "title": {
        "anchor": "start",
        "color": INK,
        "fontSize": 13,
        "fontWeight": 600,
        "offset": 12,
        "subtitleColor": SOFT,
        "subtitleFontSize": 11,
    },
    "text": {"color": INK, "fontSize": SMALL + 1},
}


def name_text(text: str) -> str:
    """A name from a log, as a plot shows it."""
    return safe_text(text, longest=NAME_LONGEST)


def distinct(names: list[str]) -> list[str]:
    """Names as a plot shows them, told apart where they were shortened to the same."""
    found: list[str] = []
    for name in map(name_text, names):
        shown, count = name, 2
        while shown in found:
            shown, count = f"{name} ({count})", count + 1
        found.append(shown)
    return found


def finished(layers: dict[str, Any], title: str, notes: list[str]) -> dict[str, Any]:
    """A specification with its title, what is to be known beside it, and how it looks."""
    heading: dict[str, Any] = {"text": safe_text(title, longest=TITLE_LONGEST)}
    if notes:
        heading["subtitle"] = [safe_text(note, longest=120) for note in notes]
    return {"title": heading, "config": CONFIG, **layers}

"""Plots inside a page: SVG of which only what draws is left, in the colors of the page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

from evalr.errors import EvalrError
from evalr.estimates.plot import Plot
from evalr.quoting import safe_text
from evalr.reports.plots import looks

LONGEST = 1_000
"""Characters of what a plot says to those who cannot see it."""

_SVG = "{http://www.w3.org/2000/svg}"
_TAGS = frozenset({"svg", "g", "path", "line", "rect", "text", "tspan"})
_PLACES = {"d", "transform", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "width", "height", "viewBox"}
_LOOKS = {"fill", "fill-opacity", "opacity", "font-size", "font-weight", "text-anchor"}
_STROKES = {"stroke", "stroke-dasharray", "stroke-miterlimit", "stroke-opacity", "stroke-width"}
_KEPT = _PLACES | _LOOKS | _STROKES
_COLORS = {
    looks.INK: "ink",
    looks.SOFT: "soft",
    looks.FAINT: "faint",
    looks.GREY: "grey",
    looks.BLUE: "c0",
    looks.VERMILLION: "c1",
    looks.GREEN: "c2",
    looks.PURPLE: "c3",
}
_NUMBER = re.compile(r"-?\d+\.\d{2,}")


def picture(plot: Plot) -> Any:
    """The SVG of a plot as markup.

    Raises:
        MissingExtraError: what draws is not installed.
        EvalrError: it was drawn with something that a page does not take.
    """
    from markupsafe import Markup

    return Markup(cleaned(plot.to_svg(), plot.says))


def cleaned(svg: str, says: str) -> str:
    """An SVG of which only shapes and texts are left, with classes for its colors, and with what it says as its label.

    Raises:
        EvalrError: it is no SVG.
    """
    if "<!" in svg:
        raise EvalrError("a plot with a document type, a comment or an entity is not put into a page")
    try:
        root = ET.fromstring(svg)
    except ET.ParseError as error:
        raise EvalrError(f"a plot is no SVG: {error}") from error
    made = _element(root)
    if made is None:
        raise EvalrError("a plot is no SVG")
    made.attrib |= {"role": "img", "aria-label": safe_text(says, longest=LONGEST)}
    background = made.find("rect")
    if background is not None:
        made.remove(background)
    return ET.tostring(made, encoding="unicode")


def _element(found: ET.Element) -> ET.Element | None:
    """The same with what is allowed alone; None where it is not itself."""
    tag = found.tag.removeprefix(_SVG)
    if tag not in _TAGS or found.get("display") == "none":
        return None
    made = ET.Element(tag, _attributes(found.attrib))
    made.text, made.tail = (found.text if tag in ("text", "tspan") else None), None
    made.extend([each for each in map(_element, found) if each is not None])
    if tag == "g" and not len(made):
        return None
    if tag == "path" and not made.get("d", ""):
        return None
    if tag == "path" and "fill" not in found.attrib and "stroke" not in found.attrib and found.get("class"):
        return None  # a background that nobody sees
    return made


def _attributes(found: Mapping[str, str]) -> dict[str, str]:
    kept, classes = {}, []
    for name, value in found.items():
        color = _COLORS.get(value.lower()) if name in ("fill", "stroke") else None
        if color is not None:
            classes.append(f"{name[0]}-{color}")
        elif name in _KEPT and "url(" not in value:
            kept[name] = _NUMBER.sub(_rounded, value)
    if classes:
        kept["class"] = " ".join(classes)
    if kept.get("opacity") == "1":
        del kept["opacity"]
    return kept


def _rounded(found: re.Match[str]) -> str:
    return f"{float(found[0]):.1f}".removesuffix(".0")


def spark(
    values: list[float | None], lows: list[float | None] | None = None, highs: list[float | None] | None = None
) -> Any:
    """A number over time, as small as a word: its band where its limits are given, and a dot for the latest."""
    from markupsafe import Markup

    known = [each for each in (*values, *(lows or ()), *(highs or ())) if each is not None]
    if len([each for each in values if each is not None]) < 2:
        return None
    least, most = min(known), max(known)
    step, width, height = 92 / max(1, len(values) - 1), 100, 24

    def place(index: int, value: float) -> str:
        y = 0.5 if most == least else (most - value) / (most - least)
        return f"{4 + index * step:.1f},{3 + y * (height - 6):.1f}"

    parts = []
    for run in _runs(values):
        if lows and highs:
            edge = [i for i in run if lows[i] is not None and highs[i] is not None]
            around = [place(i, highs[i] or 0.0) for i in edge] + [place(i, lows[i] or 0.0) for i in reversed(edge)]
            parts.append(f'<path class="f-c0" opacity="0.2" d="M{"L".join(around)}Z"/>' if len(edge) > 1 else "")
        line = "L".join(place(i, values[i] or 0.0) for i in run)
        line += "h0" if len(run) == 1 else ""  # a dot
        parts.append(f'<path class="s-c0" fill="none" stroke-width="1.5" stroke-linecap="round" d="M{line}"/>')
    last = max(i for i, each in enumerate(values) if each is not None)
    x, y = place(last, values[last] or 0.0).split(",")
    parts.append(f'<circle class="f-c0" cx="{x}" cy="{y}" r="2.2"/>')
    # Numbers of our own alone.
    return Markup(
        f'<svg class="spark" width="{width}" height="{height}" viewBox="0 0 {width} {height}" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )


def _runs(values: list[float | None]) -> list[list[int]]:
    """Where values follow each other without a gap."""
    runs: list[list[int]] = [[]]
    for index, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append(index)
    return [run for run in runs if run]

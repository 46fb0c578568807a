"""The section of a report that holds Reflexio's own figures: a few of them as its page words them, and all as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalr.estimates.words import count_words
from evalr.logs.further import Further, FurtherLine

NAME = "reflexio"
TITLE = "Reflexio's own figures, by its own rules (--json has them all)"


def own_section(figures: Mapping[str, Any]) -> Further:
    """What `compat_figures` found."""
    return Further(name=NAME, title=TITLE, lines=list(_lines(figures)), data=figures)


def _lines(figures: Mapping[str, Any]) -> Iterator[FurtherLine | str]:
    page = figures["get_evaluation_overview"]["week"]
    hero, tiles = page["hero"], page["context_tiles"]
    rows = sum(bucket["regular_n"] for bucket in hero["buckets"])
    yield FurtherLine("success", _percent(hero["regular_success_rate_pp"]), notes=(count_words(rows, "result"),))
    for name, unit in (("success", "pp"), ("corrections", ""), ("turns", ""), ("escalation", "pp")):
        tile = tiles[name]
        change = tile.get("delta_pp", tile.get("delta"))
        yield FurtherLine(
            f"{name}, last 7 days",
            _percent(tile["current"]) if unit else f"{tile['current']:.2f}",
            notes=(f"{change:+.1f} pp" if unit else f"{change:+.2f}",),
            within=True,
        )
    shadow = page["shadow_win_rate_trend"]["window_total"]
    if shadow["n"]:
        counts = f"{shadow['wins']:,} wins, {shadow['ties']:,} ties, {shadow['losses']:,} losses"
        yield FurtherLine("shadow win rate", _percent(shadow["win_rate"] * 100), notes=(counts,))
    for part in page["source_set_comparison"]["sets"]:
        rows = part["session_count"]
        yield FurtherLine(
            f"success, {part['label']}", _percent(part["success_rate_pp"]), notes=(count_words(rows, "result"),)
        )
    for name, result in figures["retrieval_experiment_results"].items():
        yield _experiment(name, result)
    groups = figures.get("groups_by_tag_joined_by_session")
    if groups is not None:
        tile = groups["lift"]
        counts = f"{tile['n_treatment']:,} against {tile['n_control']:,}"
        yield FurtherLine("lift by tag", tile["shown"], notes=(counts,))
        if tile["low_confidence"]:
            yield "low confidence: its half width is over 50 points, which is not enough data"
    skipped = figures["skipped"]
    if skipped:
        count = sum(each["count"] for reasons in skipped.values() for each in reasons.values())
        yield f"skipped where they would break an answer of Reflexio's: {count_words(count, 'row')}"


def _percent(value: float) -> str:
    return f"{value:.1f}%"


def _experiment(name: str, result: Mapping[str, Any]) -> FurtherLine:
    lift = result.get("success_rate_lift_percentage_points")
    limits = result.get("confidence_interval_95_percentage_points")
    return FurtherLine(
        f"lift, experiment {name}",
        "no estimate" if lift is None else f"{lift:+.1f} pp",
        "" if limits is None else f"{limits[0]:+.1f} to {limits[1]:+.1f} pp",
        (f"{count_words(result['treatment']['evaluated_session_count'], 'result')} treated",),
    )

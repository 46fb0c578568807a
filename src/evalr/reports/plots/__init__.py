"""Figures: one file for each kind, and what finds the one for a result.

A figure is a Vega-Lite specification as plain data, so that making one needs no library; only drawing it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate, Groups, Trend
from evalr.estimates.lift import Allocation, Lift
from evalr.estimates.plot import OURS, Plot, Plotted
from evalr.estimates.stating import number_cell
from evalr.estimates.survival import SurvivalCurve
from evalr.estimates.trends import Trends
from evalr.quoting import safe_text
from evalr.reports.plots.contest import contest_figure, is_contest
from evalr.reports.plots.funnel import Exclusion, Funnel, funnel_figure
from evalr.reports.plots.lift import forest_figure, lift_figure
from evalr.reports.plots.looks import finished
from evalr.reports.plots.reliability import reliability_figure
from evalr.reports.plots.rows import interval_rows
from evalr.reports.plots.survival import survival_figure
from evalr.reports.plots.trend import Curve, curves_figure, trend_figure
from evalr.summaries.lifting import CONTROLS

GROUPS_DRAWN = 40

Figure = tuple[dict[str, Any], list[str]]


class Vega:
    """Draws results of evalr: the entry point `vega` of the group `evalr.plots`."""

    name = OURS

    def plot(self, result: Any, *, title: str | None = None, width: int | None = None) -> Plot:
        """See `evalr.estimates.plot.Plotter`."""
        layers, notes, name = _figure(result, width)
        heading = name if title is None else title
        says = f"{heading}: {_says(result)}" if heading else _says(result)
        return Plot(spec=finished(layers, heading, notes), says=safe_text(says, longest=600))


plotter = Vega()


def _figure(result: Any, width: int | None) -> tuple[dict[str, Any], list[str], str]:
    """The layers of a result's figure, what is to be said beside it, and what it is called."""
    if isinstance(result, Estimate):
        name = _called(result)
        if is_contest(result):
            return contest_figure(result, width=width), _of_one(result), name
        return interval_rows([(result.reading or result.name, result)], width=width), _of_one(result), name
    if isinstance(result, Trend):
        _refuse_empty(result)
        return *trend_figure(result, width=width), _called(_first(result.values()))
    if isinstance(result, Groups):
        _refuse_empty(result)
        return *groups_figure(result, width=width), f"{_called(_first(result.values()))} by {result.by}"
    if isinstance(result, Trends):
        _refuse_empty(result)
        return *trends_figure(result, width=width), f"{_called(_first(result.estimates()))} by {result.by}"
    if isinstance(result, Lift):
        return *lift_figure(result, width=width), f"{result.name} lift"
    if isinstance(result, SurvivalCurve):
        if not result.times:
            raise InputError(f"{result.name}: nothing was counted, so there is no curve to draw")
        return *survival_figure(result, width=width), result.name
    return _rarer_figure(result, width)


def _rarer_figure(result: Any, width: int | None) -> tuple[dict[str, Any], list[str], str]:
    """Of results that few people draw, and whose modules are imported for them alone."""
    if isinstance(result, Allocation):
        return allocation_figure(result, width=width), result.notes()[:1], "assigned and evaluated"
    from evalr.labels.calibrating import Calibration
    from evalr.runs.comparison import Comparison

    if isinstance(result, Calibration):
        layers, notes = reliability_figure(result.reliability, width=width)
        return layers, [result.pair_words, *notes], f"confidence in {result.field}"
    if isinstance(result, Comparison):
        rows = [(name, each.difference, _pairs_words(each.difference)) for name, each in result.items()]
        if not rows:
            raise InputError("the two runs have no measure in common, so there is nothing to draw")
        return forest_figure(rows, width=width), result.notes(), f"{result.before} → {result.after}"
    from evalr.reports.report import Report

    if isinstance(result, Report):
        return funnel_figure(report_funnel(result), width=width), [], "what was counted"
    if isinstance(result, Plotted):
        return several_figure(result.drawn(), width=width), [], getattr(result, "name", None) or type(result).__name__
    raise InputError(f"{type(result).__name__} is nothing that evalr draws")


def several_figure(named: Sequence[tuple[str, Estimate]], *, width: int | None = None) -> dict[str, Any]:
    """A line for each estimate, those of one unit on one axis."""
    if not named:
        raise InputError("there is no number in it, so there is nothing to draw")
    units = list(dict.fromkeys(each.unit for _, each in named))
    parts = [interval_rows([(name, each) for name, each in named if each.unit == unit], width=width) for unit in units]
    return parts[0] if len(parts) == 1 else {"vconcat": parts, "spacing": 18}


def groups_figure(groups: Groups, *, width: int | None = None) -> Figure:
    """A line for each of the largest groups, in their order."""
    chosen = set(sorted(groups, key=lambda group: -groups[group].n)[:GROUPS_DRAWN])
    named = [(groups.group_words(group), groups[group]) for group in groups if group in chosen]
    hidden = len(groups) - len(chosen)
    notes = [f"{hidden:,} smaller groups are not drawn"] if hidden else []
    notes += ["groups overlap: a result may be in several"] if groups.overlap else []
    return interval_rows(named, width=width), notes


def trends_figure(trends: Trends, *, width: int | None = None) -> Figure:
    """A line for each of the largest arms: a treatment first, so that it looks the same on every plot, no arm last."""
    sizes = {arm: sum(estimate.n for estimate in trend.values()) for arm, trend in trends.items()}
    largest = sorted((arm for arm in trends if arm is not None), key=lambda arm: -sizes[arm])[:4]
    arms = [*sorted(largest, key=lambda arm: (arm in CONTROLS, str(arm))), *([None] if None in trends else [])]
    curves = [Curve(trends.group_words(arm), trends[arm], untagged=arm is None) for arm in arms]
    layers, notes = curves_figure(curves, trends.bucket, width=width)
    hidden = len(trends) - len(arms)
    return layers, notes + ([f"{hidden:,} smaller arms are not drawn"] if hidden else [])


def allocation_figure(allocation: Allocation, *, width: int | None = None) -> dict[str, Any]:
    """Who was assigned, and who of them was never evaluated, by arm."""
    total = sum(allocation.assigned.values())
    evaluated = allocation.evaluated or {}
    lost = [
        Exclusion(f"{arm}, never evaluated", count - evaluated[arm])
        for arm, count in allocation.assigned.items()
        if arm in evaluated and count > evaluated[arm]
    ]
    return funnel_figure(Funnel(total, "assigned to the two arms", lost, "evaluated"), width=width)


def report_funnel(report: Any) -> Funnel:
    """From a log's records to what was counted."""
    excluded = [Exclusion(reason, n) for reason, n in report.left_out.counts.items()]
    excluded += [Exclusion(reason, n) for reason, n in report.not_counted.items()]
    excluded += [Exclusion(f"of no measure: {name}", n) for name, n in report.unread.items()]
    counted = sum(report.inputs.values()) + report.results - sum(report.unread.values())
    return Funnel(counted + sum(each.n for each in excluded), "read", excluded, "counted")


def estimate_funnel(estimate: Estimate) -> Funnel:
    """From the results that a summary read to those that its number is of."""
    excluded = [Exclusion(reason, n) for reason, n in estimate.left_out.items()]
    return Funnel(estimate.n + sum(estimate.left_out.values()), "results", excluded, "counted")


def _called(estimate: Estimate) -> str:
    return estimate.name if estimate.reading is None else f"{estimate.name}: {estimate.reading}"


def _first(estimates: Any) -> Estimate:
    found: Estimate = next(iter(estimates))
    return found


def _of_one(estimate: Estimate) -> list[str]:
    return [" · ".join(estimate.notes()[1:])] if len(estimate.notes()) > 1 else []


def _pairs_words(difference: Estimate) -> str:
    return f"n={difference.n:,}"


def _refuse_empty(result: Any) -> None:
    if not len(result):
        raise InputError("nothing was counted, so there is nothing to draw")


def _says(result: Any) -> str:
    """What a figure shows, in words."""
    if isinstance(result, Trend | Groups):
        return _listed([(result.group_words(group), estimate) for group, estimate in result.items()])
    if isinstance(result, Trends):
        return _listed([(result.group_words(arm), _last(trend)) for arm, trend in result.items()])
    if isinstance(result, Estimate | Lift | Allocation):
        return str(result)
    if isinstance(result, Plotted) and (drawn := result.drawn()):
        return _listed(drawn)
    return str(result).replace("\n", "; ")


def _last(trend: Trend) -> Estimate:
    return [estimate for group, estimate in trend.items() if group is not None or len(trend) == 1][-1]


def _listed(named: Sequence[tuple[str, Estimate]]) -> str:
    words = [f"{name} {number_cell(estimate)} (n={estimate.n:,})" for name, estimate in named]
    return "; ".join(words[:6]) + (f"; and {len(words) - 6:,} more" if len(words) > 6 else "")

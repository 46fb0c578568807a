"""The measures that a report can use: those that load, and that can be set up as they say of themselves."""

from __future__ import annotations

from datetime import UTC, datetime

from evalr.measures.measure import Measure, installed_measures
from evalr.plugins import Plugins
from evalr.summaries import Summary

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def usable_measures() -> Plugins[Measure]:
    """Every installed measure that works with its own defaults, by name, and why the others do not.

    One that does not is listed and stops no other, whatever another package's code raises.
    """
    loaded, broken = installed_measures()
    usable: dict[str, Measure] = {}
    owners: dict[str, str] = {}
    broken = dict(broken)
    for name, measure in loaded.items():
        try:
            names = _summary_names(measure)
        except Exception as error:  # noqa: BLE001  another package's code may raise anything; it is listed with its cause
            broken[name] = f"{type(error).__name__}: {error}"
            continue
        taken = [f"{each!r} is one of {owners[each]!r}" for each in names if each in owners]
        if not names or names[0] != measure.name:
            broken[name] = f"its first summary must be named {measure.name!r}"
        elif taken or len(set(names)) < len(names):
            broken[name] = f"its summaries need names of their own: {', '.join(taken or names)}"
        else:
            usable[name] = measure
            owners |= dict.fromkeys(names, name)
    return Plugins(usable, broken)


def _summary_names(measure: Measure) -> list[str]:
    settings = measure.settled({})
    if measure.evaluator is not None:
        measure.evaluator(now=_ANY_TIME, **settings)
    summaries = measure.summaries(**settings)
    for summary in summaries:
        if not isinstance(summary, Summary):
            raise TypeError(f"{summary!r} is not a summary")
    return [summary.name for summary in summaries]

"""`evalr compare`: two experiments from their files, by every measure that both have."""

from __future__ import annotations

from typing import Any

from evalr.cli.listing import summaries_by_name
from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr.runs import Comparison, Experiment, Gate, compare
from evalr.summaries import Mean, Rate, Summary

CORRECTIONS = {"holm": "holm", "bh": "bh", "none": None}


def compared(before: str, after: str, *, correction: str, **options: Any) -> Comparison:
    """Two experiments compared by the rates and means of the installed measures that an evaluator of both gives.

    Raises:
        DatasetError: a file is no experiment that can be read.
        InputError: they share no measure, or see `compare`.
    """
    if correction not in CORRECTIONS:
        raise InputError(f"--correction={correction}: {choice_words(correction, CORRECTIONS)}")
    runs = Experiment.load(before), Experiment.load(after)
    summaries = [named.summary for named in summaries_by_name().values() if _in_both(named.summary, runs)]
    if not summaries:
        raise InputError(f"{before} and {after} share no rate or mean of an installed measure")
    return compare(*runs, summaries, correction=CORRECTIONS[correction], **options)  # type: ignore[arg-type]


def _in_both(summary: Summary[Any], runs: tuple[Experiment, Experiment]) -> bool:
    comparable = isinstance(summary, Rate | Mean) and (summary.fold is None or summary.per == "id")
    return comparable and all(any(issubclass(kind, summary.of) for kind in run.evaluators.values()) for run in runs)


def comparison_lines(found: Comparison, gate: Gate | None) -> list[str]:
    """What the command prints."""
    return [*str(found).split("\n"), *([] if gate is None else ["", *str(gate).split("\n")])]


def comparison_dict(found: Comparison, gate: Gate | None) -> dict[str, Any]:
    """The same in plain types."""
    fields: dict[str, Any] = {
        "before": found.before,
        "after": found.after,
        "correction": found.correction,
        "only_before": list(found.only_before),
        "only_after": list(found.only_after),
        "changed": list(found.changed),
        "measures": found.to_dicts(),
    }
    if gate is not None:
        fields["gate"] = [
            {"asked": each.asked, "verdict": each.verdict, "code": each.code, "found": each.found}
            for each in gate.rulings
        ]
    return fields

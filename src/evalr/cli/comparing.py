"""`evalr compare`: two experiments from their files, by every measure that both have."""

from __future__ import annotations

from typing import Any

from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr.runs import Comparison, Experiment, Gate, compare

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
    return compare(*runs, correction=CORRECTIONS[correction], **options)  # type: ignore[arg-type]


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

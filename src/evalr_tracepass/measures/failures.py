"""Failures: how often did a model not answer, and why?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from evalr.estimates.estimate import Estimate, Groups
from evalr.estimates.plot import Plotted
from evalr.estimates.shown import Printed
from evalr.quoting import safe_text
from evalr.summaries import Rate
from evalr.verdicts import Verdict
from evalr_tracepass.measures.fired import about_record
from evalr_tracepass.records import Result


class Answered(BaseModel):
    """Whether a model answered for one text, and the kind of error where it did not."""

    failed: bool
    error: str = Field(default="", description="The kind of error, empty where there is none")


failure_rate = Rate(
    "pass_failures",
    of=Answered,
    hits=lambda value: int(value.failed),
    title="predictions that failed",
    noun="prediction",
    parent="conversation",
)
"""Failed predictions over all that came back or failed."""


@dataclass(frozen=True)
class Failures(Printed, Plotted):
    """How often models failed.

    Attributes:
        models: the failure rate of each.
        errors: for each model, and each kind of error, the share of its predictions that failed so.
    """

    models: Groups
    errors: dict[str, dict[str, Estimate]]

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        named = [(model or "?", rate) for model, rate in self.models.items()]
        return named + [(f"{model}: {error}", each) for model, of in self.errors.items() for error, each in of.items()]

    def __str__(self) -> str:
        lines = []
        for model, rate in self.models.items():
            lines.append(f"{safe_text(model or '?')}: {rate}")
            lines += [f"  {safe_text(error)}: {found}" for error, found in self.errors.get(model or "", {}).items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """In plain types."""
        return {
            "models": {model or "": rate.to_dict() for model, rate in self.models.items()},
            "errors": {
                model: {error: rate.to_dict() for error, rate in of.items()} for model, of in self.errors.items()
            },
        }


def failures(records: Iterable[Result], *, level: float = 0.95) -> Failures:
    """The failure rate of each model, and of each kind of error, clustered as the fired rates are.

    Args:
        records: one of a signal for each text; see `latest_records`.
        level: of the intervals.
    """
    results = [
        Verdict(
            Answered(failed=each.status == "failed", error=(each.error_type or "unknown") * (each.status == "failed")),
            each.reflex_model,
            about=about_record(each),
        )
        for each in records
    ]
    models = failure_rate.by(results, "model", level=level)
    kinds: dict[str, Counter[str]] = {}
    for each in results:
        if each.value.failed:
            kinds.setdefault(each.evaluator, Counter())[each.value.error] += 1
    errors = {
        model: {error: _rate_of(error).estimate(of, level=level) for error, _ in found.most_common()}
        for model, found in kinds.items()
        for of in [[each for each in results if each.evaluator == model]]
    }
    return Failures(models, errors)


def _rate_of(error: str) -> Rate[Answered]:
    return Rate(
        failure_rate.name,
        of=Answered,
        hits=lambda value: int(value.error == error),
        noun=failure_rate.noun,
        parent=failure_rate.parent,
    )

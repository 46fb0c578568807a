"""Rules: how often runs of each rule succeed, end as dead letters, are retried, and need a person."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from evalr.errors import InputError
from evalr.evaluators import FunctionEvaluator
from evalr.inputs import Now, utc_now
from evalr.measures.measure import Measure
from evalr.summaries import Rate
from evalr.verdicts import Skip
from evalr_reflexr.runs import RuleRun, RunStep, StepKind

Compat = Literal["reflexr"]

RunState = Literal["pending", "running", "retrying", "succeeded", "dead", "cancelled", "skipped"]

STATES: dict[StepKind, RunState] = {
    "fired": "pending",
    "started": "running",
    "retrying": "retrying",
    "succeeded": "succeeded",
    "dead_lettered": "dead",
    "requeued": "pending",
    "skipped": "skipped",
    "cancelled": "cancelled",
}
UNFINISHED = ("pending", "running", "retrying")
OPERATIONS = ("requeued", "skipped", "cancelled")
OPERATORS = ("user", "external_agent")
"""Whose operations reflexr counts as interventions, by the kind of actor."""


class RuleOutcome(BaseModel):
    """What became of one run of a rule, as far as the log goes."""

    state: RunState = Field(description="Where it stands")
    succeeded: bool = Field(description="At least once")
    dead_lettered: bool = Field(description="At least once, also where it succeeded later")
    retried: bool = Field(description="An attempt failed and another was scheduled, at least once")
    intervened: bool = Field(description="A person retried, skipped or cancelled it")
    archived: bool = Field(default=False, description="It was cancelled because its rule was archived")
    refired: bool = Field(default=False, description="It repeats an occurrence that had a run before a replay")


def check_compat(compat: str | None) -> Compat | None:
    """The choice itself, where it is one. Another reader's name is a choice of that reader's numbers, and none here."""
    from evalr.logs import installed_readers

    if compat not in (None, "reflexr") and compat not in installed_readers().loaded:
        raise InputError(f"compat={compat!r} must be 'reflexr', for reflexr's own numbers, or left out")
    return "reflexr" if compat == "reflexr" else None


def measure_run(run: RuleRun, now: datetime) -> RuleOutcome | Skip:
    """What became of a run until `now`. Interventions are those of people; archiving a rule is none."""
    return _outcome(run, now, lambda step: step.by == "person" and not step.with_rule)


def measure_run_as_reflexr(run: RuleRun, now: datetime) -> RuleOutcome | Skip:
    """The same, where an intervention is what reflexr counts as one: any by a user or an external agent."""
    return _outcome(run, now, lambda step: step.actor in OPERATORS)


def _outcome(run: RuleRun, now: datetime, is_operator: Callable[[RunStep], bool]) -> RuleOutcome | Skip:
    steps = [step for step in run.steps if step.at <= now]
    if not steps:
        return Skip("it had not begun")
    last = steps[-1]
    if last.kind == "started":
        # Only a run that waits can be started: behind its end, that changes nothing.
        before = next((step for step in reversed(steps) if step.kind != "started"), last)
        last = last if STATES[before.kind] in UNFINISHED else before
    return outcome_of(
        {step.kind for step in steps},
        last.kind,
        intervened=any(step.kind in OPERATIONS and is_operator(step) for step in steps),
        archived=last.kind == "cancelled" and last.with_rule,
        refired=run.refired,
    )


def outcome_of(
    kinds: Collection[StepKind], last: StepKind, *, intervened: bool, archived: bool, refired: bool
) -> RuleOutcome:
    """What became of a run with steps of these kinds, the last of which is known."""
    return RuleOutcome.model_construct(
        state=STATES[last],
        succeeded="succeeded" in kinds,
        dead_lettered="dead_lettered" in kinds,
        retried="retrying" in kinds,
        intervened=intervened,
        archived=archived,
        refired=refired,
    )


def rule_evaluator(*, now: Now = utc_now, compat: str | None = None) -> FunctionEvaluator[RuleRun, RuleOutcome]:
    """`measure_run` as an evaluator."""
    function = measure_run if check_compat(compat) is None else measure_run_as_reflexr
    return FunctionEvaluator(
        "rules",
        "1" if compat is None else f"1:{compat}",
        function,
        RuleRun,
        RuleOutcome,
        now=now,
        inline=True,
        pending=lambda v: v.state in UNFINISHED,
    )


def _left_out(outcome: RuleOutcome) -> str | None:
    """Why a run is in no rate: a refired one repeats another, an archived rule's was let go, another is not done."""
    if outcome.refired:
        return "refired"
    if outcome.archived:
        return "cancelled with their rule"
    return "pending" if outcome.state in UNFINISHED else None


def rule_rates(*, compat: str | None = None) -> Sequence[Rate[RuleOutcome]]:
    """Success, dead-letter, retry and intervention rates of runs.

    Args:
        compat: "reflexr" for its own numbers: of all runs, unfinished ones and all others included.
    """
    leaves_out = _left_out if check_compat(compat) is None else None

    def rate(name: str, title: str, hits: Callable[[RuleOutcome], int]) -> Rate[RuleOutcome]:
        return Rate(name, of=RuleOutcome, hits=hits, leaves_out=leaves_out, title=title, noun="run", parent="chain")

    return (
        rate("rules", "succeeded", _succeeded),
        rate("rules_dead_lettered", "dead-lettered", _dead_lettered),
        rate("rules_retried", "retried", _retried),
        rate("rules_intervened", "needed a person", _intervened),
    )


def _succeeded(outcome: RuleOutcome) -> int:
    return int(outcome.succeeded)


def _dead_lettered(outcome: RuleOutcome) -> int:
    return int(outcome.dead_lettered)


def _retried(outcome: RuleOutcome) -> int:
    return int(outcome.retried)


def _intervened(outcome: RuleOutcome) -> int:
    return int(outcome.intervened)


measure = Measure(
    name="rules",
    question="which rules fail, retry and need a person?",
    input=RuleRun,
    verdict=RuleOutcome,
    summaries=rule_rates,
    settings={"compat": None},
    evaluator=lambda now, compat: rule_evaluator(now=now, compat=compat),
    by="rule",
)

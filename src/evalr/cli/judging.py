"""`evalr judge`: what it would come to, the question whether to go on, the run, and the account of it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any

from evalr.cli.judged_inputs import LogInputs, drawn_whole, read_sample, sampled_inputs
from evalr.cli.kept import keep_results, opened, places
from evalr.cli.owners import owned_log
from evalr.cli.progress import shown_progress
from evalr.cli.settings import read_settings
from evalr.errors import InputError, PluginError
from evalr.estimates.words import choice_words, count_words, plural
from evalr.evaluators import Evaluator
from evalr.inputs import Input, resolve_now, utc_now
from evalr.logs import find_reader
from evalr.logs.finding import scheme_of
from evalr.logs.log import reader_settings
from evalr.measures.measure import Measure, installed_measures
from evalr.measures.ready_judges import ReadyJudge, judged_measures, ready_judge
from evalr.quoting import quoted, safe_text
from evalr.reports.fitting import padded, wrapped
from evalr.reports.report import Report
from evalr.runs import Budget, ProgressLine, RunSummary, evaluate_all_sync
from evalr.runs.budget import dollars
from evalr.runs.outlook import Outlook, outlook

CENT = 0.01
"""No estimate is better than that, and nobody wants to know."""

LONGEST_CALLS = 1800.0
"""Seconds for one input: a client may wait forever for an answer that trickles in."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the command is asked for, as `evalr judge --help` says."""

    log: str
    measure: str
    lm: str | None = None
    judge: str | None = None
    api_base: str | None = None
    kind: str | None = None
    now: datetime | None = None
    since: datetime | None = None
    until: datetime | None = None
    sample: str | None = None
    journal: str | None = None
    out: str | None = None
    budget: float | None = None
    calls: int | None = None
    settings: Sequence[str] = ()
    strict: bool = False
    session: str | None = None
    user: str | None = None
    limit: int | None = None
    again: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be judged, by whom, what it comes to, and where it is kept."""

    by: str
    """Who judges, in words: the model, or the file that the judge is in."""
    lm: str | None
    judge: str | None
    measure: Measure
    evaluator: Evaluator[Any, Any]
    inputs: LogInputs
    chosen: Iterable[Input]
    sampled: bool
    outlook: Outlook
    budget: Budget | None
    journal: Path
    out: Path
    now: datetime | None
    """As asked for, so that the report says whether it was."""
    owners: tuple[str, ...] = ()
    """What is set of the judge as the log's owners have it."""

    @property
    def noun(self) -> str:
        """What is judged is called."""
        return safe_text(self.measure.input.kind)

    def question(self) -> str:
        """`Judge 1,204 transcripts with openai/gpt-5-mini, about $3.10 (at most $5.00)?`."""
        ahead = self.outlook
        of = f" of {self.inputs.seen:,}" if self.sampled else ""
        some = f"{ahead.left:,}{of} {self.noun if ahead.left == 1 and not of else plural(self.noun)}"
        known = f" ({ahead.done:,} more in the journal)" if ahead.done else ""
        price = f"{price_words(ahead)}{bound_words(self.budget)}"
        return f"Judge {some}{known} with {safe_text(self.by, longest=200)}, {price}?"


def planned(asked: Asked) -> Plan:
    """Read the log, ask nobody, and say what judging it comes to.

    Raises:
        EvalrError: there is nothing to judge, nobody who could, or nowhere to keep it.
    """
    measure = _judged_measure(asked.measure)
    if asked.user is not None:
        raise InputError("--user says whose session is meant: name it with --session")
    reader = find_reader(asked.log, kind=asked.kind)
    size = None if asked.sample is None else read_sample(asked.sample)
    budget = asked_budget(asked)
    journal, out = places(asked.log, measure.name, journal=asked.journal, out=asked.out)
    ready = ready_judge(measure.name)
    own = reader_settings(reader)
    given = read_settings(asked.settings, {**own, **ready.settings})
    owned = None if asked.judge is not None else owned_log(reader, asked.log, given, own)
    team = {} if owned is None else owned.settings.get(measure.name, {})
    evaluator = _judge(measure, _made(ready, asked, {**team, **given}), asked.judge)
    inputs = LogInputs(
        asked.log,
        measure,
        resolve_now(asked.now or utc_now),
        asked.since,
        asked.until,
        reader.name,
        asked.strict,
        {name: value for name, value in given.items() if name in own},
    )
    who = _who(asked)
    with shown_progress(scheme_of(asked.log) or asked.log) as inputs.progress, opened(journal) as book:
        chosen = sampled_inputs(inputs, size)
        ahead = outlook(evaluator, chosen, journal=book)
    inputs.progress = None
    _refuse_nothing(inputs)
    return Plan(
        by=who,
        lm=asked.lm,
        judge=asked.judge,
        measure=measure,
        evaluator=evaluator,
        inputs=inputs,
        chosen=chosen,
        sampled=size is not None,
        outlook=ahead,
        budget=priced(budget, ahead, who),
        journal=journal,
        out=out,
        now=asked.now,
        owners=tuple(name for name in team if name not in given),
    )


def agreed(question: str) -> bool:
    """Whether a person at the terminal says yes.

    Raises:
        InputError: nobody is at one.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise InputError(f"{question} There is no terminal to say yes at: add --yes to go ahead")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def judged(plan: Plan, *, limit: int) -> RunSummary:
    """Ask the judge, and keep what it says: each result in the journal as it comes, all of them in a file in the end.

    Raises:
        InputError: the first calls all failed, or the file cannot be written.
        JournalError: the journal cannot be used.
    """
    if not plan.outlook.inputs:
        return RunSummary(finished=True)
    run = evaluate_all_sync(
        plan.evaluator,
        plan.chosen,
        journal=plan.journal,
        limit=limit,
        budget=plan.budget,
        timeout=LONGEST_CALLS,
        duplicates="first",
        progress=ProgressLine(),
        total=plan.outlook.inputs,
    )
    keep_results(run, plan.out, lambda result: plan.measure.name)
    return run.summary


def report_of(plan: Plan) -> Report:
    """The measure's numbers over the results that are kept, as `evalr report` shows them."""
    from evalr.bulk import report

    return report(str(plan.out), measures=[plan.measure], now=plan.now, kind="jsonl")


# ---------------------------------------------------------------------------------------------------------------------
# Who judges, and what
# ---------------------------------------------------------------------------------------------------------------------


def _judged_measure(name: str) -> Measure:
    loaded, broken = installed_measures()
    if name in broken:
        raise PluginError(f"the measure {name!r} cannot be used: {broken[name]}")
    if name not in loaded:
        raise InputError(f"no installed measure is named {quoted(name)}; {choice_words(name, judged_measures())}")
    measure = loaded[name]
    if measure.evaluator is not None:
        raise InputError(f"{name!r} is computed and needs no judge: evalr report LOG --measure {name}")
    return measure


def _who(asked: Asked) -> str:
    if asked.judge is None:
        return str(asked.lm)
    return asked.judge if asked.lm is None else f"{asked.judge} by {asked.lm}"


def _made(ready: ReadyJudge, asked: Asked, given: Mapping[str, Any]) -> object:
    """The judge that a model's name, or a file, makes with the settings."""
    settled = {name: given.get(name, default) for name, default in ready.settings.items()}
    if asked.judge is None:
        if asked.lm is None:
            raise InputError("nobody is named who could judge: give a model with --lm, or a saved judge with --judge")
        return ready.make(lm=asked.lm, api_base=asked.api_base, **settled)
    if ready.load is None:
        raise InputError(f"the judge of {ready.name!r} is in no file: leave --judge out, and give a model with --lm")
    for name in ready.of_file:
        if name in given:
            raise InputError(f"--set {name}: the judge in {asked.judge} has its own, which is part of its rubric")
        del settled[name]
    return ready.load(path=asked.judge, lm=asked.lm, api_base=asked.api_base, **settled)


def _judge(measure: Measure, evaluator: object, file: str | None) -> Evaluator[Any, Any]:
    """The judge, where it is one of the measure, with its clock read once."""
    if not isinstance(evaluator, Evaluator):
        raise PluginError(f"what is installed as the judge of {measure.name!r} makes no evaluator")
    if file is not None and not _fits(measure, evaluator):
        given, reads = evaluator.verdict_type.__name__, _reads(evaluator).__name__
        raise InputError(
            f"{file} is no judge of {measure.name!r}: it gives {given} of {reads}, and not {measure.verdict.__name__} "
            f"of {measure.input.__name__}"
        )
    if not issubclass(evaluator.verdict_type, measure.verdict):
        raise PluginError(f"what is installed as the judge of {measure.name!r} gives no {measure.verdict.__name__}")
    pin = getattr(evaluator, "pinned", None)
    return evaluator if pin is None else pin()  # the price is of the very questions that are asked


def _fits(measure: Measure, evaluator: Evaluator[Any, Any]) -> bool:
    """Whether it gives the measure's verdicts, and reads what the measure is of."""
    return issubclass(evaluator.verdict_type, measure.verdict) and issubclass(measure.input, _reads(evaluator))


def _reads(evaluator: Evaluator[Any, Any]) -> type[Input]:
    """The type of input that it reads; any, where it does not say."""
    reads: type[Input] = getattr(evaluator, "input_type", Input)
    return reads


def _refuse_nothing(inputs: LogInputs) -> None:
    if inputs.seen or inputs.not_counted:
        return
    wanted = plural(safe_text(inputs.measure.reads.kind))
    kinds = ", ".join(count_words(count, safe_text(kind)) for kind, count in inputs.kinds.items())
    unsplit = "".join(f"; {count:,} could not be split: {error}" for error, count in inputs.unsplit.items())
    left_out = inputs.log.left_out.words() if inputs.log is not None else ""
    path = inputs.path if inputs.log is None else inputs.log.path  # which has no password, where it is an address
    raise InputError(
        f"{path}: a judge of {inputs.measure.name!r} reads {wanted}, and this log has {kinds or 'none'}{unsplit}"
        + (f"; left out: {left_out}" if left_out else "")
    )


def asked_budget(asked: Asked) -> Budget | None:
    """What the run may spend, as it was asked for."""
    if asked.calls is None and asked.budget is None:
        return None
    if asked.budget is not None and not 0 <= asked.budget < inf:
        raise InputError(f"--budget {asked.budget}: write US dollars, such as 5")
    return Budget(calls=asked.calls, cost=asked.budget)


def priced(budget: Budget | None, ahead: Outlook, who: str) -> Budget | None:
    """The budget, which counts a call whose cost remains unknown as the dearest one that is expected, rather than free.

    Raises:
        InputError: it is one of dollars, and nobody knows what a call costs.
    """
    if budget is None or budget.cost is None or not ahead.left:
        return budget
    if ahead.dearest is None:
        raise InputError(
            f"--budget needs a price, and none is known of {who!r}: bound the calls instead, as in --calls 500"
        )
    return replace(budget, ceiling=ahead.dearest)


# ---------------------------------------------------------------------------------------------------------------------
# In words
# ---------------------------------------------------------------------------------------------------------------------


def price_words(ahead: Outlook) -> str:
    """What it is expected to cost."""
    if ahead.cost is not None:
        return f"about ${ahead.cost:,.2f}" if ahead.cost >= CENT else "less than $0.01"
    return "cost unknown" + ("" if ahead.tokens is None else f", about {ahead.tokens:,} tokens")


def bound_words(budget: Budget | None) -> str:
    """What it may cost at most."""
    if budget is None:
        return ""
    bounds = [] if budget.cost is None else [dollars(budget.cost)]
    bounds += [] if budget.calls is None else [count_words(budget.calls, "call")]
    return f" (at most {' and '.join(bounds)})"


def account_lines(plan: Plan, summary: RunSummary, width: int) -> list[str]:
    """What was done, what was not, and where it is."""
    out, journal = (shlex.quote(safe_text(str(path), longest=1_000)) for path in (plan.out, plan.journal))
    # What a call was expected to cost is no bound that anybody set.
    entries = [("judged", f"with {safe_text(plan.by, longest=200)}: {replace(summary, over_ceiling=0, not_done={})}")]
    if plan.owners:
        entries.append(("note", f"as the log's owners have set it: {', '.join(plan.owners)}"))
    if plan.sampled:
        unit = drawn_whole(plan.measure)
        by = "by their ids" if unit is None else f"as whole {plural(safe_text(unit.noun))}"
        entries.append(("sample", f"{plan.outlook.inputs:,} of {count_words(plan.inputs.seen, plan.noun)}, {by}"))
    for reason, count in summary.not_done.items():
        rest = "what was judged came first in the log and is no sample of it (--sample draws one)"
        entries.append(("not done", f"{count:,}: {safe_text(reason)}; {rest}; the same command goes on"))
    if plan.inputs.not_counted:
        words = ", ".join(f"{count:,} {reason}" for reason, count in plan.inputs.not_counted.items())
        entries.append(("not asked", words))
    for error, count in plan.inputs.unsplit.items():
        entries.append(("not asked", f"{count:,} could not be split ({error})"))
    if plan.inputs.stored:
        stored = count_words(plan.inputs.stored, "result")
        entries.append(("note", f"the log itself holds {stored} of {plan.measure.name}, which are not among these"))
    if plan.inputs.log is not None and plan.inputs.log.left_out.counts:
        entries.append(("left out", plan.inputs.log.left_out.words()))
    if summary.results:
        entries.append(("results", f"{out}; to see them again: evalr report {out}"))
    if plan.journal.exists():
        entries.append(("journal", f"{journal}; what is in it is not asked again"))
    return named_lines(entries, width)


def named_lines(entries: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Each text beside its name, wrapped."""
    return [
        line
        for name, text in entries
        for line in wrapped(safe_text(text, longest=2_000), width, first=padded(name, 13), rest=" " * 13)
    ]


def judged_dict(plan: Plan, summary: RunSummary) -> dict[str, Any]:
    """The same in plain types."""
    log = plan.inputs.log
    return {
        "measure": plan.measure.name,
        "lm": plan.lm,
        "judge": plan.judge,
        "evaluator": f"{plan.evaluator.name}@{plan.evaluator.version}",
        "inputs": plan.outlook.inputs,
        "inputs_in_log": plan.inputs.seen,
        "sampled": plan.sampled,
        "owners_settings": list(plan.owners),
        "expected_cost": plan.outlook.cost,
        "verdicts": summary.verdicts,
        "failed": summary.failed,
        "skipped": summary.skipped,
        "handed_off": summary.handed_off,
        "from_journal": summary.from_journal,
        "calls": summary.calls,
        "retried": summary.retried,
        "in_doubt": summary.in_doubt,
        "duplicates": summary.duplicates,
        "not_done": dict(summary.not_done),
        "cost_known": summary.cost,
        "unknown_costs": summary.unknown_costs,
        "seconds": summary.seconds,
        "not_asked": dict(plan.inputs.not_counted),
        "unsplit": dict(plan.inputs.unsplit),
        "results_in_log": plan.inputs.stored,
        "left_out": {} if log is None else dict(log.left_out.counts),
        "results": str(plan.out) if summary.results else None,
        "journal": str(plan.journal),
    }

"""`evalr judge` by the settings of the log's owners: one session, a period, or what is due."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evalr.cli.judging import Asked, asked_budget, bound_words, named_lines, price_words, priced
from evalr.cli.kept import keep_results, opened, places
from evalr.cli.owners import owned_log
from evalr.cli.settings import read_settings
from evalr.errors import InputError
from evalr.estimates.words import choice_words, count_words
from evalr.evaluators import Evaluator
from evalr.fields import verdict_fields
from evalr.inputs import Input, utc_now
from evalr.logs import find_reader
from evalr.logs.log import reader_settings
from evalr.measures.ready_judges import GROUP, ReadyJudge, judged_measures
from evalr.plain import value_fields
from evalr.plugins import load_plugins
from evalr.quoting import safe_text
from evalr.reports.report import Report
from evalr.runs import Budget, Family, Grades, ProgressLine, RegenerationStatus
from evalr.runs.graded_logs import GradedLog
from evalr.runs.outlook import Outlook, outlook
from evalr.runs.reasons import reason_of
from evalr.runs.sampling import Name, Stratum
from evalr.verdicts import Result, Skip, Verdict

What = Literal["session", "period", "due"]

OUT = "graded"
"""Stands for the measure in the name of the file of results."""


@dataclass(frozen=True, kw_only=True)
class GradingPlan:
    """What is to be judged, by whom, what it comes to, and where it is kept."""

    asked: Asked
    what: What
    log: GradedLog
    evaluators: Mapping[str, Evaluator[Any, Any]]
    ahead: Mapping[str, Outlook]
    nothing: Mapping[str, Counter[str]]
    """Why families have nothing to ask, and of how many sessions."""
    budget: Budget | None
    journal: Path
    out: Path
    limit: int

    @property
    def left(self) -> int:
        """How many questions are left to ask."""
        return sum(each.left for each in self.ahead.values())

    def question(self) -> str:
        """`Judge 40 outcomes, 12 shadows with MODEL, about $0.12?`: what is left to ask, by family."""
        some = ", ".join(f"{each.left:,} of {safe_text(name)}" for name, each in self.ahead.items() if each.left)
        done = sum(each.done for each in self.ahead.values())
        known = f" ({done:,} more in the journal)" if done else ""
        price = f"{price_words(_together(self.ahead))}{bound_words(self.budget)}"
        return f"Judge {some}{known} with {safe_text(self.asked.lm or '', longest=200)}, {price}?"


def planned_grading(asked: Asked) -> GradingPlan:
    """Read the log, ask nobody, and say what judging it comes to.

    Raises:
        EvalrError: there is nothing to judge, nobody who could, or nowhere to keep it.
    """
    reader = find_reader(asked.log, kind=asked.kind)
    own, of_judges = reader_settings(reader), _judge_settings()
    given = read_settings(asked.settings, {**of_judges, **own})
    log = owned_log(reader, asked.log, given, own)
    if log is None:
        if asked.measure:
            option = "--again" if asked.session is None else "--session"
            raise InputError(f"{option} goes by settings that a log's owners have made, and this log has none")
        raise InputError(f"--measure says what is judged; {choice_words('', judged_measures())}")
    what = _what(asked)
    settings = {name: each for name, each in given.items() if name in of_judges}
    evaluators = log.evaluators(asked.lm or "", api_base=asked.api_base, **settings)
    if asked.measure:
        if asked.measure not in evaluators:
            why = log.not_graded.get(asked.measure)
            raise InputError(
                f"{asked.measure!r} is not judged: {why}" if why else choice_words(asked.measure, list(evaluators))
            )
        evaluators = {asked.measure: evaluators[asked.measure]}
    if what == "due" and asked.again:
        raise InputError("--again is for --session, or a period: what is due has not been judged")
    if what == "session" and asked.out is not None:
        raise InputError("--out is for the results of a period, or of what is due; --json prints a session's grades")
    journal, out = places(asked.log, OUT, journal=asked.journal, out=asked.out)
    families = log.judges(evaluators, sampled=what == "due")
    ahead: dict[str, Outlook] = {}
    nothing: dict[str, Counter[str]] = {name: Counter() for name in families}
    with opened(journal) as book:
        for name, family in families.items():
            parts = _parts(_inputs(asked, what, log), family, nothing[name])
            # A grade on demand is served for a day only: what the journal has may be asked again.
            known = None if what == "session" or asked.again else book
            ahead[name] = outlook(family.evaluators, parts, journal=known)  # type: ignore[arg-type]  # one in each
    return GradingPlan(
        asked=asked,
        what=what,
        log=log,
        evaluators=evaluators,
        ahead=ahead,
        nothing=nothing,
        budget=priced(asked_budget(asked), _together(ahead), asked.lm or ""),
        journal=journal,
        out=out,
        limit=log.concurrency if asked.limit is None else asked.limit,
    )


def _what(asked: Asked) -> What:
    if asked.lm is None and asked.judge is None and asked.sample is None:
        raise InputError(
            "name the model that judges, as in --lm openai/gpt-5-mini; its key comes from the environment, "
            "such as OPENAI_API_KEY"
        )
    if asked.lm is None or asked.judge is not None or asked.sample is not None:
        raise InputError("a log is judged by its own settings with --lm MODEL; --judge and --sample go with --measure")
    period = asked.since is not None or asked.until is not None
    if asked.session is None:
        if asked.user is not None:
            raise InputError("--user says whose session is meant: name it with --session")
        return "period" if period else "due"
    if period:
        raise InputError("--session is one session, and --since and --until are a period: leave one of them out")
    return "session"


def _judge_settings() -> dict[str, Any]:
    # One that cannot be loaded may be of no use here; one that is says so when it is asked for.
    loaded = load_plugins(GROUP, ReadyJudge).loaded.values()
    return {name: value for ready in loaded for name, value in ready.settings.items()}


def _inputs(asked: Asked, what: What, log: GradedLog) -> Iterable[Input]:
    if what == "session":
        return [log.find(asked.session or "", user=asked.user)]
    if what == "period":
        return log.period(asked.since, asked.until)
    return log.quiet(now=asked.now or utc_now)


def _parts(given: Iterable[Input], family: Family, nothing: Counter[str]) -> Iterator[Input]:
    for each in given:
        found = family.parts(each)
        parts = [] if isinstance(found, Skip) else list(found)
        if not parts:
            nothing[found.reason if isinstance(found, Skip) else family.none] += 1
        yield from parts


def _together(ahead: Mapping[str, Outlook]) -> Outlook:
    """What all families come to. What is unknown of one is unknown of all."""
    each = [one for one in ahead.values() if one.left]
    tokens, costs = [one.tokens for one in each], [one.cost for one in each]
    dearest = [one.dearest for one in each]
    return Outlook(
        inputs=sum(one.inputs for one in ahead.values()),
        done=sum(one.done for one in ahead.values()),
        tokens=None if None in tokens else sum(one for one in tokens if one is not None),
        cost=None if None in costs else sum(one for one in costs if one is not None),
        dearest=None if None in dearest else max((one for one in dearest if one is not None), default=None),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Judging
# ---------------------------------------------------------------------------------------------------------------------


def graded_session(plan: GradingPlan) -> Grades:
    """Judge one session.

    Raises:
        JournalError: the journal cannot be used.
    """
    asked = plan.asked
    return plan.log.grade_sync(
        asked.session or "",
        plan.evaluators,
        user=asked.user,
        journal=plan.journal,
        now=asked.now or utc_now,
        again=asked.again,
        limit=plan.limit,
        budget=plan.budget,
    )


def graded_log(plan: GradingPlan) -> RegenerationStatus:
    """Judge a period, or what is due: each result in the journal as it comes, all of them in a file in the end.

    Raises:
        InputError: the first calls all failed, or the file cannot be written.
        JournalError: the journal cannot be used.
    """
    asked = plan.asked
    options: dict[str, Any] = {
        "journal": plan.journal,
        "limit": plan.limit,
        "budget": plan.budget,
        "progress": ProgressLine(),
    }
    if plan.what == "period":
        period = {"since": asked.since, "until": asked.until, "again": asked.again}
        run = plan.log.regenerate_sync(plan.evaluators, **period, **options)
    else:
        run = plan.log.catch_up_sync(plan.evaluators, now=asked.now or utc_now, **options)
    measures = {judge.name: name for name, judge in plan.evaluators.items()}
    keep_results(run, plan.out, lambda result: measures[result.evaluator or ""])
    return run.status


def graded_report(plan: GradingPlan) -> Report:
    """The numbers of every family over the results that are kept."""
    from evalr.bulk import report

    return report(str(plan.out), measures=list(plan.evaluators), now=plan.asked.now, kind="jsonl")


# ---------------------------------------------------------------------------------------------------------------------
# In words
# ---------------------------------------------------------------------------------------------------------------------


def grade_lines(grades: Grades) -> list[str]:
    """The grades of a session, and below a family that judged several of its parts, what it said of each."""
    head, *families = str(grades).split("\n")
    lines = [head]
    for line, grade in zip(families, grades.values(), strict=True):
        lines.append(line)
        if len(grade.results) > 1:
            lines += [f"    {_result_words(result)}" for result in grade.results]
    return lines


def _result_words(result: Result[Any]) -> str:
    """`exchange 4: winner=served, significant=False`: what a verdict says but in texts, or why there is none."""
    about = result.about
    name = "" if about is None or about.id is None else f"{safe_text(about.kind)} {safe_text(about.id)}: "
    if not isinstance(result, Verdict):
        return f"{name}{result.status}, {safe_text(reason_of(result) or '', longest=200)}"
    values = value_fields(result.value)
    said = {each.name: values.get(each.name) for each in verdict_fields(type(result.value)) if each.kind != "text"}
    return name + ", ".join(f"{field}={safe_text(str(part))}" for field, part in said.items() if part is not None)


def account_lines(plan: GradingPlan, status: RegenerationStatus | None, width: int) -> list[str]:
    """What was done, what was not, and where it is."""
    entries: list[tuple[str, str]] = []
    if status is not None:
        entries.append(("judged", f"with {safe_text(plan.asked.lm or '')}: {status}"))
        entries += [("stratum", line) for line in _strata_lines(status.strata)]
    entries += [("not graded", f"{name}: {why}") for name, why in plan.log.not_graded.items()]
    if plan.what != "session":
        for name, reasons in plan.nothing.items():
            entries += [("not asked", f"{name}: {count_words(n, 'session')}, {why}") for why, n in reasons.items()]
    account = plan.log.account
    if account is not None and account.left_out.counts:
        entries.append(("left out", account.left_out.words()))
    if status is not None and status.done:
        out = shlex.quote(safe_text(str(plan.out), longest=1_000))
        entries.append(("results", f"{out}; to see them again: evalr report {out}"))
    if plan.journal.exists():
        journal = shlex.quote(safe_text(str(plan.journal), longest=1_000))
        entries.append(("journal", f"{journal}; nothing was written to the log"))
    return named_lines(entries, width)


def _strata_lines(strata: Sequence[Stratum]) -> Iterator[str]:
    """Each stratum of which a part is judged; those that are judged whole are told together, by all but their day."""
    whole: dict[Name, list[int]] = {}
    for stratum in strata:
        if stratum.taken < stratum.seen:
            yield str(stratum)
        else:
            whole.setdefault(stratum.name[1:], []).append(stratum.seen)
    for name, seen in whole.items():
        named = " · ".join("none" if part is None else safe_text(part) for part in name)
        of = "1 stratum" if len(seen) == 1 else f"{len(seen):,} strata"
        yield f"{named + ': ' if named else ''}all {count_words(sum(seen), 'input')} of {of}"


def grading_dict(plan: GradingPlan, status: RegenerationStatus | None) -> dict[str, Any]:
    """The same in plain types."""
    account = plan.log.account
    return {
        "what": plan.what,
        "lm": plan.asked.lm,
        "evaluators": {name: f"{judge.name}@{judge.version}" for name, judge in plan.evaluators.items()},
        "expected_cost": _together(plan.ahead).cost,
        "status": None if status is None else status.to_dict(),
        "not_graded": dict(plan.log.not_graded),
        "not_asked": {name: dict(reasons) for name, reasons in plan.nothing.items()},
        "left_out": {} if account is None else dict(account.left_out.counts),
        "results": str(plan.out) if status is not None and status.done else None,
        "journal": str(plan.journal),
    }

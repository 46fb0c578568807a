"""Grading one input on demand: what the journal has of late is served, and only the rest is asked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from evalr.background import run_sync
from evalr.errors import InputError
from evalr.estimates.shown import Printed
from evalr.fields import verdict_fields
from evalr.inputs import About, Input, Now, resolve_now, utc_now
from evalr.plain import value_fields
from evalr.quoting import safe_text
from evalr.runs.account import RunSummary
from evalr.runs.budget import Budget, Ledger
from evalr.runs.engine import Engine, Terms, is_pending
from evalr.runs.families import Families, FamilyPlan, Judges
from evalr.runs.jobs import Job
from evalr.runs.journal import Found, Journal
from evalr.runs.limiter import AT_ONCE, Limiter
from evalr.runs.lines import plain_fields
from evalr.runs.reasons import reason_of
from evalr.runs.retries import Retry
from evalr.runs.running import Run, check_terms, limiter_for
from evalr.runs.sharing import shared_journal
from evalr.verdicts import Failure, Result, Verdict, describe

DAY = timedelta(hours=24)
LONGEST_LIFETIME = timedelta(days=36525)

Status = Literal["graded", "partial", "pending", "handed_off", "failed", "not_done", "skipped"]

LACKING: tuple[Status, ...] = ("failed", "not_done", "handed_off", "pending")
"""Without a verdict that counts, though there was something to ask; the worst first."""

TOO_SOON = "too soon to tell"

LONGEST_VALUE = 100
"""How many characters of a verdict stand in a grade's line; a longer one is in its results alone."""


@dataclass(frozen=True, slots=True)
class Grade(Printed):
    """What one judge family made of an input.

    Attributes:
        family: its name.
        status: "graded" where everything that it was asked has a verdict, or a reason to have none (a skip); "skipped"
            where there are only such reasons, or there was nothing to ask; "failed", "handed_off" (to people),
            "pending" (too soon to tell) and "not_done" (a budget was used up) where there is no verdict that counts;
            "partial" where there are some, and others are lacking.
        reason: why it is not simply graded; None where it is.
        counts: what it was asked, counted by these words.
        results: one for each part and evaluator that there is a result of.
        cached: whether no judge was asked for it: what a request beside this one asked counts as cached, too.
        graded_at: when the oldest of its answers was asked for; None where there is none that the cache serves.
        expires_at: until when the cache serves all of it; None where it asks a judge again at the next request, or
            there is nothing to serve, and where the cache keeps answers for ever.
    """

    family: str
    status: Status
    reason: str | None
    counts: dict[str, int]
    results: tuple[Result[Any], ...] = field(repr=False)
    cached: bool
    graded_at: datetime | None
    expires_at: datetime | None

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it; of each result its value, evaluator, version, latency and cost among others."""
        return {
            "status": self.status,
            "reason": self.reason,
            "counts": dict(self.counts),
            "results": [plain_fields(result) for result in self.results],
            "cached": self.cached,
            "graded_at": None if self.graded_at is None else self.graded_at.isoformat(),
            "expires_at": None if self.expires_at is None else self.expires_at.isoformat(),
        }

    def __str__(self) -> str:
        words = f"{safe_text(self.family)}: {_words(self.status)}{self._value_words()}"
        words += "" if self.reason is None else f", {safe_text(self.reason, longest=200)}"
        return f"{words} (cached)" if self.cached else words

    def _value_words(self) -> str:
        """`, success=True`: what the verdict says but in texts, where there is one verdict and that is short."""
        values = [result.value for result in self.results if isinstance(result, Verdict)]
        if len(values) != 1 or self.status == "pending":
            return ""
        names = [each.name for each in verdict_fields(type(values[0])) if each.kind != "text"]
        fields = {name: part for name, part in value_fields(values[0]).items() if name in names}
        words = "".join(f", {name}={safe_text(str(part))}" for name, part in fields.items() if part is not None)
        return words if len(words) <= LONGEST_VALUE else ""


@dataclass(frozen=True)
class Grades(Printed, Mapping[str, Grade]):
    """The grades of one input by judge family: a map, in the order in which the families were given.

    Attributes:
        about: what they are about.
        summary: what the request has done, and what it cost.
    """

    about: About
    summary: RunSummary
    _grades: dict[str, Grade]

    def __getitem__(self, family: str) -> Grade:
        return self._grades[family]

    def __iter__(self) -> Iterator[str]:
        return iter(self._grades)

    def __len__(self) -> int:
        return len(self._grades)

    @property
    def results(self) -> list[Result[Any]]:
        """The results of all families, for summaries."""
        return [result for grade in self._grades.values() for result in grade.results]

    def to_dict(self) -> dict[str, Any]:
        """Each family's grade with its results, as JSON has it."""
        return {name: grade.to_dict() for name, grade in self._grades.items()}

    def __str__(self) -> str:
        head = describe(Failure("", about=self.about))
        return "\n".join([head, *(f"  {grade}" for grade in self._grades.values())])


async def grade(
    given: Input,
    judges: Judges,
    *,
    cache: Journal | str | os.PathLike[str],
    lifetime: timedelta | None = DAY,
    now: Now = utc_now,
    again: bool = False,
    limit: int | Limiter = AT_ONCE,
    budget: Budget | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,  # noqa: ASYNC109  of each question, as a run has it
) -> Grades:
    """Grade one input by each judge family, asking only what the cache has no answer to that is new enough.

    The cache is a journal, the one of a run or a regeneration too: what they asked of late is served. An answer is
    served for the very same question alone: another version of a judge, or an input that has changed since (a later
    turn), is asked. Verdicts, skips and hand-offs are served; a failure or a pending verdict is asked again. Several
    requests for one input at once, in one process or in several, ask each question once, and all get its answer.

        grades = await grade(session, {"outcome": judge}, cache="grades.db")
        grades["outcome"].status, grades["outcome"].cached

    Args:
        given: what is graded.
        judges: who is asked, by family; see `Judges`.
        cache: the journal, or its path; it is made where there is none.
        lifetime: how long an answer is served after it was asked for; None is for ever.
        now: the time of the request, a datetime or a clock.
        again: ask everything again. What another request is asking at this moment counts as asked again.
        limit: how many calls there may be at once, or a `Limiter` with more to say.
        budget: what the request may spend. What it leaves undone is "not_done".
        retry: how often failures that may pass are tried again.
        timeout: seconds for each question, all its tries together.

    Returns:
        A map from each family's name to its `Grade`.

    Raises:
        InputError: an argument cannot be used, or a family does not read such an input.
        DuplicateError: two parts of one family have one subject, and differ.
        JournalError: the cache cannot be used.
    """
    if not isinstance(given, Input):
        raise InputError(f"grade reads one input, such as a Session, not {safe_text(type(given).__name__)}")
    if lifetime is not None and not (isinstance(lifetime, timedelta) and lifetime > timedelta(0)):
        raise InputError(f"lifetime={lifetime!r} must be a timedelta above 0; to ask once more, pass again=True")
    if lifetime is not None and lifetime > LONGEST_LIFETIME:
        raise InputError(f"lifetime={lifetime!r} is longer than a hundred years: pass None for ever")
    families = Families(judges)
    check_terms(budget, retry, timeout)
    limiter = limiter_for(limit, families.evaluators)
    work = families.split(given)
    plan = FamilyPlan(families, "error")
    jobs = plan.jobs(0, work) or []
    moment = resolve_now(now)
    request = _Request(families, jobs)
    with shared_journal(cache) as journal:
        terms = Terms(
            journal=journal,
            limiter=limiter,
            retry=Retry() if retry is None else retry,
            timeout=timeout,
            again=True,
            replay=False,
            total=len(jobs),
            watch=None,
            asked_after=moment if again else None if lifetime is None else moment - lifetime,
            now=(lambda: resolve_now(now)) if callable(now) else lambda: moment,
            told=request.hear,
        )
        async with Run(Engine(_Planned(), [jobs], Ledger(budget), terms), None) as run:
            async for _ in run:
                pass
        found = journal.look_up([job.digest for job in jobs])
    summary = run.summary
    undone = ", ".join(summary.not_done)
    grades = {name: request.grade(name, work.skipped.get(name), found, undone, lifetime) for name in families.names}
    return Grades(given.about(), summary, grades)


def grade_sync(
    given: Input,
    judges: Judges,
    *,
    cache: Journal | str | os.PathLike[str],
    lifetime: timedelta | None = DAY,
    now: Now = utc_now,
    again: bool = False,
    limit: int | Limiter = AT_ONCE,
    budget: Budget | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
) -> Grades:
    """As `grade`, from code that cannot await, in a notebook too; see `run_sync`."""
    work = grade(
        given,
        judges,
        cache=cache,
        lifetime=lifetime,
        now=now,
        again=again,
        limit=limit,
        budget=budget,
        retry=retry,
        timeout=timeout,
    )
    return run_sync(work)


class _Planned:
    """The plan of a run whose jobs are made already."""

    def jobs(self, position: int, given: list[Job]) -> list[Job]:
        return given


class _Request:
    """What becomes of the questions of one request."""

    def __init__(self, families: Families, jobs: Sequence[Job]) -> None:
        self._jobs: dict[str, list[Job]] = {name: [] for name in families.names}
        for job in jobs:
            self._jobs[families.family_of(job)].append(job)
        self._answers: dict[bytes, tuple[Result[Any], bool]] = {}

    def hear(self, job: Job, result: Result[Any], stored: bool) -> None:
        self._answers[job.digest] = (result, stored)

    def grade(
        self,
        name: str,
        nothing: str | None,
        found: Mapping[bytes, Found],
        undone: str,
        lifetime: timedelta | None,
    ) -> Grade:
        if nothing is not None:
            return Grade(name, "skipped", nothing, {}, (), False, None, None)
        jobs = self._jobs[name]
        answered = [(job, *self._answers[job.digest]) for job in jobs if job.digest in self._answers]
        reasons = [(status_of(job, result), reason_of(result)) for job, result, _ in answered]
        reasons += [("not_done", undone)] * (len(jobs) - len(answered))
        status, reason = _together(reasons)
        served = [job for job, result, _ in answered if _is_served(job, result)]
        graded_at = min((found[job.digest].asked_at for job in served), default=None)
        whole = len(served) == len(jobs)
        return Grade(
            family=name,
            status=status,
            reason=reason,
            counts=dict(Counter(each for each, _ in reasons)),
            results=tuple(result for _, result, _ in answered),
            cached=len(answered) == len(jobs) and all(stored for _, _, stored in answered),
            graded_at=graded_at,
            expires_at=graded_at + lifetime if whole and graded_at is not None and lifetime is not None else None,
        )


def status_of(job: Job, result: Result[Any]) -> Status:
    """What one result counts as."""
    if isinstance(result, Verdict):
        return "pending" if is_pending(job, result) else "graded"
    status: Status = result.status  # type: ignore[assignment]  # failed, skipped and handed_off are the words here, too
    return status


def _is_served(job: Job, result: Result[Any]) -> bool:
    """Whether the cache serves it to later requests."""
    return status_of(job, result) not in ("failed", "pending")


def _together(reasons: Sequence[tuple[Status, str | None]]) -> tuple[Status, str | None]:
    """The status of several answers, and why it is not simply graded."""
    counts = Counter(status for status, _ in reasons)
    first = dict(reversed(reasons))
    lacking = [status for status in LACKING if counts[status]]
    if not lacking and counts["graded"]:
        return "graded", None
    if len(counts) == 1:
        (status,) = counts
        return status, TOO_SOON if status == "pending" else first[status]
    words = ", ".join(
        f"{counts[status]:,} {_words(status)}" + (f" ({first[status]})" if first[status] else "")
        for status in ("graded", *LACKING, "skipped")
        if counts[status]
    )
    return ("partial" if counts["graded"] else lacking[0]), words


def _words(status: Status) -> str:
    return status.replace("_", " ")

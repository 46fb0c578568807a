"""How far a regeneration has come: what its attempts keep in the journal, and what any process reads of that."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from evalr.errors import InputError, JournalError
from evalr.estimates.shown import Printed
from evalr.estimates.words import duration_words
from evalr.input_fields import without_lone_surrogates
from evalr.quoting import quoted, safe_text
from evalr.runs.account import cost_words
from evalr.runs.grading import Status
from evalr.runs.journal import Journal
from evalr.runs.sampling import Stratum

State = Literal["running", "finished", "incomplete", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class RegenerationStatus(Printed):
    """How far a regeneration has come.

    Attributes:
        name: what it is called.
        state: "running"; "finished", so that every question has a result; "incomplete" where it came to its end and
            some have none, such as when a budget was used up; "failed" where an error ended it; "interrupted" where it
            was left early, or the process that ran it is gone.
        error: what ended it, where it failed.
        since: the period begins then; None where it has no beginning.
        until: it ends before then; None where it has no end.
        judges: evaluators by family, as name@version.
        again: whether everything is asked that was asked before it began, too.
        strata: what there was in the period and what is judged of it; empty where everything is.
        read: how much of the log was read so far, in inputs and stored results.
        left_out: what of it is no part of the period, by the reason.
        inputs: how many inputs are judged; None until they are known.
        total: how many questions these come to; None until that is known.
        done: questions with a result, those that the journal had already included.
        families: results by family and status: graded, pending, skipped, handed_off, failed.
        nothing_to_ask: inputs in which a family found nothing to ask, by family and reason.
        not_done: questions that are left, by the reason, where it is incomplete.
        from_journal: of what is done, what the journal had already.
        calls: calls made, by all of its attempts.
        cost: US dollars of those whose cost is known.
        unknown_costs: calls whose cost is not.
        attempts: how often it was begun until it finished.
        rate: results a second that were not in the journal, over the last half minute; None where that is not known.
        process: the number of the process that runs it, or ran it last.
        started_at: when its first attempt began.
        updated_at: when this was written.
        ended_at: when it ended; None while it runs, and where its process is gone.
    """

    name: str
    state: State
    error: str | None
    since: datetime | None
    until: datetime | None
    judges: dict[str, list[str]]
    again: bool
    strata: tuple[Stratum, ...]
    read: int
    left_out: dict[str, int]
    inputs: int | None
    total: int | None
    done: int
    families: dict[str, dict[Status, int]]
    nothing_to_ask: dict[str, dict[str, int]]
    not_done: dict[str, int]
    from_journal: int
    calls: int
    cost: float
    unknown_costs: int
    attempts: int
    rate: float | None
    process: int
    started_at: datetime
    updated_at: datetime
    ended_at: datetime | None

    def count(self, status: Status) -> int:
        """How many results of all families have a status."""
        return sum(counts.get(status, 0) for counts in self.families.values())

    @property
    def failed(self) -> int:
        """How many questions have failed; a later regeneration asks them again."""
        return self.count("failed")

    @property
    def skipped(self) -> int:
        """How many questions a judge has skipped."""
        return self.count("skipped")

    @property
    def seen(self) -> int:
        """How many inputs there were in the strata."""
        return sum(stratum.seen for stratum in self.strata)

    @property
    def left(self) -> float | None:
        """Seconds until the end at this rate; None where that is not known."""
        if self.state != "running" or self.total is None or not self.rate:
            return None
        return max(0, self.total - self.done) / self.rate

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        found: dict[str, Any] = _adapter(RegenerationStatus).dump_python(self, mode="json")
        return found

    def __str__(self) -> str:
        parts = [f"{safe_text(self.name)}: {self.state}"]
        parts += [] if self.error is None else [safe_text(self.error, longest=200)]
        parts.append(f"{self.done:,} done" if self.total is None else f"{self.done:,} of {self.total:,}")
        for status in ("failed", "pending", "skipped", "handed_off"):
            parts += [f"{count:,} {status.replace('_', ' ')}"] if (count := self.count(status)) else []
        parts += [f"{count:,} not done: {reason}" for reason, count in self.not_done.items()]
        parts += [f"{self.inputs:,} of {self.seen:,} inputs"] if self.strata and self.inputs is not None else []
        parts += [cost_words(self.cost, self.unknown_costs, self.calls)] if self.calls else []
        parts += [f"{self.rate:,.1f}/s"] if self.rate and self.state == "running" else []
        parts += [f"{duration_words(self.left)} left"] if self.left else []
        return " · ".join(parts)


class Record(NamedTuple):
    """What an attempt keeps in the journal.

    `series` is the number of the first of the attempts that belong together, `plan` what they have in common, and
    `before` the number of the last call before the first of them.
    """

    series: int
    plan: str
    before: int
    asked_after: datetime | None
    status: RegenerationStatus

    def to_text(self) -> str:
        """As a journal keeps it."""
        return _adapter(Record).dump_json(self).decode()


class Attempt(NamedTuple):
    """What is on record of one attempt, and whether it may say more."""

    run: int
    is_alive: bool
    record: Record


def regeneration_status(journal: Journal | str | os.PathLike[str], name: str | None = None) -> RegenerationStatus:
    """How far a regeneration has come, whichever process runs it.

    Args:
        journal: the one that it is on record in, or its path.
        name: which of several; by default the one that was begun last.

    Raises:
        InputError: there is no such journal, or no such regeneration in it.
        JournalError: the journal cannot be used.
    """
    if isinstance(journal, Journal):
        return _status(journal, name)
    if not Path(journal).exists():
        raise InputError(f"{os.fspath(journal)}: there is no such journal")
    with Journal(journal) as opened:
        return _status(opened, name)


# ---------------------------------------------------------------------------------------------------------------------
# Attempts on record
# ---------------------------------------------------------------------------------------------------------------------

T = TypeVar("T")


@cache
def _adapter(kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


def _attempts(journal: Journal, name: str | None) -> tuple[list[Attempt], ValidationError | None]:
    """The attempts on record that this version of evalr can read, and why it cannot read the latest, if it cannot."""
    found: list[Attempt] = []
    unread: ValidationError | None = None
    for note in journal.notes(name):
        try:
            found.append(Attempt(note.run, note.is_alive, _adapter(Record).validate_json(note.text)))
            unread = None
        except ValidationError as error:
            unread = error
    return found, unread


def joined(journal: Journal, name: str, plan: str) -> list[Attempt]:
    """The attempts that one which begins now goes on with: the last ones of that name and plan, unless finished."""
    attempts, unread = _attempts(journal, name)
    # What cannot be read is begun anew; what it has judged is in the journal all the same.
    if unread is not None or not attempts or attempts[-1].record.plan != plan:
        return []
    series = _series(attempts)
    return [] if any(each.record.status.state == "finished" for each in series) else series


def _series(attempts: list[Attempt]) -> list[Attempt]:
    """The attempts that belong to the last one."""
    return [each for each in attempts if each.record.series == attempts[-1].record.series]


def _status(journal: Journal, name: str | None) -> RegenerationStatus:
    attempts, unread = _attempts(journal, None if name is None else without_lone_surrogates(name))
    if unread is not None:
        raise JournalError(
            f"{journal.path}: what is written of the latest regeneration cannot be read: another version of evalr "
            "wrote it, or it is damaged; begin it once more"
        ) from unread
    if not attempts:
        known = sorted({note.name for note in journal.notes()})
        names = ", ".join(quoted(each, longest=80) for each in known) or "none"
        what = "no regeneration" if name is None else f"no regeneration named {quoted(name, longest=80)}"
        raise InputError(f"{journal.path}: there is {what} in this journal; it has {names}")
    last = attempts[-1].record.status.name
    series = _series([each for each in attempts if each.record.status.name == last])
    shown = max(series, key=_as_shown)
    status = shown.record.status
    gone = status.state == "running" and not shown.is_alive
    spent = journal.spent([each.run for each in series], since=shown.record.before)
    return replace(
        status,
        state="interrupted" if gone else status.state,
        rate=None if gone else status.rate,
        calls=spent.calls,
        cost=spent.cost,
        unknown_costs=spent.unknown_costs,
        attempts=len(series),
    )


def _as_shown(attempt: Attempt) -> tuple[int, int, int]:
    """What stands for several attempts: one at work, of these the furthest; else a finished one; else the last."""
    status = attempt.record.status
    if status.state == "running" and attempt.is_alive:
        return 2, status.done, attempt.run
    return int(status.state == "finished"), attempt.run, 0

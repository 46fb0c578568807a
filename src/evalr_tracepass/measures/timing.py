"""Timing: after how many turns did a signal first fire, and did the conversation recover?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from pydantic import BaseModel, Field

from evalr.errors import InputError
from evalr.inputs import About
from evalr.summaries import TimeTo
from evalr.verdicts import Failure, Verdict
from evalr.verdicts import Result as Outcome
from evalr_tracepass.measures.fired import about_record
from evalr_tracepass.records import Result


class FirstFire(BaseModel):
    """After how many turns that it read a signal first fired; or how many it read without firing."""

    turns: int = Field(ge=0)
    fired: bool


class Recovery(BaseModel):
    """After how many turns a conversation in which a signal had fired was clean again; or how many it was not."""

    turns: int = Field(ge=0)
    recovered: bool


first_fire = TimeTo(
    "first_fire",
    of=FirstFire,
    after=lambda value: value.turns,
    end=lambda value: "fired" if value.fired else None,
    event="fired",
    unit="turns",
    title="turns to the first fire",
    noun="conversation",
)
"""The turn by which a signal had fired in half of conversations (Kaplan-Meier); `within=5`: the share by the fifth."""

recovery = TimeTo(
    "recovery",
    of=Recovery,
    after=lambda value: value.turns,
    end=lambda value: "recovered" if value.recovered else None,
    event="recovered",
    unit="turns",
    title="turns to recovery",
    noun="conversation",
)
"""How many turns after its first fire a conversation was clean again, where it lasted long enough to tell."""


def first_fires(records: Iterable[Result]) -> list[Outcome[FirstFire]]:
    """For each signal and conversation, when the signal first fired.

    A conversation in which a turn failed before the first fire could have fired there: it is a `Failure`.
    """
    found: list[Outcome[FirstFire]] = []
    for turns in _conversations(records):
        about, signal = _about(turns[0]), turns[0].signal_id
        first = next((place for place, each in enumerate(turns, 1) if each.fired), None)
        before = turns if first is None else turns[:first]
        if any(each.status == "failed" for each in before):
            found.append(Failure("a turn before the first fire failed", signal, "1", about))
        else:
            found.append(Verdict(FirstFire(turns=first or len(turns), fired=first is not None), signal, "1", about))
    return found


def recoveries(records: Iterable[Result], *, clean: int = 2) -> list[Outcome[Recovery]]:
    """For each signal and conversation in which it fired, when it had recovered.

    Args:
        records: one of a signal for each text; see `latest_records`.
        clean: how many turns in a row have to be clean. The first of them is when it recovered.

    Raises:
        InputError: `clean` is below 1.
    """
    if clean < 1:
        raise InputError(f"clean={clean} must be 1 turn or more")
    found: list[Outcome[Recovery]] = []
    for turns in _conversations(records):
        first = next((place for place, each in enumerate(turns) if each.fired), None)
        if first is None:
            continue
        about, signal = _about(turns[0]), turns[0].signal_id
        run = 0
        outcome: Outcome[Recovery] | None = None
        for place, each in enumerate(turns[first + 1 :], 1):
            if each.status == "failed":
                outcome = Failure("a turn before the recovery failed", signal, "1", about)
                break
            run = 0 if each.fired else run + 1
            if run == clean:
                outcome = Verdict(Recovery(turns=place - clean + 1, recovered=True), signal, "1", about)
                break
        # The last turns may be the beginning of a recovery: what is sure is that it had not come before them.
        open_after = len(turns) - first - 1 - run
        found.append(outcome or Verdict(Recovery(turns=open_after, recovered=False), signal, "1", about))
    return found


def _conversations(records: Iterable[Result]) -> Iterator[list[Result]]:
    """The turns of each conversation that one signal read, in order. Readings of a whole one have no turns."""
    turns = [each for each in records if each.turn_index is not None or each.event_id]
    turns.sort(key=_key)
    for _, found in groupby(turns, key=lambda each: _key(each)[:3]):
        yield list(found)


def _key(record: Result) -> tuple[str, str, str, int, float, str]:
    at = 0.0 if record.source_start_time is None else record.source_start_time.timestamp()
    # The request, which no turn repeats, comes before them all.
    place = -1 if record.turn_index is None else record.turn_index
    return record.signal_id, record.user, record.convo_id, place, at, record.event_id


def _about(record: Result) -> About:
    return about_record(record)._replace(
        kind="conversation", id=f"{record.signal_id} {record.convo_id}", session=record.convo_id
    )

"""Fired: in how many conversations, and turns, did a signal fire?"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, Field

from evalr.errors import InputError
from evalr.evaluators import FunctionEvaluator
from evalr.input_fields import Name
from evalr.inputs import About, Input, Now
from evalr.measures.measure import Measure
from evalr.summaries import Rate, Summary
from evalr.summaries.keys import UnitOf
from evalr.summaries.summary import PENDING
from evalr.verdicts import Failure, Verdict
from evalr.verdicts import Result as Outcome
from evalr_tracepass.records import Chosen, Pass, Result

NAME = "fired"
KIND = "reading"

FLAGS: dict[Chosen, tuple[str, ...]] = {
    "all": (),
    "random": ("random_sample",),
    "filtered": ("filtered_traces",),
    "selected": ("hand_picked",),
}
"""What a rate has to say of how its traces were chosen: only all of them, or a random sample, speak for others."""

_TRUNCATED = "truncated"
_NOT_SAID = "?"


class Fired(BaseModel):
    """What one signal says of one text: a turn, or a whole conversation."""

    fired: bool | None = Field(description="Whether it fired; None while that is pending")
    label: str = Field(default="", description="The label with the highest score")
    score: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False, description="Of that label")


class SignalReading(Input):
    """What a signal said of one text, as an input: what `Fired` is read from where no record has it."""

    kind: ClassVar[str] = KIND
    is_part: ClassVar[bool] = True

    id: Name
    session: Name | None = None
    fired: bool | None
    label: str = ""
    score: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)

    def about(self) -> About:
        """What a result of it is about: a part of its conversation."""
        return super().about()._replace(session=self.session)


def fired_results(
    records: Iterable[Result], *, passes: Pass | Iterable[Pass] = (), text: str | None = None
) -> list[Outcome[Fired]]:
    """Records of passes as results that summaries, labels and reports read: one for each prediction.

    A record that failed is a `Failure`, never a clean one. A result's evaluator is the signal, and its version says
    which model, transform and thresholds there were, so that nothing pools what is not the same. It is about a reading
    of a conversation (`session`) by the signal, with these attributes: `signal`, `model`, `transform`, `release`,
    `pass`, `label`, and `error` where it failed.

    Args:
        records: of one pass or of several: one of a signal for each text, or the summaries complain of a duplicate. See
            `latest_records`.
        passes: those that the records are of, where they are known: their results then say how the traces were chosen
            ("hand_picked", "filtered_traces", "random_sample"), and which thresholds a signal had.
        text: only the readings of that input kind, such as "user_chat".
    """
    found = [each for each in records if text is None or each.input_kind == text]
    known = {each.id: each for each in ((passes,) if isinstance(passes, Pass) else passes)}
    made_with = _instruments(found, known)
    return [_result(each, known.get(each.run_id), made_with[each.run_id, each.signal_id]) for each in found]


def about_record(record: Result) -> About:
    """What the result of a record is about. A person's label of it is `feedback(about_record(record), Fired(...))`."""
    attributes: dict[str, str | list[str]] = {
        "signal": record.signal_id,
        "model": record.reflex_model,
        "transform": record.transform_id,
        "pass": record.run_id,
    }
    optional = {
        "release": record.release,
        "label": record.top_label,
        "error": record.error_type if record.status == "failed" else "",
    }
    attributes |= {name: value for name, value in optional.items() if value}
    return About(
        KIND,
        id=f"{record.signal_id} {record.request_id}",
        user=record.user or None,
        session=record.convo_id,
        at=record.source_start_time,
        attributes=attributes,
    )


def _result(record: Result, of: Pass | None, made_with: _Instrument) -> Outcome[Fired]:
    about = about_record(record)
    version = _version(record, made_with)
    if record.status == "failed":
        why = record.error_type or "failed"
        return Failure(why, record.signal_id, version, about, as_of=record.created_at)
    flags = () if of is None else FLAGS[of.scope.chosen]
    return Verdict(
        Fired(fired=record.fired, label=record.top_label, score=record.top_score),
        record.signal_id,
        version,
        about,
        as_of=record.created_at,
        flags=(*flags, *([_TRUNCATED] if record.truncated else [])),
    )


class _Instrument(NamedTuple):
    """What the records of one signal in one pass were made with, as far as all of them together say."""

    thresholds: str
    model_version: str


def _version(record: Result, made_with: _Instrument) -> str:
    """`3:user_message@1:0.7`: all that makes a signal another one, but its name.

    A row that failed has no model's version: it counts with those of its signal that have, and never apart from them.
    """
    model = record.model_version if record.status == "completed" else made_with.model_version
    name = "" if record.reflex_model == record.signal_id else f"{record.reflex_model}-"
    return f"{name}{model or _NOT_SAID}:{record.transform_id}@{record.transform_version}:{made_with.thresholds}"


def _instruments(records: Sequence[Result], passes: Mapping[str, Pass]) -> dict[tuple[str, str], _Instrument]:
    thresholds = _thresholds(records, passes)
    versions: dict[tuple[str, str], set[str]] = {}
    for each in records:
        if each.status == "completed":
            versions.setdefault((each.run_id, each.signal_id), set()).add(each.model_version)
    return {key: _Instrument(at, min(versions.get(key, ()), default="")) for key, at in thresholds.items()}


def _thresholds(records: Sequence[Result], passes: Mapping[str, Pass]) -> dict[tuple[str, str], str]:
    """By pass and signal, its thresholds: as the pass has them, else those that its records show."""
    found: dict[tuple[str, str], str] = {}
    for of in passes.values():
        for signal in of.selected_signals:
            own: Any = signal.get("thresholds") or {}
            fires_on: Any = signal.get("fires_on") or ()
            texts = [f"{label}>={own[label]:g}" for label in sorted(fires_on) if label in own]
            found[of.id, str(signal["signal_id"])] = ",".join(texts) or "selected"
    seen: dict[tuple[str, str], set[float]] = {}
    for each in records:
        key = each.run_id, each.signal_id
        if key not in found:
            kept = seen.setdefault(key, set())
            if each.threshold is not None:
                kept.add(each.threshold)
    shown = {key: ",".join(f"{at:g}" for at in sorted(kept)) or "selected" for key, kept in seen.items()}
    return found | shown


# ---------------------------------------------------------------------------------------------------------------------
# Which records
# ---------------------------------------------------------------------------------------------------------------------


def latest_records(records: Iterable[Result], *, passes: str = "latest") -> list[Result]:
    """The records that count: one for each signal and text.

    Of what a store repeats (a row that was written twice, or was tried again), the last one counts, and one that
    completed before one that failed.

    Args:
        records: in any order.
        passes: "latest" takes, of each conversation and signal, those of the pass that read it last; "all" those of
            every pass, for `flip_rate`; anything else is the id of one.

    Raises:
        InputError: no record is of that pass.
    """
    kept: dict[tuple[str, str, str], Result] = {}
    for each in records:
        key = each.run_id, each.request_id, each.signal_id
        known = kept.get(key)
        if known is None or _order(each) >= _order(known):
            kept[key] = each
    found = list(kept.values())
    if passes == "all":
        return found
    if passes != "latest":
        of_one = [each for each in found if each.run_id == passes]
        if found and not of_one:
            raise InputError(f"none of the {len(found):,} records is of a pass {passes!r}")
        return of_one
    last: dict[tuple[str, str, str], tuple[bool, Any, str]] = {}
    for each in found:
        read = each.user, each.convo_id, each.signal_id
        mark = each.created_at, each.run_id
        if read not in last or mark > last[read][1:]:
            last[read] = (True, *mark)
    return [each for each in found if last[each.user, each.convo_id, each.signal_id][2] == each.run_id]


def _order(record: Result) -> tuple[int, bool, Any]:
    return record.attempt, record.status == "completed", record.created_at


# ---------------------------------------------------------------------------------------------------------------------
# The rates
# ---------------------------------------------------------------------------------------------------------------------


def _hit(value: Fired) -> int:
    return int(bool(value.fired))


def _left_out(value: Fired) -> str | None:
    return PENDING if value.fired is None else None


def _conversation_of(about: About) -> Hashable:
    return about.user, about.session or about.id


conversation = UnitOf("conversation", _conversation_of)
"""What a conversation is: an id of its user, since users share ids in real logs."""

fired_conversations = Rate(
    NAME,
    of=Fired,
    hits=_hit,
    leaves_out=_left_out,
    per=conversation,
    fold="any",
    title="conversations flagged",
    noun="conversation",
    parent="conversation",
)
"""The share of conversations in which a signal fired at least once, clustered by user.

A conversation that is not flagged, and of which a row failed, could have been: the bounds say how far that goes.
"""

fired_turns = Rate(
    "fired_turns",
    of=Fired,
    hits=_hit,
    leaves_out=_left_out,
    title="turns flagged",
    noun="turn",
    parent="conversation",
)
"""The share of turns (texts that were read) on which a signal fired, clustered by user, else by conversation."""

answered = Rate(
    "fired_answered",
    of=Fired,
    hits=lambda value: int(value.fired is not None),
    without_verdict="miss",
    title="predictions that came back",
    noun="prediction",
    parent="conversation",
)
"""The share of predictions that came back, of those that were asked for: what failed, or is pending, did not."""


def _summaries() -> Sequence[Summary[Any]]:
    return fired_conversations, fired_turns, answered


def _evaluator(*, now: Now) -> FunctionEvaluator[SignalReading, Fired]:
    def fired(given: SignalReading) -> Fired:
        return Fired(fired=given.fired, label=given.label, score=given.score)

    return FunctionEvaluator(NAME, "1", fired, SignalReading, Fired, inline=True)


measure = Measure(
    name=NAME,
    question="in how many conversations did a signal fire?",
    input=SignalReading,
    verdict=Fired,
    summaries=_summaries,
    evaluator=_evaluator,
    by="signal",
)

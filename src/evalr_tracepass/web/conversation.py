"""One conversation: its turns as transforms read them, each with what fired on it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from evalr.inputs import Transcript
from evalr_tracepass.records import Result
from evalr_tracepass.traces import Step, trace_of
from evalr_tracepass.web.asking import Asked
from evalr_tracepass.web.desk import Desk
from evalr_tracepass.web.lists import pass_choices
from evalr_tracepass.web.snapshot import key_of, tokens_of

TURNS = 200
"""Turns on one page."""

LONGEST_TURN = 20_000
"""Characters of one turn that are shown."""

LONGEST_LATENCY = 10**9
"""Seconds; a log that says more, or less than none, measured something else."""


class Label(NamedTuple):
    """One result, as a chip and a rail show it; `link` leads to its turn, where that is on a page."""

    signal_id: str
    label: str
    score: float
    result: Result
    link: str = ""


class Card(NamedTuple):
    """One turn.

    Attributes:
        number: its place among the log's turns, from 0, as results name it.
        step: what was said and done.
        facts: what the log says beside that: the model, tokens, latency, finish reason, spans.
        fired: results that fired on it.
        clean: results that did not.
        failed: results that there are not, and why.
    """

    number: int | None
    anchor: str
    step: Step
    facts: tuple[str, ...]
    fired: tuple[Label, ...]
    clean: tuple[Label, ...]
    failed: tuple[Result, ...]


class Place(NamedTuple):
    """What fired at one turn, as the rail has it. Without a number it is of the whole conversation."""

    number: int | None
    link: str
    fired: tuple[Label, ...]


def conversation_page(
    desk: Desk, convo_id: str, user: str, transcript: Transcript | None, asked: Asked
) -> dict[str, Any]:
    """What the template shows: with a transcript its text, without one the results alone."""
    results, asked = desk.kept.results(convo_id, user, asked.passes), asked._replace(to="")
    path = f"/c/{key_of(convo_id, user)}"
    steps = [] if transcript is None else trace_of(transcript).steps
    placed, whole = _placed(steps, results)
    lost = [each for each in whole if each.event_id]
    pages = max(1, -(-len(steps) // TURNS))
    page = min(asked.page, pages)
    shown = range((page - 1) * TURNS, min(page * TURNS, len(steps)))
    cards = [_card(steps[place], place, placed.get(place, []), transcript) for place in shown]
    fired = [each for each in results if each.fired]
    rail = [
        Place(
            steps[place].turn_index,
            asked.link(path, page=place // TURNS + 1) + f"#{_anchor(place)}",
            labels,
        )
        for place, found in sorted(placed.items())
        if (labels := _labels(found, fired=True))
    ]
    elsewhere = _by_turn(lost) if transcript is None or lost else []
    of_whole = [each for each in whole if not each.event_id]
    passes = desk.kept.passes()
    return {
        "convo_id": convo_id,
        "user": user,
        "transcript": transcript,
        "cards": cards,
        "rail": rail,
        "elsewhere": elsewhere,
        "whole_fired": _labels(of_whole, fired=True),
        "whole_clean": _labels(of_whole, fired=False),
        "fired": len(fired),
        "best": _best(rail, [*_labels(of_whole, fired=True), *(label for place in elsewhere for label in place.fired)]),
        "clean": sum(each.status == "completed" and not each.fired for each in results),
        "failed": [each for each in results if each.status == "failed"],
        "results": results,
        "asked": asked._replace(page=page),
        "pages": pages,
        "path": path,
        "turns": len(steps),
        "tokens": _tokens(transcript),
        "names": desk.names(passes),
        "passes": passes,
        "pass_choices": pass_choices(passes, asked),
        "longest": LONGEST_TURN,
    }


def _placed(steps: Sequence[Step], results: Iterable[Result]) -> tuple[dict[int, list[Result]], list[Result]]:
    """Results by the turn that they are of, by its id, else by its span, else by its time; and those of none."""
    by_event: dict[str, int] = {}
    by_span: dict[str, int] = {}
    by_time: dict[int, int] = {}
    for place, step in enumerate(steps):
        by_event.setdefault(step.event_id, place)
        if step.span_id:
            by_span.setdefault(step.span_id, place)
        if step.at is not None:
            by_time.setdefault(_to_ms(step.at), place)
    found: dict[int, list[Result]] = {}
    others: list[Result] = []
    for each in results:
        known = None
        if each.event_id:
            known = by_event.get(each.event_id)
            if known is None and each.span_id:
                known = by_span.get(each.span_id)
            if known is None and each.source_start_time is not None:
                known = by_time.get(_to_ms(each.source_start_time))
        (others if known is None else found.setdefault(known, [])).append(each)
    return found, others


def _to_ms(at: datetime) -> int:
    return round(at.timestamp() * 1_000)


def _anchor(place: int) -> str:
    return f"turn-{place}"


def _card(step: Step, place: int, found: Sequence[Result], transcript: Transcript | None) -> Card:
    metadata: dict[str, Any] = {}
    if transcript is not None and step.turn_index is not None:
        metadata = transcript.turns[step.turn_index].metadata
    return Card(
        step.turn_index,
        _anchor(place),
        step,
        tuple(_facts(metadata, step)),
        _labels(found, fired=True),
        _labels(found, fired=False),
        tuple(each for each in found if each.status == "failed"),
    )


def _facts(metadata: dict[str, Any], step: Step) -> Iterable[str]:
    model = metadata.get("model")
    if isinstance(model, str) and model:
        yield model
    for name, word in (("input_tokens", "input"), ("output_tokens", "output")):
        count = tokens_of(metadata, name)
        if count is not None:
            yield f"{count:,} {word}"
    latency = metadata.get("latency")
    if isinstance(latency, int | float) and not isinstance(latency, bool) and 0 <= latency <= LONGEST_LATENCY:
        yield f"{latency:,.2f} s"
    reason = metadata.get("finish_reason")
    if isinstance(reason, str) and reason:
        yield f"finished: {reason}"
    if step.span_id:
        yield f"span {step.span_id}"


def _labels(found: Iterable[Result], *, fired: bool) -> tuple[Label, ...]:
    """Of results that fired, or that did not, the label that says why, highest score first."""
    labels = [_label(each) for each in found if each.status == "completed" and each.fired is fired]
    return tuple(sorted(labels, key=lambda each: (-each.score, each.signal_id)))


def _label(found: Result) -> Label:
    label, score = found.top_label, found.top_score
    if found.fired and found.selected_labels and label not in found.selected_labels:
        label = found.selected_labels[0]
        score = next((each["score"] for each in json.loads(found.classes_json) if each["label"] == label), score)
    return Label(found.signal_id, label, score, found)


def _best(rail: Iterable[Place], others: Iterable[Label]) -> list[Label]:
    """Of each signal and label that fired, the one with the highest score, and the first of several."""
    best: dict[tuple[str, str], Label] = {}
    for each in (*(label._replace(link=turn.link) for turn in rail for label in turn.fired), *others):
        place = (each.signal_id, each.label)
        if place not in best or each.score > best[place].score:
            best[place] = each
    return sorted(best.values(), key=lambda each: (-each.score, each.signal_id))


def _by_turn(found: Iterable[Result]) -> list[Place]:
    """What fired at turns that are not on the page."""
    by_turn: dict[int | None, list[Result]] = {}
    for each in found:
        by_turn.setdefault(each.turn_index, []).append(each)
    return [
        Place(number, "", labels)
        for number, of in sorted(by_turn.items(), key=lambda pair: -1 if pair[0] is None else pair[0])
        if (labels := _labels(of, fired=True))
    ]


def _tokens(transcript: Transcript | None) -> tuple[int | None, int | None]:
    if transcript is None:
        return None, None
    read, written = (
        [count for turn in transcript.turns if (count := tokens_of(turn.metadata, name)) is not None]
        for name in ("input_tokens", "output_tokens")
    )
    return sum(read) if read else None, sum(written) if written else None

"""`evalr tracepass grep`: the turns on which signals fire, one line each, as they are found."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from time import monotonic
from typing import Any, NamedTuple

from evalr.estimates.words import count_words
from evalr.inputs import Transcript
from evalr.quoting import safe_text
from evalr_tracepass.command.words import DIM, RESET, chips_words, percent, progress_words
from evalr_tracepass.direct import Answer, answers
from evalr_tracepass.planning import Plan
from evalr_tracepass.records import Item, Reflex, Row
from evalr_tracepass.scopes import NOT_DRAWN, NOT_SINCE, OTHER
from evalr_tracepass.sources import log_sources

ASKED_FOR = frozenset((OTHER, NOT_DRAWN, NOT_SINCE))
"""Reasons that are what somebody asked for, and no news."""

EACH = 0.2
"""Seconds between two progress lines."""


class FiredLabel(NamedTuple):
    """A label at which a signal fired, with its score."""

    signal_id: str
    label: str
    score: float


class Hit(NamedTuple):
    """One turn on which signals fired, or a whole conversation.

    Attributes:
        log: where it is.
        item: the row of the signal that fired with the highest score.
        fired: every label that fired there, the highest score first.
    """

    log: str
    item: Item
    fired: tuple[FiredLabel, ...]


@dataclass
class Found:
    """What came of a search.

    Attributes:
        fired: turns on which a signal fired.
        conversations: that were looked at.
        inputs: texts that were read.
        answered: predictions that were spared, since a pass has them.
        failed: predictions that failed, by kind of error.
        not_retained: turns whose content the logs do not have.
        passed_over: conversations that nobody asked for, by reason.
        left_out: conversations and files that could not be read, by reason.
    """

    fired: int = 0
    conversations: int = 0
    inputs: int = 0
    answered: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    not_retained: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    def notes(self, signals: Iterable[str] = ()) -> list[str]:
        """What a person has to know of what was not read, and of what was read for nothing by which signals."""
        notes = []
        if self.conversations and not self.fired:
            read = count_words(self.conversations, "conversation")
            by = ", ".join(safe_text(each, longest=60) for each in signals)
            notes.append(f"nothing fired in {read}, read by {by}")
        if not self.conversations:
            why = ", ".join(f"{n:,} {reason}" for reason, n in self.passed_over.items())
            notes.append("no conversation was read" + (f": {why}" if why else ""))
        if self.answered:
            notes.append(f"{count_words(self.answered, 'prediction')} spared: earlier passes have them")
        if self.not_retained:
            notes.append(f"content not retained: {count_words(self.not_retained, 'input')}")
        if self.failed:
            notes.append("failed: " + ", ".join(f"{n:,} {safe_text(name)}" for name, n in self.failed.most_common()))
        if self.left_out:
            notes.append("left out: " + ", ".join(f"{n:,} {safe_text(name)}" for name, n in self.left_out.items()))
        return notes


def search(
    made: Plan,
    path: str,
    reflexes: Mapping[str, Reflex],
    found: Found,
    *,
    kind: str | None,
    strict: bool,
    new: Callable[[Iterable[Row]], Iterable[Row]] | None = None,
) -> Iterator[Hit]:
    """The turns on which signals fired, conversation by conversation, in the order of the logs.

    Args:
        made: the signals, and which conversations they read.
        path: of a log, or a folder of logs.
        reflexes: the classifiers of the signals.
        found: gets the account.
        kind: the reader of the log, where it should not be found by looking.
        strict: stop at the first record that cannot be used.
        new: keeps of rows those that nobody has read.
    """
    names: dict[tuple[str, str], str] = {}
    at = [path]

    def transcripts() -> Iterator[Transcript]:
        for source in log_sources(path, kind=kind, strict=strict, unknown=found.left_out):
            at[0] = source.name
            yield from source
            found.left_out.update(source.left_out)

    rows = made.rows(transcripts())
    asked = [0, 0]

    def named() -> Iterator[Row]:
        for row in rows:
            names[_who(row.item)] = at[0]
            asked[0] += len(row.models)
            yield row

    def taken() -> Iterator[Row]:
        for row in named() if new is None else new(named()):
            found.inputs += 1
            asked[1] += len(row.models)
            yield row

    progress = Progress()

    def read() -> Iterator[Answer]:
        for answer in answers(made, taken(), reflexes):
            progress.show(found.inputs)
            if answer.error is not None:
                found.failed[answer.error.type] += 1
            yield answer

    for who, of in groupby(read(), key=lambda answer: _who(answer.row.item)):
        fired = [each for each in of if each.reading is not None and each.reading.fired]
        for hit in _hits(names.pop(who), fired):
            found.fired += 1
            progress.clear()
            yield hit
    progress.clear()
    found.answered = asked[0] - asked[1]
    found.not_retained = rows.estimate().not_retained
    found.conversations = rows.conversations
    for reason, count in rows.left_out.items():
        (found.passed_over if reason in ASKED_FOR else found.left_out)[reason] += count


def _who(item: Item) -> tuple[str, str]:
    return item.user, item.convo_id


def _hits(log: str, found: Iterable[Answer]) -> list[Hit]:
    """What fired in one conversation, turn by turn; what is of the whole conversation comes first."""
    turns: dict[tuple[int, str], list[Answer]] = {}
    for each in found:
        item = each.row.item
        turns.setdefault((-1 if item.turn_index is None else item.turn_index, item.event_id), []).append(each)
    hits = []
    for _, of in sorted(turns.items()):
        surest = max(of, key=lambda each: fired_labels(each)[0].score)
        labels = sorted((label for each in of for label in fired_labels(each)), key=lambda label: -label.score)
        hits.append(Hit(log, surest.row.item, tuple(labels)))
    return hits


def fired_labels(answer: Answer) -> list[FiredLabel]:
    """The firing labels of an answer that were selected, the highest score first."""
    selected = set() if answer.reading is None else set(answer.reading.selected_labels)
    firing = [each for each in answer.prediction.classes if each.label in selected & set(answer.signal.fires_on)]
    return [
        FiredLabel(answer.signal.signal_id, each.label, each.score)
        for each in sorted(firing, key=lambda each: -each.score)
    ]


class Progress:
    """A line on stderr that says how far it is; nothing where nobody looks."""

    def __init__(self, total: int | None = None) -> None:
        self._total = total
        self._shown = sys.stderr.isatty()
        self._last = monotonic()
        self._drawn = False

    def show(self, done: int) -> None:
        """Say how many inputs are done, if that was not said just now."""
        now = monotonic()
        if self._shown and now - self._last > EACH:
            self._last, self._drawn = now, True
            print(f"\r\x1b[K{progress_words(done, self._total)}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._drawn = False


def hit_line(hit: Hit, *, color: bool, chips: bool) -> str:
    """One fired turn: log, conversation, turn, the surest label and its score, and the chips of all that fired.

    Apart by tabs where no person reads it; where one does, the chips say it all.
    """
    item, best = hit.item, hit.fired[0]
    turn = "" if item.turn_index is None else str(item.turn_index)
    said = chips_words([(each.label, each.score) for each in hit.fired], color=color)
    log, convo = safe_text(hit.log, longest=400), safe_text(item.convo_id, longest=200)
    if not chips:
        return "\t".join([log, convo, turn, safe_text(best.label, longest=80), f"{best.score:.3f}", said])
    where = f"{log}  {convo}" + (f"  turn {turn}" if turn else "")
    signals = ", ".join(dict.fromkeys(safe_text(each.signal_id, longest=60) for each in hit.fired))
    return f"{where}  {said}  {DIM if color else ''}{signals}{RESET if color else ''}"


def hit_fields(hit: Hit) -> dict[str, Any]:
    """The same in plain types: the surest label, and under `fired` all of them."""
    item, best = hit.item, hit.fired[0]
    return {
        "log": hit.log,
        "convo_id": item.convo_id,
        "event_id": item.event_id,
        "turn": item.turn_index,
        "user": item.user,
        "signal": best.signal_id,
        "label": best.label,
        "score": best.score,
        "percent": percent(best.score),
        "truncated": item.truncated,
        "fired": [
            {"signal": each.signal_id, "label": each.label, "score": each.score, "percent": percent(each.score)}
            for each in hit.fired
        ],
    }


def json_line(fields: Mapping[str, Any]) -> str:
    """One line of JSON."""
    return json.dumps(fields, ensure_ascii=True, allow_nan=False)

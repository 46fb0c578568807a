"""`evalr tracepass grep`: the turns on which signals fire, one line each, as they are found."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from evalr.inputs import Transcript
from evalr.quoting import safe_text
from evalr_tracepass.command.words import DIM, RESET, chip, progress_words
from evalr_tracepass.direct import Answer, answers
from evalr_tracepass.planning import Plan
from evalr_tracepass.records import Reflex, Row
from evalr_tracepass.scopes import NOT_DRAWN, NOT_SINCE, OTHER
from evalr_tracepass.sources import log_sources

ASKED_FOR = frozenset((OTHER, NOT_DRAWN, NOT_SINCE))
"""Reasons that are what somebody asked for, and no news."""

EACH = 0.2
"""Seconds between two progress lines."""


@dataclass
class Found:
    """What came of a search.

    Attributes:
        fired: turns on which a signal fired.
        conversations: in how many conversations.
        inputs: texts that were read.
        failed: predictions that failed, by kind of error.
        not_retained: turns whose content the logs do not have.
        read: conversations that were read.
        left_out: conversations and files that were not, by reason.
    """

    fired: int = 0
    conversations: int = 0
    inputs: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    not_retained: int = 0
    read: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def notes(self) -> list[str]:
        """What a person has to know of what was not read."""
        notes = []
        if self.not_retained:
            notes.append(f"content not retained: {self.not_retained:,}")
        if self.failed:
            notes.append("failed: " + ", ".join(f"{n:,} {safe_text(name)}" for name, n in self.failed.most_common()))
        if self.left_out:
            notes.append("left out: " + ", ".join(f"{n:,} {safe_text(name)}" for name, n in self.left_out.items()))
        return notes


def search(
    made: Plan, path: str, reflexes: Mapping[str, Reflex], found: Found, *, kind: str | None, strict: bool
) -> Iterator[tuple[str, Answer]]:
    """The answers that fired, each with the log that it is from, as they come."""
    names: dict[str, str] = {}
    at = [path]

    def transcripts() -> Iterator[Transcript]:
        for source in log_sources(path, kind=kind, strict=strict, unknown=found.left_out):
            at[0] = source.name
            yield from source
            found.left_out.update(source.left_out)

    rows = made.rows(transcripts())
    seen: set[tuple[str, str]] = set()

    def named() -> Iterator[Row]:
        for row in rows:
            names[row.request_id] = at[0]
            found.inputs += 1
            yield row

    progress = Progress()
    for answer in answers(made, named(), reflexes):
        progress.show(found.inputs)
        if answer.error is not None:
            found.failed[answer.error.type] += 1
        elif answer.reading is not None and answer.reading.fired:
            found.fired += 1
            seen.add((answer.row.item.user, answer.row.item.convo_id))
            progress.clear()
            yield names[answer.row.request_id], answer
    progress.clear()
    estimate = rows.estimate()
    found.conversations, found.read, found.not_retained = len(seen), rows.conversations, estimate.not_retained
    found.left_out.update({reason: n for reason, n in rows.left_out.items() if reason not in ASKED_FOR})


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


def hit_line(name: str, answer: Answer, *, color: bool, chips: bool) -> str:
    """One fired turn: file, conversation, turn, label and score; apart by tabs where no person reads it."""
    item, said = answer.row.item, answer.reading
    label, score = fired_label(answer)
    turn = "" if item.turn_index is None else str(item.turn_index)
    parts = [safe_text(name, longest=400), safe_text(item.convo_id, longest=200)]
    if not chips or said is None:
        return "\t".join([*parts, turn, safe_text(label, longest=80), f"{score:.3f}"])
    where = f"{parts[0]}  {parts[1]}" + (f"  turn {turn}" if turn else "")
    signal = safe_text(answer.signal.signal_id, longest=60)
    return f"{where}  {chip(label, score, color=color)}  {DIM if color else ''}{signal}{RESET if color else ''}"


def fired_label(answer: Answer) -> tuple[str, float]:
    """The firing label with the highest score of those that were selected."""
    selected = set() if answer.reading is None else set(answer.reading.selected_labels)
    firing = [each for each in answer.prediction.classes if each.label in selected & set(answer.signal.fires_on)]
    best = max(firing, key=lambda each: each.score, default=None)
    return ("", 0.0) if best is None else (best.label, best.score)


def hit_fields(name: str, answer: Answer) -> dict[str, Any]:
    """The same in plain types."""
    item = answer.row.item
    label, score = fired_label(answer)
    return {
        "log": name,
        "convo_id": item.convo_id,
        "event_id": item.event_id,
        "turn": item.turn_index,
        "user": item.user,
        "signal": answer.signal.signal_id,
        "label": label,
        "score": score,
        "truncated": item.truncated,
    }


def json_line(fields: Mapping[str, Any]) -> str:
    """One line of JSON."""
    return json.dumps(fields, ensure_ascii=True, allow_nan=False)

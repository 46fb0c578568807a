"""What a page shows of passes: each signal and how often it fired, what could not be read, and what was flagged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import Any, NamedTuple

from evalr.estimates.estimate import Estimate
from evalr.logs.blocks import Block, Card, Cards, Figure, Notice, Table
from evalr.logs.further import Further, ReportTerms, estimate_cell
from evalr.reports.plots.parts import parts_figure
from evalr_tracepass.catalogue import SIGNALS
from evalr_tracepass.command.words import percent
from evalr_tracepass.measures.fired import fired_conversations, fired_results, fired_turns
from evalr_tracepass.records import InputKind, Result

MOST_CARDS = 50
MOST_CHIPS = 3
MOST_FIRED = 20
"""Readings that a card opens to."""
MOST_SIGNALS = 40

PLACES: dict[InputKind, str] = {"user_chat": "User chat", "agent_chat": "Agent chat", "full_trace": "Full trace"}


def pass_section(records: Sequence[Result], terms: ReportTerms) -> list[Further]:
    """The section of passes; none where no record is in the period.

    Args:
        records: those that count: one of a signal for each text.
        terms: what the report is asked for.
    """
    counted = [each for each in records if terms.selects(each.source_start_time) and each.created_at <= terms.now]
    if not counted:
        return []
    signals = _signals(counted, terms.level)
    flagged = _flagged(counted)
    blocks: list[Block] = [_signals_table(signals), _coverage(signals), *_flagged_cards(flagged)]
    data = {
        "signals": [each.to_dict() for each in signals],
        "conversations": len({(each.user, each.convo_id) for each in counted}),
        "flagged": len(flagged),
    }
    return [Further(name="passes", title="Signals", lines=(), data=data, leads=True, blocks=blocks)]


# ---------------------------------------------------------------------------------------------------------------------
# Signals
# ---------------------------------------------------------------------------------------------------------------------


class _Signal(NamedTuple):
    """One signal as one version of its classifier read it."""

    name: str
    version: str
    place: str
    fires_on: tuple[str, ...]
    conversations: Estimate
    turns: Estimate
    counts: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        return {
            "signal": self.name,
            "version": self.version,
            "reads": self.place,
            "conversations": self.conversations.to_dict(),
            "texts": self.turns.to_dict(),
            **{name.replace(" ", "_"): count for name, count in self.counts.items()},
        }


def _signals(records: Sequence[Result], level: float) -> list[_Signal]:
    """Each signal in the order of how often it fired; versions of one are never pooled."""
    together: dict[tuple[str, str], list[int]] = {}
    results = fired_results(records)
    for place, result in enumerate(results):
        together.setdefault((result.evaluator or "", result.version or ""), []).append(place)
    found = []
    for (name, version), places in together.items():
        own, read = [results[place] for place in places], [records[place] for place in places]
        known = SIGNALS.get(read[0].reflex_model)
        found.append(
            _Signal(
                known.display_name if known is not None and known.signal_id == name else name,
                version,
                " and ".join(dict.fromkeys(PLACES[each.input_kind] for each in read)),
                () if known is None else known.fires_on,
                fired_conversations.estimate(own, level=level, mix_versions=True),
                fired_turns.estimate(own, level=level, mix_versions=True),
                _counts(read),
            )
        )
    return sorted(found, key=lambda each: (-(each.conversations.value or 0.0), each.name, each.version))


def _counts(records: Sequence[Result]) -> dict[str, int]:
    failed = sum(each.status == "failed" for each in records)
    cut = sum(each.truncated for each in records if each.status != "failed")
    return {"read whole": len(records) - failed - cut, "cut to fit": cut, "failed": failed}


def _signals_table(signals: Sequence[_Signal]) -> Table:
    columns = ("signal", "reads", "conversations flagged", "of conversations", "texts flagged", "of texts", "failed")
    rows = tuple(
        (
            each.name if not each.fires_on else f"{each.name} ({', '.join(each.fires_on)})",
            each.place,
            estimate_cell(each.conversations),
            f"{each.conversations.n:,}",
            estimate_cell(each.turns),
            f"{each.turns.n:,}",
            f"{each.counts['failed']:,}",
        )
        for each in signals[:MOST_SIGNALS]
    )
    return Table(
        title="signals",
        columns=columns,
        rows=rows,
        numbers=columns[2:],
        total=len(signals),
        footnote="A conversation is flagged where the signal fired at least once in it, of those of which any text was "
        "read; a text that failed is in no share. Behind a signal's name, the labels on which it fires, where they are "
        "known. A row each for versions of one signal.",
    )


def _coverage(signals: Sequence[_Signal]) -> Figure:
    shown = signals[:MOST_SIGNALS]
    parts = [(each.name, each.counts) for each in shown]
    says = "; ".join(
        f"{name}: " + ", ".join(f"{count:,} {part}" for part, count in counts.items()) for name, counts in parts
    )
    return Figure(
        spec=parts_figure(parts, unit="% of the texts that were sent to the signal"),
        says=f"coverage: {says}",
        title="coverage",
        footnote="Of the results that the log holds. Texts that a pass was to read, and of which it has no result, are "
        "not in such a log: a pass's own coverage has them.",
    )


# ---------------------------------------------------------------------------------------------------------------------
# Flagged conversations
# ---------------------------------------------------------------------------------------------------------------------


def _flagged(records: Sequence[Result]) -> dict[tuple[str, str], list[Result]]:
    """What fired, by conversation."""
    found: dict[tuple[str, str], list[Result]] = {}
    for each in records:
        if each.status == "completed" and each.fired:
            found.setdefault((each.user, each.convo_id), []).append(each)
    return found


def _flagged_cards(flagged: Mapping[tuple[str, str], list[Result]]) -> list[Block]:
    if not flagged:
        return [Notice(text="no conversation was flagged: no signal fired on what was read")]
    newest = nlargest(MOST_CARDS, flagged.items(), key=lambda item: (_last(item[1]), item[0]))
    by_id = Counter(convo for _, convo in flagged)
    return [
        Cards(
            title="flagged conversations",
            cards=tuple(_card(user, convo, fired, shared=by_id[convo] > 1) for (user, convo), fired in newest),
            total=len(flagged),
            footnote="The newest first. Beside each, the labels of signals that fired, with the highest score of each: "
            f"at most {MOST_CHIPS}, the highest first. A log of results has none of what was said.",
        )
    ]


def _last(fired: Sequence[Result]) -> float:
    times = [each.source_start_time for each in fired if each.source_start_time is not None]
    return max(times).timestamp() if times else 0.0


def _card(user: str, convo: str, fired: Sequence[Result], *, shared: bool) -> Card:
    highest: dict[str, Result] = {}
    for each in fired:
        known = highest.get(each.signal_id)
        if known is None or each.top_score > known.top_score:
            highest[each.signal_id] = each
    chips = sorted(highest.values(), key=lambda each: (-each.top_score, each.signal_id))
    in_order = sorted(fired, key=lambda each: (each.turn_index is not None, each.turn_index or 0, each.signal_id))
    lines = [(_where(each), f"{each.signal_id}: {_chip(each)}") for each in in_order[:MOST_FIRED]]
    if len(in_order) > MOST_FIRED:
        lines.append(("and", f"{len(in_order) - MOST_FIRED:,} more that fired"))
    return Card(
        title=f"{convo} of {user}" if shared and user else convo,
        chips=tuple(_chip(each) for each in chips[:MOST_CHIPS]),
        texts=(*((("user", user),) if user and not shared else ()), *lines),
    )


def _chip(record: Result) -> str:
    return f"{record.top_label} {percent(record.top_score)}"


def _where(record: Result) -> str:
    return "whole conversation" if record.turn_index is None else f"turn {record.turn_index}"

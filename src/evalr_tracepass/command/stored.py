"""What a store knows of an account's passes, in lines and in plain types."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evalr.errors import InputError
from evalr.estimates.words import count_words
from evalr.quoting import safe_text
from evalr_tracepass.command.places import Kept, options_of
from evalr_tracepass.command.words import DIM, NO_PASSES, RESET, chip, chips_words, complete_lines, progress_words
from evalr_tracepass.measures import latest_records, pass_rates
from evalr_tracepass.record_rows import to_row
from evalr_tracepass.records import Pass, Result
from evalr_tracepass.running import OVER_THE_CAPS
from evalr_tracepass.stores.store import Batch, Conversation, Totals
from evalr_tracepass.taking_over import is_taken_over

SHOWN = 50
"""Conversations of one list."""

ENDED = ("complete", "partial_failure")

ELSEWHERE = "none of its results are here: they have expired, or are kept where --results says"


# ---------------------------------------------------------------------------------------------------------------------
# Passes
# ---------------------------------------------------------------------------------------------------------------------


def passes_lines(found: Sequence[Pass], totals: Mapping[str, Totals]) -> Iterator[str]:
    """A line for each pass."""
    if not found:
        yield from NO_PASSES
    for each in found:
        own = totals[each.id]
        signals = ", ".join(safe_text(str(signal["signal_id"])) for signal in each.selected_signals)
        yield (
            f"{safe_text(each.id)}  {time_words(each.created_at)}  {each.status.replace('_', ' ')}  "
            f"{count_words(own.flagged, 'conversation')} flagged  {signals}"
        )


def status_lines(
    kept: Kept, found: Pass, totals: Totals, counts: Mapping[Any, int], batches: Sequence[Batch]
) -> Iterator[str]:
    """Where a pass stands, in the words of the panel."""
    signals = ", ".join(safe_text(str(signal["signal_id"])) for signal in found.selected_signals)
    yield f"{safe_text(found.id)}  {time_words(found.created_at)}  {found.status.replace('_', ' ')}  {signals}"
    if found.status in ENDED:
        yield from ended_lines(kept, found, totals)
    else:
        named = [each.batch_id for each in batches if each.batch_id]
        if named:
            yield ", ".join(safe_text(name) for name in named[:3]) + (
                "" if len(named) <= 3 else f" and {len(named) - 3} more"
            )
        done = counts.get("completed", 0) + counts.get("failed", 0)
        yield progress_words(done, found.total_inputs or None)
    if found.error_message:
        yield safe_text(found.error_message, longest=500)


def ended_lines(kept: Kept, found: Pass, totals: Totals, log: str = "LOG") -> list[str]:
    """How a pass ended, and what to do next."""
    lines = complete_lines(
        totals.flagged,
        totals.selected_labels,
        failed=found.failed_inputs,
        completed=found.completed_inputs,
    )
    name, options = safe_text(found.id), options_of(kept.place)
    if totals.flagged:
        lines.append(f"View flagged conversations: evalr tracepass results {name}{options}")
    if found.failed_inputs:
        lines += [
            f"View failed inputs: evalr tracepass results {name} --failed{options}",
            f"Retry failed: evalr tracepass retry {name} {shlex.quote(safe_text(log, longest=400))}{options}",
        ]
    if found.answered:
        lines.append(f"{count_words(found.answered, 'prediction')} spared: earlier passes have them")
    beyond = found.estimate.left_out.get(OVER_THE_CAPS)
    if beyond:
        lines.append(f"{count_words(beyond, 'input')} beyond what a live preview sends: --by batch reads all")
    if _is_elsewhere(kept, found, totals):
        lines.append(ELSEWHERE)
    return lines


def pass_fields(found: Pass, totals: Totals) -> dict[str, Any]:
    """A pass in plain types."""
    return {
        "id": found.id,
        "status": found.status,
        "scope": found.scope.model_dump(mode="json"),
        "chosen": found.scope.chosen,
        "signals": [signal["signal_id"] for signal in found.selected_signals],
        "estimate": found.estimate.model_dump(mode="json"),
        "total_inputs": found.total_inputs,
        "total_predictions": found.total_predictions,
        "completed_inputs": found.completed_inputs,
        "failed_inputs": found.failed_inputs,
        "error_message": found.error_message,
        "created_at": _iso(found.created_at),
        "started_at": _iso(found.started_at),
        "completed_at": _iso(found.completed_at),
        **totals._asdict(),
    }


# ---------------------------------------------------------------------------------------------------------------------
# Results
# ---------------------------------------------------------------------------------------------------------------------


def asked_results(
    kept: Kept,
    name: str,
    *,
    failed: bool,
    clean: bool,
    rates: bool,
    signals: Sequence[str],
    convos: Sequence[str],
    color: bool,
) -> tuple[list[str], dict[str, Any]]:
    """What `evalr tracepass results` shows."""
    if sum((failed, rates)) > 1:
        raise InputError("--failed and --rates show different things: pass one of them")
    if not kept.store.passes(kept.account, limit=1):
        return list(NO_PASSES), {"results": []}
    if rates:
        return _asked_rates(kept, kept.get_pass(name), signals)
    if failed or convos:
        options: dict[str, Any] = {"failed": True} if failed else {} if clean else {"fired": True}
        records = [
            each
            for each in kept.results_of(name, **options)
            if (not signals or each.signal_id in signals) and (not convos or each.convo_id in convos)
        ]
        lines = list(failed_lines(records) if failed else turn_lines(records, color=color))
        if not lines:
            lines = [_nothing_of(kept, name, convos, signals, clean=clean)]
        return lines, {"results": [to_row(each) for each in records]}
    passes = kept.passes_named(name)
    asked: Sequence[str | None] = list(signals) or [None]
    listed = [
        each
        for signal in asked
        for each in kept.results.conversations(
            kept.account, passes=passes, signal_id=signal, flagged=not clean, limit=SHOWN
        )
    ]
    unique = list({(each.user, each.convo_id, each.run_id): each for each in listed}.values())
    lines = list(conversation_lines(unique, color=color))
    if not unique and signals:
        lines = [f"no conversation was flagged by {safe_text(', '.join(signals), longest=200)}"]
    if not unique and _is_elsewhere(kept, kept.get_pass("latest" if name == "all" else name)):
        lines.append(ELSEWHERE)
    return lines, {"conversations": [_plain(each) for each in unique]}


def _asked_rates(kept: Kept, found: Pass, signals: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """How often signals fired, all of a pass or those named; what several versions of one have read has no rate."""
    own = latest_records(kept.results_of(found.id))
    versions: dict[str, Counter[str]] = {}
    for each in own:
        if each.status == "completed" and (not signals or each.signal_id in signals):
            versions.setdefault(each.signal_id, Counter())[each.model_version] += 1
    mixed = {name: dict(sorted(of.items())) for name, of in versions.items() if len(of) > 1}
    rated = tuple(
        each
        for each in found.selected_signals
        if each["signal_id"] not in mixed and (not signals or each["signal_id"] in signals)
    )
    parts = pass_rates(own, found._replace(selected_signals=rated))
    lines = [line for each in parts for line in str(each).splitlines()]
    at = options_of(kept.place)
    for name, of in mixed.items():
        read = ", ".join(f"{safe_text(version or '?')} ({count_words(n, 'text')})" for version, n in of.items())
        lines += [
            f"{safe_text(name)}: no rate, since several versions of its classifier read: {read}",
            f"  one reads all: evalr tracepass run LOG --signal {shlex.quote(safe_text(name))} --rerun-all{at}",
        ]
    elsewhere = found.answered - sum(is_taken_over(each, found) for each in own)
    if elsewhere > 0:
        spared = count_words(elsewhere, "prediction")
        lines += [
            f"This pass read only what was new: {spared} of earlier passes count as pending.",
            f"Of all of them: evalr tracepass export passes.jsonl{at}, then evalr report passes.jsonl",
        ]
    fields = {"pass": found.id, "rates": [each.to_dict() for each in parts], "mixed_versions": mixed}
    return lines, fields


def _nothing_of(kept: Kept, name: str, convos: Sequence[str], signals: Sequence[str], *, clean: bool) -> str:
    """Why there is nothing to show of conversations: nothing fired, or nobody has read them."""
    asked = safe_text(", ".join(convos), longest=200) + (f" by {safe_text(', '.join(signals))}" if signals else "")
    read = not clean and any(
        each.convo_id in convos and (not signals or each.signal_id in signals) for each in kept.results_of(name)
    )
    return f"nothing fired in {asked}; --all shows what was read" if read else f"there are no results of {asked}"


def _is_elsewhere(kept: Kept, found: Pass, totals: Totals | None = None) -> bool:
    """Whether a pass has read rows, and nothing that it said of them is here."""
    known = totals or kept.results.totals(kept.account, found.id)
    return found.completed_inputs + found.failed_inputs > 0 and not known.completed + known.failed


def conversation_lines(found: Sequence[Conversation], *, color: bool) -> Iterator[str]:
    """A conversation on each line, with up to three labels."""
    if not found:
        yield "no conversation was flagged"
    for each in found:
        chips = chips_words([(one.label, one.score) for one in each.chips], color=color)
        yield f"{safe_text(each.convo_id, longest=80)}  {chips}".rstrip()
    if len(found) == SHOWN:
        yield f"the latest {SHOWN}; `evalr tracepass export` writes them all"


def turn_lines(records: Iterable[Result], *, color: bool) -> Iterator[str]:
    """The turns of conversations, as the rail beside one shows them."""
    last = None
    for each in sorted(records, key=lambda one: (one.convo_id, -1 if one.turn_index is None else one.turn_index)):
        if each.convo_id != last:
            last = each.convo_id
            yield safe_text(each.convo_id, longest=80)
        turn = "whole conversation" if each.turn_index is None else f"Turn {each.turn_index}"
        said = (
            f"failed: {safe_text(each.error_type)}"
            if each.status == "failed"
            else chip(each.top_label, each.top_score, color=color, fired=each.fired)
        )
        yield f"  {turn}  {said}  {DIM if color else ''}{safe_text(each.signal_id)}{RESET if color else ''}"


def failed_lines(records: Sequence[Result]) -> Iterator[str]:
    """The inputs that failed, under why."""
    if not records:
        yield "no input failed"
    kinds = Counter((each.reflex_model, each.error_type) for each in records)
    for (model, kind), count in kinds.most_common():
        yield f"{safe_text(model)}: {count:,} failed, {safe_text(kind)}"
    for each in records[:SHOWN]:
        turn = "" if each.turn_index is None else f", turn {each.turn_index}"
        why = safe_text(each.error_message or each.error_type)
        yield f"  {safe_text(each.convo_id, longest=80)}{turn}  {safe_text(each.signal_id)}: {why}"
    if len(records) > SHOWN:
        yield f"  and {len(records) - SHOWN:,} more; --json has them all"


def time_words(at: datetime | None) -> str:
    """A time to the minute, in UTC."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat()


def _plain(found: Conversation) -> dict[str, Any]:
    return {
        **found._asdict(),
        "passed_at": _iso(found.passed_at),
        "last_at": _iso(found.last_at),
        "chips": [each._asdict() for each in found.chips],
    }

"""What `evalr tracepass` prints: estimates, previews, fired turns and finished passes, in lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evalr.estimates.words import count_words
from evalr.quoting import safe_text
from evalr_tracepass.planning import Plan
from evalr_tracepass.records import PlanEstimate, Row

BOLD, DIM, RED, GREEN, RESET = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[0m"

COUNTING = "Counting trace inputs..."
NO_PASSES = (
    "No Reflex passes yet",
    "Run a semantic pass over these traces to find frustration, loops, jailbreaks, and custom product failures.",
)


def chip(label: str, score: float, *, color: bool, fired: bool = True) -> str:
    """`[frustrated 97%]`, as the seed shows it; one that fired stands out."""
    text = f"[{safe_text(label, longest=40)} {percent(score)}]"
    return f"{RED if fired else DIM}{text}{RESET}" if color else text


def percent(share: float) -> str:
    """A share in whole percents, where only all is 100%."""
    whole = round(100 * share)
    return f"{99 if whole == 100 and share < 1 else whole}%"


def cost_words(estimate: PlanEstimate) -> str:
    """`Estimated cost: $0.49`, and where it is not known, that."""
    if estimate.cost is None:
        return "Estimated cost: unknown (name the price of one prediction with --rate)"
    cents = f"${estimate.cost:,.2f}" if estimate.cost >= 0.01 or not estimate.cost else "under $0.01"
    return f"Estimated cost: {cents}" + (" · Estimated before volume discounts" if estimate.before_discounts else "")


def estimate_lines(made: Plan, found: PlanEstimate) -> Iterator[str]:
    """What a plan comes to: the seed's lines, then each transform, then what is left out."""
    yield count_words(found.inputs, "trace input")
    yield count_words(found.predictions, "prediction")
    yield "Batch mode" if found.batches <= 1 else f"Batch mode, {count_words(found.batches, 'batch')}"
    yield cost_words(found)
    yield ""
    names = {group.transform.id: group.transform.name for group in made.groups}
    for part in found.transforms:
        yield f"{names[part.transform_id]} ({part.transform_id}): {count_words(part.inputs, 'input')}"
        yield f"    {', '.join(safe_text(model) for model in part.models)}"
        notes = {
            "content not retained": part.not_retained,
            "truncated": part.truncated,
            "too long to be sent": part.too_long,
        }
        told = ", ".join(f"{count:,} {name}" for name, count in notes.items() if count)
        if told:
            yield f"    {told}"
    yield ""
    yield f"{count_words(found.conversations, 'conversation')} · {scope_words(made)}"
    if found.left_out:
        yield "left out: " + ", ".join(f"{count:,} {safe_text(reason)}" for reason, count in found.left_out.items())
    for warning in made.warnings:
        yield f"note: {warning}"


def scope_words(made: Plan) -> str:
    """How the traces are chosen, in words."""
    scope = made.scope
    words = {
        "all": "all of them",
        "random": f"a random sample of {percent(scope.fraction or 1)}, seed {scope.seed}",
        "filtered": "filtered: no sample of the others",
        "selected": "picked by hand: no sample of the others",
    }
    return words[scope.chosen]


def preview_lines(made: Plan, rows: Sequence[Row], *, longest: int = 2_000) -> Iterator[str]:
    """The texts that would be sent, under their transform, each with its conversation and turn."""
    for group in made.groups:
        own = [row for row in rows if row.item.transform_id == group.transform.id]
        if not own:
            continue
        yield f"{group.transform.name} -> {', '.join(map(safe_text, group.models))}"
        for row in own:
            yield f"  {place_words(row)}" + ("  truncated" if row.truncated else "")
            text = row.text if row.error is None else f"({row.error.type}: {row.error.message})"
            cut = text if len(text) <= longest else f"{text[:longest]}…"
            yield from (f"    | {safe_text(line, longest=longest)}" for line in cut.splitlines())
        yield ""


def place_words(row: Row) -> str:
    """`convo_123, turn 4`."""
    name = safe_text(row.item.convo_id, longest=80)
    return name if row.item.turn_index is None else f"{name}, turn {row.item.turn_index}"


def signal_lines(available: Iterable[Any], ticked: Iterable[str]) -> Iterator[str]:
    """The signals as the seed's panel shows them: ticked or not, what each reads, and why one cannot run."""
    chosen = set(ticked)
    for each in available:
        own = each.signal
        mark = "x" if own.signal_id in chosen else " "
        yield f"[{mark}] {own.signal_id:<26} {own.transform.name}" + (
            f"  unavailable: {each.reason}" if each.reason else ""
        )


def complete_lines(flagged: int, labels: int, *, failed: int = 0, completed: int = 0) -> list[str]:
    """How a pass ended, in the seed's words."""
    ended = [f"{count_words(flagged, 'conversation')} flagged", f"{count_words(labels, 'selected label')}"]
    if failed:
        return ["Pass complete with failed rows", f"{completed:,} completed", f"{failed:,} failed", *ended]
    return ["Pass complete", *ended]


def progress_words(done: int, total: int | None) -> str:
    """`4,120 / 9,412 inputs complete 43.8%`."""
    if not total:
        return f"{done:,} inputs complete"
    return f"{done:,} / {total:,} inputs complete {100 * done / total:.1f}%"

"""What `evalr tracepass` prints: estimates, previews, fired turns and finished passes, in lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evalr.estimates.words import count_words
from evalr.quoting import safe_text
from evalr_tracepass.catalogue import Available
from evalr_tracepass.planning import Plan
from evalr_tracepass.records import PlanEstimate, Row
from evalr_tracepass.signal_files import Preset
from evalr_tracepass.transports.transport import Transport

BOLD, DIM, RED, GREEN, RESET = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[0m"

CHIPS = 3
"""Labels of one conversation, or turn, at most: as many as a list can show."""

COUNTING = "Counting trace inputs..."
NO_PASSES = (
    "No Reflex passes yet",
    "Run a semantic pass over these traces to find frustration, loops, jailbreaks, and custom product failures.",
)


def chip(label: str, score: float, *, color: bool, fired: bool = True) -> str:
    """`[frustrated 97%]`; one that fired stands out."""
    text = f"[{safe_text(label, longest=40)} {percent(score)}]"
    return f"{RED if fired else DIM}{text}{RESET}" if color else text


def chips_words(found: Sequence[tuple[str, float]], *, color: bool) -> str:
    """The chips of what fired, labels with their scores: the highest first, as many as a line can show."""
    ordered = sorted(found, key=lambda each: -each[1])
    shown = " ".join(chip(label, score, color=color) for label, score in ordered[:CHIPS])
    more = len(ordered) - CHIPS
    return f"{shown} and {more} more" if more > 0 else shown


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


def counted_lines(found: PlanEstimate) -> list[str]:
    """`9,412 trace inputs` and `16,423 predictions`."""
    return [count_words(found.inputs, "trace input"), count_words(found.predictions, "prediction")]


def mode_words(transport: Transport, batches: int) -> str:
    """How inputs are sent: in batches, or as a look that sends no more than its caps; "" where they are read here."""
    caps = transport.caps
    if caps is not None:
        return (
            f"Live preview: at most {count_words(caps.conversations, 'conversation')}, {caps.inputs:,} inputs of each "
            f"transform, {count_words(caps.predictions, 'prediction')}"
        )
    if not transport.durable:
        return ""
    return "Batch mode" if batches <= 1 else f"Batch mode, {count_words(batches, 'batch')}"


def estimate_lines(made: Plan, found: PlanEstimate, transport: Transport) -> Iterator[str]:
    """What a plan comes to: inputs, predictions, how they are sent, the cost, each transform, and what is left out."""
    yield from counted_lines(found)
    mode = mode_words(transport, found.batches)
    if mode:
        yield mode
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


def signal_lines(available: Iterable[Available]) -> Iterator[str]:
    """The signals: ticked or not, what each reads, the labels at which it fires, and which cannot run here."""
    found = list(available)
    width = max((len(each.signal.signal_id) for each in found), default=0)
    for each in found:
        own = each.signal
        mark = "x" if own.enabled_by_default else " "
        details = [safe_text(own.transform.name, longest=60)]
        if own.source == "custom":
            details.append(f"model {safe_text(own.model, longest=60)}")
        fires = [f"{each} >= {own.thresholds[each]:g}" if each in own.thresholds else each for each in own.fires_on]
        details.append(f"fires on {safe_text(', '.join(fires), longest=120)}" if fires else "fires on nothing")
        details += ["monitor"] if own.monitor else []
        if each.reason:
            details.append("unavailable: no classifier")
        yield f"[{mark}] {safe_text(own.signal_id, longest=60):<{width}}  {', '.join(details)}"
    if any(each.reason for each in found):
        yield "Those without one need a classifier of that name: --reflex NAME=FILE, or --by batch for a service's."


def preset_lines(found: Iterable[Preset]) -> Iterator[str]:
    """A preset on each line, with its signals."""
    empty = True
    for each in found:
        empty = False
        yield f"{safe_text(each.name, longest=60)}  {', '.join(map(safe_text, each.signals))}" + (
            "  monitor" if each.monitor else ""
        )
    if empty:
        yield "no presets yet: save one with `evalr tracepass presets save NAME --signal NAME`"


def complete_lines(flagged: int, labels: int, *, failed: int = 0, completed: int = 0) -> list[str]:
    """How a pass ended, and where to look at what it flagged."""
    ended = [f"{count_words(flagged, 'conversation')} flagged", f"{count_words(labels, 'selected label')}"]
    if failed:
        return ["Pass complete with failed rows", f"{completed:,} completed", f"{failed:,} failed", *ended]
    return ["Pass complete", *ended]


def progress_words(done: int, total: int | None) -> str:
    """`4,120 / 9,412 inputs complete 43.8%`."""
    if not total:
        return f"{done:,} inputs complete"
    return f"{done:,} / {total:,} inputs complete {100 * done / total:.1f}%"

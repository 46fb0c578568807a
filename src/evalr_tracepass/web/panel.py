"""The run panel: which conversations, which signals, what each reads, and what that comes to before it is run."""

from __future__ import annotations

from collections.abc import Container, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from evalr.errors import InputError
from evalr.inputs import utc_now
from evalr_tracepass.catalogue import HEURISTIC_SIGNALS, Available
from evalr_tracepass.command.words import cost_words, mode_words
from evalr_tracepass.planning import Plan, plan
from evalr_tracepass.records import Filters, PlanEstimate, Row, Scope
from evalr_tracepass.scopes import selected
from evalr_tracepass.signals import Signal
from evalr_tracepass.stores.store import LATEST
from evalr_tracepass.transforms import CATALOGUE
from evalr_tracepass.web.asking import ALL, Asked, Query, address, asked_of
from evalr_tracepass.web.desk import INSPECTS, Desk
from evalr_tracepass.web.lists import chosen_entries
from evalr_tracepass.web.snapshot import Entry, Snapshot

SELECTED, FILTERS, CONVERSATION, DAY, RANGE = "selected", "filters", "conversation", "24h", "range"

PREVIEWED = 3
"""Texts of each transform that are shown before a pass is run."""


class Ordered(NamedTuple):
    """What a run panel is set to.

    Attributes:
        scope: how conversations are chosen.
        keys: those that are ticked.
        convo: the one that the panel was opened from, "" where it was opened from the list.
        asked: the list that it was opened from.
        since: of a custom range, its first day.
        until: its last day.
        signals: the ids of those that are ticked; None where nobody has chosen yet.
        overrides: transforms that signals read in place of their own, by the signals' ids.
        preview: whether texts are shown.
    """

    scope: str
    keys: tuple[str, ...]
    convo: str
    asked: Asked
    since: str
    until: str
    signals: tuple[str, ...] | None
    overrides: tuple[tuple[str, str], ...]
    preview: bool

    def fields(self, **changed: Any) -> list[tuple[str, str]]:
        """As the fields of a form."""
        own = self._replace(**changed)
        named = [("scope", own.scope), ("convo", own.convo), ("since", own.since), ("until", own.until)]
        found = [*own.asked.fields(), *((name, value) for name, value in named if value)]
        found += [("c", key) for key in own.keys]
        if own.signals is not None:
            found += [("set", "1"), *(("s", name) for name in own.signals)]
        found += [(f"t.{name}", value) for name, value in own.overrides]
        return [*found, *([("preview", "1")] if own.preview else [])]


class Offer(NamedTuple):
    """One signal of the panel."""

    signal: Signal
    inspects: str
    reason: str | None
    is_ticked: bool
    transform_id: str


class Ahead(NamedTuple):
    """What a pass comes to.

    Attributes:
        estimate: of what is sent.
        preview: the first texts of each transform.
    """

    estimate: PlanEstimate
    preview: tuple[Row, ...]


def ordered_of(fields: Query) -> Ordered:
    """What the fields of a panel say."""
    keys = tuple(dict.fromkeys(fields.getlist("c")))
    convo = fields.get("convo", "")
    start = CONVERSATION if convo else SELECTED if keys else FILTERS
    scope = fields.get("scope", "") or start
    chosen = tuple(dict.fromkeys(fields.getlist("s")))
    return Ordered(
        scope if scope in (SELECTED, FILTERS, CONVERSATION, DAY, RANGE) else start,
        keys,
        convo,
        asked_of(fields),
        fields.get("since", "").strip(),
        fields.get("until", "").strip(),
        chosen if fields.get("set", "") else None,
        _overrides(fields, chosen),
        fields.get("preview", "") == "1",
    )


def _overrides(fields: Query, chosen: Sequence[str]) -> tuple[tuple[str, str], ...]:
    found = ((name, fields.get(f"t.{name}", "")) for name in chosen)
    return tuple((name, value) for name, value in found if value in CATALOGUE)


def offers_of(desk: Desk, ordered: Ordered) -> tuple[list[Offer], list[Offer], list[Offer]]:
    """The signals of the panel: those of the service, rules that run here, and one's own."""
    known = desk.signals()
    available = desk.available(known)
    ticked = ticked_of(available) if ordered.signals is None else set(ordered.signals)
    overrides = dict(ordered.overrides)
    offers = [
        Offer(
            each.signal,
            INSPECTS[each.signal.transform.input_kind],
            each.reason,
            each.reason is None and each.signal.signal_id in ticked,
            overrides.get(each.signal.signal_id, each.signal.transform.id),
        )
        for each in available
    ]
    rules = [each for each in offers if each.signal.signal_id in HEURISTIC_SIGNALS]
    built_in = [each for each in offers if each.signal.source == "default" and each not in rules]
    return built_in, rules, [each for each in offers if each.signal.source == "custom"]


def ticked_of(available: Sequence[Available]) -> set[str]:
    """The signals that start ticked; where none of them can run, the rules that can."""
    usable = {each.signal.signal_id: each.signal for each in available if each.reason is None}
    start = {name for name, each in usable.items() if each.enabled_by_default}
    return start or {name for name in usable if name in HEURISTIC_SIGNALS}


def signals_of(desk: Desk, ordered: Ordered) -> list[Signal]:
    """The ticked signals, each with what it is to read.

    Raises:
        InputError: none is ticked, or one cannot run.
    """
    chosen = [offer for group in offers_of(desk, ordered) for offer in group if offer.is_ticked]
    if not chosen:
        raise InputError("Choose at least one signal.")
    return [_reading(offer.signal, offer.transform_id) for offer in chosen]


def _reading(own: Signal, transform_id: str) -> Signal:
    if transform_id == own.transform.id or transform_id not in CATALOGUE:
        return own
    return own.model_copy(update={"transform": CATALOGUE[transform_id]})


def entries_of(desk: Desk, snapshot: Snapshot, ordered: Ordered) -> tuple[list[Entry], Scope]:
    """The conversations that a panel's scope is of, and the scope as the pass keeps it.

    Raises:
        InputError: nothing is chosen, what was is not in the log any more, or a day cannot be read.
    """
    filters = ordered.asked.filters
    if ordered.scope in (SELECTED, CONVERSATION):
        keys = ordered.keys if ordered.scope == SELECTED else (ordered.convo,)
        found = [snapshot.by_key[key] for key in keys if key in snapshot.by_key]
        if not keys:
            raise InputError("Select at least one conversation.")
        if len(found) < len(keys):
            raise InputError(f"{len(keys) - len(found)} of the selected conversations are not in the log any more.")
        return found, selected(entry.convo_id for entry in found)
    if ordered.scope == FILTERS:
        found = chosen_entries(desk, snapshot, ordered.asked)
        if ordered.asked.show != ALL:
            # Those that another pass flagged are picked for what they are.
            if not found:
                raise InputError("No conversation matches.")
            return found, selected((entry.convo_id for entry in found), filters)
        return found, Scope(kind="current_filters", filters=filters) if filters != Filters() else Scope()
    dated = _dated(ordered, filters)
    return snapshot.matching(dated), Scope(kind="date_range", filters=dated)


def _dated(ordered: Ordered, filters: Filters) -> Filters:
    if ordered.scope == DAY:
        # To the minute, so that what was counted is what is run.
        now = utc_now().replace(second=0, microsecond=0)
        return filters.model_copy(update={"since": now - timedelta(hours=24)})
    since, until = _day(ordered.since, "From"), _day(ordered.until, "To")
    if since is None and until is None:
        raise InputError("A custom range needs a first day, a last day, or both.")
    if since is not None and until is not None and until < since:
        raise InputError("The range ends before it begins.")
    # After the last day that there is, nothing has to be left out.
    end = None if until is None or until.date() == date.max else until + timedelta(days=1)
    return filters.model_copy(update={"since": since, "until": end})


def _day(text: str, name: str) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise InputError(f"{name}: write a day as 2026-11-30.") from None


def plan_of(desk: Desk, snapshot: Snapshot, ordered: Ordered) -> tuple[list[Entry], Plan]:
    """The conversations that a panel is set to, and the plan for them.

    Raises:
        InputError: nothing is chosen, or it cannot be run so.
    """
    entries, scope = entries_of(desk, snapshot, ordered)
    return entries, plan(signals_of(desk, ordered), scope=scope, reflexes=desk.reflexes or None)


def look_ahead(desk: Desk, snapshot: Snapshot, entries: Sequence[Entry], made: Plan) -> Ahead:
    """Count what a plan comes to, and keep its first texts."""
    rows = made.rows(snapshot.transcripts(entries))
    first: dict[str, list[Row]] = {group.transform.id: [] for group in made.groups}
    for row in rows:
        of = first[row.item.transform_id]
        if len(of) < PREVIEWED:
            of.append(row)
    estimate = rows.estimate(rate=desk.rate, batch=desk.transport.largest)
    return Ahead(estimate, tuple(row for of in first.values() for row in of))


def known_of(desk: Desk, entries: Sequence[Entry]) -> int:
    """How many of these conversations have labels of some pass."""
    if not desk.kept.passes():
        return 0
    known = desk.kept.flagged(LATEST, None, read=True)
    return sum(entry.key in known and known[entry.key].completed > 0 for entry in entries)


def panel_values(
    desk: Desk, ordered: Ordered, ahead: Ahead | None, entries: Sequence[Entry], on_page: Container[str]
) -> dict[str, Any]:
    """What the template of the panel shows beside its list.

    Args:
        desk: of the page.
        ordered: what the panel is set to.
        ahead: what it comes to, None while that is counted or cannot be.
        entries: the conversations that it is of.
        on_page: the keys of the rows of its list: others that are ticked are carried along.
    """
    built_in, rules, custom = offers_of(desk, ordered)
    read = {each.transform_id for each in (*built_in, *rules, *custom) if each.is_ticked}
    own = {each.signal.transform.id: each.signal.transform for each in (*built_in, *rules, *custom)}
    known = {**CATALOGUE, **own}
    parts = () if ahead is None else ahead.estimate.transforms
    return {
        "ordered": ordered,
        "presets": [
            (name, address("/run", ordered.fields(signals=preset.signals, overrides=())))
            for name, preset in sorted(desk.presets().items())
        ],
        "built_in": built_in,
        "rules": rules,
        "custom": custom,
        "ahead": ahead,
        "of_all": len(entries),
        "known": known_of(desk, entries),
        "counting": ahead is None,
        "cost": "" if ahead is None else cost_words(ahead.estimate),
        "mode": mode_words(desk.transport, 0 if ahead is None else ahead.estimate.batches),
        "warnings": [f"{known[name].name}: {known[name].warning}" for name in sorted(read) if known[name].warning],
        "transforms": transform_choices(),
        "transform_names": {name: each.name for name, each in known.items()},
        "hidden_keys": [key for key in ordered.keys if key not in on_page],
        "previews": [
            (
                known[part.transform_id].name,
                ", ".join(part.models),
                [row for row in ahead.preview if row.item.transform_id == part.transform_id],
            )
            for part in parts
        ]
        if ahead is not None
        else [],
        "back": address(f"/c/{ordered.convo}", []) if ordered.convo else ordered.asked.link("/"),
        "cancel": address("/run", ordered.fields()),
    }


def transform_choices() -> list[tuple[str, str]]:
    """What a signal may read in place of its own."""
    return [(each.id, f"{each.name} ({each.id})") for each in CATALOGUE.values()]


def scope_words(scope: Scope) -> str:
    """How the conversations of a pass were chosen, in a few words."""
    filters = scope.filters
    parts = []
    if scope.kind == "conversation":
        parts.append("This conversation")
    elif scope.kind == "selection":
        parts.append(f"{len(scope.convo_ids):,} selected conversations")
    elif scope.kind == "random_sample":
        parts.append(f"Random sample of {scope.fraction or 1:.0%}")
    elif scope.kind == "since_last_run":
        parts.append("Since the last run")
    elif scope.kind == "all" and filters == Filters():
        parts.append("All conversations")
    else:
        parts.append("Custom range" if scope.kind == "date_range" else "Current filters")
    if filters.search:
        parts.append(f"search “{filters.search}”")
    if filters.user is not None:
        parts.append(f"user {filters.user}")
    if filters.errors_only:
        parts.append("errors only")
    if filters.since is not None:
        parts.append(f"from {filters.since:%Y-%m-%d %H:%M}")
    if filters.until is not None:
        parts.append(f"before {filters.until:%Y-%m-%d %H:%M}")
    return ", ".join(parts)

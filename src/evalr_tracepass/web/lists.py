"""The list of conversations: what is in the log, with what passes said of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from evalr_tracepass.records import Pass
from evalr_tracepass.stores.store import ALL as ALL_PASSES
from evalr_tracepass.stores.store import LATEST, Chip
from evalr_tracepass.web.asking import ALL, FLAGGED, Asked
from evalr_tracepass.web.desk import Desk
from evalr_tracepass.web.kept import Labels, top_chips
from evalr_tracepass.web.rendering import when
from evalr_tracepass.web.snapshot import Entry, Snapshot

ON_A_PAGE = 50


class Line(NamedTuple):
    """One row of the list. Without an `entry`, its conversation is not in the log any more."""

    key: str
    convo_id: str
    user: str
    entry: Entry | None
    labels: Labels | None
    chips: tuple[Chip, ...]
    more: int


def chosen_entries(desk: Desk, snapshot: Snapshot, asked: Asked) -> list[Entry]:
    """The conversations of the log that a list is of, on all of its pages."""
    found = snapshot.matching(asked.filters)
    if asked.show == ALL:
        return found
    flagged = desk.kept.flagged(asked.passes, None if asked.show == FLAGGED else asked.show)
    return [entry for entry in found if entry.key in flagged]


def list_page(desk: Desk, snapshot: Snapshot, asked: Asked, *, picked: frozenset[str] = frozenset()) -> dict[str, Any]:
    """What the list's template shows.

    Args:
        desk: of the page.
        snapshot: of the log.
        asked: which conversations.
        picked: the keys of the rows that are ticked.
    """
    passes = desk.kept.passes()
    names = desk.names(passes)
    found = chosen_entries(desk, snapshot, asked)
    gone = _gone(desk, snapshot, asked)
    total = len(found) + len(gone)
    pages = max(1, -(-total // ON_A_PAGE))
    asked = asked._replace(page=min(asked.page, pages))
    start = (asked.page - 1) * ON_A_PAGE
    shown = found[start : start + ON_A_PAGE]
    labels = desk.kept.labels(shown, asked.passes) if passes else {}
    lines = [_line(entry.key, entry.convo_id, entry.user, entry, labels.get(entry.key)) for entry in shown]
    left = ON_A_PAGE - len(lines)
    first_gone = max(0, start - len(found))
    for key, each in gone[first_gone : first_gone + left]:
        lines.append(_line(key, each.convo_id, each.user, None, each))
    return {
        "asked": asked._replace(visible=False),
        "lines": lines,
        "picked": {line.key for line in lines if line.entry} if asked.visible else picked,
        "total": total,
        "of": len(snapshot.entries),
        "first": start + 1 if total else 0,
        "last": start + len(lines),
        "pages": pages,
        "names": names,
        "passes": passes,
        "shows": _shows(desk, passes, names, asked),
        "pass_choices": pass_choices(passes, asked),
        "has_tokens": snapshot.has_tokens,
        "left_out": snapshot.left_out,
    }


def _line(key: str, convo_id: str, user: str, entry: Entry | None, labels: Labels | None) -> Line:
    chips, more = top_chips(() if labels is None else labels.chips)
    return Line(key, convo_id, user, entry, labels, chips, more)


def _gone(desk: Desk, snapshot: Snapshot, asked: Asked) -> list[tuple[str, Labels]]:
    """Flagged conversations that are not in the log any more, where nothing is asked that only the log could say."""
    if asked.show == ALL or asked.search or asked.errors:
        return []
    flagged = desk.kept.flagged(asked.passes, None if asked.show == FLAGGED else asked.show)
    return [
        (key, each)
        for key, each in flagged.items()
        if key not in snapshot.by_key and (not asked.user or each.user == asked.user)
    ]


def _shows(desk: Desk, passes: list[Pass], names: dict[str, str], asked: Asked) -> list[tuple[str, str]]:
    """What can be shown: all, what is flagged, and what each signal of some pass fired on."""
    ran = {str(signal["signal_id"]) for each in passes for signal in each.selected_signals}
    if asked.show not in (ALL, FLAGGED):
        ran.add(asked.show)
    signals = sorted(((each, names.get(each, each)) for each in ran), key=lambda pair: pair[1].casefold())
    return [(ALL, "All"), (FLAGGED, "Flagged"), *signals]


def pass_choices(passes: list[Pass], asked: Asked) -> list[tuple[str, str]]:
    """Whose results are shown: of each conversation the latest pass, all passes, or one of them."""
    ended = [
        (each.id, f"{when(each.created_at)} UTC, {each.id[:8]}") for each in passes if each.completed_at is not None
    ]
    if asked.passes not in (LATEST, ALL_PASSES, *(name for name, _ in ended)):
        ended.append((asked.passes, asked.passes[:8]))
    return [(LATEST, "Latest pass"), (ALL_PASSES, "All passes"), *ended]

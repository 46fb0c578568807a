"""Alerts: what fired in a pass, for whoever is to be told, without a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evalr_tracepass.records import Account, Pass
from evalr_tracepass.stores.store import ResultStore

MOST_TOGETHER = 200
"""What fired that one alert tells of at most."""


class FiredTurn(NamedTuple):
    """One signal that fired on one turn.

    Attributes:
        convo_id: the conversation.
        event_id: the turn, "" for the whole conversation.
        turn_index: its place.
        user: the end user, "" where unknown.
        signal_id: which signal.
        label: the label with the highest score of those that were selected.
        score: its score.
        source_start_time: when the turn began, as ISO 8601; None where the log does not say.
    """

    convo_id: str
    event_id: str
    turn_index: int | None
    user: str
    signal_id: str
    label: str
    score: float
    source_start_time: str | None


class Alert(NamedTuple):
    """What is told at once.

    Attributes:
        id: the same whenever the same is told again, so that a receiver can know it.
        pass_id: of the pass.
        account: whose.
        fired: what fired, by conversation and time.
    """

    id: str
    pass_id: str
    account: Account
    fired: tuple[FiredTurn, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "type": "trace_pass.fired",
            "id": self.id,
            "pass_id": self.pass_id,
            "account": self.account._asdict(),
            "fired": [each._asdict() for each in self.fired],
        }


def alerts_of(
    results: ResultStore, account: Account, found: Pass, told: int, signal_ids: Sequence[str] | None
) -> tuple[list[Alert], int]:
    """The alerts of a pass for attempts after `told`, and the last attempt that there is."""
    last = told
    fired: dict[int, list[FiredTurn]] = {}
    for each in results.results(account, passes=found.id, failed=False):
        last = max(last, each.attempt)
        # What was taken over from an earlier pass, which has no batch here, was told of then.
        if (
            not each.fired
            or not each.batch_id
            or each.attempt <= told
            or (signal_ids is not None and each.signal_id not in signal_ids)
        ):
            continue
        label = each.top_label if each.top_label in each.selected_labels else each.selected_labels[0]
        at = each.source_start_time
        fired.setdefault(each.attempt, []).append(
            FiredTurn(
                each.convo_id,
                each.event_id,
                each.turn_index,
                each.user,
                each.signal_id,
                label,
                each.top_score,
                None if at is None else at.isoformat(),
            )
        )
    alerts = [
        Alert(f"{found.id}:{attempt}:{number}", found.id, account, tuple(part))
        for attempt, of in sorted(fired.items())
        for number, part in enumerate(_together(of))
    ]
    return alerts, last


def _together(fired: list[FiredTurn]) -> list[list[FiredTurn]]:
    """What one alert after the other tells of."""
    return [fired[start : start + MOST_TOGETHER] for start in range(0, len(fired), MOST_TOGETHER)]


def slack_body(alert: Alert) -> Mapping[str, Any]:
    """An alert as Slack's incoming webhooks take it: one line a conversation, ten at most."""
    by_convo: dict[str, list[FiredTurn]] = {}
    for each in alert.fired:
        by_convo.setdefault(each.convo_id, []).append(each)
    lines = [
        f"{_escaped(convo)}: " + ", ".join(f"{_escaped(each.label)} {each.score:.0%}" for each in of[:3])
        for convo, of in list(by_convo.items())[:10]
    ]
    more = len(by_convo) - len(lines)
    head = f"{len(by_convo)} conversation{'s' if len(by_convo) != 1 else ''} flagged (pass {_escaped(alert.pass_id)})"
    return {"text": "\n".join([head, *lines, *([f"and {more} more"] if more else [])])}


def _escaped(text: str) -> str:
    from evalr.quoting import safe_text

    return safe_text(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("*", "\u2217")

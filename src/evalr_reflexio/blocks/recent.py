"""The newest sessions that were judged, and success over time."""

from __future__ import annotations

from collections.abc import Iterator

from evalr.logs.blocks import Block, Notice, Numbers, Table
from evalr.logs.further import figure
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.answers.recent import RecentOutcome
from evalr_reflexio.answers.words import titled
from evalr_reflexio.blocks.words import LONGEST_NAME, account_words, arm_words, chart_width, moment, shortened

_COLUMNS = (
    "session", "user", "began", "request source", "outcome", "failure type", "reason", "corrections", "turns",
    "escalated", "tags",
)  # fmt: skip
_UNKNOWN = "not known"


def trend_blocks(impact: Impact) -> Iterator[Block]:
    """All judged sessions, whatever their arm."""
    trend = impact.trend
    if sum(1 for each in trend.values() if each.n) > 1:
        yield figure(
            trend,
            width=chart_width(len(trend)),
            title=f"success by {trend.by}, all sessions",
            footnote=f"Judged sessions by the {trend.by} (UTC) that they began on; the n of each point is above it. "
            f"{account_words(impact.success).partition('. ')[2]}",
        )
    elif impact.success.n:
        yield Notice(text=f"all verdicts are of one {trend.by}, so there is no trend to draw")
    else:
        yield Notice(text="no session of the period has a verdict: evalr judge has them judged")
    yield Numbers(
        title="all sessions",
        rows=tuple((titled(name, impact), each) for name, each in impact.everyone.measures.items()),
        footnote=f"By the judge {impact.evaluator}: of each session its last verdict.",
    )


def recent_blocks(impact: Impact) -> Iterator[Block]:
    """A row for each of the newest verdicts, to be chosen by request source."""
    if not impact.recent:
        yield Notice(text="no session of the period has a verdict")
        return
    arms = impact.arms is not None
    yield Table(
        title="the newest sessions that were judged",
        columns=(*_COLUMNS, *(["arm"] if arms else [])),
        rows=tuple(_row(each, arms=arms) for each in impact.recent),
        numbers=("corrections", "turns"),
        filtered_by="request source",
        total=impact.recent_of,
        footnote=f"Newest first, one row for each session of each user, by its last verdict of {impact.evaluator}. "
        "Corrections, turns and escalation are as judged. Tags are pending where a session was not tagged yet.",
    )


def _row(each: RecentOutcome, *, arms: bool) -> tuple[str, ...]:
    return (
        shortened(each.session, LONGEST_NAME),
        _UNKNOWN if each.user is None else shortened(each.user, LONGEST_NAME),
        moment(each.at),
        "request gone" if each.request_source is None else shortened(each.request_source, LONGEST_NAME),
        "success" if each.success else "failure",
        shortened(each.failure_type or "", LONGEST_NAME),
        shortened(each.failure_reason or "", 300),
        _number(each.corrections),
        _number(each.turns),
        "" if each.escalated is None else "yes" if each.escalated else "no",
        "pending" if each.tags is None else shortened(", ".join(each.tags), 200) or "none matched",
        *([arm_words(each.arm)] if arms else []),
    )


def _number(count: int | None) -> str:
    return "—" if count is None else f"{count:,}"

"""The numbers of the evaluation page, of sums that are taken row by row: here a row of results is a "session"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from evalr_reflexio.compat.windows import DAY, WEEK

Bucket = Literal["day", "week"]
STEPS: Final[Mapping[Bucket, int]] = {"day": DAY, "week": WEEK}
LABELS = ("0", "1", "2", "3", "4", "5+")
SUMS = (
    "count(*), sum(success), sum(corrections), sum(turns), count(turns), sum(escalated), sum(system_error), "
    + ", ".join(f"sum(corrections = {number})" for number in range(len(LABELS) - 1))
    + f", sum(corrections >= {len(LABELS) - 1})"
)
"""What a tally is of, in SQL."""


class Result(NamedTuple):
    """What one row of results is counted by."""

    result_id: int
    user: str
    session: str
    at: int
    success: bool
    corrections: int
    turns: int | None
    escalated: bool
    system_error: bool


@dataclass(frozen=True, slots=True)
class Tally:
    """Sums over rows of results."""

    rows: int = 0
    successes: int = 0
    corrections: int = 0
    turns: int = 0
    with_turns: int = 0
    escalated: int = 0
    system_errors: int = 0
    bins: Sequence[int] = (0,) * len(LABELS)

    @classmethod
    def of(cls, sums: Sequence[int | None]) -> Tally:
        """Of what `SUMS` selects, which is None of nothing."""
        rows, successes, corrections, turns, with_turns, escalated, system_errors, *bins = (each or 0 for each in sums)
        return cls(rows, successes, corrections, turns, with_turns, escalated, system_errors, bins)

    @property
    def success_pp(self) -> float:
        """In percent; 0 of nothing."""
        return mean(self.successes, self.rows) * 100

    @property
    def behavior_pp(self) -> float | None:
        """Without system errors, in percent; None where nothing is left."""
        eligible = self.rows - self.system_errors
        return self.successes / eligible * 100 if eligible else None


def mean(total: float, count: int) -> float:
    """A mean; 0 of nothing, which is Reflexio's way."""
    return total / count if count else 0.0


def points(buckets: Iterable[tuple[int, Tally]]) -> list[dict[str, Any]]:
    """As the hero chart has them. Weeks are counted from 1970, and so begin on Thursdays."""
    return [
        {
            "ts": begin,
            "regular_rate": mean(tally.successes, tally.rows),
            "shadow_rate": None,
            "regular_n": tally.rows,
            "shadow_n": 0,
            "avg_corrections": mean(tally.corrections, tally.rows),
            "escalation_rate": mean(tally.escalated, tally.rows),
        }
        for begin, tally in buckets
    ]


def tiles(current: Tally, previous: Tally) -> dict[str, Any]:
    """The context tiles: the last seven days against the seven before, of which nothing counts as 0."""
    return {
        "success": _with_delta(lambda of: of.success_pp, current, previous, "delta_pp"),
        "behavior_success": _behavior(current, previous),
        "corrections": _with_delta(lambda of: mean(of.corrections, of.rows), current, previous, "delta"),
        "turns": _with_delta(lambda of: mean(of.turns, of.with_turns), current, previous, "delta"),
        "escalation": _with_delta(lambda of: mean(of.escalated, of.rows) * 100, current, previous, "delta_pp"),
    }


def _with_delta(read: Callable[[Tally], float], current: Tally, previous: Tally, name: str) -> dict[str, Any]:
    now = read(current)
    return {"current": now, name: now - read(previous)}


def _behavior(current: Tally, previous: Tally) -> dict[str, Any]:
    now, before = current.behavior_pp, previous.behavior_pp
    return {
        "current": now,
        "delta_pp": None if now is None or before is None else now - before,
        "eligible_sessions": current.rows - current.system_errors,
        "excluded_system_errors": current.system_errors,
    }


def distribution(current: Tally, previous: Tally) -> dict[str, Any]:
    """The histogram of corrections, of the same two weeks."""
    return {"current_bins": list(current.bins), "baseline_bins": list(previous.bins), "labels": list(LABELS)}


def without_none(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as the routes give it that leave out what is null."""
    return {key: _inner(value) for key, value in answer.items() if value is not None}


def _inner(value: Any) -> Any:
    if isinstance(value, dict):
        return without_none(value)
    return [_inner(each) for each in value] if isinstance(value, list) else value

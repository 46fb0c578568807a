"""Association: did conversations in which a signal fired end otherwise than those in which it did not?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any

from pydantic import BaseModel

from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import Lift
from evalr.estimates.plot import Plotted
from evalr.estimates.shown import Printed
from evalr.estimates.words import number_words
from evalr.inputs import About
from evalr.quoting import safe_text
from evalr.summaries import Rate
from evalr.verdicts import Failure, Verdict, tag
from evalr.verdicts import Result as Outcome
from evalr_tracepass.records import Result

FLAGGED, CLEAN = "fired", "did not fire"


class Flagged(BaseModel):
    """Whether a signal fired in a conversation at all."""

    fired: bool


@dataclass(frozen=True)
class Association(Printed, Plotted):
    """What a signal goes together with. That is no cause: whatever else makes both likely is in it.

    Attributes:
        signal: its id.
        lift: the outcome where it fired, compared with where it did not; always observational.
        table: the four counts: [[fired and outcome, fired and not], [neither fired and outcome, neither nor]].
        phi: of these, from -1 to 1; None where a row or a column is empty.
        unmatched: outcomes of conversations that the signal did not read, or of which a failed row left it open.
    """

    signal: str
    lift: Lift
    table: tuple[tuple[int, int], tuple[int, int]]
    phi: float | None
    unmatched: int

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        arms = [(arm, self.lift.arms[arm]) for arm in (self.lift.treatment_arm, self.lift.control_arm)]
        return [*arms, (f"{self.lift.treatment_arm} less {self.lift.control_arm}", self.lift.difference)]

    def __str__(self) -> str:
        phi = "" if self.phi is None else f" · phi {number_words(self.phi)}"
        return f"association of {safe_text(self.signal)}, no cause: {self.lift}{phi}"

    def to_dict(self) -> dict[str, Any]:
        """In plain types."""
        return {
            "signal": self.signal,
            "lift": self.lift.to_dict(),
            "table": [list(row) for row in self.table],
            "phi": self.phi,
            "unmatched": self.unmatched,
        }


def flagged_conversations(records: Iterable[Result]) -> list[Outcome[Flagged]]:
    """For each signal and conversation, whether the signal fired in it.

    Where it did not, and a row of the conversation failed, it is a `Failure`: it could have.
    """
    found: dict[tuple[str, str, str], list[Result]] = {}
    for each in records:
        found.setdefault((each.signal_id, each.user, each.convo_id), []).append(each)
    results: list[Outcome[Flagged]] = []
    for (signal, user, convo), rows in found.items():
        release = next((each.release for each in rows if each.release), "")
        about = About(
            "conversation",
            id=f"{signal} {convo}",
            user=user or None,
            session=convo,
            attributes={"signal": signal, **({"release": release} if release else {})},
        )
        fired = any(each.fired for each in rows)
        if not fired and any(each.status == "failed" for each in rows):
            results.append(Failure("a row of it failed", signal, "1", about))
        else:
            results.append(Verdict(Flagged(fired=fired), signal, "1", about))
    return results


def association(
    outcome: Rate[Any],
    outcomes: Iterable[Outcome[Any]],
    records: Iterable[Result],
    *,
    signal: str | None = None,
    level: float = 0.95,
) -> Association:
    """A rate, such as completion or drop-off, where a signal fired and where it did not.

    Args:
        outcome: the rate, such as `completion_rate`.
        outcomes: its results, matched by user and conversation (an input's `session`, else its own id).
        records: of passes, one of a signal for each text; see `latest_records`.
        signal: which, where the records are of several.
        level: of the intervals, clustered by user where users are known.

    Raises:
        InputError: the records are of several signals and none is named, or no outcome is of a conversation that was
            read.
    """
    found = [each for each in records if signal is None or each.signal_id == signal]
    names = sorted({each.signal_id for each in found})
    if len(names) != 1:
        known = safe_text(", ".join(names)) or "none"
        raise InputError(f"the records are of these signals: {known}; say which with signal=")
    tagged = tag(outcomes, flagged_conversations(found), FLAGGED, lambda value: FLAGGED if value.fired else CLEAN)
    named = [each for each in tagged if each.about is not None and FLAGGED in (each.about.attributes or {})]
    if not named:
        raise InputError(
            f"none of {len(tagged):,} outcomes is of a conversation that {safe_text(names[0])} read: they are matched "
            "by user and conversation"
        )
    lift = outcome.lift(tagged, by=FLAGGED, treatment=FLAGGED, control=CLEAN, level=level)
    rows = (_counts(lift.treatment), _counts(lift.control))
    return Association(names[0], lift, rows, phi(*rows), len(tagged) - len(named))


def _counts(arm: Estimate) -> tuple[int, int]:
    hits, total = int(arm.counts["hits"]), int(arm.counts["total"])
    return hits, total - hits


def phi(fired: tuple[int, int], clean: tuple[int, int]) -> float | None:
    """The correlation of two yes-or-no facts, `(ad - bc) / sqrt((a+b)(c+d)(a+c)(b+d))` (Yule 1912)."""
    (a, b), (c, d) = fired, clean
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    return (a * d - b * c) / sqrt(margins) if margins else None

"""What a contest says beside its estimate: whether it is won at all, and what the position shown does to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from evalr.estimates import display
from evalr.estimates.estimate import Estimate
from evalr.estimates.plot import Plotted
from evalr.estimates.words import ended_words, p_words


@dataclass(frozen=True, slots=True, kw_only=True)
class WinTest:
    """Does the treatment win more often than it loses?

    Attributes:
        p: two-sided, of as many wins as losses: `mid_p` where there is one, else from the interval of the net win over
            clusters. None where nothing was counted, or of a single cluster.
        exact: of the exact sign test (McNemar's exact test of pairs). Like `mid_p` it is there where each comparison is
            a cluster of its own: several of one user are no coin's tosses.
        mid_p: the same with half the weight of what was seen (Fagerland, Lydersen & Laake 2013).
        method: name and version of how `p` was computed.
        wins: what was tested, as `losses`.
        clusters: with wins, ties or losses.
    """

    p: float | None
    exact: float | None
    mid_p: float | None
    method: str
    wins: float
    losses: float
    clusters: int

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        """One line: `134 wins against 14 losses · p < 0.001`."""
        against = f"{ended_words(self.wins, 'win')} against {ended_words(self.losses, 'loss')}"
        return with_p(against, self.p)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        # What a notebook shows; the repr has every digit.
        printer.text(str(self))

    def to_dict(self) -> dict[str, Any]:
        """Every field."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionEffect(Plotted):
    """What the position shown does to a contest.

    Attributes:
        first_slot: share of the decided comparisons that the answer shown first won, whichever it was; half of them
            where the position does nothing.
        p: two-sided, of no preference for a slot: an exact sign test, or over clusters as in `WinTest`.
        adjusted: the half-tie win rate as if the treatment had been shown first in half of the comparisons.
        bias: what being shown first adds to the half-tie win rate, and being shown second takes from it.
    """

    first_slot: Estimate
    p: float | None
    adjusted: Estimate
    bias: Estimate

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        adjusted = self.adjusted.reading or self.adjusted.name
        return [(self.first_slot.name, self.first_slot), (self.bias.name, self.bias), (adjusted, self.adjusted)]

    def __str__(self) -> str:
        """Three lines, the first with the p-value."""
        return "\n".join(map(str, (with_p(str(self.first_slot), self.p), self.bias, self.adjusted)))

    def _repr_html_(self) -> str:
        lines = [display.line(each.name, each) for each in (self.first_slot, self.bias)]
        lines.append(display.line(self.adjusted.reading or self.adjusted.name, self.adjusted))
        p = [] if self.p is None else [p_words(self.p)]
        return display.shown(display.table("", self.first_slot.level, [lines[0], *p, *lines[1:]]))

    def to_dict(self) -> dict[str, Any]:
        """Every field, in plain types that JSON takes."""
        estimates = {name: getattr(self, name).to_dict() for name in ("first_slot", "adjusted", "bias")}
        return {**estimates, "p": self.p}


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency(Plotted):
    """Do both orders of one pair get the same answer?

    Attributes:
        same: share of the pairs with the same answer in both orders.
        first_slot: pairs of which the answer shown first won in both orders, whichever it was.
        second_slot: pairs of which the answer shown second did.
        p: two-sided, of no preference for a slot, from those two: McNemar's exact test (Shi et al. 2024), or over
            clusters as in `WinTest`. None where there are no pairs, or all are of one cluster.
    """

    same: Estimate
    first_slot: int
    second_slot: int
    p: float | None

    def drawn(self) -> list[tuple[str, Estimate]]:
        """See `Plotted.drawn`."""
        return [(self.same.name, self.same)]

    def __str__(self) -> str:
        """One line: the estimate, how often the position decided, and the p-value."""
        return with_p(f"{self.same} · {self._slots()}", self.p)

    def _slots(self) -> str:
        return f"first slot won {self.first_slot:,}, second slot {self.second_slot:,}"

    def _repr_html_(self) -> str:
        note = with_p(self._slots(), self.p)
        return display.shown(display.table("", self.same.level, [display.line(self.same.name, self.same), note]))

    def to_dict(self) -> dict[str, Any]:
        """Every field, in plain types that JSON takes."""
        return asdict(self) | {"same": self.same.to_dict()}


def with_p(words: str, p: float | None) -> str:
    """The words, and the p-value where there is one."""
    return words if p is None else f"{words} · {p_words(p)}"

"""What a run has done so far, each thing under its own name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from evalr.estimates import display
from evalr.estimates.words import duration_words
from evalr.runs.budget import dollars
from evalr.verdicts import Failure, HandOff, Skip, Verdict

_NAMES = {
    Verdict.status: "verdicts",
    Failure.status: "failed",
    Skip.status: "skipped",
    HandOff.status: "handed_off",
}


@dataclass(slots=True)
class RunSummary:
    """What a run has done so far. Verdicts, failures, skips and hand-offs are the results that it has, by status.

    Attributes:
        verdicts: results that are verdicts, pending ones included.
        pending: of the verdicts, those that a later run asks for again.
        failed: results that are failures.
        skipped: results that are skips.
        handed_off: results that are hand-offs.
        from_journal: of all results, those that the journal had already.
        calls: calls that were made. Those of an evaluator that may make several for one input are counted as that many.
        retried: of the calls, those that were another try of an item.
        timed_out: items whose time was up; they are among the failed.
        in_doubt: calls of earlier runs that were in flight when these died, and that this run has repeated.
        duplicates: inputs that were left out, since their subject had come before.
        not_done: items that were not done, by the reason.
        cost: US dollars of all calls whose cost is known, tries that failed included.
        unknown_costs: calls whose cost is not.
        over_ceiling: calls that cost more than the budget's ceiling.
        throttled: seconds in which calls were waiting for a server's limits.
        seconds: how long it has run.
        finished: whether it has come to its end.
    """

    verdicts: int = 0
    pending: int = 0
    failed: int = 0
    skipped: int = 0
    handed_off: int = 0
    from_journal: int = 0
    calls: int = 0
    retried: int = 0
    timed_out: int = 0
    in_doubt: int = 0
    duplicates: int = 0
    not_done: dict[str, int] = field(default_factory=dict)
    cost: float = 0.0
    unknown_costs: int = 0
    over_ceiling: int = 0
    throttled: float = 0.0
    seconds: float = 0.0
    finished: bool = False

    @property
    def results(self) -> int:
        """How many results there are, of all four kinds."""
        return self.verdicts + self.failed + self.skipped + self.handed_off

    def count(self, status: str, *, pending: bool, stored: bool) -> None:
        """Count one result by its status."""
        name = _NAMES[status]
        setattr(self, name, getattr(self, name) + 1)
        self.pending += pending
        self.from_journal += stored

    def count_cost(self, cost: float | None, calls: int = 1) -> None:
        """Count what calls have cost in all."""
        if cost is None:
            self.unknown_costs += calls
        else:
            self.cost += cost

    def leave_undone(self, reason: str) -> None:
        """Count an item that is not done."""
        self.not_done[reason] = self.not_done.get(reason, 0) + 1

    def copy(self) -> RunSummary:
        """As it is now."""
        return replace(self, not_done=dict(self.not_done))

    def cost_words(self) -> str:
        """`$1.20`, `≥ $1.20` where calls of unknown cost come on top, `cost unknown` where nothing is known."""
        return cost_words(self.cost, self.unknown_costs, self.calls)

    def _repr_html_(self) -> str:
        return display.printed(str(self))

    def __str__(self) -> str:
        parts = [f"{self.results:,} results: {self.verdicts:,} verdicts"]
        parts[0] += "" if not self.pending else f" ({self.pending:,} pending)"
        named = (("failed", self.failed), ("skipped", self.skipped), ("handed off", self.handed_off))
        parts[0] += "".join(f", {count:,} {name}" for name, count in named if count)
        parts += [f"{self.from_journal:,} from the journal"] if self.from_journal else []
        parts.append(f"{self.calls:,} calls" + (f", {self.retried:,} of them tries again" if self.retried else ""))
        counts = (
            ("timed out", self.timed_out),
            ("in doubt", self.in_doubt),
            ("duplicates left out", self.duplicates),
            ("over the ceiling", self.over_ceiling),
        )
        parts += [f"{count:,} {name}" for name, count in counts if count]
        parts += [f"{count:,} not done: {reason}" for reason, count in self.not_done.items()]
        parts.append(self.cost_words())
        parts += [f"throttled for {duration_words(self.throttled)}"] if self.throttled >= 1 else []
        return " · ".join(parts)


def cost_words(cost: float, unknown: int, calls: int) -> str:
    """A sum of costs of which some may be unknown: an unknown cost is not 0."""
    amount = dollars(cost)
    if not unknown:
        return amount
    return f"≥ {amount}" if cost or unknown < calls else "cost unknown"

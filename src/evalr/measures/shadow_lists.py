"""Comparisons to look at one by one: the most recent, and those that the treatment lost by far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from evalr.errors import DuplicateError, InputError
from evalr.estimates import display
from evalr.input_fields import EARLIEST
from evalr.inputs import About, Exchange, Subject
from evalr.measures.shadow import ShadowWin, ending_for
from evalr.quoting import safe_text
from evalr.verdicts import NO_VERDICT_WORDS, Duplicates, Result, Verdict, describe, one_per_subject

_LONGEST = 2_000
"""Characters of a text that are shown; `to_dicts` has them all."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One exchange beside what was said of it."""

    exchange: Exchange
    verdict: Verdict[ShadowWin]

    @property
    def outcome(self) -> str:
        """How it ended for the treatment: "win", "tie" or "loss"."""
        return ending_for(self.verdict.value.winner, self.verdict.value.treatment)

    def to_dict(self) -> dict[str, Any]:
        """Everything, in plain types that JSON takes."""
        exchange, verdict, about = self.exchange, self.verdict, _about(self.verdict)
        return {
            "id": about.id,
            "user": about.user,
            "session": about.session,
            "at": None if about.at is None else about.at.isoformat(),
            "outcome": self.outcome,
            "message": exchange.message,
            "served": exchange.served,
            "shadow": exchange.shadow,
            **verdict.value.model_dump(mode="json"),
            "evaluator": verdict.evaluator,
            "version": verdict.version,
        }


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Comparisons in the order in which they are to be read.

    Attributes:
        rows: the comparisons.
        found: how many there are, of which `rows` are the first.
        left_out: what is not among them, by reason.
    """

    rows: tuple[Comparison, ...]
    found: int
    left_out: Mapping[str, int]

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> Comparison:
        return self.rows[place]

    def __str__(self) -> str:
        """A few lines for each, cut, and with escapes for whatever could steer a terminal."""
        return "\n\n".join([*map(_text, self.rows), self._account()])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        heads = ("for the treatment", "message", "served", "shadow", "why")
        table = display.texts(heads, map(_cells, self.rows), longest=_LONGEST)
        return display.shown(table, display.paragraph(self._account()))

    def to_dicts(self) -> list[dict[str, Any]]:
        """A plain dict for each, with the whole texts."""
        return [row.to_dict() for row in self.rows]

    def _account(self) -> str:
        left_out = ", ".join(f"{n:,} {reason}" for reason, n in self.left_out.items())
        return f"{len(self.rows):,} of {self.found:,} shown" + (f" · left out: {left_out}" if left_out else "")


def recent_comparisons(
    results: Iterable[Result[ShadowWin]],
    exchanges: Iterable[Exchange],
    *,
    n: int = 20,
    duplicates: Duplicates = "error",
) -> Comparisons:
    """The comparisons of the newest exchanges, newest first; those without a time come last.

    Args:
        results: what was said.
        exchanges: what it was said of, since results hold no texts. They are matched by user, session and id.
        n: how many at most.
        duplicates: what to do with a second result of one subject: "error", "first" or "latest".

    Raises:
        DuplicateError: two results, or two exchanges, are of one subject.
        InputError: `n` is not positive.
    """
    return _listed(results, exchanges, n, duplicates, lambda value: None)


def top_disagreements(
    results: Iterable[Result[ShadowWin]],
    exchanges: Iterable[Exchange],
    *,
    n: int = 20,
    duplicates: Duplicates = "error",
) -> Comparisons:
    """The comparisons that the treatment lost by far (`significant`), newest first: where it did harm.

    Other losses are counted as left out. The arguments are those of `recent_comparisons`.
    """
    return _listed(results, exchanges, n, duplicates, _why_no_harm)


def _why_no_harm(value: ShadowWin) -> str | None:
    if value.winner in ("tie", value.treatment):
        return "not lost"
    return None if value.significant else "not lost by far"


def _listed(
    results: Iterable[Result[ShadowWin]],
    exchanges: Iterable[Exchange],
    n: int,
    duplicates: Duplicates,
    leaves_out: Callable[[ShadowWin], str | None],
) -> Comparisons:
    if n < 1:
        raise InputError(f"n={n!r} must be positive")
    texts = _by_subject(exchanges)
    found: list[Comparison] = []
    left_out: Counter[str] = Counter()
    for result in one_per_subject(results, duplicates=duplicates):
        if not isinstance(result, Verdict):
            left_out[NO_VERDICT_WORDS[result.status]] += 1
            continue
        reason = leaves_out(result.value)
        exchange = texts.get(_about(result).subject)
        if reason is None and exchange is not None:
            found.append(Comparison(exchange, result))
        else:
            left_out[reason or "without its exchange"] += 1
    found.sort(key=_time, reverse=True)
    return Comparisons(tuple(found[:n]), len(found), dict(left_out.most_common()))


def _by_subject(exchanges: Iterable[Exchange]) -> dict[Subject | None, Exchange]:
    found: dict[Subject | None, Exchange] = {}
    for exchange in exchanges:
        about = exchange.about()
        if about.subject is not None and found.setdefault(about.subject, exchange) != exchange:
            named = describe(Verdict(ShadowWin(winner="tie"), "shadow", about=about))
            raise DuplicateError(f"two exchanges that differ are both {named}: give each a subject of its own")
    return found


def _about(verdict: Verdict[ShadowWin]) -> About:
    return verdict.about or About("exchange")


def _time(row: Comparison) -> datetime:
    return _about(row.verdict).at or EARLIEST


# ---------------------------------------------------------------------------------------------------------------------
# What people see; every text in it is another's
# ---------------------------------------------------------------------------------------------------------------------


def _head(row: Comparison) -> str:
    value, about = row.verdict.value, _about(row.verdict)
    far = " by far" if value.significant else ""
    when = "" if about.at is None else f" · {about.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{row.outcome}{far}{when} · {describe(row.verdict)}"


def _text(row: Comparison) -> str:
    exchange, value = row.exchange, row.verdict.value
    parts = {"message": exchange.message, "served": exchange.served, "shadow": exchange.shadow, "why": value.reason}
    lines = [f"  {name:8}{safe_text(text, longest=_LONGEST)}" for name, text in parts.items() if text is not None]
    return "\n".join([_head(row), *lines])


def _cells(row: Comparison) -> tuple[str, ...]:
    exchange = row.exchange
    return (_head(row), exchange.message, exchange.served, exchange.shadow, row.verdict.value.reason or "")

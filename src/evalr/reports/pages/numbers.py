"""Numbers of a page: each with its interval, what it counted, what is missing, and where its method is stated."""

from __future__ import annotations

from typing import Any, NamedTuple

from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import Lift
from evalr.estimates.stating import denominator_words, method_sentence
from evalr.estimates.words import count_words, interval_words, p_words, value_words


class Footnotes:
    """What is stated once below, and referred to by its number."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def number(self, text: str) -> int:
        """The number of a text, which is added where it is new."""
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1


class Number(NamedTuple):
    """One number as a page shows it."""

    title: str
    value: str
    interval: str
    counted: str
    asides: list[str]
    tip: str
    """The denominator and the method, in full."""
    footnote: int | None
    within: bool = False
    known: bool = True


def number(title: str, estimate: Estimate, footnotes: Footnotes, *, within: bool = False) -> Number:
    """An estimate's."""
    notes = estimate.notes()
    counted = notes.pop(0) if estimate.n or not estimate.reason else ""
    method = method_sentence(estimate)
    return Number(
        title,
        value_words(estimate.value, estimate.unit),
        interval_words(estimate.low, estimate.high, estimate.unit),
        counted,
        notes,
        f"{denominator_words(estimate)}. {method}{_versions_words(estimate)}",
        footnotes.number(method) if estimate.method != "none" else None,
        within,
        estimate.value is not None,
    )


def lift_number(title: str, lift: Lift, footnotes: Footnotes, *, within: bool = False) -> Number:
    """A difference's: what stands beside it is to be read before it is believed."""
    named = ((lift.treatment_arm, lift.treatment), (lift.control_arm, lift.control))
    arms = "; ".join(f"{arm}: {denominator_words(estimate)}" for arm, estimate in named)
    method = method_sentence(lift.difference)
    if lift.p is not None:
        method += f" p by {lift.test}."
    counts = f"n {lift.treatment.n:,} v {lift.control.n:,}"
    return number(title, lift.difference, footnotes, within=within)._replace(
        counted=counts, asides=lift.beside(), tip=f"{arms}. {method}", footnote=footnotes.number(method)
    )


def _versions_words(estimate: Estimate) -> str:
    named = [f"{name} ({count_words(n, 'verdict')})" for name, n in list(estimate.versions.items())[:3]]
    return f" By {', '.join(named)}." if named else ""


def warned(lift: Lift) -> list[str]:
    """What is to be known before a difference is believed, and p."""
    return lift.warnings() + ([] if lift.p is None else [p_words(lift.p)])


def plain_rows(estimates: list[tuple[str, Estimate]], footnotes: Footnotes) -> list[Any]:
    """Estimates as rows of a table."""
    return [number(title, estimate, footnotes) for title, estimate in estimates]

"""What a number is of and how its interval was computed, as sentences: tooltips, footnotes and tables use these."""

from __future__ import annotations

from evalr.estimates.estimate import Estimate
from evalr.estimates.words import interval_words, method_words, number_words, value_words


def denominator_words(estimate: Estimate) -> str:
    """What the number is of: `134 of 200`, `134 wins, 52 ties, 14 losses`, `970 waits of 136 sessions`."""
    counts = estimate.counts
    if "hits" in counts and "total" in counts:
        return f"{number_words(counts['hits'])} of {number_words(counts['total'])}; {estimate.counted_words()}"
    return estimate.counted_words()


def method_sentence(estimate: Estimate) -> str:
    """How the interval was computed, over what."""
    if estimate.low is None and estimate.high is None:
        return f"No interval{'' if estimate.reason is None else f': {estimate.reason}'}."
    over = " or ".join(kind.partition("/")[0] for kind in estimate.clustered_by)
    clustered = f", clustered by {over}" if over else ""
    return f"{100 * estimate.level:g}% interval: {method_words(estimate.method)} ({estimate.method}){clustered}."


def number_cell(estimate: Estimate) -> str:
    """The number and its interval as one cell of a table: `94.2% [93.1, 95.1]`."""
    interval = interval_words(estimate.low, estimate.high, estimate.unit)
    return f"{value_words(estimate.value, estimate.unit)} {interval}".rstrip()

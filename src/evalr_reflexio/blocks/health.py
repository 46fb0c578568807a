"""How well the evaluation itself is doing, what customers reported, and what the log does not say."""

from __future__ import annotations

from collections.abc import Iterator

from evalr.estimates.words import value_words
from evalr.logs.blocks import Block, Numbers, Table
from evalr_reflexio.answers.arm_answer import Coverage
from evalr_reflexio.answers.customers import CustomerAnswer
from evalr_reflexio.answers.health import Health
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.answers.words import AGREEMENT, health_counts, health_kinds, sampling_words
from evalr_reflexio.blocks.words import counts_words


def customer_blocks(customers: CustomerAnswer) -> Iterator[Block]:
    """How far the judge says what customers reported."""
    agreement = customers.agreement
    words = f"{customers.compared:,} of {customers.reported:,} reported sessions also have a verdict."
    if customers.left_out:
        words += f" Left out: {counts_words(customers.left_out)}."
    rows = () if agreement is None else tuple((title, agreement["success"][name]) for name, title in AGREEMENT.items())
    yield Numbers(rows=rows, footnote=words)


def health_blocks(impact: Impact) -> Iterator[Block]:
    """What was judged of what could be, and what the log has none of."""
    health = impact.health
    pairs = (
        ("sessions evaluated", Coverage(health.evaluated, health.published), "of published sessions"),
        ("shadow answers judged", Coverage(health.shadow_judged, health.answers_with_shadow), "of answers with one"),
        ("learnings judged", Coverage(health.learnings_judged, health.learnings_attached), "of those given to answers"),
    )
    yield Table(
        title="coverage",
        columns=("what", "share", "n", "of", "denominator"),
        numbers=("share", "n", "of"),
        rows=tuple(
            (title, value_words(each.share, "share"), f"{each.part:,}", f"{each.whole:,}", of)
            for title, each, of in pairs
            if each.whole
        ),
        footnote=_sampling(health),
    )
    counted = [(title, f"{count:,}", "") for title, count in health_counts(health).items()]
    counted += [
        (title, f"{sum(counts.values()):,}", counts_words(counts)) for title, counts in health_kinds(health).items()
    ]
    if counted:
        yield Table(
            title="what to know of it", columns=("what", "count", "which"), rows=tuple(counted), numbers=("count",)
        )
    missing = list(_missing(impact))
    if missing:
        yield Table(title="not shown", columns=("what", "why"), rows=tuple(missing))


def _sampling(health: Health) -> str | None:
    if health.sampling is None:
        return None
    return f"The configuration has judged: {sampling_words(health.sampling)}."


def _missing(impact: Impact) -> Iterator[tuple[str, str]]:
    if impact.arms is None:
        yield (
            "impact by arm",
            (
                "no session has an arm: stamp reflexio_retrieval_enabled on requests, start a retrieval experiment, or "
                "name request sources with --arms"
            ),
        )
    if impact.shadow is None:
        yield "per-turn comparison", "no answer in the log has a shadow answer beside it"
    if impact.learnings is None:
        yield "learnings", "no answer in the log says which learnings it was given"
    if impact.customers is None:
        yield "customers' reports", "the log holds none"

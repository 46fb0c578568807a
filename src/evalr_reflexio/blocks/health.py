"""How well the evaluation itself is doing, what customers reported, and what the log does not say."""

from __future__ import annotations

from collections.abc import Iterator

from evalr.estimates.words import value_words
from evalr.logs.blocks import Block, Numbers, Table
from evalr_reflexio.answers.arm_answer import Coverage
from evalr_reflexio.answers.customers import CustomerAnswer
from evalr_reflexio.answers.health import Health
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.blocks.words import counts_words
from evalr_reflexio.noticed import PREFIXES

_AGREEMENT = {
    "accuracy": "judge agrees",
    "kappa": "kappa",
    "tpr": "judged successes, of those reported",
    "tnr": "judged failures, of those reported",
}


def customer_blocks(customers: CustomerAnswer) -> Iterator[Block]:
    """How far the judge says what customers reported."""
    agreement = customers.agreement
    words = f"{customers.compared:,} of {customers.reported:,} reported sessions also have a verdict."
    if customers.left_out:
        words += f" Left out: {counts_words(customers.left_out)}."
    rows = () if agreement is None else tuple((title, agreement["success"][name]) for name, title in _AGREEMENT.items())
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
    counted = [(title, f"{count:,}", "") for title, count in _counted(health).items() if count]
    counted += [
        (title, f"{sum(counts.values()):,}", counts_words(counts))
        for title, counts in _by_name(health).items()
        if counts
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
    rates = (f"{name.replace('_', ' ')} {value_words(rate, 'share')}" for name, rate in health.sampling.items())
    return f"The configuration has judged: {', '.join(rates)}."


def _counted(health: Health) -> dict[str, int]:
    return {
        "verdicts that requests came after": health.prefix,
        "verdicts on sessions that are gone": health.gone,
        "earlier verdicts, judged again": health.judged_again,
        "sessions without an interaction": health.without_turns,
        "sessions outside the period": health.outside_the_period,
        "failed parts of gradings": health.failed_chunks,
    }


def _by_name(health: Health) -> dict[str, dict[str, int]]:
    return {
        "verdicts by other judges, not counted": dict(health.other_judges),
        "sessions whose requests disagree": {what: n for what, n in health.disagreeing.items() if what != PREFIXES},
        "gradings of learnings": dict(health.gradings),
        "rows skipped": dict(health.skipped),
    }


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

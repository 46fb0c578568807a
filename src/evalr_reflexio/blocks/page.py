"""The blocks of each section that an impact adds to a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evalr.logs.blocks import Block
from evalr.logs.further import Further
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.blocks.arms import impact_row
from evalr_reflexio.blocks.beside import Beside
from evalr_reflexio.blocks.health import customer_blocks, health_blocks
from evalr_reflexio.blocks.learnings import learning_blocks
from evalr_reflexio.blocks.recent import recent_blocks, trend_blocks
from evalr_reflexio.blocks.shadow import shadow_blocks
from evalr_reflexio.blocks.splits import experiment_blocks, source_blocks


def further_pages(impact: Impact, beside: Beside) -> Iterator[Further]:
    """Sections that stand on a page alone."""
    if beside.sources is not None:
        yield Further(
            name="request_sources",
            title="request sources",
            lines=(),
            data=beside.sources.to_dict(),
            blocks=tuple(source_blocks(beside.sources, impact)),
        )
    if beside.experiments:
        yield Further(
            name="experiments",
            title="retrieval experiments" if impact.arms is None else "other retrieval experiments",
            lines=(),
            data={each.id: arms.to_dict() for each, arms in beside.experiments.items()},
            blocks=tuple(experiment_blocks(beside.experiments, beside.more_experiments, impact)),
        )


def blocks_of(impact: Impact, beside: Beside) -> Mapping[str, tuple[Block, ...]]:
    """By the name of the section; see `answers.showing.sections`."""
    found = {
        "trend": tuple(trend_blocks(impact)),
        "recent": tuple(recent_blocks(impact)),
        "health": tuple(health_blocks(impact)),
    }
    if impact.arms is not None:
        found["arms"] = tuple(impact_row(impact, impact.arms))
    if impact.shadow is not None:
        found["shadow"] = tuple(shadow_blocks(impact.shadow, beside))
    if impact.learnings is not None:
        found["learnings"] = tuple(learning_blocks(impact.learnings, beside))
    if impact.customers is not None:
        found["customers"] = tuple(customer_blocks(impact.customers))
    return found

"""The same sessions split in other ways: by request source, and into the arms of other experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evalr.estimates.words import count_words
from evalr.logs.blocks import Block, Notice, Table
from evalr_reflexio.answers.arm_answer import ArmAnswer, ArmsAnswer
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.answers.words import titled
from evalr_reflexio.blocks.comparing import arm_cell, comparisons
from evalr_reflexio.config import Experiment

OTHERS = "other sources, or requests gone"


def source_blocks(sources: ArmsAnswer, impact: Impact) -> Iterator[Block]:
    """A row for each request source: sources are no arms before somebody says what they were assigned by."""
    shown = [(OTHERS if arm is None else arm, each) for arm, each in sources.by_arm.items() if _counts(each)]
    names = list(next(iter(sources.by_arm.values())).measures)
    titles = tuple(titled(name, impact) for name in names)
    yield Table(
        title="by request source",
        columns=("request source", "published", "evaluated", *titles),
        numbers=("published", "evaluated"),
        rows=tuple(
            (
                name,
                f"{each.coverage.whole:,}",
                f"{each.coverage.part:,}",
                *(arm_cell(each.measures[measure]) for measure in names),
            )
            for name, each in shown
        ),
        footnote="Of the first request of each session. Sources differ in what is asked of them, so a difference "
        "between two of them says nothing of Reflexio before sessions were assigned to them by chance: "
        "--arms request-source:treatment=A;control=B --randomised compares them.",
    )


def _counts(answer: ArmAnswer) -> bool:
    return bool(answer.coverage.whole or answer.measures["success"].n)


def experiment_blocks(experiments: Mapping[Experiment, ArmsAnswer], more: int, impact: Impact) -> Iterator[Block]:
    """What each of the other experiments came to."""
    for experiment, arms in experiments.items():
        yield from comparisons(arms, impact, title=f"experiment {experiment.id}", footnote=_about(experiment, arms))
    if more:
        yield Notice(
            text=f"{count_words(more, 'earlier experiment')} not shown: --arms experiment:ID shows any of them"
        )


def _about(experiment: Experiment, arms: ArmsAnswer) -> str:
    words = []
    if experiment.holdout_percentage is not None:
        words.append(f"{experiment.holdout_percentage:g}% of users held out")
    if experiment.started_at is not None:
        ended = "still active" if experiment.ended_at is None else f"to {experiment.ended_at:%Y-%m-%d}"
        words.append(f"from {experiment.started_at:%Y-%m-%d} {ended}")
    attributed = arms.attributed
    words.append(
        f"{attributed.part:,} of {count_words(attributed.whole, 'judged session')} of its time carry its arm, "
        f"{attributed.whole - attributed.part:,} do not"
    )
    return ", ".join(words)

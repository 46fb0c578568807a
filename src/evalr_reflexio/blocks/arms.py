"""The impact row: whether sessions with Reflexio succeed more often, and how far that can be believed."""

from __future__ import annotations

from collections.abc import Iterator

from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import OBSERVATIONAL, Lift
from evalr.estimates.reflexio_rules import CAP
from evalr.estimates.stating import denominator_words, method_sentence
from evalr.estimates.trends import Trends
from evalr.estimates.words import count_words, interval_words, p_words, share_digits, value_words
from evalr.logs.blocks import Block, Notice, Table, Tile, Tiles
from evalr.logs.further import figure
from evalr_reflexio.answers.arm_answer import ArmAnswer, ArmPair, ArmsAnswer
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.answers.measured import SUCCESS
from evalr_reflexio.arm_checks import checked_words
from evalr_reflexio.arms import TagArms
from evalr_reflexio.blocks.comparing import comparisons
from evalr_reflexio.blocks.shadow import wins_tile
from evalr_reflexio.blocks.words import arm_words, chart_width, counts_words
from evalr_reflexio.compat.groups import lift_tile

BEYOND = ">±50pp"
NOT_ENOUGH = "low confidence: too few sessions to take the lift for a measurement"


def impact_row(impact: Impact, arms: ArmsAnswer) -> Iterator[Block]:
    """Tiles, the chart of both arms below them, and everything that the arms are compared in."""
    if not arms.randomised:
        yield Notice(text=_OBSERVATIONAL, tone="warning")
    for text in _warnings(arms):
        yield Notice(text=text, tone="warning")
    tiles = [_lift_tile(pair, arms, impact) for pair in arms.pairs]
    if impact.shadow is not None:
        tiles.append(wins_tile(impact.shadow))
    yield Tiles(tiles=tuple(tiles))
    yield arms_chart(impact, arms)
    yield from comparisons(arms, impact)
    yield _arms_table(arms)
    if arms.untagged:
        yield _untagged(arms)


_OBSERVATIONAL = (
    f"{OBSERVATIONAL}. Whatever else differs between them is in the difference, too: take it for an observation and "
    "not for the effect of Reflexio. Where they were assigned by chance, say --randomised."
)


def _warnings(arms: ArmsAnswer) -> Iterator[str]:
    words = {
        "sample_ratio_mismatch": "the arms are not as large as the split that was meant makes likely: something keeps "
        "sessions out of one of them, so do not believe the difference before that is found",
        "uneven_coverage": "the arms were not evaluated alike: in one of them more sessions have no verdict, and those "
        "may be other ones",
    }
    for pair in arms.pairs:
        for flag, text in words.items():
            if any(flag in lift.flags for lift in pair.lifts.values()):
                yield text if len(arms.pairs) == 1 else f"{pair.treatment} v {pair.control}: {text}"
    if arms.disagreeing:
        yield checked_words(arms.checked, arms.disagreeing, arms.checked_by, arms.disagreeing_sessions)
    yield from arms.notes


def _lift_tile(pair: ArmPair, arms: ArmsAnswer, impact: Impact) -> Tile:
    lift = pair.lifts[SUCCESS]
    shown = lift.always_valid if impact.always_valid else lift.difference
    title = "lift in success" if len(arms.pairs) == 1 else f"lift in success, {pair.treatment} v {pair.control}"
    lines = [f"{arm_words(arm)}: {value_words(each.value, each.unit)} · n={each.n:,}" for arm, each in _both(lift)]
    if shown.value is None:
        return Tile(
            title=title,
            value="no estimate",
            lines=(*lines, *([] if shown.reason is None else [shown.reason.removeprefix("no estimate: ")])),
            footnote="treatment rate less control rate, in points: there is none where an arm has no session",
        )
    half = None if shown.low is None or shown.high is None else (shown.high - shown.low) / 2
    beyond = half is None or half > CAP
    few = " v ".join(each.cluster_words() or count_words(each.n, each.noun) for _, each in _both(lift))
    low = f"low confidence: {few}" if "low_confidence" in shown.flags else None
    width = BEYOND if beyond else f"±{share_digits(half or 0.0)}pp"
    p = lift.always_valid_p if impact.always_valid else lift.p
    if p is not None:
        lines.append(p_words(p))
    if not arms.randomised:
        lines.append("observational, not causal")
    return Tile(
        title=title,
        value=value_words(shown.value, shown.unit),
        interval=f"{width} {interval_words(shown.low, shown.high, shown.unit)}".rstrip(),
        lines=tuple(lines),
        warning=NOT_ENOUGH if beyond else low,
        footnote=_method(lift, shown),
    )


def _both(lift: Lift) -> list[tuple[str, Estimate]]:
    return [(lift.treatment_arm, lift.treatment), (lift.control_arm, lift.control)]


def _method(lift: Lift, shown: Estimate) -> str:
    of = "; ".join(f"{arm}: {denominator_words(each)}" for arm, each in _both(lift))
    counts = [(int(each.counts["total"]), int(each.counts["hits"])) for _, each in _both(lift)]
    theirs = lift_tile(*counts)["shown"]
    return (
        f"Success rate of {lift.treatment_arm} less that of {lift.control_arm}. {of}. {method_sentence(shown)} "
        f"By the rule of Reflexio's own tile, which takes sessions for independent, the same ones come to {theirs}."
    )


def arms_chart(impact: Impact, arms: ArmsAnswer) -> Block:
    """Success of each arm over time, with the sessions that are in none."""
    curves = {arm: answer.trend for arm, answer in arms.by_arm.items() if answer.trend}
    curves = {arm: curves[arm] for arm in (*(arm for arm in curves if arm is not None), None) if arm in curves}
    if not curves:
        return Notice(text="no session of the period has a verdict, so there is no trend to draw")
    example = next(each for trend in curves.values() for each in trend.values() if each.n)
    observed = "" if arms.randomised else "Observational: arms are not known to be assigned at random. "
    untagged = " Untagged sessions are in no arm and are taken for neither." if None in curves else ""
    buckets = {bucket for trend in curves.values() for bucket in trend}
    return figure(
        Trends("arm", impact.bucket, curves),
        width=chart_width(len(buckets)),
        title=f"success by {impact.bucket}, by arm{'' if arms.randomised else ' (observational)'}",
        footnote=f"{observed}Judged sessions by the {impact.bucket} (UTC) that they began on; the n of each point "
        f"stands above it, in the color of its arm. {method_sentence(example)}{untagged}",
    )


def _arms_table(arms: ArmsAnswer) -> Table:
    return Table(
        title=f"arms · {arms.name}",
        columns=("arm", "users", "published", "evaluated", "of published", "evaluation only", "failures by type"),
        numbers=("users", "published", "evaluated", "of published", "evaluation only"),
        rows=tuple(_arm_row(arm_words(arm), answer) for arm, answer in arms.by_arm.items()),
        footnote=f"{arms.attributed.part:,} of {count_words(arms.attributed.whole, 'judged session')} are in it. "
        "Published are sessions with a request; evaluated are those of them with a verdict.",
    )


def _arm_row(name: str, answer: ArmAnswer) -> tuple[str, ...]:
    coverage = answer.coverage
    return (
        name,
        f"{answer.users:,}",
        f"{coverage.whole:,}",
        f"{coverage.part:,}",
        value_words(coverage.share, "share"),
        f"{answer.evaluation_only:,}",
        counts_words(answer.failure_types),
    )


def _untagged(arms: ArmsAnswer) -> Table:
    return Table(
        title="sessions in no arm",
        columns=("why", "sessions", "what was there instead"),
        numbers=("sessions",),
        rows=tuple(
            (cause, f"{count:,}", ", ".join(f"{value} ({n:,})" for value, n in arms.seen.get(cause, {}).items()))
            for cause, count in arms.untagged.items()
        ),
        footnote="They are counted and shown, and taken for neither arm."
        + (" Only a literal true or false is a tag." if arms.name == TagArms().name else ""),
    )

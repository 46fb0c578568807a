"""Arms beside each other in everything that they are compared in."""

from __future__ import annotations

from collections.abc import Iterator

from evalr.estimates.estimate import Estimate
from evalr.estimates.lift import Lift
from evalr.estimates.stating import denominator_words, method_sentence, number_cell
from evalr.estimates.words import interval_words, p_words, value_words
from evalr.logs.blocks import Block, Cell, Table
from evalr_reflexio.answers.arm_answer import ArmsAnswer
from evalr_reflexio.answers.impact import Impact
from evalr_reflexio.answers.words import SAID_ONCE, power_words, titled


def comparisons(arms: ArmsAnswer, impact: Impact, *, title: str = "", footnote: str = "") -> Iterator[Block]:
    """A table for each pair of arms: what it is in either, and the difference."""
    for pair in arms.pairs:
        names = f"{pair.treatment} v {pair.control}"
        few = all("low_confidence" in lift.flags for lift in pair.lifts.values())
        notes = [footnote, *pair.allocation.notes(), *(["low confidence: few users in an arm"] if few else [])]
        yield Table(
            title=f"{title}: {names}" if title else f"what differs, {names}",
            columns=("measure", pair.treatment, pair.control, "difference", "interval", "p", "relative", "notes"),
            numbers=("difference", "interval", "p"),
            rows=tuple(_row(titled(name, impact), lift, impact, few=few) for name, lift in pair.lifts.items()),
            footnote=" · ".join(filter(None, notes)),
        )


def _row(name: str, lift: Lift, impact: Impact, *, few: bool) -> tuple[str | Cell, ...]:
    shown = lift.always_valid if impact.always_valid else lift.difference
    p = lift.always_valid_p if impact.always_valid else lift.p
    elsewhere = (*SAID_ONCE, "low_confidence") if few else SAID_ONCE
    notes = [flag.replace("_", " ") for flag in lift.flags if flag not in elsewhere]
    power = None if impact.always_valid else power_words(lift)
    if power is not None:
        notes.append(power)
    if shown.low is None and shown.reason is not None:
        notes.append(shown.reason.removeprefix("no estimate: "))
    if lift.difference.left_out:
        notes.append("left out: " + ", ".join(f"{count:,} {why}" for why, count in lift.difference.left_out.items()))
    both = ((lift.treatment_arm, lift.treatment), (lift.control_arm, lift.control))
    of = "; ".join(f"{arm}: {denominator_words(each)}" for arm, each in both)
    relative, how = lift.relative, method_sentence(shown)
    # The interval of the relative lift holds for one look alone.
    relative_words = value_words(relative.value, relative.unit) if impact.always_valid else number_cell(relative)
    return (
        name,
        *(arm_cell(each) for _, each in both),
        Cell("no estimate" if shown.value is None else value_words(shown.value, shown.unit), of, how),
        interval_words(shown.low, shown.high, shown.unit),
        "" if p is None else Cell(p_words(p).removeprefix("p ").removeprefix("= "), f"two-sided, by {lift.test}"),
        "" if relative.value is None else Cell(relative_words, of, method_sentence(relative)),
        " · ".join(notes),
    )


def arm_cell(estimate: Estimate) -> Cell | str:
    """A number with its interval and its n; its denominator where it is pointed at, and where its method is stated."""
    if not estimate.n:
        return "nothing counted"
    return Cell(f"{number_cell(estimate)} · n={estimate.n:,}", denominator_words(estimate), method_sentence(estimate))

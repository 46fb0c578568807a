"""`evalr power`: how many users an A/B test needs, or what those that there are will show."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from evalr.cli.listing import Named, summaries_by_name
from evalr.cli.shares import lifted, read_amount, read_parts, read_share
from evalr.errors import InputError
from evalr.estimates.estimate import Estimate
from evalr.estimates.power import Detectable, design_effect, detectable, power_of, users_needed
from evalr.estimates.sample_ratio import FEW
from evalr.estimates.words import choice_words, number_words, value_words
from evalr.quoting import quoted, safe_text
from evalr.reports.fitting import wrapped
from evalr.summaries import Rate

EVEN = "50:50"
TWO_ARMS = "write 90:10, treatment first and control second"
USERS_RULE = "write 900:100, treatment first and control second, or 1000 for both together"
ROUGH = f"fewer than {FEW} hits or misses are expected in an arm, where the normal approximation is rough"


class Arms(NamedTuple):
    """A number of each arm: users, rows, or parts of a split."""

    treatment: float
    control: float

    def times(self, factor: float) -> Arms:
        """So many times as many."""
        return Arms(self.treatment * factor, self.control * factor)

    def rounded_up(self) -> dict[str, int]:
        """Whole numbers, by arm and altogether."""
        treatment, control = math.ceil(self.treatment), math.ceil(self.control)
        return {"treatment": treatment, "control": control, "altogether": treatment + control}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """How many rows a user has, and by how much more rows that takes.

    Attributes:
        per_user: rows a user, on average.
        effect: the design effect.
        words: both, for a reader.
        notes: what else to know of them.
    """

    per_user: float = 1.0
    effect: float = 1.0
    words: str = "one row a user"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was asked. `rate` is the control's; `target`, the treatment's, and `users` are None where not given."""

    rate: float
    target: float | None
    split: Arms
    split_words: str
    users: Arms | None
    rows: Rows
    power: float
    level: float

    def needed_rows(self) -> Arms | None:
        """Rows to see the lift with the power asked for; None where users, or no lift, are given."""
        if self.target is None or self.users is not None:
            return None
        ratio = self.split.treatment / self.split.control
        found = users_needed(self.target, self.rate, ratio=ratio, power=self.power, level=self.level)
        return Arms(*found).times(self.rows.effect)

    def worth(self) -> Arms | None:
        """How many independent rows the users are worth."""
        return None if self.users is None else self.users.times(self.rows.per_user / self.rows.effect)

    def seen(self) -> Detectable | None:
        """The smallest differences that the users show."""
        worth = self.worth()
        if worth is None:
            return None
        return detectable(
            self.rate,
            treatment_users=worth.treatment,
            control_users=worth.control,
            power=self.power,
            level=self.level,
        )

    def chance(self) -> float | None:
        """The power to see the lift with the users."""
        worth = self.worth()
        if worth is None or self.target is None:
            return None
        return power_of(
            self.target,
            self.rate,
            treatment_users=worth.treatment,
            control_users=worth.control,
            level=self.level,
        )

    def notes(self) -> list[str]:
        """What it assumes, and what else to know."""
        assumed = f"assumes a two-sided score test at the {100 * self.level:g}% level in its normal approximation, and "
        return [assumed + self.rows.words, *self.rows.notes, *([ROUGH] if self._is_rough() else [])]

    def _is_rough(self) -> bool:
        needed = self.needed_rows()
        independent = self.worth() if needed is None else needed.times(1 / self.rows.effect)
        rates = (self.rate if self.target is None else self.target, self.rate)
        return independent is not None and any(
            rows * min(rate, 1 - rate) < FEW for rows, rate in zip(independent, rates, strict=True)
        )


def read_plan(
    *,
    rate: str | None,
    lift: str | None,
    users: str | None,
    split: str | None,
    power: str,
    level: str,
    per_user: str | None,
    icc: str | None,
    cv: str | None,
    measured: Estimate | None,
) -> Plan:
    """What was asked, of the texts of the options and what a log says."""
    if lift is None and users is None:
        raise InputError("say what is to be seen with --lift 5pp, or how many users there are with --users 900:100")
    if measured is not None:
        if not (rate is per_user is icc is cv is None):
            raise InputError(
                "--from takes the rate and the rows of users from the log: leave --rate, --per-user, "
                "--icc and --cv out, or --from"
            )
        share, rows = _of_log(measured)
    elif rate is None:
        raise InputError("say the rate of the control with --rate 70%, or take it from a log with --from and --measure")
    else:
        share, rows = read_share(rate, "--rate"), _given(per_user, icc, cv)
    parts = _two(split or EVEN, "--split", TWO_ARMS)
    return Plan(
        rate=share,
        target=None if lift is None else lifted(share, lift),
        split=parts,
        split_words=(split or EVEN) + ("" if split else ", since no --split is given"),
        users=None if users is None else _users(users, split, parts),
        rows=rows,
        power=read_share(power, "--power"),
        level=read_share(level, "--level"),
    )


def _two(text: str, option: str, rule: str) -> Arms:
    parts = read_parts(text, option, rule)
    if len(parts) != 2 or not all(parts):
        raise InputError(f"{option} {quoted(text)} is not of two arms with something in each: {rule}")
    return Arms(*parts)


def _users(text: str, split: str | None, parts: Arms) -> Arms:
    if ":" in text:
        if split is not None:
            raise InputError(f"--users {quoted(text)} says how many are in each arm: leave --split out")
        users = _two(text, "--users", USERS_RULE)
    else:
        (total,) = read_parts(text, "--users", USERS_RULE)
        treatment = round(total * parts.treatment / sum(parts))
        users = Arms(treatment, total - treatment)
    if "%" in text or not all(count >= 1 and count == round(count) for count in users):
        raise InputError(f"--users {quoted(text)} is not a whole number of users in each arm: {USERS_RULE}")
    return users


def _given(per_user: str | None, icc: str | None, cv: str | None) -> Rows:
    if per_user is None:
        if not (icc is cv is None):
            raise InputError("--icc and --cv are of the rows of users: say how many a user has with --per-user 3")
        return Rows()
    if icc is None:
        raise InputError(
            "--per-user needs --icc, how alike the rows of one user are: 0 no more than those of others, 1 entirely; "
            "--from LOG --measure NAME finds out"
        )
    size, alike, spread = read_amount(per_user, "--per-user"), read_share(icc, "--icc"), read_amount(cv or "0", "--cv")
    effect = design_effect(size, alike, cv=spread)
    varied = f"numbers that vary by {spread:g} of that" if spread else "as many for each"
    numbers = f"{_of(size)} (ICC {alike:g}, {varied})"
    return Rows(per_user=size, effect=effect, words=f"{numbers}: a design effect of {number_words(effect)}")


def _of(size: float) -> str:
    return f"{number_words(size)} {'row' if size == 1 else 'rows'} a user"


# ---------------------------------------------------------------------------------------------------------------------
# From a log
# ---------------------------------------------------------------------------------------------------------------------


def rate_named(name: str | None) -> Named:
    """The summary of that name, which must be a rate.

    Raises:
        InputError: it is none; the message names those that there are.
    """
    rates = {known: each for known, each in summaries_by_name().items() if isinstance(each.summary, Rate)}
    if name is None or name not in rates:
        asked = "--from LOG needs --measure NAME" if name is None else f"no rate is named {quoted(name)}"
        raise InputError(f"{asked}; {choice_words(name or '', rates)}")
    return rates[name]


def _of_log(found: Estimate) -> tuple[float, Rows]:
    """A rate and its rows as a log has them.

    The design effect is the variance over users, as measured, over that of as many independent rows: how alike the rows
    of a user are, and how many more some have than others, are both in it.
    """
    rate, variance, total = found.value, found.variance, found.counts.get("total", 0)
    if rate is None:
        raise InputError(f"{found.name} has no value in this log: {found.reason}")
    if not variance or not 0 < rate < 1:
        raise InputError(
            f"{found.name} is {value_words(rate, 'share')} in this log, which does not say how users vary: give "
            "--rate, --per-user and --icc"
        )
    per_user, effect = total / found.clusters, max(1.0, variance * total / (rate * (1 - rate)))
    measured = f"{_of(per_user)}, a design effect of {number_words(effect)}"
    words = f"rate and rows as in the whole log, all arms together ({found.counted_words()}): {measured}"
    few = (f"{found.clusters} users are few to measure a design effect with",)
    return rate, Rows(
        per_user=per_user, effect=effect, words=words, notes=few if "low_confidence" in found.flags else ()
    )


# ---------------------------------------------------------------------------------------------------------------------
# Told
# ---------------------------------------------------------------------------------------------------------------------


def plan_lines(plan: Plan, width: int) -> Iterator[str]:
    """The answer as people read it, in lines of at most `width` columns where words allow it."""
    needed, seen = plan.needed_rows(), plan.seen()
    if needed is not None:
        yield from _needed_lines(plan, needed)
    if seen is not None:
        yield from _seen_lines(plan, seen)
    yield ""
    for note in plan.notes():
        yield from wrapped(safe_text(note, longest=500), width)


def _needed_lines(plan: Plan, rows: Arms) -> Iterator[str]:
    yield f"to see {_lift_words(plan)} with {_percent(plan.power)} power, users split {plan.split_words}"
    yield ""
    columns = {"users": rows.times(1 / plan.rows.per_user).rounded_up()}
    if plan.rows.per_user != 1:
        columns["rows"] = rows.rounded_up()
    yield " " * 12 + "".join(f"{name:>12}" for name in columns)
    for arm in columns["users"]:
        yield f"  {arm:<10}" + "".join(f"{counts[arm]:>12,}" for counts in columns.values())


def _seen_lines(plan: Plan, seen: Detectable) -> Iterator[str]:
    users = plan.users or Arms(0, 0)
    yield (
        f"{users.treatment:,.0f} users in treatment and {users.control:,.0f} in control, "
        f"{_share(plan.rate)} in control: what is seen with {_percent(plan.power)} power"
    )
    yield ""
    yield f"  increase    {_smallest(plan.rate, seen.increase, 1.0)}"
    yield f"  decrease    {_smallest(plan.rate, seen.decrease, 0.0)}"
    chance = plan.chance()
    if chance is not None:
        yield f"  power       {value_words(chance, 'share')} to see {_lift_words(plan)}"


def _smallest(rate: float, change: float | None, end: float) -> str:
    if rate == end:
        return f"none: there is no room beyond {_share(end)}"
    if change is None:
        return f"none: not even one to {_share(end)} is seen with so few users"
    to = rate + math.copysign(change, end - rate)
    return f"{value_words(to - rate, 'points')} or more, to {_share(to)}"


def _lift_words(plan: Plan) -> str:
    target = plan.rate if plan.target is None else plan.target
    points = value_words(target - plan.rate, "points")
    return f"{_share(target)} in treatment v {_share(plan.rate)} in control ({points})"


def _share(rate: float) -> str:
    return value_words(rate, "share")


def _percent(share: float) -> str:
    return f"{100 * share:g}%"


def plan_dict(plan: Plan) -> dict[str, Any]:
    """The answer in plain types."""
    needed, seen = plan.needed_rows(), plan.seen()
    parts = sum(plan.split)
    return {
        "rate": plan.rate,
        "treatment_rate": plan.target,
        "split": plan.split.times(1 / parts)._asdict() if plan.users is None else None,
        "users": None if plan.users is None else plan.users.rounded_up(),
        "rows_per_user": plan.rows.per_user,
        "design_effect": plan.rows.effect,
        "asked_power": plan.power,
        "level": plan.level,
        "needed_users": None if needed is None else needed.times(1 / plan.rows.per_user).rounded_up(),
        "needed_rows": None if needed is None else needed.rounded_up(),
        "detectable": None if seen is None else seen._asdict(),
        "power": plan.chance(),
        "notes": plan.notes(),
    }

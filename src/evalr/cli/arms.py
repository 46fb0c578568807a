"""`evalr srm`: are arms as large as the split makes likely, and did they lose equal shares of their users?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evalr.cli.endings import NOT_CLEARED, UNUSABLE
from evalr.cli.shares import SPLIT_RULE, is_count, read_by_arm, read_counts, read_parts
from evalr.errors import InputError
from evalr.estimates.sample_ratio import (
    ALARM_BELOW,
    SampleRatio,
    coverage_by_arm,
    sample_ratio,
    sequential_sample_ratio,
)
from evalr.estimates.words import count_words, number_words, p_words, value_words
from evalr.inputs import Assignment
from evalr.logs import quoted, read_assignments
from evalr.quoting import safe_text
from evalr.reports.fitting import cells, padded, wrapped
from evalr.summaries.assigned import read_assigned

MOST_ARMS = 100
NAMED_USERS = 5
PAIRS = (("treatment", "control"), ("treatment", "holdout"))
"""Arms of which everybody knows which stands first in a split."""

MISMATCH = """\
Do not trust a comparison of these arms: something other than chance decides who is in which. Look for assignments \
that one arm loses or logs late, redirects or crashes in one arm, bots, a filter applied after the assignment, and a \
split that was changed on the way."""
UNEVEN = """\
The arms lost unequal shares of their users, so that those who are left may differ. Look for failures, timeouts and \
logging that one arm has more of."""

_METHODS = {
    "chi-square/1": "chi-square",
    "binomial/1": "exact binomial",
    "fisher/1": "Fisher's exact test",
    "dirichlet-multinomial/1": "sequential: it holds for all looks together",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """Users by arm, and those who are in no count: in several arms, by name, and in none."""

    counts: Mapping[str, int]
    in_several: tuple[str, ...] = ()
    without_arm: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A split that was checked: users, weights and those evaluated, by arm."""

    assigned: Users
    weights: Mapping[str, float]
    equal: bool
    evaluated: Mapping[str, int] | None
    ratio: SampleRatio
    coverage: SampleRatio | None

    @property
    def code(self) -> int:
        """How the command ends: an alarm is a failure, and nothing to check is one of use."""
        if self.ratio.alarm or (self.coverage is not None and self.coverage.alarm):
            return NOT_CLEARED
        return UNUSABLE if self.ratio.p is None else 0

    def expected(self, arm: str) -> float:
        """How many users the split makes likely."""
        return self.assigned_sum() * self.share(arm)

    def share(self, arm: str) -> float:
        """The arm's part of the split."""
        return self.weights[arm] / sum(self.weights.values())

    def assigned_sum(self) -> int:
        """Users of all arms that were to have some."""
        return sum(self.assigned.counts[arm] for arm, weight in self.weights.items() if weight)


def check(
    given: list[str],
    *,
    weights: str | None,
    evaluated: str | None,
    sequential: bool,
    user_column: str,
    arm_column: str,
) -> Checked:
    """Check counts, or a file of assignments, against weights; all are the texts of the command."""
    if _is_file(given):
        assigned = _counted(read_assignments(given[0], user_column=user_column, arm_column=arm_column))
        order: tuple[str, ...] | None = next((pair for pair in PAIRS if {*pair} == {*assigned.counts}), None)
    else:
        assigned = Users(counts=read_counts(given))
        order = tuple(assigned.counts)
    if len(assigned.counts) > MOST_ARMS:
        raise InputError(
            f"{len(assigned.counts):,} arms, such as {quoted(next(iter(assigned.counts)))}: is {quoted(arm_column)} "
            "the column of arms? Name it with --arm-column"
        )
    by_arm = dict.fromkeys(assigned.counts, 1.0) if weights is None else _by_arm(weights, "--weights", order, assigned)
    _check_declared(assigned.counts, by_arm)
    counts = {arm: assigned.counts.get(arm, 0) for arm in by_arm}
    seen = None if evaluated is None else _evaluated(evaluated, order, assigned, counts)
    test = sequential_sample_ratio if sequential else sample_ratio
    return Checked(
        assigned=Users(counts=counts, in_several=assigned.in_several, without_arm=assigned.without_arm),
        weights=by_arm,
        equal=weights is None,
        evaluated=seen,
        ratio=test(list(counts.values()), list(by_arm.values())),
        coverage=None if seen is None else coverage_by_arm([seen[arm] for arm in counts], list(counts.values())),
    )


def _is_file(given: list[str]) -> bool:
    # pathlib's own raises for a name that is too long
    if len(given) == 1 and (not is_count(given[0]) or os.path.isfile(given[0])):  # noqa: PTH113
        return True
    if len(given) > 1 and not any(map(is_count, given)):
        raise InputError("give one file of assignments, or users by arm, as in  treatment=880 control=120")
    return False


def _counted(assignments: Iterable[Assignment]) -> Users:
    found = read_assigned(assignments)
    return Users(
        counts=found.sizes(),
        in_several=tuple(str(user) for user, _ in found.in_several),
        without_arm=found.without_arm,
    )


def _by_arm(text: str, option: str, order: tuple[str, ...] | None, assigned: Users) -> dict[str, float]:
    if "=" in text:
        return read_by_arm(text, option)
    parts = read_parts(text, option)
    if order is None:
        arms = [safe_text(arm) for arm in assigned.counts][:2]
        named = ",".join(f"{arm}={part:g}" for arm, part in zip(arms, parts, strict=False))
        raise InputError(f"{option} {quoted(text)} does not say which part is of which arm: name them, as in {named}")
    if len(parts) != len(order):
        raise InputError(
            f"{option} {quoted(text)} has {len(parts)} parts for {count_words(len(order), 'arm')}: {SPLIT_RULE}"
        )
    return dict(zip(order, parts, strict=True))


def _check_declared(counts: Mapping[str, int], weights: Mapping[str, float]) -> None:
    undeclared = next((arm for arm in counts if arm not in weights), None)
    if undeclared is not None:
        raise InputError(
            f"--weights name no arm {quoted(undeclared)}, to which {counts[undeclared]:,} are assigned: give it a "
            "weight, 0 where it was to have nobody"
        )


def _evaluated(text: str, order: tuple[str, ...] | None, assigned: Users, counts: Mapping[str, int]) -> dict[str, int]:
    seen = _by_arm(text, "--evaluated", order, assigned)
    for arm in {**counts, **seen}:
        if arm not in seen or arm not in counts:
            raise InputError(
                f"--evaluated {quoted(text)}: {quoted(arm)} is not in both, those assigned and those evaluated"
            )
        if "%" in text or seen[arm] != int(seen[arm]) or seen[arm] > counts[arm]:
            raise InputError(
                f"--evaluated {quoted(text)}: of {counts[arm]:,} users assigned to {quoted(arm)}, a whole number from "
                "0 to all are evaluated"
            )
    return {arm: int(count) for arm, count in seen.items()}


# ---------------------------------------------------------------------------------------------------------------------
# Told
# ---------------------------------------------------------------------------------------------------------------------


def checked_lines(checked: Checked, width: int) -> Iterator[str]:
    """What was found, as people read it, in lines of at most `width` columns where words allow it."""
    yield from _table(checked)
    yield ""
    for note in _left_out(checked.assigned):
        yield from wrapped(note, width)
    if checked.equal:
        yield "equal weights, since none are given: --weights 90:10 declares another split"
    yield from wrapped(_ratio_words(checked.ratio), width)
    if checked.coverage is not None:
        yield from wrapped(_coverage_words(checked.coverage), width)


def _table(checked: Checked) -> Iterator[str]:
    rows = [["", "users", "expected", "weight"]]
    for arm, count in checked.assigned.counts.items():
        share = value_words(checked.share(arm), "share")
        rows.append([safe_text(arm), f"{count:,}", _expected_words(checked.expected(arm)), share])
    if checked.evaluated is not None:
        rows[0] += ["evaluated", ""]
        for row, (arm, count) in zip(rows[1:], checked.assigned.counts.items(), strict=True):
            seen = checked.evaluated[arm]
            row += [f"{seen:,}", value_words(seen / count, "share") if count else ""]
    widths = [max(cells(row[place]) for row in rows) for place in range(len(rows[0]))]
    for first, *others in rows:
        numbers = (f"{text:>{width}}" for text, width in zip(others, widths[1:], strict=True))
        yield f"  {padded(first, widths[0])}  {'  '.join(numbers)}".rstrip()


def _expected_words(expected: float) -> str:
    return f"{round(expected):,}" if expected >= 100 else number_words(expected)


def _left_out(assigned: Users) -> Iterator[str]:
    if assigned.in_several:
        named = ", ".join(quoted(user) for user in assigned.in_several[:NAMED_USERS])
        more = ", …" if len(assigned.in_several) > NAMED_USERS else ""
        yield f"left out: {count_words(len(assigned.in_several), 'user')} in several arms ({named}{more})"
    if assigned.without_arm:
        yield f"left out: {count_words(assigned.without_arm, 'user')} without an arm"


def _ratio_words(found: SampleRatio) -> str:
    if found.alarm:
        return f"mismatch: {_p_words(found)}. {MISMATCH}"
    if found.p is None:
        return f"nothing to check: {found.reason}"
    return f"no mismatch: {_p_words(found)}; an alarm is p < {ALARM_BELOW}"


def _coverage_words(found: SampleRatio) -> str:
    if found.alarm:
        return f"uneven coverage: {_p_words(found)}. {UNEVEN}"
    if found.p is None:
        return f"coverage: nothing to check, {found.reason}"
    return f"even coverage: {_p_words(found)}; an alarm is p < {ALARM_BELOW}"


def _p_words(found: SampleRatio) -> str:
    p = None if found.p is None else f"{p_words(found.p)} ({_METHODS.get(found.method, found.method)})"
    return ", ".join(filter(None, [found.reason, p]))


def checked_dict(checked: Checked) -> dict[str, Any]:
    """What was found, in plain types."""
    counts, evaluated = checked.assigned.counts, checked.evaluated
    return {
        "arms": [
            {
                "arm": arm,
                "assigned": count,
                "expected": checked.expected(arm),
                "weight": checked.weights[arm],
                "evaluated": None if evaluated is None else evaluated[arm],
            }
            for arm, count in counts.items()
        ],
        "equal_weights": checked.equal,
        "in_several": len(checked.assigned.in_several),
        "without_arm": checked.assigned.without_arm,
        "sample_ratio": checked.ratio._asdict(),
        "coverage": None if checked.coverage is None else checked.coverage._asdict(),
    }

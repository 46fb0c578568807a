"""Retrieval experiments as the command prints them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from evalr.errors import InputError
from evalr.estimates.words import number_words
from evalr.quoting import quoted, safe_text
from evalr_reflexio.config import Experiment
from evalr_reflexio.registry import UserArm, experiment_fields

if TYPE_CHECKING:
    from evalr_reflexio.answers.impact import Impact


def read_percentage(text: str) -> float:
    """`10` or `10%` as 10.0. Below 1 a number without its sign might be a share, and an id is never used again."""
    try:
        found = float(text.removesuffix("%"))
    except ValueError:
        raise InputError(f"--holdout {quoted(text)}: write the percentage of users, as 10") from None
    if 0 < found < 1 and not text.endswith("%"):
        ways = f"write {number_words(100 * found)}% for that share of users, or {text}% for less than 1 percent"
        raise InputError(f"--holdout {quoted(text)}: {ways}")
    return found


def experiment_line(experiment: Experiment) -> str:
    """`support-agent-2026-08: active since 2026-08-01 09:00 UTC, 10% held out`."""
    percentage = experiment.holdout_percentage
    held_out = "" if percentage is None else f"{number_words(percentage)}% held out"
    words = ", ".join(filter(None, (experiment.period_words, held_out)))
    return f"{safe_text(experiment.id, longest=200)}: {words}"


def list_lines(experiments: Sequence[Experiment], others: Sequence[str] = ()) -> Iterator[str]:
    """The active one, marked, and all others; where there is none, which other organisations have some."""
    if not experiments and others:
        yield f"no experiments of this organisation; {_other_orgs(others)}"
    elif not experiments:
        yield "no experiments"
    for each in experiments:
        yield f"{'*' if each.ended_at is None else ' '} {experiment_line(each)}"


def none_active(org: str, others: Sequence[str]) -> str:
    """That an organisation has no active experiment, and which others have one."""
    none = (
        f"no experiment of organisation {quoted(org)} is active: nobody is assigned to an arm, and everybody retrieves"
    )
    return f"{none}; {_other_orgs(others)}" if others else none


def _other_orgs(others: Sequence[str]) -> str:
    return f"--org names another one: {', '.join(map(quoted, others))}"


def list_fields(experiments: Sequence[Experiment]) -> dict[str, Any]:
    """The same in plain types, as Reflexio's HTTP API answers it."""
    active = next((each for each in experiments if each.ended_at is None), None)
    return {
        "active_experiment": None if active is None else dict(experiment_fields(active)),
        "experiments": [dict(experiment_fields(each)) for each in experiments],
    }


def arm_fields(arm: UserArm) -> dict[str, Any]:
    """An assignment in plain types."""
    return {"user": arm.user, "experiment_id": arm.experiment, "arm": arm.arm, "retrieves": arm.retrieves}


_SHOWN = ("arms", "health")
"""What of the answers is about the experiment."""


def result_lines(experiment: Experiment, impact: Impact, *, width: int, color: bool) -> Iterator[str]:
    """What a log says of an experiment: the arms compared, and what was evaluated."""
    from evalr.reports.screen import sections_text

    yield experiment_line(experiment)
    yield ""
    shown = [section for section in impact.sections() if section.name in _SHOWN]
    yield sections_text(shown, width=width, color=color)


def result_fields(experiment: Experiment, impact: Impact) -> dict[str, Any]:
    """The same in plain types; the shares of judged sessions under Reflexio's names, too."""
    arms = impact.arms
    attributed = None if arms is None else arms.attributed
    return {
        "experiment": dict(experiment_fields(experiment)),
        "evaluated_session_coverage": None if attributed is None else attributed.share,
        "unattributed_evaluated_session_count": None if attributed is None else attributed.whole - attributed.part,
        "arms": None if arms is None else arms.to_dict(),
        "health": impact.health.to_dict(),
        "notes": list(impact.notes),
    }

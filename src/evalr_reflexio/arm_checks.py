"""Whether the arms of a log are those that its way of assigning gives: computed anew, and set beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evalr.errors import InputError
from evalr.estimates.words import count_words
from evalr.quoting import quoted
from evalr_reflexio.arms import Arms, ExperimentArms, pairs_of
from evalr_reflexio.assigning import AssignmentRule, Unit, experiment_arm, rule_of
from evalr_reflexio.rows import SessionRecord


def computed_arm(
    record: SessionRecord, arms: Arms, *, org: str | None, rule: AssignmentRule | None = None
) -> str | None:
    """The arm that the hash gives a session, to set beside the logged one; None where it cannot be known.

    Args:
        record: the session.
        arms: those of an experiment whose percentage is known have its own rule.
        org: the organisation, for an experiment.
        rule: how the application assigned, for tags and request sources.
    """
    if isinstance(arms, ExperimentArms):
        percentage, org = arms.experiment.holdout_percentage, arms.experiment.assigned_in or org
        if not arms.in_log or percentage is None or org is None or not record.user:
            return None
        return experiment_arm(org, arms.experiment.id, record.user, percentage)
    if rule is None:
        return None
    name = record.user if rule.by == "user" else record.session
    ((treatment, control),) = pairs_of(arms)
    return (treatment if rule.is_treatment(name) else control) if name else None


def checked_by(arms: Arms, rule: AssignmentRule | None) -> Unit:
    """Whose hash `computed_arm` looks at."""
    return "user" if rule is None or isinstance(arms, ExperimentArms) else rule.by


def checked_words(checked: int, disagreeing: int, by: Unit, sessions: Sequence[tuple[str, str]]) -> str:
    """How many sessions are in the arm that their hash gives, and the first few that are not."""
    agree = f"{checked - disagreeing:,} of {count_words(checked, 'session')} are in the arm of their {by}'s hash"
    named = ", ".join(f"{quoted(session)} of {quoted(user)}" for user, session in sessions[:NAMED])
    return f"{agree}; not so: {named}{', …' if disagreeing > NAMED else ''}" if named else agree


NAMED: Final = 3
"""How many sessions are named in a sentence."""


def assignment_rule(given: str | AssignmentRule | None, unit: Unit = "session") -> AssignmentRule | None:
    """The rule that was given, as a text too.

    Raises:
        InputError: it is none, or assigns something else than the arms' unit, where that was said.
    """
    rule = rule_of(given) if isinstance(given, str) else given
    if rule is not None and unit == "user" != rule.by:
        raise InputError(f"unit='user' says that users were assigned, and assigned={rule.by}:… that sessions were")
    return rule


def check_rule(arms: Arms | None, rule: AssignmentRule | None) -> None:
    """Refuse a rule that these arms cannot be checked against.

    Raises:
        InputError: there are no arms, those of an experiment, or not two of them; or others are assigned.
    """
    if rule is None:
        return
    if arms is None:
        raise InputError("assigned=... says how arms were assigned: name those of the log, as in arms='tag'")
    if isinstance(arms, ExperimentArms):
        raise InputError(
            "assigned=... is for tags and request sources: the arms of an experiment are checked against its own "
            "percentage, which the configuration or the registry of experiments says"
        )
    if len(arms.labels) != 2:
        raise InputError(f"assigned=... says who is in which of two arms, and there are {len(arms.labels)}")
    if arms.unit != rule.by:
        raise InputError(f"the arms are of {arms.unit}s, and assigned=... of {rule.by}s: one of them is wrong")

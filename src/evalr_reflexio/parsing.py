"""Rows of the database as they come, read into what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from evalr.logs.reasons import Reason
from evalr.quoting import quoted
from evalr_reflexio.cells import (
    ACTIONS,
    END_YEAR,
    FIRST_YEAR,
    IMPACTS,
    KINDS_OF_LEARNING,
    NO_ACTION,
    ROLES,
    citations_of,
    count_of,
    diagnosis_of,
    flag_of,
    instant,
    json_of,
    learnings_of,
    metadata_of,
    name_of,
    role_of,
    text_of,
    text_or_none,
    texts_of,
    tools_of,
    whole_of,
)
from evalr_reflexio.ids import Ids
from evalr_reflexio.rows import (
    CustomerOutcomeRow,
    GradingState,
    InteractionRow,
    LearningRow,
    OutcomeRow,
    RequestRow,
    ShadowRow,
    ToolUse,
)

T = TypeVar("T")

UNNAMED_EVALUATOR = "agent_success"
"""What a verdict without an evaluator's name is taken for: Reflexio's own default."""

UNKNOWN_ROLE = "unknown roles, taken for the system's"


class Account(Protocol):
    """What takes count of rows that cannot be used: an `evalr.logs.Log` is one."""

    records: int

    def skip(self, reason: str, place: str) -> None:
        """Count one that cannot be used; raise RecordError where reading is strict."""


class Parts:
    """Takes the parts of a row that may be missing, and counts those that cannot be read instead of losing the row.

    Args:
        account: takes the count.
        repaired: called with what was mended.
        told: of what was counted already: a row may have to be read again to see whose it is.
    """

    def __init__(self, account: Account, repaired: Callable[[str], None], told: Ids) -> None:
        self._account, self._told = account, told
        self.repaired = repaired

    def fault(self, reason: Reason, place: str) -> None:
        """Count one row, or part of it, that cannot be used."""
        self._account.records += 1
        self._account.skip(str(reason), place)

    def take(self, read: Callable[..., T], *given: Any, place: str) -> T | None:
        """What `read` makes of it; None, and counted, where it cannot be read."""
        try:
            return read(*given)
        except Reason as reason:
            if self._told.add(f"{place}: {reason}"):
                self.fault(reason, place)
            return None


_lately = lru_cache(maxsize=1024)(instant)
"""For times as texts, or as whole numbers: those of one session are mostly alike."""

time_of_text = datetime.fromisoformat


def request_row(row: Sequence[Any], parts: Parts, missing_metadata: Any) -> RequestRow:
    """A row of `requests`. Raises Reason where it cannot be used."""
    position, request_id, user, session, at, source, version, only, experiment, arm, metadata = row
    if only is not None:
        is_known = only in (0, 1)
        only = bool(only) if is_known else parts.take(flag_of, only, "evaluation_only", place=request_place(row))
    return RequestRow(
        request_id if type(request_id) is str and request_id else name_of(request_id, "request_id"),
        user if type(user) is str else text_of(user),
        session if type(session) is str else text_of(session),
        _lately(at) if type(at) is str else instant(at),
        source if type(source) is str else text_of(source),
        version if type(version) is str else text_of(version),
        only,
        experiment if experiment is None else text_or_none(experiment),
        arm if arm is None else text_or_none(arm),
        missing_metadata if missing_metadata is not None else metadata_of(metadata),
        position,
    )


def request_place(row: Sequence[Any]) -> str:
    """Where a row of `requests` is, for messages."""
    return f"request {quoted(text_of(row[1]))}"


def interaction_row(row: Sequence[Any], parts: Parts) -> InteractionRow:
    """A row of `interactions`. Raises Reason where it cannot be used."""
    (
        interaction_id, request_id, at, raw_role, content, shadow, tokens, action, expert, tools, citations, learnings,
        described,
    ) = row  # fmt: skip
    try:
        role = ROLES[raw_role]
    except (KeyError, TypeError):
        raw_role = text_of(raw_role)
        named = role_of(raw_role)
        if named is None:
            parts.repaired(UNKNOWN_ROLE)
        role = named or "system"
    try:
        time = time_of_text(at)
    except (TypeError, ValueError):
        time = None
    if time is not None and (time.tzinfo is not UTC or not FIRST_YEAR <= time.year < END_YEAR):
        time = None  # to be read with care, after the parts that may be counted as faults
    # Written out, since a call for each of a million cells is a second.
    used: Sequence[ToolUse] = ()
    if tools is not None and tools != "[]":
        try:
            used = tools_of(tools)
        except Reason as reason:
            parts.fault(reason, f"interaction {interaction_id}")
    if citations is not None:
        try:
            citations = () if citations == "[]" else citations_of(citations)
        except Reason as reason:
            citations = None
            parts.fault(reason, f"interaction {interaction_id}")
    if learnings is not None:
        try:
            learnings = () if learnings == "[]" else learnings_of(learnings)
        except Reason as reason:
            learnings = None
            parts.fault(reason, f"interaction {interaction_id}")
    if tokens is not None and (type(tokens) is not int or tokens < 0):
        tokens = parts.take(count_of, tokens, "token_count", place=f"interaction {interaction_id}")
    if action is not None:
        action = None if action in (NO_ACTION, "") else action if action in ACTIONS else "action"
    return InteractionRow(
        interaction_id if type(interaction_id) is int else whole_of(interaction_id, "interaction_id"),
        request_id,
        time or instant(at),
        role,
        raw_role,
        "" if content is None else content if type(content) is str else text_of(content),
        "" if shadow is None else shadow if type(shadow) is str else text_of(shadow),
        tokens,
        action,
        "" if expert is None else expert if type(expert) is str else text_of(expert),
        used,
        citations,
        learnings,
        "" if not described else text_of(described),
    )


def outcome_row(row: Sequence[Any], parts: Parts) -> OutcomeRow:
    """A row of `agent_success_evaluation_result`. Raises Reason where it cannot be used."""
    (
        result_id, user, session, at, version, evaluator, success, failure_type, failure_reason, corrections, turns,
        escalated, tags, regular_vs_shadow, through, judged,
    ) = row  # fmt: skip
    # Cells are mostly what they should be, and then nothing is called: that takes half of the time.
    is_success = True if success == 1 else False if success == 0 else flag_of(success, "is_success")
    if is_success is None:
        raise Reason("no is_success")
    if corrections is not None and (type(corrections) is not int or corrections < 0):
        corrections = count_of(corrections, "number_of_correction_per_session")
    if turns is not None and (type(turns) is not int or turns < 0):
        turns = count_of(turns, "user_turns_to_resolution")
    place = f"result {result_id}"
    return OutcomeRow(
        result_id if type(result_id) is int else whole_of(result_id, "result_id"),
        user if type(user) is str else text_of(user),
        session if type(session) is str and session else name_of(session, "session_id"),
        _lately(at) if type(at) is str else instant(at),
        version if type(version) is str else text_of(version),
        evaluator if type(evaluator) is str and evaluator else text_of(evaluator) or UNNAMED_EVALUATOR,
        is_success,
        None if failure_type is None else text_or_none(failure_type),
        None if failure_reason is None else text_or_none(failure_reason),
        corrections,
        turns,
        None if escalated is None else flag_of(escalated, "is_escalated"),
        None if tags is None else parts.take(tags_of, tags, place=place),
        None if regular_vs_shadow is None else text_or_none(regular_vs_shadow),
        None if through is None else text_or_none(through),
        None if judged is None else parts.take(count_of, judged, "trajectory_interaction_count", place=place),
    )


def tags_of(tags: Any) -> Sequence[str] | None:
    """The tags of a verdict: few differ, so that most are known already."""
    return _known_tags(tags) if type(tags) is str else texts_of(tags, "tags")


@lru_cache(maxsize=1024)
def _known_tags(tags: str) -> tuple[str, ...] | None:
    found = texts_of(tags, "tags")
    return None if found is None else tuple(found)


def shadow_row(row: Sequence[Any], parts: Parts) -> ShadowRow:
    """A row of `shadow_comparison_verdicts`. Raises Reason where it cannot be used."""
    verdict_id, interaction, session, at, agent_version, first, better, significant, reason, prompt_version = row
    served_first = True if first == 1 else False if first == 0 else flag_of(first, "reflexio_is_request_1")
    if served_first is None:
        raise Reason("no reflexio_is_request_1")
    if better not in ("1", "2", "tie"):
        raise Reason("wrong value in 'better_request'")
    named = text_of(interaction).strip()
    return ShadowRow(
        verdict_id if type(verdict_id) is int else whole_of(verdict_id, "verdict_id"),
        int(named) if named.isascii() and named.isdigit() and len(named) < 20 else None,
        session if type(session) is str and session else name_of(session, "session_id"),
        _lately(at) if type(at) is str else instant(at),
        agent_version if type(agent_version) is str else text_of(agent_version),
        served_first,
        better,
        significant == 1 or (significant != 0 and bool(flag_of(significant, "is_significantly_better"))),
        text_or_none(reason),
        prompt_version if type(prompt_version) is str else text_of(prompt_version),
    )


def learning_row(row: Sequence[Any], parts: Parts) -> LearningRow:
    """A row of `retrieved_learning_evaluation`. Raises Reason where it cannot be used."""
    (
        result_id, user, session, at, agent_version, interaction, interaction_at, kind, learning, relevant,
        relevance_reason, impact, impact_reason, diagnosis, complete, digest,
    ) = row  # fmt: skip
    if kind not in KINDS_OF_LEARNING:
        raise Reason("wrong value in 'kind'")
    if impact is not None and impact not in IMPACTS:
        raise Reason("wrong value in 'impact'")
    place = f"learning result {result_id}"
    diagnosed = None if diagnosis is None else parts.take(diagnosis_of, diagnosis, place=place)
    return LearningRow(
        result_id if type(result_id) is int else whole_of(result_id, "result_id"),
        user if type(user) is str else text_of(user),
        session if type(session) is str and session else name_of(session, "session_id"),
        _lately(at) if type(at) is int else instant(at),
        agent_version if type(agent_version) is str else text_of(agent_version),
        interaction if interaction is None or type(interaction) is int else whole_of(interaction, "interaction_id"),
        None
        if interaction_at is None
        else _lately(interaction_at)
        if type(interaction_at) is int
        else instant(interaction_at),
        kind,
        learning if type(learning) is str and learning else name_of(learning, "learning_id"),
        None
        if relevant is None
        else True
        if relevant == 1
        else False
        if relevant == 0
        else flag_of(relevant, "is_relevant"),
        text_or_none(relevance_reason),
        impact,
        text_or_none(impact_reason),
        None if diagnosed is None else diagnosed[0],
        None if diagnosed is None else diagnosed[1],
        () if diagnosed is None else diagnosed[2],
        bool(flag_of(complete, "diagnosis_evidence_complete")),
        text_or_none(digest),
    )


def customer_outcome_row(row: Sequence[Any], parts: Parts) -> CustomerOutcomeRow:
    """A row of `session_outcomes`. Raises Reason where it cannot be used."""
    outcome_id, user, session, at, outcome, source, label, value, inferred = row
    if outcome not in ("success", "failure", "unknown"):
        raise Reason("wrong value in 'outcome'")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise Reason("wrong type in 'value'")
    return CustomerOutcomeRow(
        name_of(outcome_id, "outcome_id"),
        text_of(user),
        name_of(session, "session_id"),
        instant(at),
        outcome,
        text_of(source),
        text_or_none(label),
        None if value is None else float(value),
        bool(flag_of(inferred, "is_inferred")),
    )


def grading_state(state: Any) -> GradingState:
    """A value of `_operation_state` that is about the grading of a session's learnings. Raises Reason if it is none."""
    found = json_of(state, "operation_state")
    if not isinstance(found, dict) or not isinstance(found.get("status"), str):
        raise Reason("unreadable operation_state")
    version = found.get("evaluation_version")
    failed = (found.get(name) for name in ("failed_relevance_chunks", "failed_impact_chunks"))
    return GradingState(
        found["status"],
        None if version is None else str(version),
        sum(each for each in failed if type(each) is int),
    )

"""The tables and columns of Reflexio's databases that are read, of any release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

REQUESTS, INTERACTIONS = "requests", "interactions"
OUTCOMES, SHADOWS = "agent_success_evaluation_result", "shadow_comparison_verdicts"
LEARNINGS, CUSTOMERS = "retrieved_learning_evaluation", "session_outcomes"
STATES, IDENTITY = "_operation_state", "_dataset_identity"
SCORES = "imported_score"
"""What was imported from Braintrust."""

FIELDS: Final[Mapping[str, Sequence[str]]] = {
    REQUESTS: (
        "rowid", "request_id", "user_id", "session_id", "created_at", "source", "agent_version", "evaluation_only",
        "retrieval_experiment_id", "retrieval_experiment_arm", "metadata",
    ),
    INTERACTIONS: (
        "interaction_id", "request_id", "created_at", "role", "content", "shadow_content", "token_count", "user_action",
        "expert_content", "tools_used", "citations", "retrieved_learnings", "user_action_description",
    ),
    OUTCOMES: (
        "result_id", "user_id", "session_id", "created_at", "agent_version", "evaluation_name", "is_success",
        "failure_type", "failure_reason", "number_of_correction_per_session", "user_turns_to_resolution",
        "is_escalated", "tags", "regular_vs_shadow", "trajectory_through_request_id", "trajectory_interaction_count",
    ),
    SHADOWS: (
        "verdict_id", "interaction_id", "session_id", "created_at", "agent_version", "reflexio_is_request_1",
        "better_request", "is_significantly_better", "comparison_reason", "judge_prompt_version",
    ),
    LEARNINGS: (
        "result_id", "user_id", "session_id", "created_at", "agent_version", "interaction_id",
        "interaction_created_at", "kind", "learning_id", "is_relevant", "relevance_reason", "impact", "impact_reason",
        "diagnosis", "diagnosis_evidence_complete", "evaluated_playbook_digest",
    ),
    CUSTOMERS: (
        "outcome_id", "user_id", "session_id", "occurred_at", "outcome", "source", "label", "value", "is_inferred",
    ),
}  # fmt: skip

NEEDED: Final[Mapping[str, Sequence[str]]] = {
    REQUESTS: ("request_id", "user_id", "session_id", "created_at"),
    INTERACTIONS: ("interaction_id", "request_id", "created_at"),
    OUTCOMES: ("result_id", "session_id", "created_at", "is_success"),
    SHADOWS: ("verdict_id", "session_id", "created_at", "reflexio_is_request_1", "better_request"),
    LEARNINGS: ("result_id", "user_id", "session_id", "created_at", "kind", "learning_id"),
    CUSTOMERS: ("user_id", "session_id", "outcome"),
}
"""Without these columns a table is not Reflexio's, or of no use."""

LEARNING_TABLES: Final[Mapping[str, tuple[str, str]]] = {
    "profile": ("profiles", "profile_id"),
    "user_playbook": ("user_playbooks", "user_playbook_id"),
    "agent_playbook": ("agent_playbooks", "agent_playbook_id"),
}

NOUNS: Final[Mapping[str, str]] = {
    REQUESTS: "request",
    INTERACTIONS: "interaction",
    OUTCOMES: "result",
    SHADOWS: "shadow verdict",
    LEARNINGS: "learning result",
    CUSTOMERS: "customer outcome",
}
"""What a row of each is called in messages."""

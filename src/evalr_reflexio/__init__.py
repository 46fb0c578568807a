"""Reflexio's logs: what happened, what its judges said, and who was in which arm.

Nothing here imports Reflexio, or writes to what it keeps.
"""

from evalr_reflexio.answers.arm_answer import ArmAnswer, ArmPair, ArmsAnswer, Coverage
from evalr_reflexio.answers.associations import Association
from evalr_reflexio.answers.customers import CustomerAnswer
from evalr_reflexio.answers.health import Health
from evalr_reflexio.answers.impact import Impact, impact
from evalr_reflexio.answers.learning_sums import ImpactEstimates
from evalr_reflexio.answers.learnings import LearningAnswer, LearningRecord
from evalr_reflexio.answers.recent import RecentOutcome
from evalr_reflexio.answers.responses import JudgedResponse
from evalr_reflexio.answers.shadows import Compared, ShadowAnswer
from evalr_reflexio.answers.texts import comparison_texts
from evalr_reflexio.arms import (
    ArmCounts,
    ArmReading,
    Arms,
    ExperimentArms,
    SourceArms,
    TagArms,
    arm_of_tag,
    arms_of,
    assignments,
)
from evalr_reflexio.assigning import AssignmentRule, assign_arm
from evalr_reflexio.compat import (
    Candidate,
    compat_figures,
    get_agent_success_evaluation_results,
    get_all_interactions,
    get_dashboard_stats,
    get_interactions,
    get_playbook_application_stats,
    get_requests,
    get_retrieved_learning_evaluation_results,
    get_session_outcomes,
    healthz_eval,
    learning_counts,
    lift_tile,
    metadata_groups,
    overview,
    overview_with_groups,
    recent_shadow_comparisons,
    regeneration_candidates,
    regeneration_sample,
    regeneration_strata,
    retrieval_experiment_results,
    retrieval_experiments,
    row_counts,
    session_counts,
    session_outcome,
    significant_shadow_comparisons,
)
from evalr_reflexio.config import Config, Experiment, read_config
from evalr_reflexio.conversing import Conversation
from evalr_reflexio.fetching import Fetched, fetch, fetch_sync
from evalr_reflexio.grading import LogGrading, grading_of
from evalr_reflexio.log import ReflexioLog
from evalr_reflexio.noticed import Noticed
from evalr_reflexio.places import config_for, open_store
from evalr_reflexio.reader import reader
from evalr_reflexio.registry import ExperimentRegistry, UserArm
from evalr_reflexio.rows import (
    CustomerOutcomeRow,
    GradingState,
    InteractionRow,
    LearningRow,
    OutcomeRow,
    Reference,
    RequestRow,
    SessionRecord,
    ShadowRow,
    ToolUse,
)
from evalr_reflexio.store import Store

__all__ = [
    # answers
    "ArmAnswer",
    "ArmPair",
    "ArmsAnswer",
    "Association",
    "Compared",
    "Coverage",
    "CustomerAnswer",
    "Health",
    "Impact",
    "ImpactEstimates",
    "LearningAnswer",
    "JudgedResponse",
    "LearningRecord",
    "RecentOutcome",
    "ShadowAnswer",
    "comparison_texts",
    "impact",
    # a log
    "Store",
    "config_for",
    "fetch",
    "fetch_sync",
    "open_store",
    "read_config",
    "reader",
    # arms
    "ArmCounts",
    "ArmReading",
    "Arms",
    "AssignmentRule",
    "ExperimentArms",
    "SourceArms",
    "TagArms",
    "arm_of_tag",
    "arms_of",
    "assign_arm",
    "assignments",
    # retrieval experiments
    "ExperimentRegistry",
    "UserArm",
    # Reflexio's own numbers
    "Candidate",
    "compat_figures",
    "get_agent_success_evaluation_results",
    "get_all_interactions",
    "get_dashboard_stats",
    "get_interactions",
    "get_playbook_application_stats",
    "get_requests",
    "get_retrieved_learning_evaluation_results",
    "get_session_outcomes",
    "healthz_eval",
    "learning_counts",
    "lift_tile",
    "metadata_groups",
    "overview",
    "overview_with_groups",
    "recent_shadow_comparisons",
    "regeneration_candidates",
    "regeneration_sample",
    "regeneration_strata",
    "retrieval_experiment_results",
    "retrieval_experiments",
    "row_counts",
    "session_counts",
    "session_outcome",
    "significant_shadow_comparisons",
    # judging
    "Conversation",
    "LogGrading",
    "grading_of",
    # what they hold
    "Config",
    "CustomerOutcomeRow",
    "Experiment",
    "Fetched",
    "GradingState",
    "InteractionRow",
    "LearningRow",
    "Noticed",
    "OutcomeRow",
    "Reference",
    "ReflexioLog",
    "RequestRow",
    "SessionRecord",
    "ShadowRow",
    "ToolUse",
]

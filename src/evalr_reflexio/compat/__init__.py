"""Everything that Reflexio itself computes of its log, equal digit for digit: to compare with, and not to decide by."""

from evalr_reflexio.compat.dashboard import get_dashboard_stats, get_playbook_application_stats
from evalr_reflexio.compat.experiments import retrieval_experiment_results, retrieval_experiments
from evalr_reflexio.compat.figures import compat_figures
from evalr_reflexio.compat.groups import lift_tile, metadata_groups, overview_with_groups
from evalr_reflexio.compat.health import healthz_eval, row_counts
from evalr_reflexio.compat.listing import get_all_interactions, get_interactions, get_requests, session_counts
from evalr_reflexio.compat.overview import overview
from evalr_reflexio.compat.regenerating import (
    Candidate,
    regeneration_candidates,
    regeneration_sample,
    regeneration_strata,
)
from evalr_reflexio.compat.section import own_section
from evalr_reflexio.compat.shadows import recent_shadow_comparisons, significant_shadow_comparisons
from evalr_reflexio.compat.verdicts import (
    get_agent_success_evaluation_results,
    get_retrieved_learning_evaluation_results,
    get_session_outcomes,
    learning_counts,
    session_outcome,
)

__all__ = [
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
    "own_section",
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
]

"""The measures, and the inputs they read."""

from evalr.inputs import (
    About,
    Activity,
    Draft,
    History,
    Input,
    Revision,
    Session,
    StoredRevision,
    ToolCall,
    Transcript,
    Turn,
    Wait,
)
from evalr.measures.drop_off import (
    DropOff,
    drop_off_evaluator,
    drop_off_rate,
    drop_off_share,
    measure_drop_off,
)
from evalr.measures.measure import Marker, Measure, Ranking, installed_measures
from evalr.measures.retention import Retention, measure_retention, retention_evaluator, retention_share
from evalr.measures.rewrites import (
    Rewrites,
    followed_rate,
    measure_rewrites,
    rewrite_evaluator,
    rewrite_rate,
    time_to_rewrite,
)
from evalr.measures.session_outcome import (
    SessionOutcome,
    correction_rate,
    corrections,
    escalation_rate,
    success_rate,
    turns_to_resolution,
)
from evalr.measures.share_changed import share_changed
from evalr.measures.task_completion import (
    TaskCompletion,
    completion_pass_k,
    completion_quality,
    completion_rate,
)
from evalr.measures.waits import Waited, back_within, measure_wait, typical_wait, wait_evaluator

__all__ = [
    "About",
    "Activity",
    "Draft",
    "DropOff",
    "History",
    "Input",
    "Marker",
    "Measure",
    "Ranking",
    "Retention",
    "Revision",
    "Rewrites",
    "Session",
    "SessionOutcome",
    "StoredRevision",
    "TaskCompletion",
    "ToolCall",
    "Transcript",
    "Turn",
    "Wait",
    "Waited",
    "back_within",
    "completion_pass_k",
    "completion_quality",
    "completion_rate",
    "correction_rate",
    "corrections",
    "drop_off_evaluator",
    "drop_off_rate",
    "drop_off_share",
    "escalation_rate",
    "followed_rate",
    "installed_measures",
    "measure_drop_off",
    "measure_retention",
    "measure_rewrites",
    "measure_wait",
    "retention_evaluator",
    "retention_share",
    "rewrite_evaluator",
    "rewrite_rate",
    "share_changed",
    "success_rate",
    "time_to_rewrite",
    "turns_to_resolution",
    "typical_wait",
    "wait_evaluator",
]

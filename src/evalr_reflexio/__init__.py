"""Reflexio's logs: what happened, what its judges said, and who was in which arm.

Nothing here imports Reflexio, or writes to what it keeps.
"""

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
from evalr_reflexio.assigning import assign_arm
from evalr_reflexio.config import Config, Experiment, read_config
from evalr_reflexio.fetching import Fetched, fetch, fetch_sync
from evalr_reflexio.noticed import Noticed
from evalr_reflexio.places import open_store
from evalr_reflexio.reader import ReflexioLog, config_for, reader
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

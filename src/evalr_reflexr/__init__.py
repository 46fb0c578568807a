"""reflexr: rules, runs and causal chains, measured from its event log. Use it as `evalr.reflexr`."""

from evalr_reflexr.asking import artifact_histories, chain_sessions, chain_transcripts, chains, feedback, rule_runs
from evalr_reflexr.compat import RuleOutcomes, rule_outcomes, time_to_resolution
from evalr_reflexr.envelopes import Actor, Envelope, Roles, Workspace, actor_role, participant
from evalr_reflexr.feedback_events import Feedback
from evalr_reflexr.matching import Match, Matches
from evalr_reflexr.reader import read
from evalr_reflexr.resolution import (
    Chain,
    ChainMark,
    Resolution,
    chain_evaluator,
    chain_summaries,
    measure_chain,
    measure_chain_as_reflexr,
)
from evalr_reflexr.rules import RuleOutcome, measure_run, measure_run_as_reflexr, rule_evaluator, rule_rates
from evalr_reflexr.runs import RuleRun, RunStep
from evalr_reflexr.transcripts import event_words

__all__ = [
    "Actor",
    "Chain",
    "ChainMark",
    "Envelope",
    "Feedback",
    "Match",
    "Matches",
    "Resolution",
    "Roles",
    "RuleOutcome",
    "RuleOutcomes",
    "RuleRun",
    "RunStep",
    "Workspace",
    "actor_role",
    "artifact_histories",
    "chain_evaluator",
    "chain_sessions",
    "chain_summaries",
    "chain_transcripts",
    "chains",
    "event_words",
    "feedback",
    "measure_chain",
    "measure_chain_as_reflexr",
    "measure_run",
    "measure_run_as_reflexr",
    "participant",
    "read",
    "rule_evaluator",
    "rule_outcomes",
    "rule_rates",
    "rule_runs",
    "time_to_resolution",
]

"""What the results of passes say: one measure in each file, all from the records that a store or an export holds."""

from evalr_tracepass.measures.association import Association, Flagged, association, flagged_conversations
from evalr_tracepass.measures.costs import cost_per_flagged
from evalr_tracepass.measures.coverage import Coverage, SignalRates, coverage, pass_rates
from evalr_tracepass.measures.failures import Answered, Failures, failure_rate, failures
from evalr_tracepass.measures.fired import (
    Fired,
    about_record,
    answered,
    fired_conversations,
    fired_results,
    fired_turns,
    latest_records,
)
from evalr_tracepass.measures.labelled import LabelledRates, labelled_rates
from evalr_tracepass.measures.releases import before_after
from evalr_tracepass.measures.stability import flip_rate, flips
from evalr_tracepass.measures.timing import FirstFire, Recovery, first_fire, first_fires, recoveries, recovery

__all__ = [
    "Answered",
    "Association",
    "Coverage",
    "Failures",
    "Fired",
    "FirstFire",
    "Flagged",
    "LabelledRates",
    "Recovery",
    "SignalRates",
    "about_record",
    "answered",
    "association",
    "before_after",
    "cost_per_flagged",
    "coverage",
    "failure_rate",
    "failures",
    "fired_conversations",
    "fired_results",
    "fired_turns",
    "first_fire",
    "first_fires",
    "flagged_conversations",
    "flip_rate",
    "flips",
    "labelled_rates",
    "latest_records",
    "pass_rates",
    "recoveries",
    "recovery",
]

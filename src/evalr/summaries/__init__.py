"""Summaries: how results become one number.

`Rate`, `Mean`, `Contest` and `TimeTo` read results into a tally, and a tally into estimates. They read evaluators'
results, and people's values as they are. Failures, skips and hand-offs are counted and widen an estimate's bounds;
nothing leaves the denominator without being named.
"""

from evalr.summaries.contest import Contest
from evalr.summaries.keys import Key, Per
from evalr.summaries.mean import Mean
from evalr.summaries.rate import Rate
from evalr.summaries.summary import Summary
from evalr.summaries.time_to import TimeTo

__all__ = ["Contest", "Key", "Mean", "Per", "Rate", "Summary", "TimeTo"]

"""What a file says of evaluation itself: how many rows there are, and how far the grading of learnings got."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from evalr.logs.log import Log
from evalr.logs.reasons import Reason
from evalr_reflexio.compat.account import AskedStore
from evalr_reflexio.compat.cells import json_of
from evalr_reflexio.store import Store
from evalr_reflexio.tables import (
    CUSTOMERS,
    INTERACTIONS,
    LEARNING_TABLES,
    LEARNINGS,
    OUTCOMES,
    REQUESTS,
    SHADOWS,
    STATES,
)

COUNTED: Final = (
    REQUESTS, INTERACTIONS, OUTCOMES, SHADOWS, LEARNINGS, CUSTOMERS, *(table for table, _ in LEARNING_TABLES.values()),
)  # fmt: skip
SKIPPED: Final = (
    "already_evaluated", "no_requests", "not_yet_complete", "no_interactions", "no_data_models", "cutover_not_found",
)  # fmt: skip
_SUMS: Final = ("invalid_ref_count", "failed_relevance_chunks", "failed_impact_chunks")
STATE = "retrieved_learning_eval::"


def row_counts(store: Store) -> dict[str, int]:
    """How many rows each table has that measuring reads; 0 where a release has none of it."""
    return {table: store.count(table) for table in COUNTED}


def healthz_eval(store: Store, *, account: Log | None = None) -> dict[str, Any]:
    """`GET /healthz/eval`, as far as the file knows: None is what a process alone knows, which counts from its start.

    What is said of retrieved learnings is of the last grading of each session, whichever process did it.

    Args:
        store: the log.
        account: takes count of states that cannot be read.
    """
    asked = AskedStore(store, account)
    statuses: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    if store.has(STATES, "service_name"):
        rows = asked.queries.rows(
            f"SELECT service_name, operation_state FROM {STATES} WHERE substr(service_name, 1, ?) = ?",
            [len(STATE), STATE],
        )
        for state in asked.read(rows, lambda row: _state(row[1]), "state"):
            statuses[state["status"]] += 1
            for name in _SUMS:
                value = state.get(name)
                sums[name] += value if type(value) is int else 0
    return {
        "skip_counts": dict.fromkeys(SKIPPED),
        "producer_failures_24h": None,
        "last_tick_monotonic": None,
        "retrieved_learning": {
            "outcome_counts": dict(sorted(statuses.items())),
            **{name: sums[name] for name in _SUMS},
        },
        "liveness": None,
    }


def _state(text: Any) -> dict[str, Any]:
    found = json_of(text, "operation_state")
    if not isinstance(found, dict) or not isinstance(found.get("status"), str):
        raise Reason("unreadable operation_state")
    return found

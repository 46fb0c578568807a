"""The tables of results in ClickHouse, as `clickhouse_results` makes them and `schema` shows them."""

from __future__ import annotations

import re

from evalr.errors import InputError

RESULTS = "trace_reflex_results"
PASSES = "trace_reflex_passes"

# In an organisation, whoever writes a result again writes the same result.
_OWNER = "account_org_id, if(account_org_id = '', account_user_id, '')"

_RESULTS = """CREATE TABLE IF NOT EXISTS {database}.trace_reflex_results
(
    account_user_id String,
    account_org_id String DEFAULT '',

    run_id String,
    batch_id String,
    request_id String,

    convo_id String,
    event_id String,
    span_id String DEFAULT '',
    turn_index Nullable(UInt32),
    end_user_id String DEFAULT '' COMMENT 'what intervals cluster by',
    release String DEFAULT '',

    input_kind LowCardinality(String),
    transform_id LowCardinality(String),
    transform_version UInt16 DEFAULT 1,

    signal_id LowCardinality(String),
    reflex_model String,
    model_version String DEFAULT '',
    status LowCardinality(String),

    mode LowCardinality(String) DEFAULT '',
    top_label String DEFAULT '',
    top_score Float32 DEFAULT 0,
    selected_labels Array(String) DEFAULT [],
    fired Bool DEFAULT false,
    threshold Nullable(Float64) COMMENT 'null where the classifier chose',
    truncated Bool DEFAULT false,
    classes_json String DEFAULT '' COMMENT 'every label with its score',

    error_type String DEFAULT '',
    error_message String DEFAULT '' COMMENT 'with all but the words of errors masked',

    source_start_time Nullable(DateTime64(3, 'UTC')),
    created_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'when its batch was sent',
    input_hash String DEFAULT '' COMMENT 'HMAC of the text under the key of its owner: it tells a text again only',
    attempt UInt32 DEFAULT 0 COMMENT 'of one row and model, the last attempt stands'
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(created_at)
ORDER BY ({owner}, convo_id, run_id, request_id, reflex_model, attempt)
TTL toDateTime(created_at) + INTERVAL 365 DAY
COMMENT 'one row for each prediction of each attempt; no raw text of a trace is stored, but ids, labels and scores'
"""

_PASSES = """CREATE TABLE IF NOT EXISTS {database}.trace_reflex_passes
(
    account_user_id String,
    account_org_id String DEFAULT '',
    run_id String,
    status LowCardinality(String),
    created_at DateTime64(3, 'UTC'),
    completed_at DateTime64(3, 'UTC')
)
ENGINE = ReplacingMergeTree(completed_at)
ORDER BY ({owner}, run_id)
TTL toDateTime(created_at) + INTERVAL 365 DAY
COMMENT 'the passes that have been completed, so that the latest results of a conversation can be told'
"""


def clickhouse_ddl(database: str) -> tuple[str, ...]:
    """The statements that make the tables.

    Raises:
        InputError: the name of the database is no identifier.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", database):
        raise InputError(f"database={database!r} must be a name of letters, digits and underscores")
    return tuple(ddl.format(database=database, owner=_OWNER) for ddl in (_RESULTS, _PASSES))

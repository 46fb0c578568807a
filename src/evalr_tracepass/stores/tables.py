"""The tables of passes and results for SQLAlchemy, which PostgreSQL and SQLite share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from evalr_tracepass.stores.moments import from_ms, to_ms

NO_TEXT = "no raw text of a trace is stored here: ids, labels, scores and times only"
KEYED_HASH = "HMAC of the text under the owner's key: it tells a text again, and not what it says"

VERSION = 1
"""Of these tables."""


class Moment(TypeDecorator[datetime]):
    """A time to the millisecond: `timestamptz`, and in SQLite whole milliseconds since 1970 (UTC)."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The column's type in a dialect."""
        return dialect.type_descriptor(TIMESTAMP(timezone=True) if dialect.name == "postgresql" else BigInteger())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """As it is written."""
        if value is None:
            return None
        return from_ms(to_ms(value)) if dialect.name == "postgresql" else to_ms(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """As it is read."""
        if value is None:
            return None
        return value.astimezone(UTC) if dialect.name == "postgresql" else from_ms(value)


_JSON = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")

metadata = MetaData()


def _text(name: str, *, comment: str | None = None, empty: bool = False) -> Column[str]:
    return Column(name, Text, nullable=False, comment=comment, server_default="" if empty else None)


def _account() -> list[Column[str]]:
    return [
        _text("account_key", comment="whose: the organisation, or the user where there is none"),
        _text("account_user_id"),
        _text("account_org_id", empty=True),
    ]


schema_versions = Table(
    "reflex_trace_schema",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
)

passes = Table(
    "reflex_trace_passes",
    metadata,
    _text("id"),
    *_account(),
    _text("status"),
    Column("scope_json", _JSON, nullable=False),
    Column("selected_signals_json", _JSON, nullable=False),
    Column("transform_plan_json", _JSON, nullable=False),
    Column("estimate_json", _JSON, nullable=False, comment="what was planned, not retained and left out"),
    Column("total_inputs", Integer, nullable=False),
    Column("total_predictions", Integer, nullable=False),
    Column("completed_inputs", Integer, nullable=False),
    Column("failed_inputs", Integer, nullable=False),
    Column("error_message", Text, comment="with all but the words of errors masked"),
    Column("created_at", Moment, nullable=False),
    Column("started_at", Moment),
    Column("completed_at", Moment),
    _text("rerun"),
    Column("answered", Integer, nullable=False),
    Column("planned", Boolean, nullable=False),
    Column("alerted", Integer, nullable=False, server_default="-1"),
    PrimaryKeyConstraint("account_key", "id"),
    Index("ix_reflex_trace_passes_created", "account_key", "created_at"),
    comment=f"one row for each pass; {NO_TEXT}",
)

claims = Table(
    "reflex_trace_pass_claims",
    metadata,
    _text("account_key"),
    _text("pass_id"),
    _text("owner", comment="a word of the process that runs it"),
    Column("until_ms", BigInteger, nullable=False, comment="milliseconds since 1970, by the clock of the database"),
    PrimaryKeyConstraint("account_key", "pass_id"),
    comment="passes that are read by a process, which goes on for as long as its claim stands",
)

batches = Table(
    "reflex_trace_pass_batches",
    metadata,
    _text("account_key"),
    _text("pass_id"),
    Column("number", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    _text("idempotency_key"),
    _text("status"),
    _text("batch_id", empty=True),
    _text("said", empty=True, comment="the service's own word for its status"),
    Column("created_at", Moment, nullable=False),
    PrimaryKeyConstraint("account_key", "pass_id", "number"),
    comment=f"one row for each upload of a pass; {NO_TEXT}",
)

items = Table(
    "reflex_trace_pass_items",
    metadata,
    _text("account_key"),
    _text("pass_id"),
    _text("request_id"),
    _text("convo_id"),
    _text("event_id"),
    _text("span_id", empty=True),
    Column("turn_index", Integer),
    _text("end_user_id", empty=True),
    _text("release", empty=True),
    _text("input_kind"),
    _text("transform_id"),
    Column("transform_version", SmallInteger().with_variant(Integer(), "postgresql"), nullable=False),
    Column("source_start_time", Moment),
    Column("selected_models", _JSON, nullable=False),
    Column("truncated", Boolean, nullable=False),
    _text("input_hash", empty=True, comment=KEYED_HASH),
    Column("batch_number", Integer, comment="the upload that it was last sent in; null where it failed before"),
    Column("position", Integer, nullable=False, comment="in that upload"),
    Column("sent_models", _JSON, nullable=False, comment="the models asked for in that upload"),
    _text("status"),
    PrimaryKeyConstraint("account_key", "pass_id", "request_id"),
    Index("ix_reflex_trace_pass_items_batch", "account_key", "pass_id", "batch_number", "position"),
    comment=f"where each row of a pass came from; {NO_TEXT}",
)

results = Table(
    "trace_reflex_results",
    metadata,
    *_account(),
    _text("run_id"),
    _text("batch_id"),
    _text("request_id"),
    _text("convo_id"),
    _text("event_id"),
    _text("span_id", empty=True),
    Column("turn_index", Integer),
    _text("end_user_id", empty=True),
    _text("release", empty=True),
    _text("input_kind"),
    _text("transform_id"),
    Column("transform_version", SmallInteger().with_variant(Integer(), "postgresql"), nullable=False),
    _text("signal_id"),
    _text("reflex_model"),
    _text("model_version", empty=True),
    _text("status"),
    _text("mode", empty=True),
    _text("top_label", empty=True),
    Column("top_score", Float, nullable=False),
    Column("selected_labels", _JSON, nullable=False),
    Column("fired", Boolean, nullable=False),
    Column("threshold", Float),
    Column("truncated", Boolean, nullable=False),
    _text("classes_json", empty=True, comment="every label with its score"),
    _text("error_type", empty=True),
    _text("error_message", empty=True, comment="with all but the words of errors masked"),
    Column("source_start_time", Moment),
    Column("created_at", Moment, nullable=False, comment="when its batch was sent"),
    _text("input_hash", empty=True, comment=KEYED_HASH),
    Column("attempt", Integer, nullable=False),
    Column("superseded", Boolean, nullable=False, comment="whether a later attempt stands"),
    PrimaryKeyConstraint("account_key", "run_id", "request_id", "reflex_model", "attempt"),
    Index("ix_trace_reflex_results_convo", "account_key", "convo_id", "source_start_time"),
    comment=f"one row for each prediction of each attempt, kept for 365 days; {NO_TEXT}",
)
# None by `created_at`: every query leaves out what has expired, and SQLite would take such an index for the best.
Index(
    "ix_trace_reflex_results_fired",
    results.c.account_key,
    results.c.run_id,
    results.c.convo_id,
    results.c.source_start_time,
    sqlite_where=text("fired = 1"),
    postgresql_where=results.c.fired,
)

rollups = Table(
    "trace_reflex_conversation_rollups",
    metadata,
    _text("account_key"),
    _text("run_id"),
    _text("convo_id"),
    _text("end_user_id"),
    Column("passed_at", Moment, nullable=False, comment="when the pass was made"),
    Column("order_at", Moment, nullable=False, comment="the latest time of a row, or passed_at where there is none"),
    Column("fired_count", Integer, nullable=False),
    Column("signals_json", _JSON, nullable=False, comment="what each signal came to"),
    PrimaryKeyConstraint("account_key", "run_id", "convo_id", "end_user_id"),
    Index("ix_trace_reflex_conversation_rollups_convo", "account_key", "convo_id", "end_user_id"),
    Index("ix_trace_reflex_conversation_rollups_order", "account_key", "run_id", "order_at"),
    comment=f"one row for each conversation that a completed pass read; {NO_TEXT}",
)

conversations = Table(
    "trace_reflex_conversations",
    metadata,
    _text("account_key"),
    _text("convo_id"),
    _text("end_user_id"),
    _text("run_id", comment="the latest completed pass that read it"),
    Column("passed_at", Moment, nullable=False),
    Column("oldest_at", Moment, nullable=False, comment="when the oldest of its passes was made that still counts"),
    Column("order_at", Moment, nullable=False),
    Column("fired_count", Integer, nullable=False),
    Column("signals_json", _JSON, nullable=False, comment="of each signal, what the latest pass with it came to"),
    PrimaryKeyConstraint("account_key", "convo_id", "end_user_id"),
    Index("ix_trace_reflex_conversations_order", "account_key", "order_at"),
    comment=f"one row for each conversation, by the latest passes; {NO_TEXT}",
)
Index(
    "ix_trace_reflex_conversations_flagged",
    conversations.c.account_key,
    conversations.c.order_at,
    sqlite_where=conversations.c.fired_count > 0,
    postgresql_where=conversations.c.fired_count > 0,
)

latest = Table(
    "trace_reflex_conversation_signals",
    metadata,
    _text("account_key"),
    _text("convo_id"),
    _text("end_user_id"),
    _text("signal_id"),
    _text("run_id", comment="the latest completed pass in which the signal read the conversation"),
    Column("fired", Boolean, nullable=False),
    Column("order_at", Moment, nullable=False),
    PrimaryKeyConstraint("account_key", "convo_id", "end_user_id", "signal_id"),
    Index("ix_trace_reflex_conversation_signals_order", "account_key", "signal_id", "fired", "order_at"),
    comment=f"which pass of each signal counts for each conversation; {NO_TEXT}",
)

signals = Table(
    "reflex_trace_signal_configs",
    metadata,
    *_account(),
    _text("signal_id"),
    _text("model_alias"),
    _text("display_name"),
    _text("transform_id"),
    Column("transform_version", Integer, nullable=False),
    Column("transform_config", _JSON, nullable=False),
    Column("threshold_config", _JSON, nullable=False),
    Column("monitor", Boolean, nullable=False),
    Column("config", _JSON, nullable=False, comment="the whole signal"),
    Column("created_at", Moment),
    Column("updated_at", Moment),
    PrimaryKeyConstraint("account_key", "signal_id"),
    comment="signals of one's own",
)

presets = Table(
    "reflex_trace_presets",
    metadata,
    *_account(),
    _text("name"),
    Column("config", _JSON, nullable=False),
    Column("monitor", Boolean, nullable=False),
    Column("created_at", Moment),
    Column("updated_at", Moment),
    PrimaryKeyConstraint("account_key", "name"),
    comment="signals that are run together",
)

monitors = Table(
    "reflex_trace_monitors",
    metadata,
    _text("account_key"),
    _text("name"),
    Column("watermark", Moment, comment="conversations that ended before it have been read"),
    _text("pass_id", empty=True),
    Column("until", Moment),
    PrimaryKeyConstraint("account_key", "name"),
    comment="how far each monitor has come",
)

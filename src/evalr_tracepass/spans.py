"""Traces of a table of spans in ClickHouse, one row for each call of a model or a tool, whatever its columns are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Literal, get_args

from pydantic import ValidationError

from evalr.errors import InputError
from evalr.estimates.words import choice_words
from evalr.inputs import ToolCall, Transcript, Turn
from evalr_tracepass.sources import Source

SpanField = Literal[
    "convo_id",
    "event_id",
    "span_id",
    "start_time",
    "user_text",
    "agent_text",
    "tool_name",
    "tool_arguments",
    "tool_status",
    "tool_error",
    "tool_result",
    "user",
    "release",
    "model",
    "input_tokens",
    "output_tokens",
    "latency",
    "finish_reason",
    "error",
]
"""What a column of a table of spans may hold."""

FIELDS: tuple[str, ...] = get_args(SpanField)
METADATA = ("span_id", "model", "input_tokens", "output_tokens", "latency", "finish_reason", "error")
NUMBERS = ("input_tokens", "output_tokens", "latency")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

UNREADABLE = "span that cannot be read"


def span_traces(
    client: Any,
    table: str,
    columns: Mapping[SpanField, str],
    *,
    where: Mapping[str, str] | None = None,
) -> Source:
    """The conversations of a table of spans, which the server puts in order and this side never holds as a whole.

    A span of a model's call makes a turn of the person, with what it was given, and one of the agent, with what it
    answered; both have its event. Further spans of one event repeat what the person said, which is taken once. A span
    with a tool's name makes a turn of the agent with that call.

    Args:
        client: a client of clickhouse-connect; it is only asked to read.
        table: the name of the table or view, with its database where it needs one, such as "traces.spans".
        columns: by field, the name of its column. `convo_id` and `start_time` must be there; without `event_id`, every
            span is an event of its own.
        where: by column, what it must equal, such as the account's id.

    Raises:
        InputError: a field is unknown, or one that is needed has no column.
    """
    unknown = next((name for name in columns if name not in FIELDS), None)
    if unknown is not None:
        raise InputError(f"columns names {unknown!r}; {choice_words(str(unknown), FIELDS)}")
    missing = next((name for name in ("convo_id", "start_time") if name not in columns), None)
    if missing is not None:
        raise InputError(f"columns has no {missing}: say which column of {table} it is")
    fields = [name for name in FIELDS if name in columns]
    query, parameters = _query(table, columns, fields, where or {})

    def begin(left_out: Counter[str]) -> Iterator[Transcript]:
        with client.query_row_block_stream(query, parameters=parameters) as blocks:
            rows = (dict(zip(fields, row, strict=True)) for block in blocks for row in block)
            for convo, spans in groupby(rows, key=lambda row: row["convo_id"]):
                made = _transcript(str(convo), spans, left_out)
                if made is not None:
                    yield made

    return Source(table, begin)


def _query(
    table: str, columns: Mapping[Any, str], fields: Sequence[str], where: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    # Times as milliseconds since 1970: how a client shows them depends on the server's zone, and its own.
    shown = [
        f"toUnixTimestamp64Milli(toDateTime64({_quoted(columns[name])}, 3))"
        if name == "start_time"
        else f"toString({_quoted(columns[name])})"
        for name in fields
    ]
    wanted = [f"{_quoted(column)} = {{w{place}:String}}" for place, column in enumerate(where)]
    order = [_quoted(columns[name]) for name in ("convo_id", "start_time", "event_id", "span_id") if name in columns]
    query = f"SELECT {', '.join(shown)} FROM {'.'.join(map(_quoted, table.split('.')))}"
    query += f" WHERE {' AND '.join(wanted)}" if wanted else ""
    return f"{query} ORDER BY {', '.join(order)}", {f"w{place}": value for place, value in enumerate(where.values())}


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("`", "\\`")
    return f"`{escaped}`"


def _transcript(convo: str, spans: Iterable[Mapping[str, Any]], left_out: Counter[str]) -> Transcript | None:
    turns: list[Turn] = []
    asked: dict[str, str] = {}
    user = release = ""
    last_said = None
    for place, span in enumerate(spans):
        event = span.get("event_id") or f"span-{place + 1}"
        at = EPOCH + timedelta(milliseconds=int(span["start_time"]))
        said = span.get("user_text")
        user, release = user or span.get("user") or "", release or span.get("release") or ""
        metadata = {
            name: _number(span[name]) if name in NUMBERS else span[name]
            for name in METADATA
            if span.get(name) not in (None, "", "0", "false")
        }
        try:
            if span.get("tool_name"):
                if turns and _only_calls(turns[-1], event):
                    metadata = {**metadata, **turns.pop().metadata}
                turns.append(Turn(role="agent", id=event, at=at, tool_calls=[_call(span)], metadata=metadata))
                continue
            if said is not None and asked.get(event) != said and not ("event_id" not in span and said == last_said):
                turns.append(Turn(role="person", text=said, id=event, at=at, metadata=metadata))
                asked[event] = last_said = said
            if "agent_text" in span:
                turns.append(Turn(role="agent", text=span["agent_text"], id=event, at=at, metadata=metadata))
        except ValidationError:
            left_out[UNREADABLE] += 1
    if not convo or not turns:
        left_out["spans of no conversation"] += 1
        return None
    request = next((turn.text for turn in turns if turn.role == "person"), "")
    attributes: dict[str, str | list[str]] = {"release": release} if release else {}
    return Transcript(id=convo, user=user or None, request=request, turns=turns, attributes=attributes)


def _only_calls(turn: Turn, event: str) -> bool:
    """Whether a turn is of a model that said nothing, but called the tool whose span comes next."""
    return turn.role == "agent" and turn.id == event and not turn.text and not turn.tool_calls


def _number(value: str) -> str | int | float:
    """A number as one."""
    try:
        return int(value) if value.isdecimal() else float(value)
    except ValueError:
        return value


def _call(span: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        name=span["tool_name"],
        id=span.get("span_id") or None,
        arguments=span.get("tool_arguments") or None,
        status=span.get("tool_status") or None,
        error=span.get("tool_error") or None,
        result=span.get("tool_result"),
    )

"""Where traces come from: logs, frames, tables of spans."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalr.errors import InputError, LogError
from evalr.logs import to_line
from evalr.measures import Activity, Session
from evalr.tracepass import DEFAULT_SIGNALS, frame_traces, log_sources, log_traces, plan, span_traces

START = datetime(2026, 9, 28, 9, tzinfo=UTC)


def test_R1_a_log_that_a_reader_knows_feeds_a_plan_as_often_as_it_is_asked(tmp_path: Path) -> None:
    lines = [
        {"id": f"c{n}", "request": "hi", "turns": [{"role": "person", "text": "hi", "at": "2026-09-28T09:00:00Z"}]}
        for n in range(3)
    ]
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(map(json.dumps, [*lines, {"id": "bad", "request": "x", "turns": 3}])), encoding="utf-8")
    source = log_traces(path)
    made = plan([DEFAULT_SIGNALS["jailbreak"]])
    assert made.estimate(source).inputs == 3
    assert [row.item.convo_id for row in made.rows(source)] == ["c0", "c1", "c2"]
    assert sum(source.left_out.values()) == 1


def test_R1_a_log_of_times_alone_has_nothing_to_read(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    path.write_text(to_line(Session(id="s", activities=[Activity(at=START, role="person")])), encoding="utf-8")
    with pytest.raises(LogError, match="no conversation with turns in 1 record"):
        list(log_traces(path))


def test_B20_a_folder_of_traces_is_all_the_logs_in_it(tmp_path: Path) -> None:
    for place in ("a.jsonl", "more/b.jsonl"):
        path = tmp_path / place
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            json.dumps({"id": place, "request": "hi", "turns": [{"role": "person", "text": "hi"}]}), encoding="utf-8"
        )
    (tmp_path / "times.jsonl").write_text(to_line(Session(id="s", activities=[])), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no log", encoding="utf-8")
    (tmp_path / ".hidden.jsonl").write_text("{}", encoding="utf-8")
    source = log_traces(tmp_path)
    assert [trace.id for trace in source] == ["a.jsonl", "more/b.jsonl"]
    assert source.left_out == {"file of a kind that no reader knows": 1, "file without a conversation": 1}
    names = [Path(each.name).name for each in log_sources(tmp_path)]
    assert names == ["a.jsonl", "b.jsonl", "times.jsonl"]


def test_B20_a_folder_without_a_log_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no log", encoding="utf-8")
    with pytest.raises(LogError, match=r"no file in it is a log.*1 file looked at"):
        list(log_traces(tmp_path))
    with pytest.raises(LogError, match="no such file"):
        list(log_traces(tmp_path / "none"))


def test_R1_a_frame_with_a_row_for_each_turn_is_a_source() -> None:
    rows = [
        {"id": "c", "user": "u", "role": role, "text": text, "at": START, "turn_id": f"e{place}"}
        for place, (role, text) in enumerate([("user", "hi"), ("assistant", "hello")])
    ]
    (row,) = plan([DEFAULT_SIGNALS["leaked-thinking"]]).rows(frame_traces(rows))
    assert (row.text, row.request_id) == ("hello", "assistant_turn:c:e1::assistant_message:0")


# A table of spans, in ClickHouse's own engine

COLUMNS = {
    "convo_id": "conv`o",
    "event_id": "event",
    "span_id": "span",
    "start_time": "started",
    "user_text": "input",
    "agent_text": "output",
    "tool_name": "tool",
    "tool_error": "error",
    "output_tokens": "tokens",
    "user": "end_user",
    "release": "version",
}


@pytest.fixture(scope="module")
def client(chdb_client: Any) -> Any:
    made = chdb_client
    made.command(
        "CREATE TABLE spans (`conv``o` String, event String, span String, started DateTime64(3, 'Asia/Tokyo'), "
        "input String, output Nullable(String), tool LowCardinality(String), error String, tokens UInt32, "
        "end_user String, version String, org String) ENGINE = MergeTree ORDER BY started".replace("``", "\\`")
    )
    made.command(
        "INSERT INTO spans VALUES "
        "('c:2', 'e1', 's9', '2026-09-28 18:00:02', 'x', 'y', '', '', 5, 'u2', '', 'mine'),"
        "('c1', 'e1', 's1', '2026-09-28 18:00:00.5', 'fix it', '', '', '', 3, 'u1', '1.2', 'mine'),"
        "('c1', 'e1', 's2', '2026-09-28 18:00:01', '', '', 'Bash', 'boom', 0, 'u1', '1.2', 'mine'),"
        "('c1', 'e1', 's3', '2026-09-28 18:00:02', 'fix it', 'done', '', '', 5, 'u1', '1.2', 'mine'),"
        "('c1', 'e2', 's4', '2026-09-28 18:00:03', 'fix it', '', '', '', 5, 'u1', '1.2', 'mine'),"
        "('c3', 'e1', 's1', '2026-09-28 18:00:00', 'secret', 'z', '', '', 5, 'u3', '', 'theirs')"
    )
    yield made
    made.command("DROP TABLE spans")


def test_R1_a_table_of_spans_becomes_conversations(client: Any) -> None:
    first, second = span_traces(client, "spans", COLUMNS, where={"org": "mine"})  # type: ignore[arg-type]
    assert (first.id, first.user, first.attributes, second.id) == ("c1", "u1", {"release": "1.2"}, "c:2")
    assert [(turn.role, turn.text, turn.id, [call.name for call in turn.tool_calls]) for turn in first.turns] == [
        ("person", "fix it", "e1", []),
        ("agent", "", "e1", ["Bash"]),
        ("agent", "done", "e1", []),
        ("person", "fix it", "e2", []),
        ("agent", "", "e2", []),
    ]
    assert first.turns[0].at == datetime(2026, 9, 28, 9, 0, 0, 500_000, tzinfo=UTC)
    assert first.turns[2].metadata == {"span_id": "s3", "output_tokens": 5}


def test_R9_rows_of_spans_lead_back_to_them(client: Any) -> None:
    source = span_traces(client, "spans", COLUMNS, where={"org": "mine"})  # type: ignore[arg-type]
    made = plan([DEFAULT_SIGNALS["jailbreak"], DEFAULT_SIGNALS["stuck-in-a-loop"]])
    rows = list(made.rows(source))
    assert [row.request_id for row in rows] == [
        "user_turn:c1:e1:s1:user_message:0",
        "user_turn:c1:e2:s4:user_message:0",
        "assistant_turn:c1:e1:s3:assistant_message:0",
        "user_turn:c%3A2:e1:s9:user_message:0",
        "assistant_turn:c%3A2:e1:s9:assistant_message:0",
    ]
    assert rows[3].item.convo_id == "c:2"
    # The last span of c1 has no content.
    assert made.estimate(source).not_retained == 1


def test_R1_an_account_sees_its_own_spans(client: Any) -> None:
    assert [trace.id for trace in span_traces(client, "spans", COLUMNS, where={"org": "theirs"})] == ["c3"]  # type: ignore[arg-type]
    hostile = "x' OR '1'='1"
    assert list(span_traces(client, "spans", COLUMNS, where={"org": hostile})) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("columns", "words"),
    [({"convo_id": "c", "start_time": "t", "text": "x"}, "names 'text'"), ({"convo_id": "c"}, "no start_time")],
)
def test_R1_columns_that_cannot_be_mapped_are_refused(columns: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        span_traces(None, "spans", columns)

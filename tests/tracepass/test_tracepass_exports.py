"""Records exported elsewhere are read back, and reported on like any log."""

from __future__ import annotations

import csv
import json
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tracepass_records import AT, record

from evalr.errors import InputError, LogError
from evalr.logs import read
from evalr.logs.log import Stored
from evalr.reports.report import report
from evalr.tracepass import fired_conversations, fired_results, latest_records, read_records, write_records
from evalr_tracepass.record_reader import RecordReader
from evalr_tracepass.record_rows import NO_FIRING_LABEL

NOW = AT + timedelta(days=2)

RECORDS = [
    record("a:1", 0, 0.9, selected_labels=("loud", 'it\'s, "so" loud')),
    record("a:1", 1, 0.1, turn_index=None, user="", threshold=None),
    record("b", 0, error_type="timeout", error_message="=1+1"),
    record("c", 0, 0.1, source_start_time=None, truncated=True, input_hash="x"),
]

CLICKHOUSE = {
    "account_user_id": "u1",
    "account_org_id": "acme",
    "run_id": "run-1",
    "batch_id": "rbatch-1",
    "request_id": "user_turn:convo_1:event_1::user_message:0",
    "convo_id": "convo_1",
    "event_id": "event_1",
    "span_id": "",
    "input_kind": "user_chat",
    "transform_id": "user_message",
    "transform_version": 1,
    "reflex_model": "user-frustration",
    "status": "completed",
    "mode": "single_label",
    "top_label": "frustrated",
    "top_score": 0.97,
    "selected_labels": ["frustrated"],
    "classes_json": '[{"label":"frustrated","score":0.97,"selected":true}]',
    "error_type": "",
    "error_message": "",
    "source_start_time": "2026-11-01 09:00:00.000",
    "created_at": "2026-11-02 09:00:00.000",
}
"""A row with the service's own columns, as ClickHouse writes it with JSONEachRow."""


def clean(**other: Any) -> dict[str, Any]:
    classes = '[{"label":"not frustrated","score":0.8,"selected":true},{"label":"frustrated","score":0.2}]'
    return {
        **CLICKHOUSE,
        "convo_id": "convo_2",
        "request_id": "user_turn:convo_2:event_1::user_message:0",
        "top_label": "not frustrated",
        "top_score": 0.800000011920929,
        "selected_labels": ["not frustrated"],
        "classes_json": classes,
        **other,
    }


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_B19_what_is_exported_reads_back_equal(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"passes.{ending}"
    assert write_records(path, RECORDS) == 4
    assert read_records(path) == RECORDS
    with path.open("rb") as file:
        assert RecordReader().claim(path, file.read(1 << 16)) == 1.0


def test_B19_another_ending_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.jsonl, \.csv, \.parquet"):
        write_records(tmp_path / "passes.xlsx", RECORDS)


def test_R12_rows_of_the_service_are_read(tmp_path: Path) -> None:
    found = read_records(lines(tmp_path / "rows.jsonl", CLICKHOUSE, clean()))
    assert [each.fired for each in found] == [True, False]
    assert [each.signal_id for each in found] == ["user-frustration"] * 2
    assert found[0].source_start_time is not None
    assert found[0].source_start_time.isoformat() == "2026-11-01T09:00:00+00:00"
    estimate = fired_conversations.estimate(fired_results(latest_records(found)))
    assert estimate.counts == {"hits": 1, "total": 2}


def test_R12_rows_of_the_service_as_csv(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(CLICKHOUSE))
        writer.writeheader()
        writer.writerow({**CLICKHOUSE, "selected_labels": "['frustrated','it\\'s']"})
    assert read_records(path)[0].selected_labels == ("frustrated", "it's")


def test_R12_a_custom_model_says_which_label_fires(tmp_path: Path) -> None:
    row = {**CLICKHOUSE, "reflex_model": "handoff", "selected_labels": ["dropped"], "classes_json": ""}
    path = lines(tmp_path / "rows.jsonl", row)
    with pytest.raises(LogError, match="fires_on=model=label"):
        read_records(path)
    assert read_records(path, fires_on=["handoff=dropped"])[0].fired
    assert not read_records(path, fires_on=["handoff=kept"])[0].fired
    log = read(path, kind="tracepass")
    assert list(log) == []
    assert log.left_out.counts == {NO_FIRING_LABEL: 1}


def test_R12_a_store_is_read_by_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as made:
        names = list(CLICKHOUSE)
        made.execute(f"CREATE TABLE results ({', '.join(names)})")
        row = {**CLICKHOUSE, "selected_labels": '["frustrated"]'}
        made.execute(f"INSERT INTO results VALUES ({', '.join('?' * len(names))})", [row[name] for name in names])
    made.close()
    assert read_records(path)[0].fired
    with path.open("rb") as file:
        assert RecordReader().claim(path, file.read(1 << 16)) == 1.0


def test_B18_accounts_are_never_put_together(tmp_path: Path) -> None:
    path = lines(tmp_path / "rows.jsonl", CLICKHOUSE, clean(account_org_id="globex"))
    with pytest.raises(LogError, match="several accounts"):
        list(read(path, kind="tracepass"))
    log = read(path, kind="tracepass", account_org="acme")
    assert len(list(log)) == 1
    assert log.left_out.counts == {"other account": 1}


def test_B18_everyone_of_an_organisation_is_one_account(tmp_path: Path) -> None:
    path = lines(tmp_path / "rows.jsonl", CLICKHOUSE, clean(account_user_id="u2"))
    assert len(list(read(path, kind="tracepass"))) == 2


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"status": "pending"}, "pending"),
        ({"status": "odd"}, "status that is neither completed nor failed"),
        ({"convo_id": ""}, "missing field 'convo_id'"),
        ({"top_score": 7}, "score that is not from 0 to 1"),
        ({"top_score": "x"}, "score that cannot be read"),
        ({"created_at": "yesterday"}, "time that cannot be read"),
        ({"classes_json": "{"}, "classes_json that cannot be read"),
        ({"selected_labels": "a, b"}, "selected_labels that are no list"),
        ({"transform_version": "two"}, "number that cannot be read"),
    ],
)
def test_R12_rows_that_cannot_be_used_are_counted(tmp_path: Path, wrong: dict[str, Any], reason: str) -> None:
    log = read(lines(tmp_path / "rows.jsonl", {**CLICKHOUSE, **wrong}, clean()), kind="tracepass")
    items = [each for each in log if isinstance(each, Stored)]
    assert len(items) == 1
    assert log.left_out.counts == {reason: 1}
    assert log.left_out.places == {reason: ["row 1"]}


def test_R12_an_empty_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no records"):
        read_records(lines(tmp_path / "rows.jsonl"))


def test_R12_a_report_calls_signals_what_the_picker_calls_them(tmp_path: Path) -> None:
    names = ("user-frustration", "jailbreak", "mine")
    path = tmp_path / "passes.jsonl"
    write_records(path, [record("a", 0, 0.9, signal_id=name, reflex_model=name) for name in names])
    found = str(report(path, now=NOW))
    for name in ("User Frustration", "Jailbreak", "mine@"):
        assert f"conversations flagged · {name}" in found
    assert "user-frustration" not in found
    # What no such log can hold is not said to be missing from it; asked for by its name it is.
    assert "no verdicts in this log" not in found
    assert "no verdicts in this log" in str(report(path, now=NOW, measures=["completion"]))


def test_R12_versions_of_one_signal_are_told_apart_in_a_report(tmp_path: Path) -> None:
    path = tmp_path / "passes.jsonl"
    made = {"signal_id": "jailbreak", "reflex_model": "jailbreak"}
    write_records(path, [record("a", turn, 0.9, model_version=str(turn), **made) for turn in (1, 2)])
    found = str(report(path, now=NOW))
    assert "conversations flagged · Jailbreak@1:user_message@1" in found
    assert "conversations flagged · Jailbreak@2:user_message@1" in found

"""Sinks: what they are given is there afterwards, once, for whoever reads it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from pydantic import BaseModel

from evalr.errors import MissingExtraError, SinkError
from evalr.inputs import About
from evalr.logs import Stored, read
from evalr.measures import TaskCompletion, completion_rate
from evalr.runs import JsonlSink, MemorySink, OtelSink, Sink
from evalr.verdicts import Failure, HandOff, Result, Skip, Verdict

T = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def about(name: str, **fields: Any) -> About:
    return About("session", name, "u1", at=T, attributes=fields.pop("attributes", {}), **fields)


def verdict(name: str, *, completed: bool = True, reason: str = "did it", **fields: Any) -> Verdict[TaskCompletion]:
    value = TaskCompletion(completed=completed, quality=4, reason=reason)
    return Verdict(value, "completion", "2", about(name), **fields)


def four(name: str = "s") -> list[Result[Any]]:
    shared = ("completion", "2")
    return [
        verdict(f"{name}1", latency=0.5, cost=0.01, as_of=T, flags=("truncated",), given_by="judge@2"),
        Failure("RuntimeError: no", *shared, about(f"{name}2"), exception=RuntimeError("no")),
        Skip("not a task", *shared, about(f"{name}3")),
        HandOff("unsure", *shared, about(f"{name}4"), verdict=verdict(f"{name}4")),
    ]


def write(sink: Sink, *results: Result[Any], superseding: bool = False) -> None:
    asyncio.run(sink.write(results, superseding=superseding))


def stored(path: Path) -> list[Result[Any]]:
    return [item.result for item in read(path) if isinstance(item, Stored)]


# Memory


def test_memory_keeps_the_latest_of_each_subject() -> None:
    sink = MemorySink()
    write(sink, *four())
    write(sink, verdict("s1", completed=False), superseding=True)
    write(sink, Skip("about nothing", "completion"), Skip("about nothing", "completion"))
    assert [result.status for result in sink.results] == [
        "failed", "skipped", "handed_off", "verdict", "skipped", "skipped",
    ]  # fmt: skip
    assert sink.superseded == 1
    assert completion_rate(sink.results) == 0.0


# A log


def test_a_log_reads_back_what_was_written(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "verdicts.jsonl")
    write(sink, *four())
    write(sink, *four("t"))
    assert stored(sink.path) == [*four(), *four("t")]


def test_a_later_verdict_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "verdicts.jsonl")
    write(sink, *[verdict(f"s{n}") for n in range(10)])
    write(sink, verdict("s3", completed=False), superseding=True)
    write(sink, verdict("new"))
    write(sink, verdict("s3", completed=False, reason="again"), verdict("s4", completed=False), superseding=True)
    found = stored(sink.path)
    assert {result.about.id: result.value.completed for result in found if result.about} == {
        **{f"s{n}": n not in (3, 4) for n in range(10)},
        "new": True,
    }
    assert len(found) == 11
    assert completion_rate(found) == 9 / 11
    log = read(sink.path)
    list(log)
    assert log.left_out.counts == {"superseded": 3}
    assert not log.left_out.faults


def test_a_report_counts_each_subject_once_by_its_latest_verdict(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "verdicts.jsonl")
    write(sink, *[verdict(f"s{n}") for n in range(4)])
    write(sink, verdict("s3", completed=False), superseding=True)
    command = [sys.executable, "-m", "evalr.cli", "report", str(sink.path), "--json"]
    done = subprocess.run(command, env=env(), capture_output=True, text=True, timeout=60, check=True)
    assert '"value": 0.75' in done.stdout


def env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def test_a_line_that_a_crash_cut_off_spoils_no_other(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "verdicts.jsonl")
    write(sink, verdict("s1"))
    with sink.path.open("a") as file:
        file.write('{"type":"result","status":"verd')
    write(JsonlSink(sink.path), verdict("s2"))
    log = read(sink.path)
    found = [item.result.about.id for item in log if isinstance(item, Stored) and item.result.about]
    assert found == ["s1", "s2"]
    assert log.left_out.total == 1


WRITER = """
import asyncio, sys
from evalr.inputs import About
from evalr.measures import TaskCompletion
from evalr.runs import JsonlSink
from evalr.verdicts import Verdict

async def main(who):
    sink = JsonlSink("verdicts.jsonl")
    for n in range(30):
        value = TaskCompletion(completed=True, quality=3, reason="x" * 20_000)
        await sink.write([Verdict(value, "completion", about=About("session", f"{who}-{n}-{k}")) for k in range(3)])

asyncio.run(main(sys.argv[1]))
"""


def test_processes_write_whole_lines_into_one_log(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(who)], cwd=tmp_path, env=env()) for who in range(3)
    ]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    lines = (tmp_path / "verdicts.jsonl").read_text().splitlines()
    names = [json.loads(line)["about"]["id"] for line in lines]
    assert sorted(names) == sorted(f"{who}-{n}-{k}" for who in range(3) for n in range(30) for k in range(3))


def test_a_log_that_is_moved_away_is_begun_anew(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "verdicts.jsonl")
    write(sink, verdict("s1"))
    sink.path.rename(tmp_path / "old.jsonl")
    write(sink, verdict("s2"))
    assert [len(stored(path)) for path in (sink.path, tmp_path / "old.jsonl")] == [1, 1]


def test_a_log_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match=r"nowhere.verdicts\.jsonl: results cannot be added: No such file"):
        write(JsonlSink(tmp_path / "nowhere" / "verdicts.jsonl"), verdict("s"))


def test_a_disk_that_fills_up_leaves_no_part_of_what_comes_again(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource", reason="there is no limit of a file's size to stand for a full disk")
    sink = JsonlSink(tmp_path / "verdicts.jsonl")
    write(sink, verdict("s0"))
    there = sink.path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (there + 1000, hard))
    try:
        with pytest.raises(SinkError, match="cannot be added"):
            write(sink, *(verdict(f"s{n}") for n in range(1, 20)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sink.path.stat().st_size == there
    write(sink, *(verdict(f"s{n}") for n in range(1, 20)))
    assert [result.about.id for result in stored(sink.path) if result.about] == [f"s{n}" for n in range(20)]


def test_hostile_texts_are_written_as_they_are(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "verdicts.jsonl")
    texts = ['"},"supersedes":true}\n{"type":"result"', "\u2028 \x00 \x1b[2J {x}", "é" * 10]
    write(sink, *[verdict(f"s{n}", reason=text) for n, text in enumerate(texts)])
    assert [result.value.reason for result in stored(sink.path) if isinstance(result, Verdict)] == texts


# Telemetry


class Telemetry:
    """A real SDK, whose exporters keep what they are given."""

    def __init__(self) -> None:
        self._spans, self._events = InMemorySpanExporter(), InMemoryLogRecordExporter()
        self.tracer_provider, self.logger_provider = TracerProvider(), LoggerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.logger_provider.add_log_record_processor(SimpleLogRecordProcessor(self._events))

    def sink(self, **options: Any) -> OtelSink:
        return OtelSink(self.tracer_provider, self.logger_provider, **options)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    @property
    def events(self) -> list[Any]:
        return [each.log_record for each in self._events.get_finished_logs()]


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


def test_a_verdict_is_a_span_and_an_event_for_each_score(telemetry: Telemetry) -> None:
    given = verdict("s1", latency=0.5, cost=0.01, flags=("truncated",), given_by="judge@2")
    write(telemetry.sink(), given)
    (span,) = telemetry.spans
    assert span.name == "evaluate completion"
    assert span.parent is None
    assert span.end_time is not None
    assert span.start_time is not None
    assert span.end_time - span.start_time == 500_000_000
    assert dict(span.attributes or {}) == {
        "evalr.evaluator": "completion",
        "evalr.version": "2",
        "evalr.status": "verdict",
        "evalr.flags": ("truncated",),
        "evalr.given_by": "judge@2",
        "evalr.input.kind": "session",
        "evalr.input.id": "s1",
        "gen_ai.conversation.id": "s1",
        "evalr.latency": 0.5,
        "evalr.cost": 0.01,
    }
    events = {event.attributes["gen_ai.evaluation.name"]: event for event in telemetry.events}
    assert set(events) == {"completion.completed", "completion.quality"}
    for event in events.values():
        assert event.event_name == "gen_ai.evaluation.result"
        assert event.attributes["gen_ai.evaluation.explanation"] == "did it"
        assert (event.trace_id, event.span_id) == (span.context.trace_id, span.context.span_id)
        assert event.severity_number == SeverityNumber.INFO
        assert "error.type" not in event.attributes
    completed, quality = events["completion.completed"].attributes, events["completion.quality"].attributes
    assert (completed["gen_ai.evaluation.score.value"], completed["gen_ai.evaluation.score.label"]) == (1.0, "true")
    assert quality["gen_ai.evaluation.score.value"] == 4.0
    assert "gen_ai.evaluation.score.label" not in quality
    assert completed["evalr.score.id"] != quality["evalr.score.id"]


def test_choices_are_labels_and_unknown_fields_have_no_event(telemetry: Telemetry) -> None:
    write(telemetry.sink(), Verdict(Ending(outcome="continued", cause=None), "drop_off", about=about("s")))
    (event,) = telemetry.events
    assert event.attributes["gen_ai.evaluation.name"] == "drop_off.outcome"
    assert event.attributes["gen_ai.evaluation.score.label"] == "continued"
    assert "gen_ai.evaluation.score.value" not in event.attributes
    assert "gen_ai.evaluation.explanation" not in event.attributes


class Ending(BaseModel):
    outcome: Literal["continued", "dropped", "pending"]
    cause: Literal["no_reply"] | None = None


class Many(BaseModel):
    kinds: list[Literal["a", "b"]]
    share: float


def test_lists_are_one_label_and_what_is_not_finite_is_left_out(telemetry: Telemetry) -> None:
    write(telemetry.sink(), Verdict(Many(kinds=["a", "b"], share=float("nan")), "many", about=about("s")))
    (event,) = telemetry.events
    assert event.attributes["gen_ai.evaluation.score.label"] == "a, b"


def test_failures_have_an_error_type_and_the_others_their_reason(telemetry: Telemetry) -> None:
    _, failure, skip, hand_off = four()
    write(telemetry.sink(), failure, skip, hand_off)
    assert [span.status.status_code for span in telemetry.spans] == [
        StatusCode.ERROR,
        StatusCode.UNSET,
        StatusCode.UNSET,
    ]
    seen = [
        (
            event.attributes["evalr.status"],
            event.attributes.get("error.type"),
            event.attributes["gen_ai.evaluation.explanation"],
            event.severity_number,
        )
        for event in telemetry.events
    ]
    assert seen == [
        ("failed", "RuntimeError", "RuntimeError: no", SeverityNumber.ERROR),
        ("skipped", None, "not a task", SeverityNumber.INFO),
        ("handed_off", None, "unsure", SeverityNumber.INFO),
    ]
    assert not any("gen_ai.evaluation.score.value" in event.attributes for event in telemetry.events)


def test_events_belong_to_the_span_that_was_judged(telemetry: Telemetry) -> None:
    with telemetry.tracer_provider.get_tracer("app").start_as_current_span("chat") as chat:
        judged = chat.get_span_context()
    attributes: dict[str, str | list[str]] = {
        "trace_id": f"{judged.trace_id:032x}",
        "span_id": f"{judged.span_id:016x}",
        "gen_ai.response.id": "resp-7",
    }
    given = Verdict(Ending(outcome="continued"), "drop_off", about=about("s", attributes=attributes, weight=4.0))
    write(telemetry.sink(), given)
    (span,) = [each for each in telemetry.spans if each.name != "chat"]
    assert [(link.context.trace_id, link.context.span_id) for link in span.links] == [(judged.trace_id, judged.span_id)]
    assert span.context.trace_id != judged.trace_id
    (event,) = telemetry.events
    assert (event.trace_id, event.span_id) == (judged.trace_id, judged.span_id)
    assert event.attributes["gen_ai.response.id"] == "resp-7"
    assert event.attributes["evalr.weight"] == 4.0


@pytest.mark.parametrize("trace", ["", "0" * 32, "xyz", "a" * 31, "\u0661" * 32])
def test_a_span_id_that_is_none_is_no_link(telemetry: Telemetry, trace: str) -> None:
    attributes: dict[str, str | list[str]] = {"trace_id": trace, "span_id": "1" * 16}
    write(telemetry.sink(), Verdict(Ending(outcome="continued"), "drop_off", about=about("s", attributes=attributes)))
    (span,), (event,) = telemetry.spans, telemetry.events
    assert span.links == ()
    assert event.span_id == span.context.span_id


def test_a_later_verdict_says_so_under_the_same_id(telemetry: Telemetry) -> None:
    sink = telemetry.sink()
    write(sink, Verdict(Ending(outcome="pending"), "drop_off", about=about("s")))
    write(sink, Verdict(Ending(outcome="continued"), "drop_off", about=about("s")), superseding=True)
    first, second = telemetry.events
    assert first.attributes["evalr.score.id"] == second.attributes["evalr.score.id"]
    assert [event.attributes.get("evalr.supersedes") for event in (first, second)] == [None, True]


def test_people_are_not_named_and_texts_stay_where_that_is_asked_for(telemetry: Telemetry) -> None:
    write(telemetry.sink(explanations=False), verdict("s1", reason="secret"), Failure("secret", "completion", "2"))
    told = repr([span.to_json() for span in telemetry.spans]) + repr(
        [(event.attributes, event.body) for event in telemetry.events]
    )
    assert "secret" not in told
    assert "u1" not in told


def test_without_an_sdk_nothing_is_lost_in_silence() -> None:
    with pytest.raises(SinkError, match="spans would go nowhere"):
        write(OtelSink(), verdict("s"))
    with pytest.raises(SinkError, match="events would go nowhere"):
        write(OtelSink(TracerProvider()), verdict("s"))


def test_the_applications_own_providers_are_used_once_they_are_set() -> None:
    script = """
import asyncio
from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from evalr.measures import TaskCompletion
from evalr.runs import OtelSink
from evalr.verdicts import Verdict

sink = OtelSink()  # before the application has set up its own
spans, events = InMemorySpanExporter(), InMemoryLogRecordExporter()
tracers, loggers = TracerProvider(), LoggerProvider()
tracers.add_span_processor(SimpleSpanProcessor(spans))
loggers.add_log_record_processor(SimpleLogRecordProcessor(events))
trace.set_tracer_provider(tracers)
_logs.set_logger_provider(loggers)
value = TaskCompletion(completed=True, quality=3, reason="")
asyncio.run(sink.write([Verdict(value, "completion")]))
asyncio.run(sink.close())
print(len(spans.get_finished_spans()), len(events.get_finished_logs()))
"""
    done = subprocess.run([sys.executable, "-c", script], env=env(), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "2"]


def test_without_opentelemetry_the_sink_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'evalr\[otel\]'"):
        OtelSink()


def test_sinks_are_sinks() -> None:
    assert all(isinstance(sink, Sink) for sink in (MemorySink(), JsonlSink("x"), Telemetry().sink()))

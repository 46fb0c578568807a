"""Two lanes, one truth: whatever a log holds, `evalr.bulk` says of it what `evalr.report` says."""

from __future__ import annotations

import io
import json
import pickle
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import evalr
from evalr import TimeBucket, bulk
from evalr.bulk import parts, worker
from evalr.bulk import rows as fast_path
from evalr.bulk.sending import receive_reading
from evalr.bulk.worker import Part
from evalr.errors import EvalrError, LogError, RecordError
from evalr.logs import read
from evalr.measures import Marker, Measure, Session, installed_measures
from evalr.measures.rows import RowReader, SessionRow
from evalr.reports.reading import Reading
from evalr.summaries.columns import Hits, Times
from evalr.tallies.numbering import Numbering

DROP_OFF, WAITS = (installed_measures().loaded[name] for name in ("drop_off", "waits"))
NOW = datetime(2026, 9, 10, 12, tzinfo=UTC)
BEGIN = datetime(2026, 9, 10, 8, tzinfo=UTC)

# ---------------------------------------------------------------------------------------------------------------------
# Lines, of all that a log may hold
# ---------------------------------------------------------------------------------------------------------------------

minutes = st.sampled_from([-500, -470, 0, 0, 1, 30, 59, 60, 61, 120, 200, 239, 240, 241, 300])


def spelled(minute: int, spelling: str) -> Any:
    time = BEGIN + timedelta(minutes=minute)
    if spelling == "offset":
        return (time + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S.250+02:00")
    if spelling == "number":
        return int(time.timestamp())
    return time.strftime({"zone": "%Y-%m-%dT%H:%M:%SZ", "naive": "%Y-%m-%dT%H:%M:%S", "word": "yesterday"}[spelling])


sound_times = st.builds(spelled, minutes, st.sampled_from(["zone", "zone", "zone", "offset", "number"]))
times = sound_times | st.builds(spelled, minutes, st.sampled_from(["naive", "word"])) | st.just("1066-10-14T09:00:00Z")
names = st.sampled_from(["a", "b", "c", "1", 1, 1.5, "é", "lone \ud83d", "odd\nline"])
odd_names = names | st.sampled_from(["", None, True, ["a"]])
kinds = st.sampled_from(["message", "message", "proposal", "resolution", "closed", "edit", 3])
refs = st.sampled_from(["r", "q", 7, None])
junk = st.sampled_from([1, "x", None, [], {"deep": [1, "y"]}])
unknown = st.dictionaries(st.sampled_from(["tool", "model", "turns", "odd \ud800", "", "kind "]), junk, max_size=2)


def fields(required: Mapping[str, st.SearchStrategy[Any]], optional: Mapping[str, st.SearchStrategy[Any]]) -> Any:
    return st.fixed_dictionaries(dict(required), optional=dict(optional))


sound_activities = fields(
    {"at": sound_times, "role": st.sampled_from(["person", "agent", "agent", "tool", "system"])},
    {"kind": kinds, "ref": refs},
)
activities = fields(
    {},
    {"at": times, "role": st.sampled_from(["person", "agent", "robot", 3]), "kind": kinds | st.just(""), "ref": refs},
)
groups = st.dictionaries(st.sampled_from(["agent", "wait"]), st.sampled_from(["w", "v", ["w", "v"], ["w"], 5]))
about = {
    "user": st.sampled_from(["u", "v", "w", None]),
    "arm": st.sampled_from(["treatment", "control", None]),
    "read_at": sound_times | st.none(),
    "attributes": groups,
}
sessions = fields(
    {"id": names, "activities": st.lists(sound_activities, max_size=6)},
    {**about, "at": sound_times, "type": st.just("session")},
)
plain_activities = fields(
    {"at": sound_times, "role": st.sampled_from(["person", "agent", "agent", "tool"])},
    {
        "kind": st.sampled_from(["message", "proposal", "resolution", "closed"]),
        "ref": st.sampled_from(["r", "q", None]),
    },
)
plain_sessions = fields(
    {"id": st.sampled_from("abcdefghij"), "activities": st.lists(plain_activities, min_size=1, max_size=6)}, about
)
richer_sessions = st.builds(
    lambda row, more, inner: {**more, **row, "activities": [{**inner, **each} for each in row["activities"]]},
    plain_sessions,
    unknown,
    unknown,
)
sampled = fields({"id": names, "activities": st.lists(sound_activities, max_size=3)}, {**about, "weight": st.just(2.5)})
odd_sessions = st.builds(
    lambda known, more, activity: {**more, **known, "activities": [*known.get("activities", []), *activity]},
    fields(
        {},
        {
            "id": odd_names,
            "user": odd_names,
            "at": times,
            "read_at": times,
            "weight": st.sampled_from([1, 2.5, 0, -1, None, "1"]),
            "attributes": groups | junk,
            "type": st.sampled_from(["session", "history", "other", None]),
            "activities": st.lists(sound_activities | activities, max_size=3),
        },
    ),
    unknown,
    st.lists(st.builds(lambda known, more: {**more, **known}, sound_activities, unknown), max_size=2),
)
histories = fields(
    {
        "id": names,
        "revisions": st.lists(
            fields({"at": sound_times, "role": st.sampled_from(["person", "agent"]), "text": names}, {})
        ),
    },
    about,
)
transcripts = fields(
    {
        "request": st.just("help"),
        "turns": st.lists(fields({"role": st.sampled_from(["person", "agent"])}, {"at": sound_times, "kind": kinds})),
    },
    {**about, "id": names},
)
results = st.builds(
    lambda measure, value, subject, more: {
        "measure": measure,
        "value": value,
        "about": {"kind": "session", **subject},
        **more,
    },
    st.sampled_from(["drop_off", "completion", "none"]),
    st.sampled_from([{"outcome": "continued"}, {"completed": True, "quality": 3, "reason": "r"}, {}]),
    fields({"id": names}, about),
    fields({"evaluator": st.sampled_from(["judge", "drop_off"])}, {"version": st.sampled_from(["1", "2"])}),
)
plain = plain_sessions | sessions | richer_sessions
records = st.one_of(plain, plain, odd_sessions, sampled, histories, transcripts, results)


def line_of(record: Any, end: bytes) -> bytes:
    return json.dumps(record).encode() + end


ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n"])
broken_lines = st.sampled_from(
    [
        b"\n",
        b"  \r\n",
        b"not json\n",
        b'{"id": "a", "activities": [}\n',
        b'{"id": "\xff", "activities": []}\n',
        b"[1, 2]\n",
        b'\xef\xbb\xbf{"id": "bom", "activities": []}\n',
        b'{"id": "a", "id": "two", "activities":1, "activities": [{"at": "2026-09-10T08:00:00Z", "role": "agent"}]}\n',
        b'{"id": 1e999, "activities": []}\n',
        b'{"id": 123456789012345678901234567890, "activities": []}\n',
    ]
)
lines = st.one_of(st.builds(line_of, records, ends), st.builds(line_of, records, ends), broken_lines)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    found = draw(st.lists(lines, min_size=1, max_size=14))
    again = draw(st.lists(st.sampled_from(found), max_size=4))  # duplicates, near and far
    text = draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + b"".join(draw(st.permutations(found + again)))
    return text.removesuffix(b"\n") if draw(st.booleans()) else text


# ---------------------------------------------------------------------------------------------------------------------
# What is compared
# ---------------------------------------------------------------------------------------------------------------------


def outcome(make: Callable[[], Any]) -> Any:
    """What a report says, in full, or the error that it is."""
    try:
        return make().to_dict()
    except EvalrError as error:
        return type(error), str(error)


keys = st.sampled_from([None, None, None, "user", "session", "arm", "agent", "wait", "kind", "day"])
options = st.fixed_dictionaries(
    {},
    optional={
        "by": keys,
        "cluster": st.sampled_from([None, None, "user", "session", "agent", "arm"]),
        "since": st.sampled_from([None, BEGIN + timedelta(minutes=30)]),
        "until": st.sampled_from([None, BEGIN + timedelta(minutes=121)]),
        "window": st.sampled_from([timedelta(minutes=1), timedelta(hours=1)]),
        "strict": st.booleans(),
        "details": st.booleans(),
    },
)
careful = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@careful
@given(text=logs(), asked=options, chunk=st.sampled_from([1, 2, 512]))
def test_a_report_is_the_same(folder: Path, text: bytes, asked: dict[str, Any], chunk: int) -> None:
    path = folder / "log.jsonl"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fast_path, "CHUNK", chunk)
        patch.setattr(fast_path, "CHUNK_OF_DETAILS", chunk)
        fast = outcome(lambda: bulk.report(path, now=NOW, kind="jsonl", **asked))
    assert fast == outcome(lambda: evalr.report(path, now=NOW, kind="jsonl", **asked))


class InThisProcess:
    """What `Processes` does, without processes: what is sent is pickled, and read back."""

    def __init__(self, told: Callable[[int, int], None]) -> None:
        self._found: list[tuple[bytes, bytes]] = []

    def start(self, part: Part, place: Hashable) -> int:
        file = io.BytesIO()
        answers: list[object] = []
        try:
            pickle.loads(pickle.dumps(part)).read(answers.append, file)
        except RecordError as error:
            answers.append(error)
        self._found.append((pickle.dumps(answers[-1]), file.getvalue()))
        return len(self._found) - 1

    def answer(self, number: int) -> Any:
        return pickle.loads(self._found[number][0])

    def merge(self, number: int, reading: Reading, numbering: Numbering) -> None:
        reading.merge(receive_reading(io.BytesIO(self._found[number][1]), numbering))

    def stop(self, number: int) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@careful
@given(text=logs(), asked=options, processes=st.integers(2, 5))
def test_parts_make_the_whole(folder: Path, text: bytes, asked: dict[str, Any], processes: int) -> None:
    path = folder / "log.jsonl"
    path.write_bytes(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "Processes", InThisProcess)
        fast = outcome(lambda: bulk.report(path, now=NOW, kind="jsonl", processes=processes, **asked))
    assert fast == outcome(lambda: evalr.report(path, now=NOW, kind="jsonl", **asked))


# ---------------------------------------------------------------------------------------------------------------------
# Measures of others
# ---------------------------------------------------------------------------------------------------------------------


class Spoke(BaseModel):
    """Whether an agent spoke, how often anybody did, and for how long."""

    agent: bool
    times: int
    lasted: float


def spoke(session: Session, now: datetime) -> Spoke:
    activities = session.until(now)
    if any(activity.kind == "edit" for activity in activities):
        raise ValueError("an edit")
    times = [activity.at for activity in activities]
    lasted = (times[-1] - times[0]).total_seconds() if times else 0
    return Spoke(agent=any(each.role == "agent" for each in activities), times=len(times), lasted=lasted)


spoke_rate = evalr.Rate("spoke", of=Spoke, hits=lambda v: v.agent)
spoke_total = evalr.Rate("spoke_total", of=Spoke, hits=lambda v: min(v.times, 1), total=lambda v: v.times)
lasted = evalr.TimeTo("lasted", of=Spoke, after=lambda v: v.lasted, end=lambda v: "x" if v.agent else None, event="x")
mean_times = evalr.Mean("mean_times", of=Spoke, value=lambda v: v.times)


def spoke_rows(columns: tuple[Hits, Hits, Times]) -> RowReader:
    one, total, time = columns

    def read(row: SessionRow, now: datetime) -> None:
        activities = row["activities"]
        one.of.append((any(each["role"] == "agent" for each in activities), 1))
        if any(each["kind"] == "edit" for each in activities):
            raise ValueError("half done")
        total.of.append((min(len(activities), 1), len(activities)))
        time.after.append((activities[-1]["at"] - activities[0]["at"]).total_seconds() if activities else 0)
        time.end.append("x" if one.of[-1][0] else None)

    return read


def bad_rows(columns: tuple[Hits, Hits, Times]) -> RowReader:
    """What no summary takes, once in a while."""
    one, total, time = columns
    read = spoke_rows(columns)

    def read_badly(row: SessionRow, now: datetime) -> None:
        read(row, now)
        if row["id"] == "a":
            total.of[-1] = (2, 1)
        if row["id"] == "b":
            time.after[-1] = float("nan")
        if row["id"] == "c":
            one.of.append((1, 1))

    return read_badly


def stranger(**changes: Any) -> Measure:
    about: dict[str, Any] = {
        "name": "spoke",
        "question": "did an agent speak?",
        "input": Session,
        "verdict": Spoke,
        "summaries": lambda: (spoke_rate, spoke_total, lasted),
        "evaluator": lambda *, now: evalr.FunctionEvaluator("spoke", "1", spoke, Session, Spoke, now=now, inline=True),
    }
    return Measure(**{**about, **changes})


def shaky(given: Session) -> bool:
    if given.user == "v":
        raise ValueError("a marker that fails")
    return given.user == "u"


STRANGERS = [
    stranger(),
    stranger(rows=spoke_rows),
    stranger(rows=bad_rows),
    stranger(rows=lambda columns: columns[3]),
    stranger(rows=spoke_rows, summaries=lambda: (spoke_rate, spoke_total, mean_times)),
    stranger(rows=spoke_rows, marker=Marker(seen=lambda given: given.user == "u", without="no u")),
    stranger(rows=spoke_rows, marker=Marker(seen=shaky, without="no u")),
    stranger(
        rows=spoke_rows,
        marker=Marker(seen=shaky, seen_in_row=lambda row: shaky(Session(id="s", user=row.get("user"))), without="no u"),
    ),
    replace(installed_measures().loaded["waits"], rows=None),
    replace(installed_measures().loaded["drop_off"], evaluator=None),
]


@careful
@given(
    text=logs(), asked=options, strangers=st.lists(st.sampled_from(STRANGERS), max_size=2), processes=st.integers(1, 3)
)
def test_measures_of_others_count_as_they_do(
    folder: Path, text: bytes, asked: dict[str, Any], strangers: list[Measure], processes: int
) -> None:
    path = folder / "log.jsonl"
    path.write_bytes(text)
    asked = {**asked, "now": NOW, "kind": "jsonl", "measures": [*strangers, "drop_off"]}
    asked.pop("window", None)
    known = {id(measure): measure for measure in STRANGERS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "Processes", InThisProcess)
        patch.setattr(worker, "_where", lambda measure, installed: id(measure))
        patch.setattr(worker, "_measure", lambda where, installed: {**known, id(DROP_OFF): DROP_OFF}[where])
        fast = outcome(lambda: bulk.report(path, processes=processes, **asked))
    assert fast == outcome(lambda: evalr.report(path, **asked))


# ---------------------------------------------------------------------------------------------------------------------
# Tallies and verdicts
# ---------------------------------------------------------------------------------------------------------------------


@careful
@given(text=logs(), by=st.sampled_from([None, "user", "agent", "day"]), processes=st.integers(1, 3))
def test_tallies_and_verdicts_are_those_of_the_object_lane(
    folder: Path, text: bytes, by: str | None, processes: int
) -> None:
    path = folder / "log.jsonl"
    path.write_bytes(text)
    asked: dict[str, Any] = {"now": NOW, "kind": "jsonl"}
    try:
        items = list(read(path, kind="jsonl"))
    except LogError:
        with pytest.raises(LogError):
            bulk.tallies(path, **asked)
        return
    key = TimeBucket("day") if by == "day" else by
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "Processes", InThisProcess)
        found = bulk.tallies(path, by=by, processes=processes, measures=["drop_off", "waits"], **asked)
    for measure in (DROP_OFF, WAITS):
        assert measure.evaluator is not None
        evaluator = measure.evaluator(now=NOW, **measure.settings)
        inputs = [item for item in items if isinstance(item, Session) and (item.about().at or NOW) <= NOW]
        given = [part for item in inputs for part in ([item] if measure.split is None else measure.split(item, NOW))]
        results = [replace(evaluator.evaluate_inline(part), latency=None) for part in given]
        streamed = [replace(result, latency=None) for result in bulk.verdicts(path, measure.name, **asked)]
        assert streamed == results
        for summary in measure.summaries(**measure.settings):
            if inputs:
                assert found[summary.name] == summary.tally(results, by=key)
            else:
                assert summary.name not in found

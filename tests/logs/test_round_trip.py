"""What is written as a line reads back equal, and is what the schema of its type says."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, computed_field

from evalr.errors import InputError
from evalr.inputs import (
    About,
    Activity,
    Exchange,
    History,
    Input,
    LearningUse,
    Revision,
    Session,
    ToolCall,
    Transcript,
    Turn,
    Wait,
)
from evalr.logs import Item, Log, Stored, jsonl, read, schemas, to_line
from evalr.measures import DropOff, Rewrites, SessionOutcome, TaskCompletion, Waited
from evalr.verdicts import Failure, HandOff, Skip, Verdict

texts = st.text(alphabet=st.characters(exclude_categories=()), max_size=20)
names = texts.filter(bool)
storable = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=20)
storable_names = storable.filter(bool)
zones = st.one_of(
    st.just(UTC),
    st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]).map(ZoneInfo),
)
times = st.datetimes(datetime(1900, 1, 3), datetime(2199, 12, 29), timezones=zones)  # noqa: DTZ001  zones come beside
# A result keeps its times as given, and Python has no time equal to one that a zone's clock skips or repeats.
offsets = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
result_times = st.datetimes(datetime(1900, 1, 3), datetime(2199, 12, 29), timezones=offsets)  # noqa: DTZ001
roles = st.sampled_from(["person", "agent", "tool", "system"])
kinds = st.one_of(st.sampled_from(["message", "proposal", "resolution", "closed"]), names)
amounts = st.floats(0, 1e12)
attributes = st.dictionaries(names, st.one_of(names, st.lists(names, max_size=3)), max_size=3)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


shared: dict[str, st.SearchStrategy[Any]] = {
    "user": maybe(names),
    "arm": maybe(names),
    "at": maybe(times),
    "read_at": maybe(times),
    "attributes": attributes,
    "weight": maybe(st.floats(0, 1e9, exclude_min=True)),
}
activities = st.builds(Activity, at=times, role=roles, kind=kinds, ref=maybe(names))
revisions = st.builds(Revision, at=times, role=roles, text=texts, id=maybe(names), attributes=attributes)
calls = st.builds(
    ToolCall,
    name=names,
    id=maybe(names),
    arguments=json_values,
    status=maybe(names),
    error=maybe(texts),
    result=json_values,
)
turns = st.builds(
    Turn,
    role=roles,
    text=texts,
    id=maybe(names),
    at=maybe(times),
    kind=kinds,
    ref=maybe(names),
    tool_calls=st.lists(calls, max_size=2),
    metadata=st.dictionaries(texts, json_values, max_size=2),
)
sessions = st.builds(Session, id=names, activities=st.lists(activities, max_size=5), **shared)
histories = st.builds(History, id=names, revisions=st.lists(revisions, max_size=5), **shared)
transcripts = st.builds(
    Transcript, id=maybe(names), request=texts, turns=st.lists(turns, max_size=3), result=maybe(texts), **shared
)
exchanges = st.builds(
    Exchange,
    id=maybe(names),
    session=maybe(names),
    message=texts,
    served=texts,
    shadow=texts,
    treatment=st.sampled_from(["served", "shadow"]),
    **shared,
)
learnings = st.builds(
    LearningUse,
    id=maybe(names),
    session=maybe(names),
    message=texts,
    response=texts,
    learning=maybe(texts),
    kind=maybe(names),
    learning_id=names,
    response_id=names,
    cited=st.sampled_from([None, True, False]),
    turns=st.lists(turns, max_size=2),
    **shared,
)
inputs: st.SearchStrategy[Input] = st.one_of(sessions, histories, exchanges, learnings, transcripts)

values: dict[str, st.SearchStrategy[BaseModel]] = {
    "completion": st.builds(TaskCompletion, completed=st.booleans(), quality=st.integers(1, 5), reason=maybe(storable)),
    "outcome": st.builds(
        SessionOutcome,
        success=st.just(False),
        corrections=st.integers(0, 9),
        user_turns=maybe(st.integers(0, 9)),
        failure_reason=maybe(storable),
    ),
    "drop_off": st.one_of(
        st.builds(DropOff, outcome=st.just("dropped"), cause=st.just("no_reply"), waited=maybe(amounts)),
        st.builds(DropOff, outcome=st.sampled_from(["continued", "pending"]), waited=maybe(amounts)),
    ),
    "waits": st.builds(Waited, after=amounts, ended=st.sampled_from(["returned", "closed", "still_open"])),
    "rewrites": st.integers(0, 9).flatmap(
        lambda n: st.builds(
            Rewrites, agent_revisions=st.just(n), rewritten=st.integers(0, n), pending=st.integers(0, 3)
        )
    ),
}
abouts = st.builds(
    About,
    storable_names,
    maybe(storable_names),
    maybe(storable_names),
    maybe(storable_names),
    maybe(result_times),
    maybe(result_times),
    maybe(storable_names),
    maybe(st.floats(0, 1e9, exclude_min=True)),
    maybe(st.dictionaries(storable_names, st.one_of(storable_names, st.lists(storable_names, max_size=3)), max_size=3)),
    maybe(st.integers(1, 2**31)),
)
stamps: dict[str, st.SearchStrategy[Any]] = {
    "about": maybe(abouts),
    "latency": maybe(amounts),
    "cost": maybe(amounts),
    "as_of": maybe(result_times),
}
no_verdict_stamps = {**stamps, "evaluator": maybe(storable_names), "version": maybe(storable_names)}


def verdicts(measure: str) -> st.SearchStrategy[Verdict[Any]]:
    return st.builds(
        Verdict,
        values[measure],
        evaluator=storable_names,
        version=storable_names,
        confidence=maybe(st.dictionaries(storable_names, st.floats(0, 1), max_size=2)),
        flags=st.lists(storable_names, max_size=2).map(tuple),
        given_by=st.none() | storable_names,
        **stamps,
    )


def results(measure: str) -> st.SearchStrategy[Stored]:
    kinds_of_result = st.one_of(
        verdicts(measure),
        st.builds(Failure, error=storable, **no_verdict_stamps),
        st.builds(Skip, reason=storable, **no_verdict_stamps),
        st.builds(HandOff, reason=storable, verdict=maybe(verdicts(measure)), **no_verdict_stamps),
    )
    return kinds_of_result.map(lambda result: Stored(measure, result))


stored = st.sampled_from(sorted(values)).flatmap(results)


def read_back(*lines: str) -> tuple[Log, list[Item]]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_text("\n".join(lines), encoding="utf-8", newline="")
        log = read(path, kind="jsonl", strict=True)
        return log, list(log)


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schemas()[name])


def type_of(item: Item) -> str:
    return item.kind if isinstance(item, Input) else "result"


@settings(max_examples=60)
@given(st.one_of(inputs, stored))
def test_a_line_reads_back_equal(item: Item) -> None:
    line = to_line(item)
    assert "\n" not in line
    log, (found, *derived) = read_back(line)
    assert found == item
    assert type(found) is type(item)
    assert to_line(found) == line
    assert len(derived) == log.derived
    assert not log.unknown_fields
    assert not log.repaired


@settings(max_examples=60)
@given(st.one_of(inputs, stored))
def test_a_line_is_what_its_schema_says(item: Item) -> None:
    line = json.loads(to_line(item))
    validator(type_of(item)).validate(line)
    validator(type_of(item)).validate({**line, "type": type_of(item), "unknown": {"field": 1}})
    assert not validator(type_of(item)).is_valid({**line, "type": "other"})


@settings(max_examples=30)
@given(st.lists(inputs, max_size=6))
def test_a_log_reads_the_same_whatever_its_lines_look_like(items: list[Input]) -> None:
    """Plain, with their type, with unknown fields, spaced or escaped: in any mixture."""
    written: list[str] = []
    plain: list[str] = []
    for position, item in enumerate(items):
        fields = json.loads(to_line(item)) | {"id": f"i{position}"}
        plain.append(json.dumps(fields))
        shapes = (fields, {"type": item.kind, **fields}, {**fields, "type": item.kind}, {"new": [1], **fields})
        written.append(json.dumps(shapes[position % 4], indent=None, ensure_ascii=position % 3 == 0))
    if items:
        _, expected = read_back(*plain)
        log, found = read_back(*written)
        assert found == expected
        assert log.unknown_fields.total() == sum(position % 4 == 3 for position in range(len(items)))


def test_a_result_that_is_not_stored_belongs_to_the_measure_of_its_evaluators_name() -> None:
    result = Skip("no question in it", "completion", "1", About("transcript", "t"))
    _, found = read_back(to_line(result))
    assert found == [Stored("completion", result)]
    with pytest.raises(InputError, match="names no evaluator"):
        to_line(Skip("no question in it"))


def test_parts_of_inputs_have_no_lines() -> None:
    wait = Wait(id="reply:1", session="s", since=datetime(2026, 9, 28, tzinfo=UTC))
    with pytest.raises(InputError, match="no lines for a Wait"):
        to_line(wait)


# Verdict types of other packages


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    mood: str = Field(alias="theMood")
    score: float
    twice: bool = False

    @computed_field  # type: ignore[prop-decorator]
    @property
    def doubled(self) -> float:
        return 2 * self.score


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    score: int


@pytest.mark.parametrize(
    "value", [Strict(theMood="good", score=1.5), Strict(theMood="", score=1, twice=True), Open(score=1, more="x")]
)
def test_verdict_types_with_aliases_computed_fields_and_rules_of_their_own(
    value: BaseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "verdict_types", lambda: {"mood": type(value)})
    item = Stored("mood", Verdict(value, "judge"))
    log, found = read_back(to_line(item))
    assert found == [item]
    assert not log.unknown_fields


# Schemas


def fields(schema: dict[str, Any]) -> list[tuple[str, str | None]]:
    models = [model for model in (schema, *schema.get("$defs", {}).values()) if "properties" in model]
    return [
        (f"{model['title']}.{name}", of.get("description"))
        for model in models
        for name, of in model["properties"].items()
    ]


@pytest.mark.parametrize("name", ["session", "history", "exchange", "learning", "transcript", "result"])
def test_schemas_are_schemas_and_describe_every_field(name: str) -> None:
    schema = schemas()[name]
    Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema
    assert len(fields(schema)) > 5
    assert [field for field, words in fields(schema) if not words] == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("session", {"activities": []}),
        ("session", {"id": "", "activities": []}),
        ("session", {"id": "s", "activities": [{"at": "2026-09-28T09:00:00Z", "role": "user"}]}),
        ("session", {"id": "s", "activities": [{"role": "agent"}]}),
        ("session", {"id": "s", "weight": 0}),
        ("history", {"id": "h", "revisions": [{"at": "2026-09-28T09:00:00Z", "role": "agent"}]}),
        ("exchange", {"message": "m", "served": "a"}),
        ("exchange", {"message": "m", "served": "a", "shadow": "b", "treatment": "both"}),
        ("learning", {"message": "m", "response": "r", "learning": None, "learning_id": "l"}),
        ("learning", {"message": "m", "response": "r", "learning_id": "l", "response_id": "r"}),
        ("transcript", {"turns": []}),
        ("transcript", {"request": "r", "turns": [{"role": "agent", "tool_calls": [{}]}]}),
        ("result", {"type": "result", "status": "maybe"}),
        ("result", {"about": {"id": "t"}}),
        ("result", {"confidence": {"completed": 2}}),
    ],
)
def test_schemas_refuse_what_the_reader_refuses(name: str, line: dict[str, Any]) -> None:
    assert not validator(name).is_valid(line)


def test_schemas_do_not_share_what_a_caller_may_change() -> None:
    schemas()["session"]["properties"].clear()
    assert schemas()["session"]["properties"]

"""Waits: each run of agent activity and each proposal is one wait, with an id that a later reading keeps."""

from __future__ import annotations

import asyncio
import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalr import InputError, Verdict, scores
from evalr.measures import (
    Activity,
    Session,
    Wait,
    Waited,
    back_within,
    measure_drop_off,
    measure_wait,
    typical_wait,
    wait_evaluator,
)
from evalr.measures.waits import measure

START = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)


def minutes(number: float) -> datetime:
    return START + timedelta(minutes=number)


def act(minute: float, what: str, ref: str | None = None) -> Activity:
    role, _, kind = what.partition(" ")
    return Activity(at=minutes(minute), role=role, kind=kind or "message", ref=ref)  # type: ignore[arg-type]


def session(*activities: Activity, **fields: Any) -> Session:
    return Session(id="s1", activities=list(activities), **fields)


def waits(*activities: Activity, now: float = 600, **fields: Any) -> list[tuple[str, float, float | None, str | None]]:
    """Each wait as (of, since, until, ended), in minutes, by its beginning."""
    found = session(*activities, **fields).waits(now=minutes(now))

    def minute(at: datetime | None) -> float | None:
        return None if at is None else (at - START) / timedelta(minutes=1)

    rows = [(wait.of, minute(wait.since) or 0.0, minute(wait.until), wait.ended) for wait in found]
    return sorted(rows, key=lambda row: (row[1], row[0]))


# -- splitting a session ---------------------------------------------------------------------------------------------


def test_one_wait_for_each_run_of_agent_activity() -> None:
    found = waits(
        act(0, "person"), act(1, "agent"), act(2, "agent"), act(7, "person"), act(8, "person"), act(9, "agent")
    )
    assert found == [("reply", 2, 7, "returned"), ("reply", 9, None, None)]


def test_tools_and_systems_neither_wait_nor_come_back() -> None:
    assert waits(act(0, "agent"), act(1, "tool"), act(2, "system"), act(3, "person")) == [("reply", 0, 3, "returned")]
    assert waits(act(0, "tool"), act(1, "person")) == []
    assert waits() == []


def test_one_wait_for_each_proposal_from_it_to_its_resolution() -> None:
    found = waits(act(0, "agent proposal", "p1"), act(1, "agent"), act(5, "person"), act(9, "person resolution", "p1"))
    assert found == [("proposal", 0, 9, "returned"), ("reply", 1, 5, "returned")]


def test_proposals_without_a_ref_are_resolved_one_by_one_in_order() -> None:
    found = waits(act(0, "agent proposal"), act(1, "agent proposal"), act(4, "person resolution"))
    assert found == [("proposal", 0, 4, "returned"), ("proposal", 1, None, None), ("reply", 1, 4, "returned")]


class CountedRef(str):
    """A ref that counts how often one is compared with another."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedRef.compared += 1
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        CountedRef.compared += 1
        return str.__ne__(self, other)


def test_many_open_proposals_cost_no_more_each_than_few() -> None:
    refs = [CountedRef(number) for number in range(1000)]
    events = [(minute, "proposal", ref) for minute, ref in enumerate(refs)]
    events += [(1000 + minute, "resolution", ref) for minute, ref in enumerate(reversed(refs[1:]))]
    activities = [
        Activity.model_construct(
            at=minutes(minute), role="agent" if kind == "proposal" else "person", kind=kind, ref=ref
        )
        for minute, kind, ref in events
    ]
    given = session().model_copy(update={"activities": activities})
    CountedRef.compared = 0
    found = given.waits(now=minutes(5000))
    assert sum(wait.ended == "returned" for wait in found if wait.of == "proposal") == 999
    dropped = measure_drop_off(given, now=minutes(5000))
    assert (dropped.cause, dropped.waited) == ("unresolved_proposal", 5000 * 60)
    assert CountedRef.compared < 10 * len(events)


def test_a_close_ends_every_wait_and_is_nobodys_return() -> None:
    found = waits(act(0, "agent proposal", "p1"), act(1, "agent"), act(3, "person closed"))
    assert found == [("proposal", 0, 3, "closed"), ("reply", 1, 3, "closed")]
    again = waits(act(0, "agent"), act(3, "system closed"), act(4, "person"), act(5, "agent"))
    assert again == [("reply", 0, 3, "closed"), ("reply", 5, None, None)]


def test_what_is_later_than_the_reading_time_does_not_exist_yet() -> None:
    activities = (act(0, "agent"), act(10, "person"))
    assert waits(*activities, now=9) == [("reply", 0, None, None)]
    assert waits(*activities, now=10) == [("reply", 0, 10, "returned")]
    assert waits(*activities, now=600, read_at=minutes(9)) == [("reply", 0, None, None)]
    assert waits(*activities, now=-1) == []


def test_ties_in_time_keep_the_order_given() -> None:
    assert waits(act(0, "agent"), act(0, "person")) == [("reply", 0, 0, "returned")]
    assert waits(act(0, "person"), act(0, "agent")) == [("reply", 0, None, None)]


def test_a_wait_carries_who_and_what_it_is_a_part_of() -> None:
    given_session = session(
        act(0, "agent proposal", "p1"),
        user="ada",
        arm="treatment",
        weight=2.0,
        attributes={"agent": "red"},
        read_at=minutes(90),
    )
    for wait in given_session.waits(now=minutes(60)):
        about = wait.about()
        assert (about.kind, about.session, about.user, about.arm, about.weight) == (
            "wait",
            "s1",
            "ada",
            "treatment",
            2.0,
        )
        assert (about.at, about.read_at) == (START, minutes(90))
        assert about.attributes == {"agent": "red", "wait": wait.of}
        assert Wait.model_validate(wait.model_dump()) == wait


def test_a_later_reading_gives_a_wait_the_same_id() -> None:
    activities = (act(0, "agent proposal", "p1"), act(5, "person"), act(6, "agent"))
    early, late = (session(*activities).waits(now=minutes(now)) for now in (3, 60))
    ids = {wait.id: wait.since for wait in late}
    assert len(ids) == len(late) == 3
    assert all(ids[wait.id] == wait.since for wait in early)


random_activities = st.lists(
    st.builds(
        lambda minute, role, kind, ref: act(minute, f"{role} {kind}", ref),
        st.integers(0, 9),
        st.sampled_from(["person", "agent", "agent", "tool"]),
        st.sampled_from(["message", "message", "proposal", "resolution", "closed"]),
        st.sampled_from([None, "p1"]),
    ),
    max_size=10,
)


@given(random_activities, st.integers(-1, 12))
def test_waits_are_whole_and_told_apart(activities: list[Activity], now: int) -> None:
    given_session = session(*activities)
    found = given_session.waits(now=minutes(now))
    assert len({wait.about().subject for wait in found}) == len(found)
    seen = given_session.until(minutes(now))
    spoken = [activity for activity in seen if activity.role == "agent" and activity.kind != "closed"]
    assert (len([wait for wait in found if wait.of == "reply"]) > 0) == bool(spoken)
    for wait in found:
        assert (wait.until is None) == (wait.ended is None)
        assert wait.until is None or wait.since <= wait.until <= minutes(now)
    still_open = [wait for wait in found if wait.ended is None and wait.of == "reply"]
    assert len(still_open) <= 1


# -- how long --------------------------------------------------------------------------------------------------------


def test_a_wait_lasts_to_its_end_or_to_the_reading_time() -> None:
    ended = Wait(session="s1", since=START, until=minutes(10), ended="returned")
    assert measure_wait(ended, now=minutes(60)) == Waited(after=600, ended="returned")
    assert measure_wait(ended, now=minutes(10)) == Waited(after=600, ended="returned")
    assert measure_wait(ended, now=minutes(9)) == Waited(after=540, ended="still_open")
    open_wait = Wait(session="s1", since=START, read_at=minutes(5))
    assert measure_wait(open_wait, now=minutes(60)) == Waited(after=300, ended="still_open")
    assert measure_wait(open_wait, now=minutes(-5)) == Waited(after=0, ended="still_open")
    with pytest.raises(InputError, match="no time zone"):
        measure_wait(ended, now=datetime(2026, 9, 28))  # noqa: DTZ001


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf")])
def test_a_length_that_is_none_is_refused(after: float) -> None:
    with pytest.raises(ValidationError):
        Waited(after=after, ended="returned")


def test_the_evaluator_stamps_the_wait() -> None:
    (wait,) = session(act(0, "agent"), act(10, "person")).waits(now=minutes(60))
    verdict = asyncio.run(wait_evaluator(now=minutes(60)).evaluate(wait))
    assert isinstance(verdict, Verdict)
    assert (verdict.evaluator, verdict.version, verdict.as_of) == ("waits", "1", minutes(60))
    assert verdict.about == wait.about()
    assert {score.name: score.value for score in scores(verdict)} == {"waits.after": 600, "waits.ended": "returned"}


# -- summaries -------------------------------------------------------------------------------------------------------


def waited(*rows: tuple[float, str]) -> list[Waited]:
    return [Waited(after=after, ended=ended) for after, ended in rows]  # type: ignore[arg-type]


def test_a_return_at_exactly_the_window_is_in_time() -> None:
    assert back_within(waited((3600, "returned"), (3601, "returned"))) == 0.5


def test_a_close_is_a_competing_end_and_an_open_wait_is_kept() -> None:
    estimate = back_within.estimate(waited((60, "returned"), (60, "closed"), (7200, "still_open"), (30, "still_open")))
    assert estimate.counts == {"ended": 1, "ended_otherwise": 1, "open": 1, "censored": 1}
    assert estimate.value == pytest.approx(1 / 3)
    assert estimate.bounds == (1 / 4, 2 / 4)


def test_the_typical_wait_is_never_the_longest_one_seen() -> None:
    assert typical_wait(waited((60, "returned"), (120, "returned"), (180, "returned"))) == 120
    estimate = typical_wait.estimate(waited((60, "returned"), (120, "still_open"), (180, "still_open")))
    assert (estimate.value, estimate.status) == (None, "not_reached")
    assert str(estimate).startswith("waits_median — · 3 waits")


def test_waits_of_one_session_are_one_cluster() -> None:
    long_session = session(*(act(minute, "agent" if minute % 2 else "person") for minute in range(9)))
    evaluator = wait_evaluator(now=minutes(60))
    results = [evaluator.evaluate_inline(wait) for wait in long_session.waits(now=minutes(60))]
    estimate = back_within.estimate(results)
    assert (estimate.n, estimate.clusters, estimate.clustered_by) == (4, 1, {"session": 1})


def test_the_measure_splits_sessions_and_keeps_the_window_to_its_summaries() -> None:
    assert measure.split is not None
    assert measure.evaluator is not None
    given_session = session(act(0, "agent"), act(10, "person"))
    (wait,) = measure.split(given_session, minutes(60))
    verdict = measure.evaluator(now=minutes(60), window=timedelta(minutes=5)).evaluate_inline(wait)
    assert verdict.version == "1"
    within, typical = measure.summaries(window=timedelta(minutes=5))
    assert (within([verdict]), within.title, typical([verdict])) == (0, "came back within 5m", 600)


# -- a real log ------------------------------------------------------------------------------------------------------


def test_every_known_wait_of_a_real_log_is_found(real_logs: Path) -> None:
    folder = real_logs / "entire_sessions"
    with (folder / "gaps.csv").open(encoding="utf-8", newline="") as file:
        known = sorted(
            (row["session"], datetime.fromisoformat(row["agent_at"]), round(float(row["seconds"]), 3))
            for row in csv.DictReader(file)
        )
    found = []
    for line in (folder / "sessions.jsonl").read_bytes().splitlines():
        row = json.loads(line)
        events = [
            {key: each[key] for key in ("at", "role", "kind", "ref") if key in each} for each in row["activities"]
        ]
        given_session = Session.model_validate({"id": row["id"], "activities": events})
        found += [
            (row["id"], wait.since, round((wait.until - wait.since).total_seconds(), 3))
            for wait in given_session.waits(now=datetime(2026, 11, 30, tzinfo=UTC))
            if wait.of == "reply" and wait.until is not None
        ]
    assert len(known) == 835
    assert sorted(found) == known

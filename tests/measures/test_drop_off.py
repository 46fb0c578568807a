"""Drop-off: dropped, continued or pending, decided at exact times, by anyone's close, and as S(window)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalr import Failure, InputError, Skip, Verdict, scores
from evalr.measures import (
    Activity,
    DropOff,
    Session,
    drop_off_evaluator,
    drop_off_rate,
    drop_off_share,
    measure_drop_off,
)
from evalr.measures.drop_off import measure

START = datetime(2026, 9, 28, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def minutes(number: float) -> datetime:
    return START + timedelta(minutes=number)


def act(minute: float, what: str, ref: str | None = None) -> Activity:
    """`person`, `agent`, or `agent proposal`, `person resolution`, `system closed`."""
    role, _, kind = what.partition(" ")
    return Activity(at=minutes(minute), role=role, kind=kind or "message", ref=ref)  # type: ignore[arg-type]


def session(*activities: Activity, **fields: Any) -> Session:
    return Session(id="s1", activities=list(activities), **fields)


def outcome(*activities: Activity, now: float = 600, **fields: Any) -> tuple[str, str | None, float | None]:
    found = measure_drop_off(session(*activities, **fields), window=HOUR, now=minutes(now))
    return found.outcome, found.cause, found.waited


CONTINUED, DROPPED, UNRESOLVED = ("continued", None), ("dropped", "no_reply"), ("dropped", "unresolved_proposal")
PENDING = ("pending", None)


# -- replies ---------------------------------------------------------------------------------------------------------


def test_a_reply_at_exactly_the_window_is_in_time_and_a_moment_later_is_not() -> None:
    assert outcome(act(0, "agent"), act(60, "person")) == (*CONTINUED, 3600)
    late = Activity(at=minutes(60) + timedelta(microseconds=1), role="person")
    assert outcome(act(0, "agent"), late)[:2] == DROPPED


def test_a_wait_of_exactly_the_window_is_over_and_a_moment_less_is_pending() -> None:
    assert outcome(act(0, "agent"), now=60) == (*DROPPED, 3600)
    almost = minutes(60) - timedelta(microseconds=1)
    assert measure_drop_off(session(act(0, "agent")), window=HOUR, now=almost).outcome == "pending"


def test_only_a_person_comes_back() -> None:
    assert outcome(act(0, "agent"), act(1, "tool"), act(2, "system"))[:2] == DROPPED
    assert outcome(act(0, "agent"), act(1, "agent"), act(2, "person"))[:2] == CONTINUED


def test_the_clock_runs_from_the_agents_last_activity() -> None:
    assert outcome(act(0, "agent"), act(5, "person"), act(10, "agent"))[:2] == DROPPED
    assert outcome(act(0, "agent"), act(5, "person"), act(10, "agent"), act(30, "person")) == (*CONTINUED, 1200)


def test_the_first_reply_counts_and_a_late_one_is_too_late() -> None:
    assert outcome(act(0, "agent"), act(90, "person"), act(91, "person")) == (*DROPPED, 5400)
    assert outcome(act(0, "agent"), act(30, "person"), act(90, "person")) == (*CONTINUED, 1800)


def test_ties_in_time_keep_the_order_given() -> None:
    assert outcome(act(0, "agent"), act(0, "person")) == (*CONTINUED, 0)
    assert outcome(act(0, "person"), act(0, "agent"))[:2] == DROPPED


def test_a_session_in_which_the_agent_never_acted_is_continued() -> None:
    assert outcome() == (*CONTINUED, 0)
    assert outcome(act(0, "person"), act(1, "tool"), act(2, "system closed")) == (*CONTINUED, 0)


# -- proposals -------------------------------------------------------------------------------------------------------


def test_a_proposal_left_open_for_the_window_drops_the_session_though_the_person_wrote() -> None:
    open_proposal = (act(0, "agent proposal", "p1"), act(10, "person"), act(20, "agent"), act(30, "person"))
    assert outcome(*open_proposal, now=60) == (*UNRESOLVED, 3600)
    assert outcome(*open_proposal, now=59) == (*PENDING, 59 * 60)


def test_a_proposal_resolved_late_keeps_no_clock() -> None:
    assert outcome(act(0, "agent proposal", "p1"), act(300, "person resolution", "p1"))[:2] == DROPPED
    late = (act(0, "agent proposal", "p1"), act(300, "person resolution", "p1"), act(301, "agent"), act(302, "person"))
    assert outcome(*late) == (*CONTINUED, 60)


def test_a_resolution_comes_after_its_proposal_and_has_its_ref() -> None:
    assert (
        outcome(act(0, "person resolution", "p1"), act(1, "agent proposal", "p1"), act(2, "person"))[:2] == UNRESOLVED
    )
    assert outcome(act(0, "agent proposal", "p1"), act(1, "person resolution", "p2"))[:2] == UNRESOLVED
    assert outcome(act(0, "agent proposal", "p1"), act(1, "person resolution"))[:2] == UNRESOLVED
    assert outcome(act(0, "agent proposal"), act(1, "person resolution", "p1"))[:2] == UNRESOLVED
    assert outcome(act(0, "agent proposal", "p1"), act(0, "person resolution", "p1"))[:2] == CONTINUED


def test_proposals_without_a_ref_are_resolved_one_by_one_in_order() -> None:
    two = (act(0, "agent proposal"), act(10, "agent proposal"), act(20, "person resolution"))
    assert outcome(*two, now=69) == (*PENDING, 59 * 60)  # the second, made at 10, is what is open
    assert outcome(*two, now=70) == (*UNRESOLVED, 3600)
    assert outcome(*two, act(21, "person resolution"))[:2] == CONTINUED


def test_the_oldest_open_proposal_decides() -> None:
    two = (act(0, "agent proposal", "p1"), act(10, "agent proposal", "p2"))
    assert outcome(*two, act(20, "person resolution", "p1"), now=65) == (*PENDING, 55 * 60)
    assert outcome(*two, act(20, "person resolution", "p2"), now=65) == (*UNRESOLVED, 65 * 60)
    again = (act(0, "agent proposal", "p1"), act(50, "agent proposal", "p1"), act(51, "person"))
    assert outcome(*again, now=60) == (*UNRESOLVED, 3600)


def test_a_proposal_is_the_agents_and_a_resolution_anyones() -> None:
    assert outcome(act(0, "agent"), act(1, "person proposal", "p1"))[:2] == CONTINUED
    assert outcome(act(0, "agent proposal", "p1"), act(1, "tool resolution", "p1"), act(2, "person"))[:2] == CONTINUED


def test_a_resolution_by_the_person_is_a_reply() -> None:
    assert outcome(act(0, "agent proposal", "p1"), act(10, "person resolution", "p1")) == (*CONTINUED, 600)


# -- closes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["person", "agent", "tool", "system"])
def test_anyone_may_close(role: str) -> None:
    assert outcome(act(0, "agent"), act(10, f"{role} closed")) == (*CONTINUED, 600)


def test_a_close_ends_what_is_open_however_late() -> None:
    assert outcome(act(0, "agent proposal", "p1"), act(500, "system closed")) == (*CONTINUED, 3600)
    assert outcome(act(0, "agent"), act(90, "person"), act(91, "person closed")) == (*CONTINUED, 3600)
    assert outcome(act(0, "agent"), act(20, "person"), act(30, "system closed")) == (*CONTINUED, 1200)


def test_a_session_may_be_opened_again() -> None:
    assert outcome(act(0, "agent"), act(10, "system closed"), act(20, "agent"))[:2] == DROPPED
    assert (
        outcome(act(0, "agent proposal", "p1"), act(10, "system closed"), act(20, "agent"), act(30, "person"))[:2]
        == CONTINUED
    )
    assert outcome(act(0, "agent"), act(10, "system closed"), act(20, "person")) == (*CONTINUED, 600)
    assert outcome(act(0, "system closed"), act(10, "agent"))[:2] == DROPPED


def test_a_close_after_the_reading_time_has_not_happened() -> None:
    assert outcome(act(0, "agent"), act(70, "system closed"), now=65)[:2] == DROPPED


# -- reading times ---------------------------------------------------------------------------------------------------


def test_what_is_later_than_now_does_not_exist_yet() -> None:
    activities = (act(0, "agent"), act(30, "person"), act(40, "agent"))
    assert outcome(*activities, now=29) == (*PENDING, 29 * 60)
    assert outcome(*activities, now=30) == (*CONTINUED, 1800)
    assert outcome(*activities, now=40) == (*PENDING, 0)
    assert outcome(*activities, now=-1) == (*CONTINUED, 0)


def test_the_time_at_which_a_log_was_read_wins_when_earlier() -> None:
    assert outcome(act(0, "agent"), now=600, read_at=minutes(30)) == (*PENDING, 1800)
    assert outcome(act(0, "agent"), now=60, read_at=minutes(600)) == (*DROPPED, 3600)


def test_now_may_be_a_clock_and_must_have_a_zone() -> None:
    found = measure_drop_off(session(act(0, "agent")), window=HOUR, now=lambda: minutes(30))
    assert found.outcome == "pending"
    naive = datetime(2026, 9, 28)  # noqa: DTZ001
    for now in (naive, lambda: naive):
        with pytest.raises(InputError, match="no time zone"):
            measure_drop_off(session(act(0, "agent")), window=HOUR, now=now)
    with pytest.raises(InputError, match="no time zone"):
        drop_off_evaluator(now=naive)


@pytest.mark.parametrize("window", [timedelta(0), -HOUR, 3600, None])
def test_a_window_is_a_positive_timedelta(window: Any) -> None:
    with pytest.raises(InputError, match="must be a positive timedelta"):
        measure_drop_off(session(), window=window, now=START)
    with pytest.raises(InputError, match="must be a positive timedelta"):
        drop_off_evaluator(window=window)


# -- the rules once more, said from the page rather than step by step ------------------------------------------------

kinds = st.sampled_from(["message", "message", "proposal", "resolution"])
activities = st.builds(
    lambda minute, role, kind, ref: act(minute, f"{role} {kind}", ref),
    st.integers(0, 12).map(lambda tens: tens * 10),
    st.sampled_from(["person", "agent", "agent", "tool"]),
    kinds,
    st.sampled_from([None, None, "p1", "p2"]),
)
closing = st.one_of(activities, activities, st.builds(lambda minute: act(minute, "system closed"), st.integers(0, 120)))
random_sessions = st.lists(closing, max_size=8)


def by_the_page(activities: list[Activity], now: datetime) -> tuple[str, str | None]:
    seen = [activity for activity in sorted(activities, key=lambda each: each.at) if activity.at <= now]
    agent = [place for place, activity in enumerate(seen) if activity.role == "agent"]
    if not agent:
        return CONTINUED
    unresolved: list[Activity] = []
    for activity in seen:
        named = [proposal for proposal in unresolved if proposal.ref == activity.ref]
        if activity.kind == "resolution" and named:
            unresolved.remove(named[0])
        if activity.kind == "proposal" and activity.role == "agent" and not (named and activity.ref):
            unresolved.append(activity)
    if unresolved:
        return UNRESOLVED if now - unresolved[0].at >= HOUR else PENDING
    last = seen[agent[-1]]
    replies = [activity.at - last.at for activity in seen[agent[-1] :] if activity.role == "person"]
    if replies:
        return CONTINUED if replies[0] <= HOUR else DROPPED
    return DROPPED if now - last.at >= HOUR else PENDING


@given(st.lists(activities, max_size=8), st.integers(0, 20).map(lambda tens: minutes(tens * 10)))
def test_random_sessions_end_as_the_page_says(given_activities: list[Activity], now: datetime) -> None:
    found = measure_drop_off(session(*given_activities), window=HOUR, now=now)
    assert (found.outcome, found.cause) == by_the_page(given_activities, now)


# -- values ----------------------------------------------------------------------------------------------------------


def test_a_drop_has_a_cause_and_nothing_else_does() -> None:
    with pytest.raises(ValidationError, match="has a cause"):
        DropOff(outcome="dropped")
    with pytest.raises(ValidationError, match="has a cause"):
        DropOff(outcome="continued", cause="no_reply")
    with pytest.raises(ValidationError):
        DropOff(outcome="pending", waited=-1)
    with pytest.raises(ValidationError):
        DropOff(outcome="pending", waited=float("nan"))


def test_what_is_printed_is_what_the_page_shows() -> None:
    assert str(DropOff(outcome="dropped", cause="no_reply", waited=7)) == "outcome='dropped' cause='no_reply'"
    assert str(DropOff(outcome="continued", waited=7)) == "outcome='continued' cause=None"


def test_a_value_comes_back_from_its_json_as_it_was() -> None:
    found = measure_drop_off(session(act(0, "agent")), window=HOUR, now=minutes(61))
    assert DropOff.model_validate_json(found.model_dump_json()) == found


# -- the evaluator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "version"),
    [
        (HOUR, "1:3600s"),
        (timedelta(seconds=0.5), "1:0.5s"),
        (timedelta(days=14, microseconds=1), "1:1209600.000001s"),
        (timedelta(microseconds=1), "1:0.000001s"),
    ],
)
def test_the_version_is_the_window_to_the_last_digit(window: timedelta, version: str) -> None:
    assert drop_off_evaluator(window=window).version == version
    assert drop_off_evaluator().version == "1:3600s"


def test_the_evaluator_stamps_who_when_and_about_whom() -> None:
    given_session = session(act(0, "agent"), user="ada", read_at=minutes(90), attributes={"agent": "red"})
    verdict = asyncio.run(drop_off_evaluator(window=HOUR, now=minutes(180)).evaluate(given_session))
    assert isinstance(verdict, Verdict)
    assert (verdict.evaluator, verdict.version, verdict.as_of) == ("drop_off", "1:3600s", minutes(90))
    assert verdict.about == given_session.about()
    assert [score.name for score in scores(verdict)] == [
        "drop_off.outcome",
        "drop_off.cause",
        "drop_off.waited",
        "drop_off.came_late",
    ]
    assert [score.value for score in scores(verdict)] == ["dropped", "no_reply", 5400, False]


def test_the_default_clock_is_read_for_every_session() -> None:
    verdict = drop_off_evaluator().evaluate_inline(session(act(0, "agent")))
    assert verdict.as_of is not None
    assert verdict.as_of.tzinfo is not None


# -- summaries -------------------------------------------------------------------------------------------------------


def dropped(count: int) -> list[DropOff]:
    return [DropOff(outcome="dropped", cause="no_reply", waited=7200)] * count


def test_pending_sessions_leave_the_decided_rate_and_stay_in_the_share() -> None:
    values = [*dropped(1), DropOff(outcome="continued", waited=60), DropOff(outcome="pending", waited=1200)]
    decided = drop_off_rate.estimate(values)
    assert (decided.value, decided.n, decided.left_out) == (0.5, 2, {"pending": 1})
    assert decided.bounds == (1 / 3, 2 / 3)
    share = drop_off_share.estimate(values)
    assert (share.value, share.n, share.left_out) == (pytest.approx(2 / 3), 3, {})
    assert share.counts == {"ended": 1, "ended_otherwise": 0, "open": 1, "censored": 1}
    assert share.bounds == (1 / 3, 2 / 3)


def test_failures_and_skips_are_not_sessions_that_continued() -> None:
    estimate = drop_off_rate.estimate([*dropped(1), Failure("broke"), Skip("no need")])
    assert (estimate.value, estimate.left_out, estimate.bounds) == (1, {"failed": 1, "skipped": 1}, (1 / 3, 1))


def test_values_by_hand_may_say_no_time() -> None:
    by_hand = [DropOff(outcome="continued"), DropOff(outcome="dropped", cause="no_reply")]
    assert drop_off_rate(by_hand) == 0.5
    assert drop_off_share.estimate(by_hand).left_out == {"unknown": 2}


@given(st.lists(random_sessions, min_size=1, max_size=6), st.sampled_from([30, 60, 61, 90]))
def test_the_share_is_the_decided_rate_where_nobody_is_pending(logs: list[list[Activity]], window: int) -> None:
    found = [measure_drop_off(session(*log), window=timedelta(minutes=window), now=minutes(1000)) for log in logs]
    assert all(each.outcome != "pending" for each in found)
    share = replace(drop_off_share, within=timedelta(minutes=window)).estimate(found)
    decided = drop_off_rate.estimate(found)
    assert share.value == pytest.approx(decided.value, abs=1e-12)
    assert share.counts["ended"] + share.counts["open"] == share.n == decided.n
    assert share.counts["open"] == decided.counts["hits"]


@given(st.lists(random_sessions, min_size=1, max_size=6), st.integers(0, 18))
def test_the_share_lies_where_the_pending_sessions_could_put_it(logs: list[list[Activity]], tens: int) -> None:
    found = [measure_drop_off(session(*log), window=HOUR, now=minutes(tens * 10)) for log in logs]
    share, decided = drop_off_share.estimate(found), drop_off_rate.estimate(found)
    assert share.bounds == pytest.approx(decided.bounds)
    assert share.counts["censored"] == decided.left_out.get("pending", 0)
    if share.value is not None and share.bounds is not None:
        assert share.bounds[0] - 1e-12 <= share.value <= share.bounds[1] + 1e-12


def test_the_measure_names_its_window_and_says_what_a_log_without_ends_means() -> None:
    headline, decided = measure.summaries(window=timedelta(minutes=90))
    assert headline.title == "drop-off after 1h30m"
    assert (headline.name, decided.name) == ("drop_off", "drop_off_decided")
    assert headline([DropOff(outcome="continued", waited=5400)]) == 0
    assert measure.marker is not None
    assert measure.marker.seen(session(act(0, "person"), act(1, "tool closed")))
    assert not measure.marker.seen(session(act(0, "person")))


# -- a real log ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", ["read_at", "plus7d"])
@pytest.mark.parametrize(
    ("words", "window"), [("10m", timedelta(minutes=10)), ("1h", HOUR), ("24h", timedelta(hours=24))]
)
def test_real_sessions_end_as_known(real_logs: Path, read: str, words: str, window: timedelta) -> None:
    folder = real_logs / "entire_sessions"
    known = json.loads((folder / "truth.json").read_bytes())["dev"]["session_outcomes"][f"{read}/{words}"]
    found: Counter[str] = Counter()
    for line in (folder / "sessions.jsonl").read_bytes().splitlines():
        row = json.loads(line)
        events = [
            {key: each[key] for key in ("at", "role", "kind", "ref") if key in each} for each in row["activities"]
        ]
        at_read = Session.model_validate({"id": row["id"], "read_at": row["read_at"], "activities": events})
        assert at_read.read_at is not None
        if read == "read_at":
            found[measure_drop_off(at_read, window=window, now=at_read.read_at + timedelta(days=90)).outcome] += 1
        else:
            later = at_read.model_copy(update={"read_at": None})
            found[measure_drop_off(later, window=window, now=at_read.read_at + timedelta(days=7)).outcome] += 1
    assert dict(found) == known


# -- the window of verdicts and of the summary -----------------------------------------------------------------------


@pytest.mark.parametrize("within", [5, 10, 20, 30])
def test_the_share_is_that_of_its_own_window_whatever_the_verdicts_were_measured_with(within: int) -> None:
    replies = [*range(1, 35), *[None] * 6]
    sessions = [
        session(act(0, "agent"), *([] if reply is None else [act(reply, "person")]), user=f"u{number}")
        for number, reply in enumerate(replies)
    ]
    window = timedelta(minutes=within)
    narrow = [measure_drop_off(each, window=timedelta(minutes=10), now=minutes(600)) for each in sessions]
    own = [measure_drop_off(each, window=window, now=minutes(600)) for each in sessions]
    assert drop_off_share.estimate(narrow, within=window).value == drop_off_rate(own)


def test_only_a_session_without_a_reply_in_time_has_one_too_late() -> None:
    with pytest.raises(ValidationError, match="too late"):
        DropOff(outcome="continued", came_late=True)

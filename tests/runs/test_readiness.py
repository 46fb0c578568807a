"""When an input is whole: a quiet period after its last event, or its end; and each is seen to be ready once."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given as forall
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.inputs import Activity, Draft, History, Input, Revision, Session, Transcript, Turn
from evalr.runs import Readiness

T = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LATER = T + timedelta(days=1)


def session(*minutes: float, closed: float | None = None) -> Session:
    activities = [Activity(at=T + m * MINUTE, role="agent") for m in minutes]
    if closed is not None:
        activities.append(Activity(at=T + closed * MINUTE, role="person", kind="closed"))
    return Session(id="s", activities=activities)


def test_a_session_is_ready_after_ten_quiet_minutes_and_at_exactly_ten() -> None:
    ready, given = Readiness(), session(0, 5)
    assert ready.ready_at(given, LATER) == T + 15 * MINUTE
    assert not ready.is_ready(given, T + 15 * MINUTE - timedelta(microseconds=1))
    assert ready.is_ready(given, T + 15 * MINUTE)


def test_another_turn_moves_it() -> None:
    ready, now = Readiness(quiet=timedelta(minutes=3)), T + 4 * MINUTE
    assert ready.is_ready(session(0), now)
    assert not ready.is_ready(session(0, 2), now)


def test_a_close_is_an_end_unless_something_follows() -> None:
    ready = Readiness()
    assert ready.ready_at(session(0, closed=1), LATER) == T + MINUTE
    reopened = session(0, 2, closed=1)
    assert [each.kind for each in reopened.activities] == ["message", "closed", "message"]
    assert ready.ready_at(reopened, LATER) == T + 12 * MINUTE


def test_an_end_that_only_the_application_knows() -> None:
    ready = Readiness(ended=lambda transcript: transcript.turns[-1].text == "bye")
    told = [Turn(role="person", text=text, at=T) for text in ("hi", "bye")]
    assert ready.ready_at(Transcript(request="hi", turns=told), LATER) == T
    assert ready.ready_at(Transcript(request="hi", turns=told[:1]), LATER) == T + 10 * MINUTE


@pytest.mark.parametrize(
    "given",
    [
        Transcript(request="r", turns=[Turn(role="agent", text="a"), Turn(role="agent", text="b", at=T)]),
        History(id="h", revisions=[Revision(at=T - n * MINUTE, role="agent", text="a") for n in (1, 0)]),
        Session(id="empty", at=T),
        Input(id="any", at=T),
    ],
    ids=lambda given: type(given).__name__,
)  # fmt: skip
def test_the_last_event_of_each_kind_of_input(given: Input) -> None:
    assert Readiness().ready_at(given, LATER) == T + 10 * MINUTE


def test_without_a_time_or_with_one_to_come_the_arrival_counts() -> None:
    ready = Readiness()
    assert ready.ready_at(Transcript(request="r"), T) == T + 10 * MINUTE
    # When it began says nothing of when it was last seen to go on.
    going_on = Transcript(request="r", at=T, turns=[Turn(role="person", text="a", at=T), Turn(role="agent", text="b")])
    assert ready.ready_at(going_on, LATER) == LATER + 10 * MINUTE
    ahead = session(60 * 24 * 365)  # a clock that is a year ahead must not keep it from being judged
    assert ready.ready_at(ahead, T) == T + 10 * MINUTE


@pytest.mark.parametrize("quiet", [timedelta(seconds=-1), 600, None])
def test_quiet_is_a_length_of_time(quiet: timedelta) -> None:
    with pytest.raises(InputError, match="quiet="):
        Readiness(quiet=quiet)


@forall(
    st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=6), min_size=1, max_size=8),
    st.lists(st.integers(1, 40), min_size=1, max_size=60),
)
def test_a_job_that_looks_now_and_then_sees_every_reading_once(logs: list[list[int]], steps: list[int]) -> None:
    """However long ago a session began: a watermark over starts would miss the long ones for ever."""
    ready = Readiness()
    looks = [T - MINUTE]
    while looks[-1] < T + 350 * MINUTE:
        looks.append(looks[-1] + steps[len(looks) % len(steps)] * MINUTE)
    judged: Counter[tuple[int, int]] = Counter()
    for since, now in pairwise(looks):
        for name, minutes in enumerate(logs):
            so_far = session(*(m for m in minutes if T + m * MINUTE <= now))
            if so_far.activities and ready.became_ready(so_far, since=since, now=now):
                judged[name, len(so_far.activities)] += 1
    assert set(judged.values()) == {1}
    for name, minutes in enumerate(logs):
        assert judged[name, len(minutes)] == 1, "the whole session is judged in the end"


def test_draft_is_an_input_with_a_time_of_its_own() -> None:
    history = History(id="h", revisions=[Revision(at=T, role="agent", text="a")])
    (draft,) = history.drafts()
    assert isinstance(draft, Draft)
    assert Readiness().ready_at(draft, LATER) == T + 10 * MINUTE

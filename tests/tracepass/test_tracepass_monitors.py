"""Monitors: each conversation is read once, when it has ended, whatever is late, long or killed in between."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from reflex_service import START, FakeReflex, a_signal, no_sleep, talk

from evalr.errors import InputError, TransportError
from evalr.inputs import Transcript, Turn
from evalr.tracepass import (
    Account,
    BatchTransport,
    Filters,
    Pass,
    Passes,
    latest_records,
    monitor,
    monitor_sync,
    pass_rates,
    transform,
)

ME = Account("ann")
KEY = b"0123456789abcdef"
HOUR = timedelta(hours=1)
MESSAGE = transform("user_message")
SIGNALS = [a_signal("m1"), a_signal("whole", "full_conversation")]


def at(store: Any, fake: FakeReflex, now: datetime, **options: Any) -> Passes:
    return Passes(
        ME, store, BatchTransport(fake.service()), **{"now": now, "sleep": no_sleep, "hash_key": KEY, **options}
    )


def session(name: str, begun: datetime, ended: datetime, turns: int = 4) -> Transcript:
    step = (ended - begun) / (turns - 1)
    return Transcript(
        id=name,
        user="u",
        request="",
        turns=[
            Turn(role="agent" if n % 2 else "person", text=f"{name} {n}", id=f"e{n}", at=begun + n * step)
            for n in range(turns)
        ],
    )


def run(store: Any, fake: FakeReflex, now: datetime, traces: Iterable[Transcript], **options: Any) -> Pass:
    found = monitor_sync(at(store, fake, now), SIGNALS, traces, **options)
    assert found is not None
    return found


def test_b19_only_what_has_ended_since_the_last_run_is_read(store: Any) -> None:
    fake = FakeReflex()
    old = session("old", START, START + HOUR)
    fresh = session("fresh", START + 4 * HOUR, START + 5 * HOUR)
    first = run(store, fake, START + 3 * HOUR, [old, fresh])
    assert first.estimate.conversations == 1
    assert first.scope.kind == "since_last_run"
    second = run(store, fake, START + 6 * HOUR, [old, fresh])
    assert {each.convo_id for each in store.results(ME, passes=second.id)} == {"fresh"}
    assert set(fake.billed.values()) == {1}
    assert monitor_sync(at(store, fake, START + 7 * HOUR), SIGNALS, [old, fresh]) is None


def test_b19_traces_that_can_be_read_once_are_looked_ahead_in_all_the_same(store: Any) -> None:
    fake = FakeReflex()
    old = [session(f"old {n}", START, START + HOUR) for n in range(3)]
    fresh = session("fresh", START + 4 * HOUR, START + 5 * HOUR)
    log = [*old, fresh, session("to come", START + 8 * HOUR, START + 9 * HOUR)]
    run(store, fake, START + 3 * HOUR, iter(log))
    second = run(store, fake, START + 6 * HOUR, iter(log))
    assert {each.convo_id for each in store.results(ME, passes=second.id)} == {"fresh"}
    # The account is that of the whole log, as it is where the log can be read twice.
    assert (second.estimate.conversations, second.estimate.left_out) == (4, {"may still go on": 1})
    assert monitor_sync(at(store, fake, START + 7 * HOUR), SIGNALS, iter(log)) is None
    assert len(store.passes(ME)) == 2
    assert store.monitor(ME, "monitor").watermark == START + 6.5 * HOUR


@pytest.mark.parametrize("by", ["the transform", "the service"])
@pytest.mark.parametrize("key", [KEY, None])
def test_b19_what_is_too_long_fails_once(store: Any, by: str, key: bytes | None) -> None:
    fake = FakeReflex(fail_row=lambda text: "long" in text)
    short = MESSAGE.model_copy(update={"max_tokens": 16, "may_cut": False})
    strict = a_signal("m1", transform=short if by == "the transform" else MESSAGE)
    long, fine = "a long text " * (6 if by == "the transform" else 1), "fine"

    def log(*texts: str) -> list[Transcript]:
        turns = [
            Turn(role="person", text=text, id=f"e{n}", at=START + n * timedelta(minutes=1))
            for n, text in enumerate(texts)
        ]
        return [Transcript(id="c", user="u", request="", turns=turns)]

    def watched(hours: int, *texts: str) -> Pass | None:
        return monitor_sync(at(store, fake, START + hours * HOUR, hash_key=key), [strict], log(*texts))

    first = watched(2, fine, long)
    assert first is not None
    assert (first.status, first.failed_inputs) == ("partial_failure", 1)
    assert watched(3, fine, long) is None
    # What the conversation lacks it still lacks when it has gone on; this pass has failed at nothing.
    third = watched(4, fine, long, "and on")
    assert third is not None
    assert (third.status, third.total_inputs, third.answered, third.failed_inputs) == ("complete", 1, 2, 0)
    (rates,) = pass_rates(latest_records(store.results(ME, passes=third.id)), third)
    assert (rates.coverage.completed, rates.coverage.failed, rates.coverage.pending) == (2, 1, 0)
    assert at(store, fake, START + 4 * HOUR, hash_key=key).retry_sync(third.id, log(fine, long, "and on")) == third
    # One that fits now is another text, as far as there is a hash to tell.
    assert (watched(5, fine, "short", "and on") is None) is (key is None)


def test_b19_a_long_session_is_scored_exactly_once_with_all_its_turns(store: Any) -> None:
    fake = FakeReflex()
    long = session("long", START, START + 60 * HOUR, turns=60)
    for hours in range(0, 100, 5):
        now = START + hours * HOUR
        so_far = [turn for turn in long.turns if turn.at is not None and turn.at <= now]
        log = [long.model_copy(update={"turns": so_far})] if so_far else []
        monitor_sync(at(store, fake, now), SIGNALS, log, settle=2 * HOUR, overlap=6 * HOUR)
    assert len(fake.billed) == 30 + 1
    assert set(fake.billed.values()) == {1}
    assert len(list(store.results(ME, passes="all"))) == 31
    (text,) = [text for text, model in fake.billed if model == "whole"]
    assert "long 59" in text


def test_b19_what_comes_late_is_found_within_the_overlap(store: Any) -> None:
    fake = FakeReflex()
    on_time = session("on time", START, START + HOUR)
    late = session("late", START, START + 2 * HOUR)
    too_late = session("too late", START - 50 * HOUR, START - 49 * HOUR)
    run(store, fake, START + 10 * HOUR, [on_time])
    found = run(store, fake, START + 20 * HOUR, [on_time, late, too_late])
    assert {each.convo_id for each in store.results(ME, passes=found.id)} == {"late"}
    assert found.answered == 3
    assert set(fake.billed.values()) == {1}


def test_b19_a_session_that_goes_on_after_all_has_its_new_turns_read(store: Any) -> None:
    fake = FakeReflex()
    begun = session("s", START, START + HOUR)
    run(store, fake, START + 3 * HOUR, [begun])
    longer = begun.model_copy(
        update={"turns": [*begun.turns, *session("more", START + 9 * HOUR, START + 10 * HOUR).turns]}
    )
    turns = [turn.model_copy(update={"id": f"e{n}"}) for n, turn in enumerate(longer.turns)]
    found = run(store, fake, START + 12 * HOUR, [longer.model_copy(update={"turns": turns})])
    own = [each for each in store.results(ME, passes=found.id) if each.reflex_model == "m1"]
    assert [each.event_id for each in own] == ["e0", "e2", "e4", "e6"]
    assert [each.event_id for each in own if each.batch_id] == ["e4", "e6"]


def test_b19_a_run_that_failed_is_gone_on_with_before_anything_new(store: Any) -> None:
    fake = FakeReflex(key="right")
    first, second = session("a", START, START + HOUR), session("b", START + 5 * HOUR, START + 6 * HOUR)
    wrong = Passes(
        ME, store, BatchTransport(fake.service(key="wrong")), now=START + 3 * HOUR, sleep=no_sleep, hash_key=KEY
    )
    with pytest.raises(TransportError):
        monitor_sync(wrong, SIGNALS, [first])
    assert store.monitor(ME, "monitor").watermark is None
    resumed = run(store, fake, START + 8 * HOUR, [first, second])
    assert {each.convo_id for each in store.results(ME, passes=resumed.id)} == {"a"}
    after = run(store, fake, START + 8 * HOUR, [first, second])
    assert {each.convo_id for each in store.results(ME, passes=after.id)} == {"b"}
    assert set(fake.billed.values()) == {1}


def test_b19_a_run_that_was_announced_and_never_began_begins(store: Any) -> None:
    from evalr.tracepass import MonitorState

    fake = FakeReflex()
    announced = MonitorState("monitor", None, "some-id", START + 2 * HOUR)
    assert store.move_monitor(ME, MonitorState("monitor"), announced)
    found = run(store, fake, START + 9 * HOUR, [session("a", START, START + HOUR)])
    assert found.id == "some-id"
    assert store.monitor(ME, "monitor") == MonitorState("monitor", START + 2 * HOUR)


def test_b19_two_monitors_at_once_read_nothing_twice(store: Any) -> None:
    fake, traces = FakeReflex(delay=2), [session(f"s{n}", START, START + HOUR) for n in range(5)]

    async def both() -> list[Pass | None]:
        passes = at(store, fake, START + 3 * HOUR)
        found = await asyncio.gather(*(monitor(passes, SIGNALS, traces) for _ in range(3)), return_exceptions=True)
        return [each for each in found if isinstance(each, Pass)]

    asyncio.run(both())
    while store.monitor(ME, "monitor").pass_id is not None:
        run(store, fake, START + 3 * HOUR, traces)
    assert Counter(fake.billed.values()) == {1: 15}
    assert len(list(store.results(ME, passes="all"))) == 15


def test_b19_monitors_have_names_and_filters_of_their_own(store: Any) -> None:
    fake, traces = FakeReflex(), [talk(number) for number in range(7)]
    one = run(store, fake, START + 99 * HOUR, traces, name="one", filters=Filters(user="user3"))
    assert {each.user for each in store.results(ME, passes=one.id)} == {"user3"}
    two = run(store, fake, START + 99 * HOUR, traces, name="two", overlap=timedelta(0))
    assert two.answered == 3  # what one has read
    with pytest.raises(InputError, match="0 or more"):
        run(store, fake, START, traces, settle=-HOUR)


def test_b19_a_monitor_runs_the_signals_that_are_marked_for_it(store: Any) -> None:
    marked = a_signal("m1", monitor=True)
    store.save_signal(ME, marked)
    store.save_signal(ME, a_signal("m2", transform=transform("assistant_message")))
    chosen = [each for each in store.signals(ME).values() if each.monitor]
    assert chosen == [marked]

"""Conversations that go on after they were read: what was flagged stays flagged, and is paid for and told once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reflex_service import FakeReflex, a_signal, talk

from evalr.inputs import Transcript
from evalr.tracepass import (
    Account,
    Alert,
    BatchTransport,
    Pass,
    Passes,
    Result,
    Signal,
    clickhouse_results,
    fired_conversations,
    fired_results,
    flips,
    latest_records,
    open_store,
    plan,
)

ME = Account("ann")


@pytest.fixture(params=["sqlite", "clickhouse"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A store of passes, and the results beside it or in it."""
    store = open_store(tmp_path / "passes.db")
    if request.param == "sqlite":
        yield store, store
    else:
        client = request.getfixturevalue("chdb_client")
        yield store, clickhouse_results(client, database="grown")
        client.command("DROP DATABASE grown")
    store.close()


def grown(turns: int, number: int = 0) -> list[Transcript]:
    """A conversation whose first message is bad, and others that say nothing bad before their fourth."""
    return [talk(number, turns=turns), talk(1, turns=turns), talk(3, turns=turns)]


def run(kept: Any, fake: FakeReflex, turns: int, *signals: Signal, rerun: Any = "new", **options: Any) -> Pass:
    store, results = kept
    passes = Passes(ME, store, BatchTransport(fake.service()), results, **options)
    return passes.run_sync(plan(signals or [a_signal("m1")]), grown(turns), rerun=rerun)


def readings(found: list[Result]) -> list[tuple[str, int | None, bool]]:
    return sorted((each.convo_id, each.turn_index, each.fired) for each in found)


def test_b9_a_flagged_conversation_that_goes_on_stays_flagged(kept: Any) -> None:
    store, results = kept
    fake = FakeReflex()
    first = run(kept, fake, 2)
    assert [each.convo_id for each in results.conversations(ME, flagged=True)] == ["convo:0"]
    found = run(kept, fake, 4)
    assert (found.total_predictions, found.answered) == (3, 3)
    # The conversation's first turn is as it was read, the others are new; nothing was paid for twice.
    assert set(fake.billed.values()) == {1}
    latest = list(results.results(ME))
    assert {each.run_id for each in latest} == {found.id}
    assert len(latest) == 6
    flagged = {each.convo_id: each.fired_count for each in results.conversations(ME, flagged=True)}
    assert flagged == {"convo:0": 1, "convo:3": 1}
    assert readings(latest) == readings(latest_records([*latest, *results.results(ME, passes=first.id)]))
    assert fired_conversations.estimate(fired_results(latest)).counts["hits"] == 2
    again = Passes(ME, store, BatchTransport(fake.service()), results).resume_sync(found.id)
    assert again == found
    assert list(results.results(ME)) == latest


def test_b9_what_was_taken_over_is_no_second_reading(kept: Any) -> None:
    _, results = kept
    fake = FakeReflex()
    first = run(kept, fake, 2)
    run(kept, fake, 4)
    every = latest_records(results.results(ME, passes="all"), passes="all")
    assert len(every) == 9
    assert flips(every)["m1.user_message"].n == 0
    run(kept, fake, 4, rerun="all")
    every = latest_records(results.results(ME, passes="all"), passes="all")
    assert flips(every)["m1.user_message"].n == 6
    taken = [each for each in every if not each.batch_id]
    assert {each.created_at for each in taken} == {each.created_at for each in results.results(ME, passes=first.id)}


def test_b19_what_was_taken_over_is_not_told_again(kept: Any) -> None:
    told: list[Alert] = []
    fake = FakeReflex()
    run(kept, fake, 2, notify=[told.append])
    run(kept, fake, 4, notify=[told.append])
    assert [[each.convo_id for each in alert.fired] for alert in told] == [["convo:0"], ["convo:3"]]


def test_b9_what_was_taken_over_means_what_the_signal_of_the_pass_says(kept: Any) -> None:
    _, results = kept
    fake = FakeReflex()
    run(kept, fake, 2)
    found = run(kept, fake, 4, a_signal("m1", signal_id="strict", thresholds={"bad": 0.95}))
    latest = list(results.results(ME, passes=found.id))
    assert {(each.signal_id, each.fired, each.threshold) for each in latest} == {("strict", False, 0.95)}
    assert len(latest) == 6


def test_b18_nothing_is_taken_over_from_another_account(kept: Any) -> None:
    store, results = kept
    fake = FakeReflex()
    other = Account("bob")
    Passes(other, store, BatchTransport(fake.service()), results).run_sync(plan([a_signal("m1")]), grown(2))
    run(kept, fake, 2)
    Passes(other, store, BatchTransport(fake.service()), results).run_sync(plan([a_signal("m1")]), grown(6))
    found = run(kept, fake, 4)
    assert len(list(results.results(ME, passes=found.id))) == 6

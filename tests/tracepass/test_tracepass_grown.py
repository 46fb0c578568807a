"""Conversations that go on after they were read: what was flagged stays flagged, and is paid for and told once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from reflex_service import START, FakeReflex, a_signal, talk

from evalr.errors import InputError, MixedVersionsError
from evalr.inputs import Transcript
from evalr.tracepass import (
    Account,
    Alert,
    BatchTransport,
    LabelScore,
    LocalTransport,
    Pass,
    Passes,
    Plan,
    Prediction,
    Result,
    Signal,
    SignalRates,
    clickhouse_results,
    fired_conversations,
    fired_results,
    flips,
    latest_records,
    monitor_sync,
    open_store,
    pass_rates,
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


class Upgraded:
    """A classifier that says `bad` of everything, in one version or another."""

    name = "m1"
    labels = ("good", "bad")

    def __init__(self, version: str) -> None:
        self.version = version

    def predict(self, texts: Sequence[str], /) -> list[Prediction]:
        return [Prediction("m1", "single_label", (LabelScore("bad", 0.9, True),)) for _ in texts]


def test_b9_what_an_older_version_read_is_kept_and_pooled_with_nothing(kept: Any) -> None:
    store, results = kept

    def read_by(version: str, turns: int, rerun: Any) -> Pass:
        passes = Passes(ME, store, LocalTransport({"m1": Upgraded(version)}), results)
        return passes.run_sync(plan([a_signal("m1")]), grown(turns), rerun=rerun)

    def rates(found: Pass) -> list[SignalRates]:
        return pass_rates(latest_records(results.results(ME, passes=found.id)), found)

    read_by("1", 2, "all")
    mixed = read_by("2", 4, "new")
    # Only new is what nobody has read, whoever did: an upgrade is no reason to pay for all of it again.
    assert (mixed.total_predictions, mixed.answered) == (3, 3)
    assert sorted(each.model_version for each in results.results(ME)) == ["1", "1", "1", "2", "2", "2"]
    with pytest.raises(MixedVersionsError, match=r"m1-1:.*m1-2:"):
        rates(mixed)
    (pure,) = rates(read_by("2", 4, "all"))
    assert pure.turns.counts["hits"] == 6


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


def test_b19_a_monitor_that_finds_nothing_new_adds_no_pass(tmp_path: Path) -> None:
    store = open_store(tmp_path / "passes.db")
    passes = Passes(ME, store, BatchTransport(FakeReflex().service()), now=lambda: START + timedelta(days=1))
    log = grown(4)
    first = monitor_sync(passes, [a_signal("m1")], log)
    assert first is not None
    assert monitor_sync(passes, [a_signal("m1")], log) is None
    assert [each.id for each in store.passes(ME)] == [first.id]
    later = Passes(ME, store, passes.transport, now=lambda: START + timedelta(days=3))
    assert monitor_sync(later, [a_signal("m1")], log) is None
    assert store.monitor(ME, "monitor").watermark == START + timedelta(days=3) - timedelta(minutes=30)
    store.close()


def test_b19_a_monitor_asks_of_what_is_new_before_it_begins(tmp_path: Path) -> None:
    store = open_store(tmp_path / "passes.db")
    passes = Passes(ME, store, BatchTransport(FakeReflex().service()), now=lambda: START + timedelta(days=1))
    asked: list[Plan] = []

    def no(made: Plan) -> bool:
        asked.append(made)
        return False

    assert monitor_sync(passes, [a_signal("m1")], grown(4), agreed=no) is None
    assert [each.estimate(grown(4)).inputs for each in asked] == [6]
    assert store.passes(ME) == []
    assert store.monitor(ME, "monitor").pass_id is None
    assert monitor_sync(passes, [a_signal("m1")], [], agreed=no) is None
    assert len(asked) == 1
    store.close()


class Slow:
    """A store that is slow to tell what failed, to the first who asks."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def results(self, account: Account, **options: Any) -> Any:
        yield from self._store.results(account, **options)
        self._asked += 1
        if self._asked == 1:
            time.sleep(0.5)


def test_b10_two_retries_at_once_pay_once(tmp_path: Path) -> None:
    store = open_store(tmp_path / "passes.db")
    fake = FakeReflex(fail_row=lambda text: True)
    Passes(ME, store, BatchTransport(fake.service())).run_sync(plan([a_signal("m1")]), grown(4), pass_id="p")
    fake.fail_row = lambda text: False
    fake.billed.clear()
    slow = Slow(store)
    passes = Passes(ME, slow, BatchTransport(fake.service()))
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(passes.retry_sync, "p", grown(4)) for _ in range(2)]
        assert [each.result().status for each in both] == ["complete", "complete"]
    assert set(fake.billed.values()) == {1}
    store.close()


def test_r12_the_name_of_a_database_that_is_none_is_told(chdb_client: Any) -> None:
    with pytest.raises(InputError, match="database"):
        clickhouse_results(chdb_client, database="x; DROP DATABASE default")

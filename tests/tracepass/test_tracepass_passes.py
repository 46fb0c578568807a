"""Passes: whatever the service does, no prediction is lost, repeated or paid for twice."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reflex_service import START, FakeReflex, a_signal, no_sleep, talk, talks, texts

from evalr.errors import InputError, StoreError, TransportError
from evalr.inputs import Transcript
from evalr.tracepass import (
    Account,
    BatchTransport,
    Caps,
    LabelScore,
    LivePreview,
    LocalTransport,
    Pass,
    Passes,
    Plan,
    Prediction,
    Preset,
    Result,
    Signal,
    already_read,
    clickhouse_results,
    heuristics,
    matching,
    monitor_sync,
    open_store,
    plan,
    selected,
    signal,
)
from evalr_tracepass.running import OVER_THE_CAPS

ME = Account("ann", "acme")
KEY = b"0123456789abcdef"
SIGNALS = [a_signal("m1"), a_signal("m2"), a_signal("m3", "assistant_message")]


def passes(store: Any, fake: FakeReflex, *, largest: int = 7, **options: Any) -> Passes:
    return Passes(
        ME,
        store,
        BatchTransport(fake.service(), largest=largest),
        **{"poll": 1.0, "patience": 60.0, "sleep": no_sleep, **options},
    )


def made(*signals: Signal) -> Plan:
    return plan(signals or SIGNALS)


def asked(traces: list[Transcript]) -> set[tuple[str, str]]:
    """What is to be predicted, by text and model."""
    person, agent = texts(traces), texts(traces, "agent")
    return {(text, model) for text in person for model in ("m1", "m2")} | {(text, "m3") for text in agent}


def keys(results: list[Result]) -> list[tuple[str, str]]:
    return sorted((each.request_id, each.reflex_model) for each in results)


def whole(store: Any, found: Pass, fake: FakeReflex, traces: list[Transcript]) -> list[Result]:
    """A pass that lost nothing, repeated nothing and paid for nothing twice; its results."""
    results = list(store.results(ME, passes=found.id))
    assert len(keys(results)) == len(set(keys(results))) == len(asked(traces))
    assert set(fake.billed) == asked(traces)
    assert set(fake.billed.values()) == {1}
    for each in results:
        if each.status == "completed":
            number, place = each.convo_id.split(":")[1], each.event_id.split("_")[1]
            assert each.fired is ((int(number) + int(place)) % 5 == 0)
    return results


# R10, R11, R12: what a pass keeps


def test_r10_a_pass_keeps_what_it_was_made_of_and_how_it_ended(store: Any) -> None:
    fake, traces = FakeReflex(delay=1), talks(6)
    clock = iter(START + timedelta(minutes=minute) for minute in range(1_000))
    scope = selected(["convo:1", "convo:2"])
    run = passes(store, fake, now=clock.__next__)
    found = run.run_sync(plan(SIGNALS, scope=scope, hash_key=KEY), traces)
    assert found == store.get_pass(ME, found.id)
    assert found.status == "complete"
    assert found.scope == scope
    assert [each["signal_id"] for each in found.selected_signals] == [each.signal_id for each in SIGNALS]
    assert [each["models"] for each in found.transform_plan] == [["m1", "m2"], ["m3"]]
    assert (found.total_inputs, found.total_predictions) == (8, 12)
    assert (found.completed_inputs, found.failed_inputs) == (8, 0)
    assert found.estimate.conversations == 2
    assert found.estimate.left_out == {"not in the scope": 4}
    assert found.planned
    assert found.started_at is not None
    assert found.completed_at is not None
    assert found.created_at < found.started_at < found.completed_at
    assert run.plan_of(found).groups == made().groups


def test_r11_items_map_rows_to_where_they_came_from(store: Any) -> None:
    fake, traces = FakeReflex(), talks(3)
    found = passes(store, fake).run_sync(plan(SIGNALS, hash_key=KEY), traces)
    items = store.items(ME, found.id)
    rows = list(plan(SIGNALS, hash_key=KEY).rows(traces))
    assert items == [row.item for row in rows]
    assert {row["id"] for rows in fake.batches.values() for row in rows} == {item.request_id for item in items}
    assert all(len(item.input_hash) == 32 for item in items)


def test_r12_there_is_one_result_for_each_prediction(store: Any) -> None:
    fake, traces = FakeReflex(), talks(5)
    found = passes(store, fake).run_sync(made(), traces)
    results = whole(store, found, fake, traces)
    assert {each.run_id for each in results} == {found.id}
    assert {each.batch_id for each in results} == set(fake.batches)
    assert {each.transform_version for each in results} == {1}
    assert {each.user for each in results} == {each.user for each in traces}
    by_user = {each.convo_id: each.user for each in results}
    assert by_user == {each.id: each.user for each in traces}


# B2, B5: several batches of a pass, and their keys


def test_b2_a_pass_takes_as_many_batches_as_it_needs(store: Any) -> None:
    fake, traces = FakeReflex(delay=2), talks(10)
    found = passes(store, fake, largest=9).run_sync(made(), traces)
    assert [len(rows) for rows in fake.batches.values()] == [9, 9, 9, 9, 4]
    assert [(each.number, each.status) for each in store.batches(ME, found.id)] == [(n, "ended") for n in range(5)]
    whole(store, found, fake, traces)


def test_b5_the_first_upload_goes_under_the_passs_key_and_others_under_its_numbers(store: Any) -> None:
    fake = FakeReflex()
    found = passes(store, fake, largest=20).run_sync(made(), talks(12))
    assert fake.uploads == [f"trace-pass:{found.id}{end}" for end in ("", ":1", ":2")]


def test_b5_a_deliberate_rerun_is_a_new_pass(store: Any) -> None:
    fake, traces = FakeReflex(), talks(2)
    run = passes(store, fake)
    one, two = run.run_sync(made(), traces), run.run_sync(made(), traces)
    assert one.id != two.id
    assert set(fake.billed.values()) == {2}
    assert [each.id for each in store.passes(ME)] == [two.id, one.id]


# B4: whatever the service does


@pytest.mark.parametrize(
    "how",
    [
        {"delay": 4},
        {"repeat": True},
        {"reorder": True},
        {"repeat": True, "reorder": True, "page": 3},
        {"refuse": 4},
        {"cut_before": 4},
        {"cut_after": 4},
        {"truncate": 4},
        {"delay": 2, "refuse": 2, "cut_after": 2, "truncate": 1, "repeat": True, "reorder": True, "page": 2},
    ],
    ids="+".join,
)
def test_b4_nothing_is_lost_repeated_or_paid_for_twice(store: Any, how: dict[str, Any]) -> None:
    fake, traces = FakeReflex(**how), talks(6)
    found = passes(store, fake).run_sync(made(), traces)
    assert found.status == "complete"
    results = whole(store, found, fake, traces)
    assert {each.status for each in results} == {"completed"}


def test_b4_rows_and_models_that_fail_are_failures_under_their_names(store: Any) -> None:
    fake = FakeReflex(fail_row=lambda text: "bad" in text, fail_model=lambda model: model == "m2")
    traces = talks(10)
    found = passes(store, fake).run_sync(made(), traces)
    assert found.status == "partial_failure"
    results = whole(store, found, fake, traces)
    bad = [each for each in results if each.error_type == "overloaded"]
    assert {each.reflex_model for each in bad} == {"m1", "m2", "m3"}
    assert len({each.request_id for each in bad}) == found.failed_inputs == 8
    assert {each.reflex_model for each in results if each.error_type == "inference_error"} == {"m2"}
    assert found.completed_inputs + found.failed_inputs == found.total_inputs == 40
    totals = store.totals(ME, found.id)
    assert totals.completed + totals.failed == found.total_predictions == 60


def test_b15_a_pass_says_how_far_it_has_come(store: Any) -> None:
    seen: list[Pass] = []
    fake, traces = FakeReflex(delay=3), talks(6)
    found = passes(store, fake, largest=10, progress=seen.append).run_sync(made(), traces)
    assert seen[0].status == "running"
    assert seen[-1] == found
    done = [each.completed_inputs for each in seen]
    assert done == sorted(done)
    assert {0, 24} < set(done)
    assert all(each.completed_inputs + each.failed_inputs <= each.total_inputs for each in seen)


def test_b15_rows_that_never_come_leave_a_pass_running_until_it_is_given_up(store: Any) -> None:
    fake, traces = FakeReflex(pending=lambda name: ":convo%3A2:" in name), talks(4)
    run = passes(store, fake, largest=100)
    found = run.run_sync(made(), traces)
    assert found.status == "running"
    assert found.completed_at is None
    assert found.completed_inputs == 12
    results = list(store.results(ME, passes=found.id))
    assert {each.convo_id for each in results} == {"convo:0", "convo:1", "convo:3"}
    assert list(store.results(ME)) == []
    assert run.sync_sync(found.id).status == "running"
    given_up = run.sync_sync(found.id, give_up=True)
    assert given_up.status == "partial_failure"
    lost = list(store.results(ME, passes=found.id, failed=True))
    assert {(each.convo_id, each.error_type) for each in lost} == {("convo:2", "no_result")}
    assert len(list(store.results(ME, passes=found.id))) == len(asked(traces))


def test_b15_rows_that_come_late_are_kept(store: Any) -> None:
    late = {"convo%3A2"}
    fake, traces = FakeReflex(pending=lambda name: name.split(":")[1] in late), talks(4)
    run = passes(store, fake, largest=100)
    found = run.run_sync(made(), traces)
    assert found.status == "running"
    late.clear()
    found = run.sync_sync(found.id)
    assert found.status == "complete"
    whole(store, found, fake, traces)


def test_b4_rows_that_an_ended_batch_does_not_have_have_failed(store: Any) -> None:
    fake, traces = FakeReflex(status="expired", drop=lambda name: ":convo%3A1:" in name), talks(3)
    found = passes(store, fake, largest=100).run_sync(made(), traces)
    assert found.status == "partial_failure"
    lost = {(each.convo_id, each.error_type) for each in store.results(ME, passes=found.id, failed=True)}
    assert lost == {("convo:1", "no_result")}
    assert len(list(store.results(ME, passes=found.id))) == len(asked(traces))


def test_b1_a_text_that_is_too_long_fails_before_it_is_sent(store: Any) -> None:
    strict = a_signal("m1")
    strict = strict.model_copy(update={"transform": strict.transform.model_copy(update={"may_cut": False})})
    traces = talks(3)
    turns = [
        turn.model_copy(update={"text": "x" * 350_001}) if turn.id == "event_0" else turn for turn in traces[1].turns
    ]
    traces[1] = traces[1].model_copy(update={"turns": turns})
    fake = FakeReflex()
    run = passes(store, fake)
    found = run.run_sync(plan([strict]), traces)
    assert (found.status, found.total_inputs, found.failed_inputs) == ("partial_failure", 6, 1)
    (lost,) = store.results(ME, passes=found.id, failed=True)
    assert (lost.convo_id, lost.event_id, lost.error_type) == ("convo:1", "event_0", "input_too_long")
    assert len(fake.billed) == 5
    assert run.retry_sync(found.id, traces) == found


def test_b11_what_was_not_retained_is_counted_on_the_pass(store: Any) -> None:
    traces = talks(3)
    traces[1] = traces[1].model_copy(
        update={"turns": [turn.model_copy(update={"text": " "}) for turn in traces[1].turns]}
    )
    found = passes(store, FakeReflex()).run_sync(made(), traces)
    assert store.get_pass(ME, found.id).estimate.not_retained == 4
    assert found.total_inputs == 8


def test_an_empty_pass_is_complete(store: Any) -> None:
    found = passes(store, FakeReflex()).run_sync(made(), [])
    assert (found.status, found.total_inputs) == ("complete", 0)


# B8: syncing twice


def test_b8_syncing_twice_changes_nothing(store: Any) -> None:
    fake, traces = FakeReflex(delay=1), talks(5)
    run = passes(store, fake, patience=0.0)
    found = run.run_sync(made(), traces)
    assert found.status == "running"
    found = run.sync_sync(found.id)
    assert found.status == "complete"
    before = (
        list(store.results(ME, passes=found.id, history=True)),
        store.conversations(ME),
        store.batches(ME, found.id),
    )
    for each in store.batches(ME, found.id):
        store.save_batch(ME, each._replace(status="sent"))  # as if the process had ended before it could say so
    store.save_pass(ME, found._replace(status="running", completed_at=None))
    again = run.sync_sync(found.id)
    assert again.status == "complete"
    assert run.sync_sync(found.id) == again
    after = (
        list(store.results(ME, passes=found.id, history=True)),
        store.conversations(ME),
        store.batches(ME, found.id),
    )
    assert after == before
    whole(store, found, fake, traces)


# A crash at any call of the store or the service


class Crash(BaseException):
    """The process ends here, as far as the code can tell."""


class Crashing:
    """A store whose n-th writing call never returns: before it did anything, or after."""

    WRITES = frozenset({"add_pass", "save_pass", "add_batch", "add_failed", "save_batch", "settle", "write", "finish"})

    def __init__(self, store: Any, at: int, *, after: bool) -> None:
        self._store = store
        self._left = at
        self._after = after

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        if name not in self.WRITES:
            return call

        def crashing(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Crash
            found = call(*arguments, **options)
            if self._left == 0:
                raise Crash
            return found

        return crashing


@pytest.mark.parametrize("after", [False, True])
def test_b5_a_pass_that_crashed_at_any_write_goes_on_and_pays_once(tmp_path: Path, after: bool) -> None:
    traces = talks(4)
    crashes = 0
    for at in range(1, 100):
        store = open_store(tmp_path / f"{at}.db")
        fake = FakeReflex(delay=1, fail_row=lambda text: "0-0" in text)
        broken = Passes(
            ME,
            Crashing(store, at, after=after),
            BatchTransport(fake.service(), largest=7),
            results=None,
            sleep=no_sleep,
        )
        pass_id = "the-pass"
        try:
            asyncio.run(broken.run(made(), traces, pass_id=pass_id))
        except Crash:
            crashes += 1
        else:
            store.close()
            break
        run = passes(store, fake)
        try:
            found = run.resume_sync(pass_id, traces)
        except StoreError:
            assert (at, after) == (1, False)  # it was never begun
            store.close()
            continue
        assert found.status == "partial_failure"
        assert found.total_predictions == len(asked(traces))
        whole(store, found, fake, traces)
        assert fake.uploads.count(f"trace-pass:{pass_id}") <= 2
        store.close()
    assert crashes > 20


def test_b5_a_crash_between_upload_and_saving_its_id_is_resumed_under_the_same_key(store: Any) -> None:
    fake, traces = FakeReflex(), talks(4)
    pass_id = "p"
    broken = passes(Crashing(store, 4, after=False), fake, largest=100)  # the id of the first batch
    with pytest.raises(Crash):
        asyncio.run(broken.run(made(), traces, pass_id=pass_id))
    assert fake.uploads == ["trace-pass:p"]
    assert [(each.status, each.batch_id) for each in store.batches(ME, pass_id)] == [("prepared", "")]
    run = passes(store, fake, largest=100)
    with pytest.raises(InputError, match="resume it with the traces"):
        run.sync_sync(pass_id)
    with pytest.raises(InputError, match="resume it with the traces"):
        run.resume_sync(pass_id)
    found = run.resume_sync(pass_id, traces)
    assert fake.uploads == ["trace-pass:p"] * 2
    assert len(fake.batches) == 1
    whole(store, found, fake, traces)


def test_b5_rows_that_the_traces_no_longer_have_are_failures_and_are_not_sent_under_another_text(store: Any) -> None:
    traces = talks(4)
    run_made = plan(SIGNALS, hash_key=KEY)
    fake = FakeReflex()
    with pytest.raises(Crash):  # before anything was uploaded
        asyncio.run(passes(Crashing(store, 3, after=True), fake, largest=100).run(run_made, traces, pass_id="p"))
    assert not fake.uploads
    changed = [talk(0), talk(1, words="other "), talk(3)]
    found = passes(store, fake, largest=100, hash_key=KEY).resume_sync("p", changed)
    results = list(store.results(ME, passes="p"))
    assert len(results) == 4 * 6
    by_convo = {each.convo_id: (each.status, each.error_type) for each in results}
    assert by_convo["convo:0"] == by_convo["convo:3"] == ("completed", "")
    assert found.status in ("partial_failure", "running")
    assert not any("other" in text for text, model in fake.billed if model == "m1" and "1-" in text)


def test_a_service_that_refuses_leaves_a_pass_that_can_be_resumed(store: Any) -> None:
    fake, traces = FakeReflex(key="right"), talks(4)
    wrong = Passes(ME, store, BatchTransport(fake.service(key="wrong"), largest=7), sleep=no_sleep)
    with pytest.raises(TransportError, match="refuses the key"):
        wrong.run_sync(made(), traces, pass_id="p")
    kept = store.get_pass(ME, "p")
    assert kept.status == "failed"
    assert kept.error_message is not None
    assert "refuses the key" in kept.error_message
    found = passes(store, fake).resume_sync("p", traces)
    assert found.status == "complete"
    assert found.error_message is None
    whole(store, found, fake, traces)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**6))
def test_b4_whatever_happens_in_whatever_order_the_numbers_add_up(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    chance = random.Random(seed)
    store = open_store(tmp_path_factory.mktemp("any") / "passes.db")
    fake = FakeReflex(
        delay=chance.randrange(3),
        repeat=chance.random() < 0.5,
        reorder=chance.random() < 0.5,
        page=chance.choice([None, 1, 4]),
        refuse=chance.randrange(3),
        cut_before=chance.randrange(3),
        cut_after=chance.randrange(3),
        truncate=chance.randrange(2),
        fail_row=(lambda text: "2-" in text) if chance.random() < 0.5 else (lambda _: False),
        fail_model=(lambda model: model == "m3") if chance.random() < 0.3 else (lambda _: False),
    )
    traces = talks(chance.randrange(1, 6))
    run = passes(store, fake, largest=chance.choice([1, 3, 50]))
    broken = passes(Crashing(store, chance.randrange(2, 30), after=chance.random() < 0.5), fake, largest=3)
    try:
        found = asyncio.run(broken.run(made(), traces, pass_id="p"))
    except (Crash, TransportError):
        fake.refuse = fake.cut_before = fake.cut_after = fake.truncate = 0
        found = run.resume_sync("p", traces)
    assert found.status in ("complete", "partial_failure")
    whole(store, found, fake, traces)
    assert found.completed_inputs + found.failed_inputs == found.total_inputs
    store.close()


# B9: rerun


def test_b9_only_what_has_no_result_is_read(store: Any) -> None:
    fake, traces = FakeReflex(), talks(6)
    run = passes(store, fake)
    run.run_sync(made(), traces[:4])
    assert already_read(store, ME, [str(each.id) for each in traces]) == {f"convo:{number}" for number in range(4)}
    found = run.run_sync(made(), traces, rerun="new")
    assert (found.rerun, found.answered, found.total_predictions) == ("new", 24, 12)
    assert set(fake.billed.values()) == {1}
    assert set(fake.billed) == asked(traces)
    assert {each.convo_id for each in store.conversations(ME)} == {f"convo:{number}" for number in range(6)}


def test_b9_a_model_that_is_new_reads_what_others_have_read(store: Any) -> None:
    fake, traces = FakeReflex(), talks(2)
    run = passes(store, fake)
    run.run_sync(made(a_signal("m1")), traces)
    found = run.run_sync(made(a_signal("m1"), a_signal("m2")), traces, rerun="new")
    assert (found.answered, found.total_predictions) == (4, 4)
    assert {row["model"][0] for row in fake.batches["rbatch-1"]} == {"m2"}
    assert set(fake.billed.values()) == {1}


def test_b9_a_new_version_of_a_transform_is_new(store: Any) -> None:
    fake, traces = FakeReflex(), talks(2)
    run = passes(store, fake)
    one = a_signal("m1")
    run.run_sync(plan([one]), traces)
    newer = one.model_copy(update={"transform": one.transform.model_copy(update={"version": 2})})
    assert run.run_sync(plan([newer]), traces, rerun="new").total_predictions == 4
    assert set(fake.billed.values()) == {2}


def test_b9_a_text_that_changed_is_new_and_one_that_did_not_is_not(store: Any) -> None:
    fake = FakeReflex()
    run = passes(store, fake, hash_key=KEY)
    run.run_sync(made(), talks(3))
    changed = [talk(0), talk(1, words="changed "), talk(2)]
    found = run.run_sync(made(), changed, rerun="new")
    assert (found.answered, found.total_predictions) == (12, 6)
    assert {text for text, _ in fake.billed if "changed" in text} == set(
        texts([changed[1]]) + texts([changed[1]], "agent")
    )
    assert set(fake.billed.values()) == {1}


def test_b9_what_failed_is_new(store: Any) -> None:
    fake, traces = FakeReflex(fail_row=lambda text: "1-" in text), talks(3)
    run = passes(store, fake)
    run.run_sync(made(), traces)
    fake.fail_row = lambda _: False
    assert run.run_sync(made(), traces, rerun="new").total_predictions == 6


def test_b9_a_rerun_that_crashed_counts_the_same(tmp_path: Path) -> None:
    traces = talks(5)
    for at in range(2, 40):
        store, fake = open_store(tmp_path / f"{at}.db"), FakeReflex()
        passes(store, fake).run_sync(made(), traces[:2])
        try:
            asyncio.run(
                passes(Crashing(store, at, after=True), fake, largest=3).run(made(), traces, rerun="new", pass_id="p")
            )
        except Crash:
            found = passes(store, fake, largest=3).resume_sync("p", traces)
            assert (found.answered, found.total_predictions, found.total_inputs) == (12, 18, 12)
            assert set(fake.billed.values()) == {1}
        else:
            break
        finally:
            store.close()
    assert at > 10


# B10: retry


def test_b10_failed_rows_are_sent_again_and_what_failed_is_history(store: Any) -> None:
    fake = FakeReflex(fail_row=lambda text: "1-" in text, fail_model=lambda model: model == "m3")
    traces = talks(4)
    run = passes(store, fake, largest=5)
    found = run.run_sync(made(), traces)
    assert found.status == "partial_failure"
    before = list(store.results(ME, passes=found.id, failed=True))
    paid = fake.billed.copy()
    fake.fail_row, fake.fail_model = (lambda _: False), (lambda _: False)
    again = run.retry_sync(found.id, traces)
    assert again.id == found.id
    assert again.status == "complete"
    assert (again.completed_inputs, again.failed_inputs) == (16, 0)
    results = list(store.results(ME, passes=found.id))
    assert len(results) == len(asked(traces))
    assert {each.status for each in results} == {"completed"}
    history = list(store.results(ME, passes=found.id, history=True))
    assert [each for each in history if each.status == "failed"] == before
    assert len(history) == len(results) + len(before)
    assert {each.attempt for each in results} == {0, 1}
    # Only what failed was sent again, to the models that had failed, under keys of its own.
    sent_again = fake.billed - paid
    assert set(sent_again) == {
        (text, model) for text, model in asked(traces) if model == "m3" or " text 1-" in f" {text}"
    }
    assert set(sent_again.values()) == {1}
    numbers = [int(key.rpartition(":")[2]) for key in fake.uploads[1:]]
    assert numbers == list(range(1, len(fake.uploads)))


def test_b10_a_retry_that_crashed_goes_on_and_pays_once(tmp_path: Path) -> None:
    traces, crashes = talks(3), 0
    for at in range(1, 40):
        store, fake = open_store(tmp_path / f"{at}.db"), FakeReflex(fail_row=lambda text: "1-" in text)
        found = passes(store, fake).run_sync(made(), traces)
        fake.fail_row = lambda _: False
        try:
            asyncio.run(passes(Crashing(store, at, after=False), fake).retry(found.id, traces))
        except Crash:
            crashes += 1
        else:
            store.close()
            break
        run = passes(store, fake)
        resumed = run.resume_sync(found.id, traces)
        if resumed.status == "partial_failure":
            resumed = run.retry_sync(found.id, traces)
        assert resumed.status == "complete"
        assert set(fake.billed.values()) == {1, 2}
        assert {text for (text, _), count in fake.billed.items() if count == 2} == {
            text for text, _ in asked(traces) if "text 1-" in text
        }
        store.close()
    assert crashes > 5


def test_b10_what_fails_again_stays_a_failure(store: Any) -> None:
    fake, traces = FakeReflex(fail_row=lambda text: "1-" in text), talks(3)
    run = passes(store, fake)
    found = run.run_sync(made(), traces)
    again = run.retry_sync(found.id, traces)
    assert again.status == "partial_failure"
    assert store.totals(ME, found.id).failed == 6
    assert {each.attempt for each in store.results(ME, passes=found.id, failed=True)} == {1}
    again = run.retry_sync(found.id, traces)
    assert {each.attempt for each in store.results(ME, passes=found.id, failed=True)} == {2}


def test_b10_a_pass_that_has_not_ended_is_not_retried(store: Any) -> None:
    fake, traces = FakeReflex(delay=99), talks(2)
    run = passes(store, fake, patience=0.0)
    found = run.run_sync(made(), traces)
    with pytest.raises(InputError, match="has not ended"):
        run.retry_sync(found.id, traces)


# B14: the latest completed pass


def test_b14_the_latest_completed_pass_is_shown_by_default(store: Any) -> None:
    fake, traces = FakeReflex(), talks(4)
    run = passes(store, fake)
    one = run.run_sync(made(), traces)
    two = run.run_sync(made(), traces[:2])
    shown = {each.convo_id: each.run_id for each in store.results(ME)}
    assert shown == {"convo:0": two.id, "convo:1": two.id, "convo:2": one.id, "convo:3": one.id}
    assert len(list(store.results(ME, passes="all"))) == 24 + 12
    assert {each.run_id for each in store.results(ME, passes=one.id)} == {one.id}
    fake.delay = 10**6
    run.run_sync(made(), traces)  # it has not ended
    assert {each.convo_id: each.run_id for each in store.results(ME)} == shown


# B16, B17: lists and details


def test_b16_conversations_are_listed_with_what_fired(store: Any) -> None:
    traces = talks(10)
    passes(store, FakeReflex()).run_sync(made(), traces)
    listed = store.conversations(ME)
    assert [each.convo_id for each in listed] == [f"convo:{number}" for number in range(9, -1, -1)]
    flagged = store.conversations(ME, flagged=True)
    assert {each.convo_id for each in flagged} == {
        f"convo:{n}" for n in range(10) if any((n + p) % 5 == 0 for p in range(4))
    }
    by_agent = store.conversations(ME, signal_id="m3.assistant_message")
    assert {each.convo_id for each in by_agent} == {
        f"convo:{n}" for n in range(10) if any((n + p) % 5 == 0 for p in (1, 3))
    }
    assert all(len(each.chips) <= 3 for each in listed)
    assert all(chip.label == "bad" and chip.score == 0.9 for each in flagged for chip in each.chips)


def test_b17_a_conversation_is_read_turn_by_turn(store: Any) -> None:
    passes(store, FakeReflex()).run_sync(made(), talks(6))
    found = list(store.results(ME, convo_id="convo:5"))
    assert [each.event_id for each in found] == ["event_0", "event_0", "event_1", "event_2", "event_2", "event_3"]
    assert [(each.event_id, each.reflex_model) for each in store.results(ME, convo_id="convo:5", fired=True)] == [
        ("event_0", "m1"),
        ("event_0", "m2"),
    ]


# B18: accounts


def test_b18_another_account_can_neither_see_nor_touch_a_pass(store: Any) -> None:
    fake, traces = FakeReflex(), talks(2)
    found = passes(store, fake).run_sync(made(), traces)
    stranger = Passes(Account("ann", "umbrella"), store, BatchTransport(fake.service()), sleep=no_sleep)
    calls: list[Callable[[], object]] = [
        lambda: stranger.resume_sync(found.id, traces),
        lambda: stranger.sync_sync(found.id),
        lambda: stranger.retry_sync(found.id, traces),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="no pass"):
            call()
    colleague = Passes(Account("bob", "acme"), store, BatchTransport(fake.service()), sleep=no_sleep)
    assert colleague.sync_sync(found.id) == found
    with pytest.raises(InputError, match="an account needs"):
        Passes(Account("", ""), store, BatchTransport(fake.service()))


# Other transports


def test_b6_a_preview_sends_no_more_than_its_caps(store: Any) -> None:
    fake, traces = FakeReflex(), talks(30)
    preview = LivePreview(fake.service(), caps=Caps(conversations=10, inputs=15, predictions=40))
    found = Passes(ME, store, preview, sleep=no_sleep).run_sync(made(), traces)
    assert found.status == "complete"
    assert sum(fake.billed.values()) == found.total_predictions <= 40
    assert len({each.convo_id for each in store.results(ME)}) <= 10
    sent = {each.transform_id: 0 for each in store.items(ME, found.id)}
    for each in store.items(ME, found.id):
        sent[each.transform_id] += 1
    assert max(sent.values()) <= 15
    assert found.estimate.left_out[OVER_THE_CAPS] == 120 - found.total_inputs


def test_b6_a_preview_leaves_the_same_results_as_a_batch(tmp_path: Path) -> None:
    found = []
    for name in ("live", "batch"):
        store, fake = open_store(tmp_path / f"{name}.db"), FakeReflex(fail_model=lambda model: model == "m2")
        transport = LivePreview(fake.service(), caps=None) if name == "live" else BatchTransport(fake.service())
        Passes(ME, store, transport, sleep=no_sleep).run_sync(made(), talks(5), pass_id="p")
        found.append([each._replace(batch_id="", created_at=START) for each in store.results(ME)])
        store.close()
    assert found[0] == found[1]


@pytest.mark.parametrize("at", [3, 5, 7, 9, 12])
def test_r2_a_local_pass_that_crashed_reads_at_most_one_batch_again(tmp_path: Path, at: int) -> None:
    read: list[str] = []

    class Reader:
        name, version, labels = "m1", "1", ("good", "bad")

        def predict(self, given: list[str]) -> list[Prediction]:
            read.extend(given)
            return [Prediction("m1", "single_label", (LabelScore("bad", 0.75, True),)) for _ in given]

    store, traces = open_store(tmp_path / "passes.db"), talks(10)
    local = LocalTransport({"m1": Reader()}, largest=4)
    with pytest.raises(Crash):
        asyncio.run(Passes(ME, Crashing(store, at, after=True), local).run(made(a_signal("m1")), traces, pass_id="p"))
    found = Passes(ME, store, local).resume_sync("p", traces)
    assert found.status == "complete"
    assert len(list(store.results(ME, passes="p"))) == 20
    assert 20 <= len(read) <= 24
    store.close()


def test_b20_heuristics_run_here_without_a_service(store: Any) -> None:
    tone = signal("heuristic-negative-tone")
    local = LocalTransport(heuristics())
    found = Passes(ME, store, local).run_sync(plan([tone], reflexes=heuristics()), talks(5))
    assert found.status == "complete"
    assert {each.model_version for each in store.results(ME)} == {heuristics()["heuristic-negative-tone"].version}


def test_results_may_be_kept_elsewhere(tmp_path: Path) -> None:
    lifecycle, results = open_store(tmp_path / "lifecycle.db"), open_store(tmp_path / "results.db")
    fake = FakeReflex()
    found = Passes(ME, lifecycle, BatchTransport(fake.service()), results=results, sleep=no_sleep).run_sync(
        made(), talks(3)
    )
    assert found.status == "complete"
    assert list(lifecycle.results(ME, passes="all")) == []
    assert len(list(results.results(ME))) == 18
    assert results.passes(ME) == []
    lifecycle.close()
    results.close()


def test_several_passes_run_at_once(store: Any) -> None:
    fake, traces = FakeReflex(delay=2), talks(4)

    async def both() -> list[Pass]:
        run = passes(store, fake)
        return list(await asyncio.gather(*(run.run(made(), traces) for _ in range(4))))

    found = asyncio.run(both())
    assert {each.status for each in found} == {"complete"}
    assert set(fake.billed.values()) == {4}
    assert len(list(store.results(ME, passes="all"))) == 4 * 24


def test_times_of_a_pass_are_aware(store: Any) -> None:
    found = passes(store, FakeReflex()).run_sync(made(), talks(1))
    assert found.created_at.tzinfo is UTC
    assert datetime.now(UTC) - found.created_at < timedelta(minutes=5)


@pytest.mark.parametrize("place", ["sqlite", "postgres", "clickhouse"])
def test_r9_ids_and_texts_that_are_no_text_are_read_all_the_same(
    request: pytest.FixtureRequest, tmp_path: Path, place: str
) -> None:
    odd = "a\0b\ud83d:c%é\u2028"
    results = None
    if place == "postgres":
        store = open_store(request.getfixturevalue("postgres").make("odd_ids"))
    else:
        store = open_store(tmp_path / "passes.db")
    if place == "clickhouse":
        results = clickhouse_results(request.getfixturevalue("chdb_client"), database="odd")
    turns = [turn.model_copy(update={"id": f"{turn.id}{odd}", "text": f"bad {odd}"}) for turn in talk(0).turns]
    traces = [talk(0).model_copy(update={"id": odd, "user": odd, "turns": turns}), talk(1)]
    fake = FakeReflex(delay=1)
    run = Passes(ME, store, BatchTransport(fake.service(), largest=3), results=results, sleep=no_sleep, hash_key=KEY)
    found = run.run_sync(made(), traces)
    assert (found.status, found.total_predictions) == ("complete", 12)
    assert run.run_sync(made(), traces, rerun="new").answered == 12
    kept = (results or store).conversations(ME, flagged=True)
    assert "a\\x00b\\ud83d:c%é\u2028" in {each.convo_id for each in kept}
    for scope in (selected([odd]), matching(user=odd)):
        found = run.run_sync(plan(SIGNALS, scope=scope), traces)
        assert (found.status, found.total_predictions) == ("complete", 6)
        assert run.plan_of(store.get_pass(ME, found.id)).estimate(traces).inputs == 4
    store.close()


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
def test_r9_names_with_signs_of_sql_are_names(request: pytest.FixtureRequest, tmp_path: Path, place: str) -> None:
    where = request.getfixturevalue("postgres").make("odd_names") if place == "postgres" else tmp_path / "passes.db"
    store, name = open_store(where), "it's \"; DROP TABLE x; -- %s %(a)s :b ? {c} $1 \\ é"
    me = Account(name, f"{name} inc.")
    mine = a_signal(name, signal_id=name, labels=(), fires_on=(name,))
    store.save_signal(me, mine)
    store.save_preset(me, Preset(name=name, signals=(name,)))
    assert (list(store.signals(me)), list(store.presets(me))) == ([name], [name])
    passes_ = Passes(me, store, BatchTransport(FakeReflex().service()), sleep=no_sleep)
    found = monitor_sync(passes_, [mine], talks(2), name=name)
    assert found is not None
    assert {each.signal_id for each in store.results(me, signal_id=name)} == {name}
    assert store.monitor(me, name).watermark is not None
    store.close()


@pytest.mark.parametrize("place", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", ["half \ud83d", "nul \0"])
def test_r9_what_a_store_cannot_hold_is_told(
    request: pytest.FixtureRequest, tmp_path: Path, place: str, name: str
) -> None:
    in_postgres = place == "postgres"
    where = request.getfixturevalue("postgres").make(f"odd_{ord(name[-1])}") if in_postgres else tmp_path / "passes.db"
    store = open_store(where)
    if in_postgres or not name.endswith("\0"):
        for call in (
            lambda: store.get_pass(ME, name),
            lambda: store.save_signal(ME, a_signal("m1").model_copy(update={"signal_id": name})),
            lambda: store.monitor(ME, name),
            lambda: list(store.results(ME, convo_id=name)),
        ):
            with pytest.raises(StoreError, match="NUL, or with half of a character"):
                call()
    found = passes(store, FakeReflex()).run_sync(made(), talks(1))
    with pytest.raises(StoreError):
        store.save_pass(ME, found._replace(total_inputs=2**70))
    assert store.get_pass(ME, found.id) == found
    store.close()


def test_b10_a_local_retry_that_crashed_goes_on(tmp_path: Path) -> None:
    class Moody:
        name, version, labels = "m1", "1", ("good", "bad")
        broken = True

        def predict(self, given: list[str]) -> list[Prediction]:
            if self.broken and any("text 1-" in text for text in given):
                raise RuntimeError("not today")
            return [Prediction("m1", "single_label", (LabelScore("bad", 0.75, True),)) for _ in given]

    traces = talks(3)
    for at in range(1, 20):
        store, moody = open_store(tmp_path / f"{at}.db"), Moody()
        local = LocalTransport({"m1": moody})
        found = Passes(ME, store, local).run_sync(made(a_signal("m1")), traces)
        assert found.status == "partial_failure"
        moody.broken = False
        try:
            asyncio.run(Passes(ME, Crashing(store, at, after=True), local).retry(found.id, traces))
        except Crash:
            run = Passes(ME, store, local)
            resumed = run.resume_sync(found.id, traces)
            if resumed.status == "partial_failure":
                resumed = run.retry_sync(found.id, traces)
            assert resumed.status == "complete"
            assert store.totals(ME, found.id).completed == resumed.completed_inputs == 6
            assert resumed.failed_inputs == 0
        else:
            break
        finally:
            store.close()
    assert at > 3

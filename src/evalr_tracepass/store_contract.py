"""The contracts of stores of passes and of results, as classes of tests: `evalr.testing` shows them.

A package that adds a store subclasses them, and says how one is opened:

    class TestMyStore(PassStoreContract, ResultStoreContract):
        def open(self, folder, now): ...
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from evalr.errors import StoreError
from evalr.inputs import Now
from evalr.testing.checks import expect
from evalr.testing.readers import HOSTILE
from evalr_tracepass.records import (
    INPUT_TOO_LONG,
    Account,
    Filters,
    Item,
    Pass,
    PlanEstimate,
    Result,
    Scope,
    TransformEstimate,
)
from evalr_tracepass.signal_files import Preset
from evalr_tracepass.signals import Signal
from evalr_tracepass.stores.store import AlreadyRead, Batch, Chip, MonitorState, PassStore, ResultStore, Totals
from evalr_tracepass.transforms import transform

MINE, COLLEAGUE = Account("ann", "acme"), Account("bob", "acme")
OTHERS = (Account("ann"), Account("ann", "umbrella"), Account("acme"), Account("", "ann"))
"""Accounts that share a user's id, or spell another's organisation, and must see nothing."""

_NOW = datetime.now(UTC).replace(microsecond=0)
_MS = timedelta(milliseconds=1)


def _result(number: int = 0, **changes: Any) -> Result:
    made = Result(
        run_id="run-1",
        batch_id="batch-1",
        request_id=f"user_turn:convo-{number}:event::t:0",
        convo_id=f"convo-{number}",
        event_id="event",
        span_id="span",
        turn_index=3,
        user="end-user",
        release="1.2",
        input_kind="user_chat",
        transform_id="user_message",
        transform_version=7,
        signal_id="frustration",
        reflex_model="model",
        model_version="2026-01",
        status="completed",
        mode="single_label",
        top_label="calm",
        top_score=0.75,
        selected_labels=("calm",),
        fired=False,
        threshold=None,
        truncated=False,
        classes_json='[{"label":"calm","score":0.75,"selected":true}]',
        error_type="",
        error_message="",
        source_start_time=_NOW - timedelta(hours=1) + number * 2 * _MS,
        created_at=_NOW - timedelta(minutes=1) + _MS,
        input_hash="a1b2",
        attempt=0,
    )
    return made._replace(**changes)


def _fired(number: int = 0, **changes: Any) -> Result:
    hit = {"top_label": "cross", "selected_labels": ("cross",), "fired": True, "threshold": 0.5}
    return _result(number, **{**hit, **changes})


def _failed(number: int = 0, **changes: Any) -> Result:
    lost = {
        "status": "failed",
        "mode": "",
        "top_label": "",
        "top_score": 0.0,
        "selected_labels": (),
        "classes_json": "",
        "error_type": "overloaded",
        "error_message": "try later",
    }
    return _result(number, **{**lost, **changes})


def _pass(pass_id: str = "run-1", **changes: Any) -> Pass:
    made = Pass(
        id=pass_id,
        account=MINE,
        status="running",
        scope=Scope(kind="date_range", filters=Filters(since=_NOW, user="end-user")),
        selected_signals=({"signal_id": "frustration", "thresholds": {"cross": 0.5}},),
        transform_plan=({"transform": {"id": "user_message"}, "models": ["model"]},),
        estimate=PlanEstimate(
            conversations=2,
            inputs=3,
            not_retained=1,
            left_out={"no id": 4},
            transforms=(TransformEstimate(transform_id="user_message", transform_version=7, models=("model",)),),
        ),
        total_inputs=3,
        total_predictions=6,
        completed_inputs=1,
        failed_inputs=1,
        error_message=None,
        created_at=_NOW - timedelta(minutes=5) + _MS,
        started_at=_NOW - timedelta(minutes=4),
    )
    return made._replace(**changes)


def _item(number: int = 0, **changes: Any) -> Item:
    made = Item(
        f"user_turn:convo-{number}:event::t:0",
        f"convo-{number}",
        "event",
        "span",
        3,
        "end-user",
        "1.2",
        "user_chat",
        "user_message",
        7,
        _NOW - timedelta(hours=1) + _MS,
        ("model", "other"),
        True,
        "a1b2",
    )
    return made._replace(**changes)


def _batch(number: int = 0, **changes: Any) -> Batch:
    made = Batch("run-1", number, 0, f"trace-pass:run-1:{number}", "prepared", "", "", _NOW + _MS)
    return made._replace(**changes)


class _Contract:
    def open(self, folder: Path, now: Now) -> Any:
        """A store that keeps what it has in `folder`, or in a place that stands for it: opened again, it is there.

        Args:
            folder: where to keep it.
            now: the reading time, by which results expire.
        """
        raise NotImplementedError

    @contextmanager
    def _opened(self, folder: Path, now: Now | None = None) -> Iterator[Any]:
        store = self.open(folder, now or (lambda: datetime.now(UTC)))
        try:
            yield store
        finally:
            store.close()


class ResultStoreContract(_Contract):
    """Subclass it, and say how a store of results is opened. Every test has a folder of its own."""

    def test_it_is_a_store_of_results(self, tmp_path: Path) -> None:
        """It has every method."""
        with self._opened(tmp_path) as store:
            expect(isinstance(store, ResultStore), "it lacks a method of ResultStore")

    def test_what_is_written_is_read_back(self, tmp_path: Path) -> None:
        """Every field, with its zone and to the millisecond, what is missing too, also after it was closed."""
        whole = [
            _result(0),
            _fired(1, selected_labels=("cross", "tired"), mode="multi_label", truncated=True),
            _failed(2, source_start_time=None, turn_index=None, input_hash="", user="", release="", span_id=""),
        ]
        with self._opened(tmp_path) as store:
            store.write(MINE, iter(whole))
        with self._opened(tmp_path) as store:
            _same(list(store.results(MINE, passes="run-1")), whole, "read back")
            store.write(MINE, [])

    def test_writing_twice_changes_nothing(self, tmp_path: Path) -> None:
        """Of one pass, row, model and attempt there is one result, however often it is written, and by whom."""
        whole = [_result(0), _fired(1), _failed(2), _result(0, reflex_model="other")]
        with self._opened(tmp_path) as store:
            for account in (MINE, MINE, COLLEAGUE):
                store.write(account, whole)
                _same(list(store.results(MINE, passes="run-1", history=True)), whole, "written again")
            store.finish(MINE, _pass())
            store.finish(MINE, _pass())
            expect(store.totals(MINE, "run-1") == Totals(2, 1, 1, 1, 3, 1), f"{store.totals(MINE, 'run-1')}")
            found = store.conversations(MINE)
            expect([each.completed for each in found] == [0, 1, 2], f"{found}")

    def test_text_comes_through_unchanged(self, tmp_path: Path) -> None:
        """Whatever an id or a label holds."""
        whole = [
            _fired(
                number,
                convo_id=text,
                request_id=text,
                event_id=text,
                user=text,
                top_label=text,
                selected_labels=(text,),
            )
            for number, text in enumerate(HOSTILE)
        ]
        with self._opened(tmp_path) as store:
            store.write(MINE, whole)
            store.finish(MINE, _pass())
            _same(list(store.results(MINE, passes="run-1")), whole, "hostile")
            for each in whole:
                found = list(store.results(MINE, convo_id=each.convo_id))
                expect(found == [each], f"of {each.convo_id!r} there are {found}")
            found = store.conversations(MINE, convo_ids=[each.convo_id for each in whole])
            expect({each.convo_id for each in found} == set(HOSTILE), f"{found}")
            expect(all(each.chips[0].label == each.convo_id for each in found), f"{found}")

    def test_an_account_sees_its_own_rows_alone(self, tmp_path: Path) -> None:
        """A colleague of the organisation sees them; nobody else does, can change them, or hides behind their ids."""
        with self._opened(tmp_path) as store:
            store.write(MINE, [_fired(0), _failed(1)])
            store.finish(MINE, _pass())
            for other in OTHERS:
                expect(not list(store.results(other, passes="run-1", history=True)), f"{other} sees results")
                expect(not list(store.results(other, passes="latest")), f"{other} sees latest results")
                expect(not list(store.results(other, passes="all", convo_id="convo-0")), f"{other} sees all results")
                expect(not store.conversations(other), f"{other} sees conversations")
                expect(not store.conversations(other, passes="run-1", convo_ids=["convo-0"]), f"{other} sees one")
                expect(store.totals(other, "run-1") == Totals(0, 0, 0, 0, 0, 0), f"{other} sees totals")
                expect(not store.answered(other, ["convo-0"]), f"{other} sees what was answered")
                expect(store.prune(other, now=_NOW + timedelta(days=900)) == 0, f"{other} prunes")
                store.write(other, [_result(0, top_label="theirs")])
                store.finish(other, _pass(account=other))
            for mine in (MINE, COLLEAGUE):
                _same(list(store.results(mine, passes="run-1")), [_fired(0), _failed(1)], "after others wrote")
                expect(store.conversations(mine)[1].fired_count == 1, "others changed a conversation")
            for other in OTHERS:
                found = list(store.results(other))
                expect([each.top_label for each in found] == ["theirs"], f"{other} has {found}")

    def test_the_latest_completed_pass_is_read_unless_another_is_asked_for(self, tmp_path: Path) -> None:
        """By conversation; a pass that still runs is read by its id alone."""
        old = [_fired(number, run_id="old") for number in (0, 1)]
        new = [_result(number, run_id="new") for number in (1, 2)]
        running = [_fired(number, run_id="running") for number in (0, 1, 2)]
        with self._opened(tmp_path) as store:
            for each in (new, old, running):
                store.write(MINE, each)
            store.finish(MINE, _pass("new", created_at=_NOW))
            store.finish(MINE, _pass("old", created_at=_NOW - timedelta(days=1)))
            _same(list(store.results(MINE)), [old[0], *new], "latest")
            _same(list(store.results(MINE, passes="all")), [*old, *new], "all")
            _same(list(store.results(MINE, passes="old")), old, "one")
            _same(list(store.results(MINE, passes="running")), running, "running")
            shown = {(each.convo_id, each.run_id) for each in store.conversations(MINE)}
            expect(shown == {("convo-0", "old"), ("convo-1", "new"), ("convo-2", "new")}, f"latest: {shown}")
            flagged = [each.convo_id for each in store.conversations(MINE, flagged=True)]
            expect(flagged == ["convo-0"], f"flagged by the latest: {flagged}")
            expect(len(store.conversations(MINE, passes="all")) == 4, "all passes list a conversation for each")
            expect(len(store.conversations(MINE, passes="old", flagged=True)) == 2, "one pass lists its own")
            signal = [each.convo_id for each in store.conversations(MINE, signal_id="frustration")]
            expect(signal == ["convo-0"], f"by signal: {signal}")

    def test_a_signal_keeps_its_own_latest_pass(self, tmp_path: Path) -> None:
        """A pass of another signal hides nothing: of each signal, the latest pass with it is read."""
        one = [_fired(0, run_id="one"), _failed(0, run_id="one", request_id="r2", reflex_model="other", signal_id="s2")]
        two = [_fired(0, run_id="two", signal_id="loop", reflex_model="looper", top_score=0.875)]
        three = [_result(0, run_id="three", signal_id="s2", reflex_model="other")]
        with self._opened(tmp_path) as store:
            for day, part in enumerate((one, two, three)):
                store.write(MINE, part)
                store.finish(MINE, _pass(part[0].run_id, created_at=_NOW - timedelta(days=9 - day)))
            _same(list(store.results(MINE)), [one[0], *two, *three], "latest")
            (found,) = store.conversations(MINE)
            expect((found.run_id, found.fired_count, found.completed, found.failed) == ("three", 2, 3, 0), f"{found}")
            expect([chip.signal_id for chip in found.chips] == ["loop", "frustration"], f"{found.chips}")
            expect(found.max_scores == {"model": 0.75, "looper": 0.875, "other": 0.75}, f"{found.max_scores}")
            for signal_id, listed in (("loop", 1), ("frustration", 1), ("s2", 0)):
                expect(len(store.conversations(MINE, signal_id=signal_id)) == listed, f"by {signal_id}")
                many = store.conversations(MINE, signal_id=signal_id, passes="all")
                expect(len(many) == listed, f"by {signal_id} in all: {many}")
            expect(len(store.conversations(MINE, passes="all")) == 3, "one for each pass")

    def test_a_later_attempt_stands_and_the_first_is_history(self, tmp_path: Path) -> None:
        """In whatever order they are written."""
        first = [_failed(0), _failed(1), _result(2)]
        again = [_fired(0, attempt=1, batch_id="b2"), _failed(1, attempt=1, batch_id="b2")]
        last = [_result(1, attempt=2, batch_id="b3")]
        for order, run in (
            ((first, again, last), "one"),
            ((last, first, again), "two"),
            ((again, last, first), "three"),
        ):
            with self._opened(tmp_path) as store:
                for part in order:
                    store.write(MINE, [each._replace(run_id=run) for each in part])
                stand = [each._replace(run_id=run) for each in (again[0], last[0], first[2])]
                whole = [each._replace(run_id=run) for each in (*first, *again, *last)]
                _same(list(store.results(MINE, passes=run)), stand, "what stands")
                _same(list(store.results(MINE, passes=run, history=True)), whole, "history")
                expect(not list(store.results(MINE, passes=run, failed=True)), "no failure stands")
                totals = store.totals(MINE, run)
                expect(totals == Totals(3, 1, 1, 1, 3, 0), f"{totals}")
                store.finish(MINE, _pass(run))
                found = store.conversations(MINE, passes=run)
                expect(sum(each.failed for each in found) == 0 and len(found) == 3, f"{found}")

    def test_results_are_chosen_and_in_order(self, tmp_path: Path) -> None:
        """By conversation, signal, whether it fired or failed; in order of conversation and time."""
        early = _fired(0, event_id="a", request_id="r-a", source_start_time=_NOW - timedelta(hours=3))
        late = _result(0, event_id="b", request_id="r-b", signal_id="loop")
        lost = _failed(0, event_id="c", request_id="r-c", source_start_time=_NOW - timedelta(minutes=2))
        other = _fired(1)
        with self._opened(tmp_path) as store:
            store.write(MINE, [other, lost, late, early])
            store.finish(MINE, _pass())
            asked: list[tuple[dict[str, Any], list[Result]]] = [
                ({}, [early, late, lost, other]),
                ({"convo_id": "convo-0"}, [early, late, lost]),
                ({"convo_id": "convo-0", "fired": True}, [early]),
                ({"fired": True}, [early, other]),
                ({"fired": False, "failed": False}, [late]),
                ({"failed": True}, [lost]),
                ({"signal_id": "loop"}, [late]),
                ({"convo_id": "convo-9"}, []),
            ]
            for options, wanted in asked:
                found = list(store.results(MINE, **options))
                expect(found == wanted, f"{options}: {found}")

    def test_conversations_are_summed_and_the_latest_come_first(self, tmp_path: Path) -> None:
        """With a chip for each signal that fired, its highest score, and the highest score of each model."""
        whole = [
            _fired(0, request_id="r1", top_score=0.75),
            _fired(0, request_id="r2", top_score=0.875, top_label="calm", selected_labels=("cross",)),
            _fired(0, request_id="r3", top_score=0.5, signal_id="loop", reflex_model="looper", top_label="looping"),
            _failed(0, request_id="r4", reflex_model="looper", signal_id="loop"),
            *(_result(number, reflex_model="looper") for number in range(1, 6)),
        ]
        with self._opened(tmp_path) as store:
            store.write(MINE, whole)
            store.finish(MINE, _pass())
            found = store.conversations(MINE)
            expect([each.convo_id for each in found] == [f"convo-{n}" for n in (5, 4, 3, 2, 1, 0)], f"{found}")
            last = found[-1]
            expect((last.fired_count, last.completed, last.failed) == (3, 3, 1), f"{last}")
            looping = Chip("looper", "loop", "cross", 0.5)
            expect(last.chips == (Chip("model", "frustration", "cross", 0.875), looping), f"{last.chips}")
            expect(last.max_scores == {"model": 0.875, "looper": 0.5}, f"{last.max_scores}")
            expect(last.last_at == whole[0].source_start_time and last.passed_at == _pass().created_at, f"{last}")
            expect(store.conversations(MINE, limit=2, offset=1) == found[1:3], "a page of it")
            some = store.conversations(MINE, convo_ids=["convo-2", "convo-4", "convo-0", "convo-77"], limit=2)
            expect(some == [found[1], found[3]], f"some of it: {some}")
            expect(store.conversations(MINE, signal_id="loop") == [last], "of one signal")
            expect(store.conversations(MINE, convo_ids=[]) == [], "of none")

    def test_a_conversation_belongs_to_its_user(self, tmp_path: Path) -> None:
        """An id that two users have is two conversations."""
        with self._opened(tmp_path) as store:
            store.write(MINE, [_fired(0, user="a"), _result(0, user="b", request_id="other")])
            store.finish(MINE, _pass())
            found = [(each.user, each.fired_count) for each in store.conversations(MINE)]
            expect(found == [("a", 1), ("b", 0)], f"{found}")
            expect(store.totals(MINE, "run-1").conversations == 2, "one was lost")

    def test_it_knows_what_was_answered(self, tmp_path: Path) -> None:
        """By any pass, completed or not; a failure is no answer, unless the text was too long."""
        with self._opened(tmp_path) as store:
            too_long = _failed(3)._replace(error_type=INPUT_TOO_LONG)
            store.write(MINE, [_result(0), _failed(1), _fired(2, run_id="run-2"), too_long])
            found = store.answered(MINE, ["convo-0", "convo-1", "convo-2", "convo-3"])
            wanted = {
                AlreadyRead(
                    "end-user",
                    f"convo-{number}",
                    f"user_turn:convo-{number}:event::t:0",
                    7,
                    "model",
                    "a1b2",
                    too_long=number == 3,
                )
                for number in (0, 2, 3)
            }
            expect(found == wanted, f"{found}")
            expect(store.answered(MINE, []) == set(), "of none")
            many = store.answered(MINE, [f"convo-{number}" for number in range(2_500)])
            expect(many == wanted, "of many")

    def test_results_expire_after_a_year(self, tmp_path: Path) -> None:
        """They are not read any more, and `prune` removes them."""
        old, new = _fired(0), _fired(1, run_id="run-2", created_at=_NOW)
        with self._opened(tmp_path) as store:
            store.write(MINE, [old, new])
            store.finish(MINE, _pass())
            store.finish(MINE, _pass("run-2", created_at=_NOW))
            expect(store.prune(MINE) == 0, "pruned what has not expired")
        later = _NOW + timedelta(days=365) - timedelta(seconds=30)
        with self._opened(tmp_path, now=later) as store:
            _same(list(store.results(MINE, passes="all")), [new], "a year later")
            expect([each.convo_id for each in store.conversations(MINE)] == ["convo-1"], "conversations a year later")
            expect(store.totals(MINE, "run-1") == Totals(0, 0, 0, 0, 0, 0), "totals a year later")
            expect(not store.answered(MINE, ["convo-0"]), "answers a year later")
            store.write(MINE, [new._replace(convo_id="convo-0", request_id="r9", signal_id="loop")])
            store.finish(MINE, _pass("run-2", created_at=_NOW))
            (both,) = store.conversations(MINE, convo_ids=["convo-0"])
            expect([chip.signal_id for chip in both.chips] == ["loop"], f"an expired signal is shown: {both}")
            expect(store.prune(MINE) == 1, "one has expired")
            expect(store.prune(MINE) == 0, "and is gone")
        with self._opened(tmp_path) as store:
            found = list(store.results(MINE, passes="all", history=True))
            expect(len(found) == 2 and old not in found, f"it is gone for good: {found}")

    def test_errors_are_a_stores_own(self, tmp_path: Path) -> None:
        """A value that cannot be written is a StoreError, which does not show it."""
        with self._opened(tmp_path) as store:
            try:
                store.write(MINE, [_result(0, turn_index="secret words")])
            except StoreError as error:
                expect("secret" not in str(error), f"the error shows a value: {error}")
            except (TypeError, ValueError) as error:
                raise AssertionError(f"not a StoreError: {error!r}") from error


class PassStoreContract(_Contract):
    """Subclass it, and say how a store of passes is opened. Every test has a folder of its own."""

    def test_it_is_a_store_of_passes(self, tmp_path: Path) -> None:
        """It has every method."""
        with self._opened(tmp_path) as store:
            expect(isinstance(store, PassStore), "it lacks a method of PassStore")

    def test_a_pass_is_kept_as_it_is(self, tmp_path: Path) -> None:
        """And as it becomes, also after the store was closed."""
        made = _pass()
        changed = made._replace(
            status="partial_failure", completed_at=_NOW, error_message="no key", rerun="new", answered=4, planned=True
        )
        with self._opened(tmp_path) as store:
            store.add_pass(MINE, made)
            expect(store.get_pass(MINE, "run-1") == made, f"{store.get_pass(MINE, 'run-1')}")
            store.save_pass(MINE, changed)
            store.add_pass(MINE, _pass("run-2", created_at=_NOW))
        with self._opened(tmp_path) as store:
            expect(store.get_pass(MINE, "run-1") == changed, f"{store.get_pass(MINE, 'run-1')}")
            expect([each.id for each in store.passes(MINE)] == ["run-2", "run-1"], "the latest first")
            expect([each.id for each in store.passes(MINE, limit=1)] == ["run-2"], "as many as asked for")
            _refused(lambda: store.get_pass(MINE, "run-3"), "a pass that is not there")

    def test_batches_and_rows_are_kept_in_order(self, tmp_path: Path) -> None:
        """In the order in which they are sent, whatever they are called."""
        items = [_item(number) for number in (3, 1, 2)]
        bare = _item(4, turn_index=None, source_start_time=None, truncated=False, input_hash="", span_id="")
        with self._opened(tmp_path) as store:
            store.add_pass(MINE, _pass())
            store.add_batch(MINE, _batch(0), items)
            store.add_batch(MINE, _batch(1), [bare])
            sent = _batch(0, status="sent", batch_id="rb", said="queued")
            store.save_batch(MINE, sent)
        with self._opened(tmp_path) as store:
            expect(store.batches(MINE, "run-1") == [sent, _batch(1)], f"{store.batches(MINE, 'run-1')}")
            expect(store.items(MINE, "run-1", number=0) == items, f"{store.items(MINE, 'run-1', number=0)}")
            expect(store.items(MINE, "run-1", number=1) == [bare], f"{store.items(MINE, 'run-1', number=1)}")
            expect(store.items(MINE, "run-1") == [*items, bare], "all of them")

    def test_a_number_is_given_to_one_batch(self, tmp_path: Path) -> None:
        """Of two processes that run a pass at once, one is refused, and has changed nothing."""
        with self._opened(tmp_path) as store:
            store.add_pass(MINE, _pass())
            store.add_batch(MINE, _batch(0), [_item(0)])
            _refused(lambda: store.add_batch(MINE, _batch(0), [_item(1)]), "a second batch of one number")
            expect(store.items(MINE, "run-1") == [_item(0)], "the refused batch left rows")

    def test_a_pass_is_claimed_by_one(self, tmp_path: Path) -> None:
        """A claim keeps every other owner away, until it is given up or has lapsed; its owner makes it anew."""
        with self._opened(tmp_path) as store, self._opened(tmp_path) as other:
            expect(store.claim(MINE, "run-1", "one", 60), "nobody had it")
            expect(store.claim(MINE, "run-1", "one", 60), "it was its own")
            expect(not other.claim(COLLEAGUE, "run-1", "two", 60), "two have it")
            for account in OTHERS:
                expect(other.claim(account, "run-1", "two", 60), f"{account} has a pass of that id of its own")
            other.release(COLLEAGUE, "run-1", "two")
            expect(not other.claim(MINE, "run-1", "two", 60), "another gave it up")
            store.release(MINE, "run-1", "one")
            expect(other.claim(MINE, "run-1", "two", 0.05), "it was given up")
            time.sleep(0.1)
            expect(store.claim(MINE, "run-1", "one", 60), "it has lapsed")
            expect(not other.claim(MINE, "run-1", "two", 60), "it was taken over")

    def test_rows_are_settled_and_sent_again(self, tmp_path: Path) -> None:
        """Sent again, a row belongs to the new batch, with the models that are to read it; its own are kept."""
        items = [_item(number) for number in range(4)]
        with self._opened(tmp_path) as store:
            store.add_pass(MINE, _pass())
            store.add_batch(MINE, _batch(0), items)
            store.add_failed(MINE, "run-1", [_item(9)])
            ids = [item.request_id for item in items]
            store.settle(MINE, "run-1", [(ids[0], "completed"), (ids[1], "failed"), (ids[2], "failed")])
            store.settle(MINE, "run-1", [])
            counts = store.counts(MINE, "run-1")
            expect(counts == {"open": 1, "completed": 1, "failed": 3}, f"{counts}")
            again = [items[2]._replace(selected_models=("other",)), items[1]]
            store.add_batch(MINE, _batch(1, attempt=1), again)
            expect(store.items(MINE, "run-1", number=1) == again, f"{store.items(MINE, 'run-1', number=1)}")
            expect(store.items(MINE, "run-1", number=0) == [items[0], items[3]], "they have left the first batch")
            counts = store.counts(MINE, "run-1")
            expect(counts == {"open": 3, "completed": 1, "failed": 1}, f"{counts}")
            asked = store.asked(MINE, "run-1")
            expect(asked == dict.fromkeys([*ids, _item(9).request_id], ("model", "other")), f"{asked}")
            expect(set(store.items(MINE, "run-1")) == {*items, _item(9)}, "their own models are kept")

    def test_signals_and_presets_are_kept(self, tmp_path: Path) -> None:
        """Replaced by their names, and forgotten."""
        signal = Signal(
            signal_id="mine",
            model="m",
            display_name="Mine",
            labels=("a", "b"),
            fires_on=("b",),
            transform=transform("agent_window"),
            thresholds={"b": 0.25},
            monitor=True,
            created=_NOW,
            updated=_NOW,
        )
        preset = Preset(name="all", signals=("mine", "jailbreak"), monitor=True, created=_NOW)
        with self._opened(tmp_path) as store:
            store.save_signal(MINE, signal.model_copy(update={"model": "before"}))
            store.save_signal(COLLEAGUE, signal)
            store.save_preset(MINE, preset.model_copy(update={"signals": ()}))
            store.save_preset(MINE, preset)
        with self._opened(tmp_path) as store:
            expect(store.signals(MINE) == {"mine": signal}, f"{store.signals(MINE)}")
            expect(store.presets(MINE) == {"all": preset}, f"{store.presets(MINE)}")
            for other in OTHERS:
                expect(not store.signals(other) and not store.presets(other), f"{other} sees them")
                expect(not store.delete_signal(other, "mine") and not store.delete_preset(other, "all"), f"{other}")
            expect(store.delete_signal(MINE, "mine") and store.delete_preset(MINE, "all"), "they were there")
            expect(not store.delete_signal(MINE, "mine") and not store.delete_preset(MINE, "all"), "they are gone")
            expect(not store.signals(MINE) and not store.presets(MINE), "they are gone")

    def test_a_monitor_is_moved_by_one(self, tmp_path: Path) -> None:
        """It moves on only from where it was last seen."""
        with self._opened(tmp_path) as store:
            new = store.monitor(MINE, "m")
            expect(new == MonitorState("m"), f"{new}")
            begun = MonitorState("m", None, "run-1", _NOW)
            expect(store.move_monitor(MINE, new, begun), "it was not moved")
            expect(not store.move_monitor(MINE, new, MonitorState("m", None, "run-2", _NOW)), "it was moved by two")
            expect(store.monitor(COLLEAGUE, "m") == begun, f"{store.monitor(MINE, 'm')}")
            done = MonitorState("m", _NOW)
            expect(store.move_monitor(MINE, begun, done), "it was not moved on")
            expect(not store.move_monitor(MINE, begun, done), "it was moved on by two")
            expect(store.monitor(MINE, "m") == done, f"{store.monitor(MINE, 'm')}")
            expect(store.move_monitor(MINE, done, begun._replace(watermark=_NOW)), "it was not moved again")
            for other in OTHERS:
                expect(store.monitor(other, "m") == MonitorState("m"), f"{other} sees it")

    def test_an_account_sees_its_own_passes_alone(self, tmp_path: Path) -> None:
        """Every call for another account finds nothing and changes nothing."""
        with self._opened(tmp_path) as store:
            store.add_pass(MINE, _pass())
            store.add_batch(MINE, _batch(0), [_item(0)])
            store.save_alerted(MINE, "run-1", 3)
            for other in OTHERS:
                _refused(lambda: store.get_pass(other, "run-1"), f"{other} sees a pass")  # noqa: B023
                expect(not store.passes(other), f"{other} sees passes")
                expect(not store.batches(other, "run-1") and not store.items(other, "run-1"), f"{other} sees rows")
                expect(not store.asked(other, "run-1"), f"{other} sees what was asked")
                expect(sum(store.counts(other, "run-1").values()) == 0, f"{other} counts")
                expect(store.alerted(other, "run-1") == -1, f"{other} sees alerts")
                store.save_pass(other, _pass(status="failed"))
                store.save_batch(other, _batch(0, status="ended"))
                store.settle(other, "run-1", [(_item(0).request_id, "failed")])
                store.save_alerted(other, "run-1", 9)
            expect(store.get_pass(COLLEAGUE, "run-1") == _pass(), "others changed a pass")
            expect(store.batches(COLLEAGUE, "run-1") == [_batch(0)], "others changed a batch")
            expect(store.counts(COLLEAGUE, "run-1")["open"] == 1, "others settled a row")
            expect(store.alerted(COLLEAGUE, "run-1") == 3, "others changed an alert")


def _same(found: list[Result], wanted: list[Result], what: str) -> None:
    expect(len(found) == len(wanted), f"{what}: {len(found)} results, and not {len(wanted)}: {found}")
    lost = [each for each in wanted if each not in found]
    expect(not lost, f"{what}: there is no {lost[:1]} among {found}")


def _refused(call: Callable[[], object], what: str) -> None:
    try:
        call()
    except StoreError:
        return
    raise AssertionError(f"{what} is no StoreError")

"""Plans: grouping, row ids, previews, estimates, scopes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalr.errors import InputError
from evalr.inputs import ToolCall, Transcript, Turn
from evalr.tracepass import (
    Filters,
    LabelScore,
    Plan,
    Prediction,
    Row,
    Scope,
    Signal,
    everything,
    filters_of,
    matching,
    plan,
    random_sample,
    selected,
    since_last_run,
    transform,
)

START = datetime(2026, 9, 28, 9, tzinfo=UTC)


def signal(model: str, by: str = "user_message", **more: object) -> Signal:
    return Signal.model_validate(
        {"signal_id": f"{model}-{by}", "model": model, "display_name": model, "transform": transform(by), **more}
    )


def talk(
    convo: str | None = "convo_123", *, user: str | None = None, start: datetime = START, n: int = 2
) -> Transcript:
    turns = [
        Turn(
            role="person" if place % 2 == 0 else "agent",
            text=f"text {place}",
            id=f"event_{place // 2 + 5}",
            at=start + timedelta(seconds=place),
        )
        for place in range(n)
    ]
    return Transcript(id=convo, user=user, request="text 0", turns=turns)


def ids(made: Plan, *traces: Transcript) -> list[str]:
    return [row.request_id for row in made.rows(traces)]


# R8: grouping


def test_R8_a_text_is_read_by_the_models_of_its_transform_and_by_no_other() -> None:
    made = plan(
        [
            signal("jailbreak"),
            signal("leaked-thinking", "assistant_message"),
            signal("guardrail"),
            signal("bad-handoff", "full_conversation"),
        ]
    )
    assert [(group.transform.id, group.models) for group in made.groups] == [
        ("user_message", ("jailbreak", "guardrail")),
        ("assistant_message", ("leaked-thinking",)),
        ("full_conversation", ("bad-handoff",)),
    ]
    rows = list(made.rows([talk()]))
    assert [(row.item.input_kind, row.models) for row in rows] == [
        ("user_chat", ("jailbreak", "guardrail")),
        ("agent_chat", ("leaked-thinking",)),
        ("full_trace", ("bad-handoff",)),
    ]
    estimate = made.estimate([talk()])
    assert (estimate.inputs, estimate.predictions) == (3, 4)


def test_R8_two_signals_of_one_model_cannot_read_the_same_texts() -> None:
    twins = [signal("jailbreak"), signal("jailbreak").model_copy(update={"signal_id": "mine"})]
    with pytest.raises(InputError, match=r"'jailbreak-user_message' and 'mine'.*two passes"):
        plan(twins)
    assert plan([signal("jailbreak"), signal("jailbreak", "rolling_window")]).groups[1].models == ("jailbreak",)


def test_R8_two_transforms_cannot_share_an_id() -> None:
    changed = transform("user_message").model_copy(update={"version": 2})
    with pytest.raises(InputError, match="'user_message'"):
        plan([signal("a"), signal("b").model_copy(update={"transform": changed})])


def test_R8_a_plan_without_signals_is_refused() -> None:
    with pytest.raises(InputError, match="at least one signal"):
        plan([])


def test_R8_a_signal_has_to_fire_on_labels_that_its_classifier_has() -> None:
    class Loops:
        name, version, labels = "loops", "1", ("progressing", "looping")

        def predict(self, texts: list[str]) -> list[Prediction]:
            return [Prediction("loops", "single_label", (LabelScore("looping", 1.0, True),)) for _ in texts]

    with pytest.raises(InputError, match=r"stuck.*looping"):
        plan([signal("loops", fires_on=("stuck",))], reflexes={"loops": Loops()})
    assert plan([signal("loops", fires_on=("looping",))], reflexes={"loops": Loops()}).groups


def test_R8_a_result_finds_its_signal() -> None:
    made = plan([signal("a"), signal("a", "assistant_message")])
    assert made.signal_by["assistant_message", "a"].signal_id == "a-assistant_message"


def test_R8_the_seeds_warning_comes_with_the_full_conversation() -> None:
    assert plan([signal("a")]).warnings == ()
    assert plan([signal("a", "full_conversation")]).warnings == (
        "Full trace: can be expensive; may exceed context window; not appropriate for per-turn labeling",
    )


# R9: ids


def test_R9_row_ids_are_spelled_as_in_the_seed() -> None:
    made = plan([signal("a"), signal("b", "assistant_message"), signal("c", "full_conversation")])
    assert ids(made, talk()) == [
        "user_turn:convo_123:event_5::user_message:0",
        "assistant_turn:convo_123:event_5::assistant_message:0",
        "full_trace:convo_123:::full_conversation:0",
    ]


def test_R9_rows_of_one_event_are_numbered_and_spans_are_named() -> None:
    turns = [Turn(role="agent", text="a", id="e", metadata={"span_id": span}) for span in ("s1", "s1", "s2")]
    transcript = Transcript(id="c", request="", turns=turns)
    assert ids(plan([signal("a", "assistant_message")]), transcript) == [
        "assistant_turn:c:e:s1:assistant_message:0",
        "assistant_turn:c:e:s1:assistant_message:1",
        "assistant_turn:c:e:s2:assistant_message:0",
    ]


def test_R9_turns_without_an_id_have_their_place() -> None:
    transcript = Transcript(id="c", request="p", turns=[Turn(role="agent", text="a"), Turn(role="person", text="p")])
    (row,) = plan([signal("a")]).rows([transcript])
    assert (row.request_id, row.item.event_id, row.item.turn_index) == (
        "user_turn:c:turn-2::user_message:0",
        "turn-2",
        1,
    )


def test_R9_an_id_that_two_users_have_stays_two_conversations() -> None:
    rows = list(plan([signal("a")]).rows([talk("1", user="u1"), talk("1", user="u2"), talk("1", user="u1")]))
    assert [(row.request_id, row.item.convo_id, row.item.user) for row in rows] == [
        ("user_turn:1:event_5::user_message:0", "1", "u1"),
        ("user_turn:1%40u2:event_5::user_message:0", "1", "u2"),
    ]


parts = st.text(st.sampled_from(":%@a4025") | st.characters(exclude_categories=("Cs",)), min_size=1, max_size=5)


@given(
    st.lists(st.tuples(parts, st.none() | parts, st.lists(st.tuples(parts, st.none() | parts), max_size=4)), max_size=6)
)
def test_R9_whatever_ids_hold_rows_are_unique_and_the_mapping_has_them_as_they_were(
    given_traces: list[tuple[str, str | None, list[tuple[str, str | None]]]],
) -> None:
    traces = [
        Transcript(
            id=convo,
            user=user,
            request="r",
            turns=[
                Turn(role="person", text="x", id=event, metadata={} if span is None else {"span_id": span})
                for event, span in events
            ],
        )
        for convo, user, events in given_traces
    ]
    made = plan([signal("a"), signal("b", "rolling_window"), signal("c", "full_conversation")])
    rows = list(made.rows(traces))
    assert len({row.request_id for row in rows}) == len(rows)
    firsts = {(trace.user, trace.id): trace for trace in reversed(traces)}
    mapped = [
        (row.item.user, row.item.convo_id, row.item.event_id, row.item.span_id)
        for row in rows
        if row.item.transform_id == "user_message"
    ]
    expected = [
        (trace.user or "", trace.id, turn.id or "request", turn.metadata.get("span_id", ""))
        for trace in firsts.values()
        for turn in trace.turns or [Turn(role="person")]
    ]
    assert sorted(mapped) == sorted(expected)


def test_R11_the_mapping_says_where_a_row_came_from_and_not_what_it_says() -> None:
    transcript = talk(user="u").model_copy(update={"attributes": {"release": "1.2"}})
    (row,) = plan([signal("a")]).rows([transcript])
    assert row.item._asdict() == {
        "request_id": "user_turn:convo_123:event_5::user_message:0",
        "convo_id": "convo_123",
        "event_id": "event_5",
        "span_id": "",
        "turn_index": 0,
        "user": "u",
        "release": "1.2",
        "input_kind": "user_chat",
        "transform_id": "user_message",
        "transform_version": 1,
        "source_start_time": START,
        "selected_models": ("a",),
        "truncated": False,
        "input_hash": "",
    }
    assert row.text not in repr(row.item)


def test_R11_a_key_tells_a_text_again_and_only_with_the_key() -> None:
    first, again, other = (
        next(iter(plan([signal("a")], hash_key=key).rows([talk(convo)]))).item.input_hash
        for convo, key in (("x", b"k" * 32), ("y", b"k" * 32), ("x", b"o" * 32))
    )
    assert first == again != other
    assert len(first) == 32
    with pytest.raises(InputError, match="16 bytes"):
        list(plan([signal("a")], hash_key=b"short").rows([talk()]))


# R14: preview


def test_R14_a_preview_shows_the_first_texts_of_each_transform_and_reads_no_further() -> None:
    read = 0

    def endless() -> Iterator[Transcript]:
        nonlocal read
        while True:
            read += 1
            yield talk(f"c{read}")

    rows = plan([signal("a"), signal("b", "assistant_message")]).preview(endless(), 2)
    assert [(row.item.transform_id, row.text) for row in rows] == [
        ("user_message", "text 0"),
        ("user_message", "text 0"),
        ("assistant_message", "text 1"),
        ("assistant_message", "text 1"),
    ]
    assert read == 2


# B1, B2, B3 and B11: estimates


def test_B3_an_estimate_counts_predictions_and_multiplies_them_with_the_rate() -> None:
    made = plan([signal("a"), signal("b"), signal("c", "assistant_message")])
    estimate = made.estimate([talk(f"c{n}", n=4) for n in range(5)], rate=30e-6, batch=8)
    assert (estimate.conversations, estimate.inputs, estimate.predictions) == (5, 20, 30)
    assert estimate.cost == pytest.approx(30 * 30e-6)
    assert [(part.transform_id, part.inputs, part.predictions) for part in estimate.transforms] == [
        ("user_message", 10, 20),
        ("assistant_message", 10, 10),
    ]
    assert not estimate.before_discounts
    assert estimate.model_copy(update={"predictions": 1_000_001}).before_discounts


def test_B3_a_cost_that_is_not_known_is_not_0() -> None:
    made = plan([signal("a"), signal("b")])
    assert made.estimate([talk()]).cost is None
    assert made.estimate([talk()], rate={"a": 1.0}).cost is None
    assert made.estimate([talk()], rate={"a": 1.0, "b": 0.0}).cost == 1.0
    assert made.estimate([talk()], rate=0.0).cost == 0.0
    with pytest.raises(InputError, match="rate"):
        made.estimate([talk()], rate=-1.0)


@pytest.mark.parametrize(("inputs", "batches"), [(0, 0), (1, 1), (8, 1), (9, 2), (17, 3)])
def test_B2_rows_over_the_limit_of_an_upload_take_several(inputs: int, batches: int) -> None:
    traces = [talk(f"c{n}") for n in range(inputs)]
    assert plan([signal("a")]).estimate(traces, batch=8).batches == batches


def test_B1_a_row_that_is_too_long_is_counted_and_not_among_the_inputs() -> None:
    strict = transform("user_message").model_copy(update={"id": "whole", "may_cut": False})
    long = talk().model_copy(update={"turns": [Turn(role="person", text="x" * 350_001)]})
    cut, failed = plan([signal("a")]), plan([signal("a").model_copy(update={"transform": strict})])
    estimate = cut.estimate([long])
    assert (estimate.inputs, estimate.truncated, estimate.too_long) == (1, 1, 0)
    estimate = failed.estimate([long])
    assert (estimate.inputs, estimate.predictions, estimate.truncated, estimate.too_long) == (0, 0, 0, 1)
    (row,) = failed.rows([long])
    assert row.error is not None
    assert (row.error.type, row.text, row.models, row.item.input_hash) == ("input_too_long", "", ("a",), "")


def test_B11_what_was_not_retained_is_in_the_estimate_and_in_no_row() -> None:
    lost = Transcript(
        id="c", request="", turns=[Turn(role="person"), Turn(role="agent"), Turn(role="person", text="x")]
    )
    made = plan([signal("a"), signal("b", "assistant_message")])
    estimate = made.estimate([lost])
    assert (estimate.inputs, estimate.not_retained) == (1, 2)
    assert [part.not_retained for part in estimate.transforms] == [1, 1]
    assert [row.text for row in made.rows([lost])] == ["x"]


# R13: scopes


def taken(scope: Scope, *traces: Transcript) -> tuple[set[str], dict[str, int]]:
    rows = plan([signal("a")], scope=scope).rows(traces)
    return {row.item.convo_id for row in rows}, dict(rows.left_out)


FAILED = talk("failed").model_copy(
    update={"turns": [*talk().turns, Turn(role="agent", tool_calls=[ToolCall(name="Bash", error="boom")])]}
)


@pytest.mark.parametrize(
    ("scope", "kind", "chosen", "expected"),
    [
        (everything(), "all", "all", {"a", "b", "failed"}),
        (matching(search="TEXT 3"), "current_filters", "filtered", {"b"}),
        (matching(user="u"), "current_filters", "filtered", {"b"}),
        (matching(errors_only=True), "current_filters", "filtered", {"failed"}),
        (matching(since=START + timedelta(hours=1)), "date_range", "filtered", {"b"}),
        (matching(until=START + timedelta(hours=1)), "date_range", "filtered", {"a", "failed"}),
        (matching(last=timedelta(hours=24), now=START + timedelta(hours=25)), "date_range", "filtered", {"b"}),
        (selected(["a"]), "conversation", "selected", {"a"}),
        (selected(["a", "b", "a"]), "selection", "selected", {"a", "b"}),
        (selected(["a", "b"], Filters(user="u")), "selection", "selected", {"b"}),
        (since_last_run(START + timedelta(hours=1)), "since_last_run", "filtered", {"b"}),
        (since_last_run(None), "since_last_run", "filtered", {"a", "b", "failed"}),
        (random_sample(1.0, seed=1), "random_sample", "random", {"a", "b", "failed"}),
        (Scope(filters=Filters(user="u")), "all", "filtered", {"b"}),
    ],
)
def test_R13_a_scope_takes_what_it_says_and_records_how_it_chose(
    scope: Scope, kind: str, chosen: str, expected: set[str]
) -> None:
    later = talk("b", user="u", start=START + timedelta(hours=2), n=4)
    found, left_out = taken(scope, talk("a"), later, FAILED)
    assert (scope.kind, scope.chosen, found) == (kind, chosen, expected)
    assert len(found) + sum(left_out.values()) == 3
    assert Scope.model_validate_json(scope.model_dump_json()) == scope


def test_R13_only_what_is_new_of_a_conversation_is_read_again() -> None:
    long = talk("a", n=6)
    scope = since_last_run(START + timedelta(seconds=2))
    assert [row.item.turn_index for row in plan([signal("a")], scope=scope).rows([long])] == [2, 4]
    whole = plan([signal("a", "full_conversation")], scope=scope)
    assert len(list(whole.rows([long]))) == 1


def test_R13_what_could_not_be_chosen_is_counted_by_its_reason() -> None:
    timeless = Transcript(id="t", request="x", turns=[Turn(role="person", text="x")])
    _, left_out = taken(matching(since=START), talk(None), timeless, talk("a"), talk("a"))
    assert left_out == {"no id": 1, "no time to filter by": 1, "duplicate conversation": 1}


def test_R13_a_random_sample_is_the_same_for_the_same_seed_and_has_its_size() -> None:
    traces = [talk(f"c{n}", n=1) for n in range(2_000)]
    first, left_out = taken(random_sample(0.25, seed=7), *traces)
    assert first == taken(random_sample(0.25, seed=7), *reversed(traces))[0]
    assert first != taken(random_sample(0.25, seed=8), *traces)[0]
    assert 420 < len(first) < 580  # 4 standard deviations about 500
    assert left_out == {"not drawn into the sample": 2_000 - len(first)}
    drawn = random_sample(0.5)
    assert drawn.seed is not None
    # A larger share of the same seed is the smaller one and more.
    assert first < taken(random_sample(0.5, seed=7), *traces)[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: matching(last=timedelta(hours=1), since=START), "one of them"),
        (lambda: filters_of(last=timedelta(0)), "positive"),
        (lambda: random_sample(0), "above 0"),
        (lambda: random_sample(1.1), "at most 1"),
        (lambda: selected([]), "at least one"),
    ],
)
def test_R13_a_scope_that_cannot_be_is_refused(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=words):
        call()


def test_R13_the_latest_time_is_that_of_the_last_turn_read() -> None:
    rows = plan([signal("a")]).rows([talk("a"), talk("b", start=START - timedelta(days=1))])
    assert rows.latest is None
    assert len([row for row in rows if isinstance(row, Row)]) == 2
    assert rows.latest == START + timedelta(seconds=1)


# Speed

PLANNED = """
import resource, sys
from evalr.inputs import Transcript, Turn
from evalr.tracepass import Signal, plan, transform

turns = [Turn(role="person" if n % 2 == 0 else "agent", text=f"text {n}") for n in range(20)]
signals = [
    Signal(signal_id=name, model=name, display_name=name, transform=transform(name))
    for name in ("user_message", "assistant_message", "agent_window")
]
made = plan(signals)

def traces(count):
    for n in range(count):
        yield Transcript.model_construct(
            id=f"c{n}", user=None, request="text 0", turns=turns, result=None, at=None, attributes={}
        )

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

made.estimate(traces(1_000))
before = peak()
estimate = made.estimate(traces(int(sys.argv[1])))
print(estimate.conversations, estimate.inputs, peak() - before)
"""


def test_B2_a_plan_over_many_turns_streams_in_flat_memory() -> None:
    turns = 1_000_000 if os.environ.get("EVALR_SLOW") else 100_000
    done = subprocess.run(
        [sys.executable, "-c", PLANNED, str(turns // 20)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    conversations, inputs, grown = map(int, done.stdout.split())
    assert (conversations, inputs) == (turns // 20, turns // 20 * 30)
    # Which conversations came by takes 56 bytes each, and nothing else is kept: in KiB.
    assert grown < 2_000 + conversations * 0.2

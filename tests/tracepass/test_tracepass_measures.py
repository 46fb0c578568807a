"""What records of passes say: rates with their bounds, failures, times, associations, releases, labels and costs."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracepass_records import LOUD, pass_of, record

from evalr.errors import DuplicateError, InputError, MixedVersionsError
from evalr.estimates.rate import rate_interval
from evalr.inputs import About
from evalr.labels import feedback
from evalr.measures import TaskCompletion, completion_rate
from evalr.tallies.moments import Moments
from evalr.tracepass import (
    Fired,
    about_record,
    association,
    before_after,
    cost_per_flagged,
    coverage,
    failures,
    fired_conversations,
    fired_results,
    fired_turns,
    first_fire,
    first_fires,
    flips,
    labelled_rates,
    latest_records,
    matching,
    pass_rates,
    random_sample,
    recoveries,
    recovery,
    selected,
)
from evalr.verdicts import Failure, Verdict

# Three conversations of two turns: one flagged, one clean, one with a failed turn.
RECORDS = [
    record("a", 0, 0.9),
    record("a", 1, 0.1),
    record("b", 0, 0.1),
    record("b", 1, 0.2),
    record("c", 0, 0.1),
    record("c", 1, error_type="inference_error"),
]


def test_M1_a_failed_row_is_never_clean() -> None:
    turns = fired_turns.estimate(fired_results(RECORDS))
    assert (turns.counts, turns.value) == ({"hits": 1, "total": 5}, 0.2)
    assert turns.left_out == {"failed": 1}
    assert turns.bounds == (1 / 6, 2 / 6)
    conversations = fired_conversations.estimate(fired_results(RECORDS))
    assert conversations.counts == {"hits": 1, "total": 3}
    # The third could have been flagged by the turn that failed.
    assert conversations.bounds == (1 / 3, 2 / 3)


def test_M1_turns_are_clustered_by_user() -> None:
    records = [record(f"c{n}", turn, 0.9 if n < 3 else 0.1, user=f"u{n}") for n in range(8) for turn in range(n + 1)]
    found = fired_turns.estimate(fired_results(records))
    sums = [((n + 1) * (n < 3), n + 1, n + 1) for n in range(8)]
    interval = rate_interval(Moments.of_clusters(sums))
    assert (found.low, found.high, found.clusters) == (interval.low, interval.high, 8)
    assert found.clustered_by == {"user": 8}


def test_M1_without_users_turns_are_clustered_by_conversation() -> None:
    records = [record(f"c{n}", turn, 0.9 if turn else 0.1, user="") for n in range(4) for turn in range(2)]
    assert fired_turns.estimate(fired_results(records)).clustered_by == {"conversation": 4}


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=25))
def test_M1_the_bounds_hold_whatever_the_failed_rows_are(rows: list[tuple[int, bool, bool]]) -> None:
    def records(failed: float | None) -> list[Any]:
        made = []
        for turn, (convo, hit, fails) in enumerate(rows):
            if fails and failed is None:
                made.append(record(str(convo), turn, error_type="timeout"))
            else:
                made.append(record(str(convo), turn, failed or 0.0 if fails else 0.9 if hit else 0.1))
        return made

    for summary in (fired_turns, fired_conversations):
        found = summary.estimate(fired_results(records(None)))
        for as_if in (0.1, 0.9):
            value = summary.estimate(fired_results(records(as_if))).value
            assert found.bounds is not None
            assert value is not None
            assert found.bounds[0] - 1e-12 <= value <= found.bounds[1] + 1e-12


def test_M3_what_is_pending_or_was_not_retained_widens_the_bounds() -> None:
    found = pass_rates(RECORDS[:4], pass_of(inputs=5, not_retained=2))[0]
    assert (found.coverage.planned, found.coverage.completed, found.coverage.pending) == (5, 4, 1)
    assert found.coverage.share == 4 / 7
    assert found.turns.bounds == (1 / 7, 4 / 7)
    assert found.turns.left_out == found.conversations.left_out
    assert "left out: 1 pending, 2 content not retained" in str(found).splitlines()[2]
    # Three texts: each a conversation of its own, or the one that makes the clean conversation a flagged one.
    assert found.conversations.value == 0.5
    assert found.conversations.bounds == (1 / 5, 1.0)
    assert found.conversations.left_out == {"pending": 1, "content not retained": 2}
    assert "read 4 of 7 texts, 57.1% · 1 pending · 2 content not retained" in str(found)


def test_M3_rows_too_long_to_be_sent_are_failed_and_not_pending() -> None:
    records = [*RECORDS[:4], record("d", 0, error_type="input_too_long")]
    found = coverage(records, pass_of(inputs=4, too_long=1))[0]
    assert (found.planned, found.completed, found.failed, found.pending) == (5, 4, 1, 0)


@pytest.mark.parametrize(
    ("scope", "flag"),
    [
        (selected(["a", "b"]), "hand_picked"),
        (matching(errors_only=True), "filtered_traces"),
        (random_sample(0.5, seed=1), "random_sample"),
        (None, None),
    ],
)
def test_R13_a_rate_says_how_its_traces_were_chosen(scope: Any, flag: str | None) -> None:
    found = pass_rates(RECORDS, pass_of(inputs=6, scope=scope))[0]
    for each in (found.conversations, found.turns):
        assert [name for name in each.flags if name != "low_confidence"] == ([flag] if flag else [])
    if flag == "hand_picked":
        assert "picked by hand" in str(found)


def test_M3_a_rate_without_labels_says_so() -> None:
    assert "not calibrated: a rate of what it says" in str(pass_rates(RECORDS, pass_of(inputs=6))[0])


def test_M2_failures_by_model_and_error() -> None:
    records = [*RECORDS, record("d", 0, error_type="timeout"), record("e", 0, 0.1, reflex_model="other")]
    found = failures(records)
    assert found.models["loud-model"].counts == {"hits": 2, "total": 7}
    assert found.models["other"].counts == {"hits": 0, "total": 1}
    assert {name: each.counts["hits"] for name, each in found.errors["loud-model"].items()} == {
        "inference_error": 1,
        "timeout": 1,
    }
    assert str(found).splitlines()[0].startswith("loud-model: pass_failures 28.6% [")


def completions(*done: tuple[str, bool]) -> list[Any]:
    abouts = {convo: About("transcript", id=convo, user=f"user of {convo}") for convo, _ in done}
    return [
        Verdict(TaskCompletion(completed=each, quality=3), "completion", about=abouts[convo]) for convo, each in done
    ]


def test_M4_co_occurrence_is_an_association() -> None:
    flagged = [f"f{n}" for n in range(20)]
    clean = [f"c{n}" for n in range(20)]
    records = [record(name, 0, 0.9) for name in flagged] + [record(name, 0, 0.1) for name in clean]
    outcomes = completions(
        *((name, n < 5) for n, name in enumerate(flagged)),
        *((name, n < 15) for n, name in enumerate(clean)),
        ("x", True),
    )
    found = association(completion_rate, outcomes, records)
    assert found.table == ((5, 15), (15, 5))
    assert found.phi == pytest.approx(-0.5)
    assert found.lift.difference.value == -0.5
    assert "observational" in found.lift.flags
    assert found.unmatched == 1
    assert str(found).startswith("association of loud, no cause: ")


def test_M4_a_conversation_that_a_failed_row_leaves_open_is_in_neither() -> None:
    outcomes = completions(("a", False), ("b", True), ("c", True))
    found = association(completion_rate, outcomes, RECORDS)
    assert found.table == ((0, 1), (1, 0))
    assert found.unmatched == 1


@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(["fired", "clean", "failed"]), max_size=3), st.sampled_from([True, False])),
        min_size=1,
        max_size=30,
    )
)
def test_M4_co_occurrence_is_what_counting_by_hand_gives(conversations: list[tuple[list[str], bool]]) -> None:
    table = [[0, 0], [0, 0]]
    unmatched, records = 0, []
    for number, (turns, completed) in enumerate(conversations):
        for place, turn in enumerate(turns):
            failed = {"error_type": "inference_error"} if turn == "failed" else {}
            records.append(record(f"c{number}", place, 0.9 if turn == "fired" else 0.1, **failed))
        if "fired" in turns:
            table[0][not completed] += 1
        elif turns and "failed" not in turns:
            table[1][not completed] += 1
        else:
            unmatched += 1
    outcomes = completions(*((f"c{number}", completed) for number, (_, completed) in enumerate(conversations)))
    if unmatched == len(conversations):
        with pytest.raises(InputError):
            association(completion_rate, outcomes, records)
        return
    found = association(completion_rate, outcomes, records)
    assert [list(row) for row in found.table] == table
    assert found.unmatched == unmatched
    (a, b), (c, d) = table
    both = a + b and c + d
    assert found.lift.difference.value == (pytest.approx(a / (a + b) - c / (c + d)) if both else None)
    fired, done = [1] * (a + b) + [0] * (c + d), [1] * a + [0] * b + [1] * c + [0] * d
    varied = len(set(fired)) == len(set(done)) == 2
    assert found.phi == (pytest.approx(statistics.correlation(fired, done)) if varied else None)


def test_M4_outcomes_of_other_conversations_are_an_error() -> None:
    with pytest.raises(InputError, match="matched by user and conversation"):
        association(completion_rate, completions(("z", True)), RECORDS)


def released(release: str, hits: int, n: int, **other: Any) -> list[Any]:
    return [record(f"{release}-{k}", 0, 0.9 if k < hits else 0.1, release=release, **other) for k in range(n)]


def test_M5_before_and_after_a_release() -> None:
    found = before_after(released("1", 4, 20) + released("2", 10, 20), before="1", after="2")
    assert found.difference.value == pytest.approx(0.3)
    # Newcombe 1998, method 10, by hand: Wilson's limits are 29.93% and 70.07%, and 8.07% and 41.60%.
    low = 0.3 - math.hypot(0.5 - 0.2993, 0.4160 - 0.2)
    high = 0.3 + math.hypot(0.7007 - 0.5, 0.2 - 0.0807)
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high), abs=1e-3)
    assert "observational" in found.flags


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"model_version": "2"}, "version of the model"),
        ({"transform_version": 2}, "transform"),
        ({"reflex_model": "quieter"}, "model"),
        ({"threshold": 0.8}, "thresholds"),
    ],
)
def test_M5_it_is_refused_where_the_instrument_changed(other: dict[str, Any], word: str) -> None:
    later = [each._replace(run_id="pass-2") for each in released("2", 10, 20, **other)]
    with pytest.raises(MixedVersionsError, match=word):
        before_after(released("1", 4, 20) + later, before="1", after="2")


def test_M5_a_release_that_is_not_there_is_an_error() -> None:
    with pytest.raises(InputError, match="'3'"):
        before_after(released("1", 4, 20), before="1", after="3")


def labelled(fired: int, right: int, clean: int, missed: int) -> tuple[list[Any], list[Any]]:
    """100 texts on which it fired and 900 on which it did not, and labels of some of them."""
    records = [record(f"c{n}", 0, 0.9 if n < 100 else 0.1) for n in range(1_000)]
    said = [(records[n], n < right) for n in range(fired)]
    said += [(records[100 + n], n < missed) for n in range(clean)]
    return fired_results(records), [feedback(about_record(each), Fired(fired=yes), author="x") for each, yes in said]


def test_M6_precision_and_recall_weigh_labels_by_their_chance() -> None:
    results, labels = labelled(fired=50, right=40, clean=90, missed=3)
    found = labelled_rates(results, labels)
    assert found.precision.value == 0.8
    assert found.missed.value == pytest.approx(1 / 30)
    # 100 × 0.8 found of 80 + 900 / 30 = 110 that there are; among the labels it would be 40 of 43.
    assert found.recall.value == pytest.approx(80 / 110)
    low, high = found.recall.low, found.recall.high
    assert low is not None
    assert high is not None
    assert low < 0.5 < 80 / 110 < high < 1
    assert found.prevalence.value == pytest.approx(0.11)


def test_M6_recall_is_not_certain_because_nobody_found_a_miss() -> None:
    results, labels = labelled(fired=50, right=40, clean=20, missed=0)
    found = labelled_rates(results, labels).recall
    assert found.value == 1.0
    assert found.low is not None
    assert found.low < 0.5


def test_M6_without_labels_of_what_did_not_fire_there_is_no_recall() -> None:
    results, labels = labelled(fired=50, right=40, clean=0, missed=0)
    found = labelled_rates(results, labels).recall
    assert (found.value, found.status) == (None, "undefined")
    assert found.reason == "no label to tell missed by"


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([None, True, False])), min_size=1, max_size=60))
def test_M6_precision_and_recall_are_what_weighing_by_hand_gives(texts: list[tuple[bool, bool | None]]) -> None:
    """Each text is fired on or not, and labelled or not: a label stands for as many texts as there are to a label."""
    records = [record(f"c{number}", 0, 0.9 if fired else 0.1) for number, (fired, _) in enumerate(texts)]
    said = [(records[number], label) for number, (_, label) in enumerate(texts) if label is not None]
    found = labelled_rates(
        fired_results(records), [feedback(about_record(each), Fired(fired=label), author="x") for each, label in said]
    )
    there, right, labelled_of = Counter[bool](), Counter[bool](), Counter[bool]()
    for fired, label in texts:
        there[fired] += 1
        labelled_of[fired] += label is not None
        right[fired] += label is True

    def share(fired: bool) -> float | None:
        return right[fired] / labelled_of[fired] if labelled_of[fired] else None

    assert found.precision.value == (None if share(True) is None else pytest.approx(share(True)))
    weights = {fired: there[fired] / labelled_of[fired] for fired in (True, False) if labelled_of[fired]}
    hits = {fired: sum(weights[fired] for each, label in texts if each == fired and label) for fired in weights}
    if len(hits) < 2 or not sum(hits.values()):
        assert found.recall.value is None
    else:
        assert found.recall.value == pytest.approx(hits[True] / sum(hits.values()))
        low, high = found.recall.low, found.recall.high
        assert low is None or low <= found.recall.value + 1e-12
        assert high is None or found.recall.value <= high + 1e-12


def test_M7_flips_between_two_passes_over_the_same_texts() -> None:
    again = [
        record("a", 0, 0.9, run_id="pass-2"),
        record("a", 1, 0.8, run_id="pass-2"),
        record("b", 0, 0.1, run_id="pass-2"),
        record("b", 1, 0.1, run_id="pass-2"),
        record("c", 0, error_type="timeout", run_id="pass-2"),
    ]
    found = flips(latest_records([*RECORDS, *again], passes="all"))["loud"]
    assert found.counts == {"hits": 1, "total": 4}


def test_M7_a_text_that_changed_is_another_text() -> None:
    records = [record("a", 0, 0.9, input_hash="x"), record("a", 0, 0.1, input_hash="y", run_id="pass-2")]
    assert flips(records)["loud"].status == "undefined"


def test_M7_flips_of_two_versions_are_refused_unless_asked_for() -> None:
    records = [record("a", 0, 0.9), record("a", 0, 0.1, run_id="pass-2", model_version="2")]
    with pytest.raises(MixedVersionsError):
        flips(records)
    assert flips(records, mix_versions=True)["loud"].value == 1.0


def test_M8_turns_to_the_first_fire_keep_those_that_never_fired() -> None:
    records = [record("a", turn, 0.9 if turn == 1 else 0.1) for turn in (2, 0, 1)]
    records += [record("b", turn, 0.1) for turn in range(3)]
    found = first_fires(records)
    assert [(each.value.turns, each.value.fired) for each in found if isinstance(each, Verdict)] == [
        (2, True),
        (3, False),
    ]
    assert first_fire.estimate(found, within=2).value == 0.5
    assert first_fire.estimate(found).counts["censored"] == 1


def test_M8_a_failure_before_the_first_fire_leaves_it_open() -> None:
    records = [record("a", 0, error_type="timeout"), record("a", 1, 0.9)]
    assert [type(each) for each in first_fires(records)] == [Failure]
    assert [type(each) for each in first_fires([record("a", 0, 0.9), record("a", 1, error_type="timeout")])] == [
        Verdict
    ]


@pytest.mark.parametrize(
    ("scores", "turns", "recovered"),
    [
        ([0.1, 0.9, 0.1, 0.1], 1, True),
        ([0.9, 0.1, 0.9, 0.1, 0.1], 3, True),
        # The last turn may be the first of two: only that it was not clean before is sure.
        ([0.9, 0.9, 0.1], 1, False),
        ([0.9], 0, False),
    ],
)
def test_M8_recovery_is_two_clean_turns(scores: list[float], turns: int, recovered: bool) -> None:
    found = recoveries([record("a", place, score) for place, score in enumerate(scores)])
    assert [(each.value.turns, each.value.recovered) for each in found if isinstance(each, Verdict)] == [
        (turns, recovered)
    ]


def test_M8_recovery_is_summed_up() -> None:
    records = [record(f"c{n}", turn, 0.9 if turn == 0 else 0.1) for n in range(5) for turn in range(4)]
    assert recovery.estimate(recoveries(records), within=1).value == 1.0


def test_M8_cost_for_each_flagged_conversation() -> None:
    records = [record(f"c{n}", turn, 0.9 if n < 10 else 0.1) for n in range(100) for turn in range(3)]
    found = cost_per_flagged(records, rate=0.01)
    assert found.value == pytest.approx(0.30)
    share = rate_interval(Moments.of_clusters((n < 10, 1, 1) for n in range(100)))
    assert share.low is not None
    assert share.high is not None
    assert (found.low, found.high) == pytest.approx((0.03 / share.high, 0.03 / share.low))


def test_M8_an_unknown_price_is_not_nothing() -> None:
    with pytest.raises(InputError, match="no price for the model 'loud-model'"):
        cost_per_flagged(RECORDS, rate={"other": 1.0})
    nothing = cost_per_flagged([record("a", 0, 0.1)], rate=0.5)
    assert (nothing.value, nothing.reason) == (None, "$0.50 was spent, and no conversation flagged")


def test_B14_the_last_pass_that_read_a_conversation_counts() -> None:
    later = record("a", 0, 0.1, run_id="pass-2", created_at=RECORDS[0].created_at.replace(year=2027))
    found = latest_records([*RECORDS, later])
    assert {(each.run_id, each.convo_id) for each in found} == {("pass-2", "a"), ("pass-1", "b"), ("pass-1", "c")}
    assert len(latest_records([*RECORDS, later], passes="all")) == 7
    assert len(latest_records([*RECORDS, later], passes="pass-1")) == 6
    with pytest.raises(InputError, match="pass-9"):
        latest_records(RECORDS, passes="pass-9")


def test_B8_a_row_that_was_written_twice_counts_once() -> None:
    late = RECORDS[0].created_at.replace(year=2027)
    again = [*RECORDS, RECORDS[0], record("c", 1, 0.9), record("b", 0, error_type="timeout", created_at=late)]
    found = {(each.convo_id, each.turn_index): each for each in latest_records(again)}
    assert len(found) == 6
    assert found["c", 1].fired
    assert found["b", 0].status == "completed"
    with pytest.raises(DuplicateError):
        fired_turns.estimate(fired_results(again))


def test_R3_a_version_says_model_transform_and_thresholds() -> None:
    assert {each.version for each in fired_results(RECORDS)} == {"loud-model-1:user_message@1:0.7"}
    versions = {each.version for each in fired_results(RECORDS, passes=pass_of(inputs=6))}
    assert versions == {"loud-model-1:user_message@1:loud>=0.7"}
    assert LOUD.thresholds == {"loud": 0.7}

"""Exploding: what comes back for a row, and the results that it makes."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from reflex_service import a_signal, talk

from evalr.tracepass import ErrorInfo, Item, LabelScore, Outcome, Plan, Prediction, Result, explode, plan
from evalr_tracepass.error_words import kept_message, kept_type

AT = datetime(2026, 11, 1, tzinfo=UTC)
MADE: Plan = plan([a_signal("m1"), a_signal("m2", thresholds={"bad": 0.8}), a_signal("m3")])
ITEM: Item = next(iter(MADE.rows([talk(1)]))).item


def said(model: str, bad: float, *, selected: bool = True, **more: object) -> Prediction:
    classes = (LabelScore("good", 1 - bad, not selected), LabelScore("bad", bad, selected))
    return Prediction(model, "single_label", classes, **more)  # type: ignore[arg-type]


def exploded(outcome: Outcome, item: Item = ITEM) -> list[Result]:
    return explode(item, outcome, MADE.signal_by, run_id="run", batch_id="batch", created_at=AT, attempt=2)


def test_b7_a_completed_row_makes_a_result_for_each_prediction() -> None:
    found = exploded(
        Outcome(ITEM.request_id, "completed", (said("m2", 0.75), said("m1", 0.75, version="v9"), said("m3", 0.25)))
    )
    assert [(each.reflex_model, each.status, each.fired) for each in found] == [
        ("m1", "completed", True),
        ("m2", "completed", False),  # its threshold is higher
        ("m3", "completed", True),
    ]
    first = found[0]
    assert (first.run_id, first.batch_id, first.attempt, first.created_at) == ("run", "batch", 2, AT)
    assert (first.convo_id, first.event_id, first.turn_index) == (ITEM.convo_id, ITEM.event_id, ITEM.turn_index)
    assert (first.top_label, first.top_score, first.selected_labels) == ("bad", 0.75, ("bad",))
    assert (first.signal_id, first.model_version, first.mode) == ("m1.user_message", "v9", "single_label")
    assert found[1].threshold == 0.8
    assert json.loads(first.classes_json) == [
        {"label": "good", "score": 0.25, "selected": False},
        {"label": "bad", "score": 0.75, "selected": True},
    ]


def test_b7_a_failed_row_is_one_failure_of_each_intended_model() -> None:
    found = exploded(Outcome(ITEM.request_id, "failed", error=ErrorInfo("input_too_long", "too many tokens")))
    assert [(each.reflex_model, each.status, each.error_type, each.error_message) for each in found] == [
        (model, "failed", "input_too_long", "too many tokens") for model in ("m1", "m2", "m3")
    ]
    assert {(each.top_label, each.top_score, each.selected_labels, each.fired) for each in found} == {
        ("", 0.0, (), False)
    }


def test_b7_a_models_error_inside_a_completed_row_is_its_own_failure() -> None:
    broken = Prediction("m2", error=ErrorInfo("inference_error", "failed"), version="v2")
    found = exploded(Outcome(ITEM.request_id, "completed", (said("m1", 0.9), broken, said("m3", 0.9))))
    assert [(each.status, each.error_type) for each in found] == [
        ("completed", ""),
        ("failed", "inference_error"),
        ("completed", ""),
    ]
    assert found[1].model_version == "v2"


def test_b7_a_pending_row_makes_nothing() -> None:
    assert exploded(Outcome(ITEM.request_id, "pending")) == []


def test_b7_a_model_that_says_nothing_has_failed_and_one_that_was_not_asked_is_not_heard() -> None:
    found = exploded(Outcome(ITEM.request_id, "completed", (said("m1", 0.9), said("m4", 0.9), Prediction("m3"))))
    assert [(each.reflex_model, each.error_type) for each in found] == [
        ("m1", ""),
        ("m2", "no_prediction"),
        ("m3", "no_classes"),
    ]


def test_b7_a_model_is_heard_once() -> None:
    found = exploded(
        Outcome(ITEM.request_id, "completed", tuple(said(m, s) for s in (0.9, 0.1) for m in ("m1", "m2", "m3")))
    )
    assert [each.top_score for each in found] == [0.9, 0.9, 0.9]


def test_b7_scores_that_are_none_are_failures() -> None:
    for score in (float("nan"), float("inf"), -0.1, 1.5):
        found = exploded(Outcome(ITEM.request_id, "completed", (said("m1", score),)))
        assert (found[0].status, found[0].error_type) == ("failed", "invalid_score")


@given(
    st.lists(st.sampled_from(["m1", "m2", "m3", "other"]), max_size=6),
    st.sampled_from(["completed", "failed"]),
    st.sets(st.sampled_from(["m1", "m2", "m3"])),
)
def test_b7_every_intended_model_has_exactly_one_result(models: list[str], status: str, errors: set[str]) -> None:
    predictions = tuple(
        Prediction(model, error=ErrorInfo("x", "")) if model in errors else said(model, 0.5) for model in models
    )
    outcome = Outcome(ITEM.request_id, status, predictions)  # type: ignore[arg-type]
    found = exploded(outcome)
    assert [each.reflex_model for each in found] == ["m1", "m2", "m3"]
    assert exploded(outcome) == found
    heard = {model for model in models if model not in errors} if status == "completed" else set()
    assert {each.reflex_model for each in found if each.status == "completed"} == heard - {"other"}


# What services say of errors


def test_r12_a_message_keeps_the_words_of_errors_alone() -> None:
    assert kept_message("too many tokens") == "too many tokens"
    assert kept_message("Input text is too long: 9000 tokens (max 8192)") == "Input text is too long … tokens max …"
    assert kept_message("cannot parse 'Fred, 555-1234' as JSON") == "cannot parse … JSON"
    assert kept_message(None) == ""
    assert kept_message({"text": "secret"}) == ""
    assert len(kept_message("error " * 500)) <= 160


@given(st.text(max_size=80))
def test_r12_no_message_tells_a_text(text: str) -> None:
    kept = kept_message(f"failed: {text}").split()
    written = {"failed", "…"}
    assert all(word in written or word.isalpha() for word in kept)
    assert not any(character.isdigit() for word in kept for character in word)


def test_r12_a_type_is_one_word() -> None:
    assert kept_type("input_too_long") == "input_too_long"
    for odd in ("he said he was sad", "", None, 7, "x" * 70, "a\nb"):
        assert kept_type(odd) == "error"

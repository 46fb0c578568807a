"""What a prediction means to a signal."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from evalr.tracepass import ErrorInfo, LabelScore, Prediction, Signal, reading

LOOPS = Signal(
    signal_id="stuck-in-a-loop",
    model="stuck-in-a-loop",
    display_name="Stuck-in-a-loop",
    labels=("progressing", "looping"),
    fires_on=("looping",),
)


def said(progressing: float, looping: float, *, selected: str) -> Prediction:
    scores = {"progressing": progressing, "looping": looping}
    return Prediction(
        "stuck-in-a-loop",
        "single_label",
        tuple(LabelScore(label, score, label == selected) for label, score in scores.items()),
    )


def test_R3_a_label_that_a_signal_fires_on_has_to_be_selected() -> None:
    assert reading(LOOPS, said(0.2, 0.8, selected="looping")).fired
    # A classifier with one label always selects one: that something is selected says nothing.
    clean = reading(LOOPS, said(0.8, 0.2, selected="progressing"))
    assert (clean.selected_labels, clean.fired, clean.threshold) == (("progressing",), False, None)


@pytest.mark.parametrize(("score", "fired"), [(0.49, False), (0.5, True), (0.51, True)])
def test_R3_a_threshold_stands_in_for_what_the_service_selected(score: float, fired: bool) -> None:
    signal = LOOPS.model_copy(update={"thresholds": {"looping": 0.5}})
    for selected in ("progressing", "looping"):
        found = reading(signal, said(1 - score, score, selected=selected))
        assert (found.fired, found.threshold) == (fired, 0.5)


def test_R12_the_top_label_is_the_class_with_the_highest_score_whoever_selected_it() -> None:
    found = reading(LOOPS, said(0.7, 0.3, selected="looping"))
    assert (found.top_label, found.top_score, found.fired) == ("progressing", 0.7, True)


def test_R12_of_equal_scores_the_one_that_was_selected_is_the_top_label() -> None:
    assert reading(LOOPS, said(0.5, 0.5, selected="looping")).top_label == "looping"
    assert reading(LOOPS, said(0.5, 0.5, selected="progressing")).top_label == "progressing"


def test_R12_without_classes_the_top_label_is_empty_and_its_score_is_0() -> None:
    for nothing in (Prediction("m", "multi_label"), Prediction("m", error=ErrorInfo("inference_error", "it broke"))):
        found = reading(LOOPS, nothing)
        assert (found.top_label, found.top_score, found.fired, found.selected_labels) == ("", 0.0, False, ())


def test_R3_labels_that_a_signal_does_not_know_are_named() -> None:
    found = reading(LOOPS, Prediction("m", "single_label", (LabelScore("stuck", 0.9, True),)))
    assert (found.unknown, found.fired) == (("stuck",), False)


def test_R3_a_signal_fires_on_labels_of_its_own() -> None:
    with pytest.raises(ValidationError, match="stuck"):
        Signal(signal_id="s", model="m", display_name="S", labels=("a",), fires_on=("stuck",))

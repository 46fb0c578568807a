"""Classifiers that are trained, judges as classifiers, and thresholds from people's labels."""

from __future__ import annotations

import atexit
import os
import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from reflex_service import KEY, FakeReflex, a_signal

from evalr.background import run_sync
from evalr.errors import InputError, TransportError
from evalr.evaluators import FunctionEvaluator
from evalr.inputs import Transcript
from evalr.runs import Retry
from evalr.tracepass import (
    Account,
    Calibrated,
    ClassifierReflex,
    ErrorInfo,
    JudgeReflex,
    Labelled,
    LabelScore,
    Prediction,
    Reflex,
    ServiceReflex,
    Signal,
    calibrate,
    calibrate_sync,
    judge_reflex,
    reading,
    train_reflex,
)
from evalr_tracepass.calibrating import TWICE

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"
if "DSPY_CACHEDIR" not in os.environ:
    os.environ["DSPY_CACHEDIR"] = tempfile.mkdtemp(prefix="evalr-dspy-")
    atexit.register(shutil.rmtree, os.environ["DSPY_CACHEDIR"], ignore_errors=True)

NOW = datetime(2026, 12, 1, tzinfo=UTC)

# Trained ones

TEXTS = [*(f"please refund order {n}" for n in range(20)), *(f"where is my parcel {n}" for n in range(20))]
LABELS = ["refund"] * 20 + ["other"] * 20


def test_R2_a_trained_classifier_is_a_reflex() -> None:
    pytest.importorskip("sklearn")
    reflex = train_reflex("refunds", TEXTS, LABELS)
    assert isinstance(reflex, Reflex)
    assert (reflex.kind, reflex.cost_per_text, sorted(reflex.labels)) == ("trained", 0.0, ["other", "refund"])
    predictions = reflex.predict(["a refund, please", "the parcel is lost"])
    assert isinstance(predictions, list)
    assert [[each.label for each in found.classes if each.selected] for found in predictions] == [["refund"], ["other"]]
    assert {found.version for found in predictions} == {reflex.version}
    assert sum(each.score for each in predictions[0].classes) == pytest.approx(1)


def test_R2_a_classifier_behind_an_api_is_awaited() -> None:
    class Far:
        labels, version = ("a", "b"), "1"

        async def classify(self, texts: Sequence[str], /) -> list[dict[str, float]]:
            return [{"a": 0.25, "b": 0.75} for _ in texts]

    found = ClassifierReflex("far", Far()).predict(["x"])
    assert not isinstance(found, list)
    assert run_sync(found) == [
        Prediction("far", "single_label", (LabelScore("a", 0.25, False), LabelScore("b", 0.75, True)), version="1")
    ]


# Judges


class Handoff(BaseModel):
    label: Literal["fine", "bad"]


def test_R2_an_evaluator_is_a_reflex_and_its_failures_are_those_of_one_text() -> None:
    asked = []

    def judge(given: Transcript) -> Handoff:
        asked.append(given.request)
        if "break" in given.request:
            raise RuntimeError(f"it broke on {given.request}")
        return Handoff(label="bad" if "lost" in given.request else "fine")

    reflex = JudgeReflex(
        "handoff", FunctionEvaluator("handoff", "7", judge, Transcript, Handoff, inline=True), retry=Retry(tries=1)
    )
    assert isinstance(reflex, Reflex)
    assert (reflex.kind, tuple(reflex.labels), reflex.version) == ("judge", ("fine", "bad"), "7")
    found = run_sync(reflex.predict(["all well", "they got lost", "break", "all well"]))
    assert [each.error for each in found] == [None, None, ErrorInfo("inference_error", "RuntimeError"), None]
    assert found[1].classes == (LabelScore("fine", 0.0, False), LabelScore("bad", 1.0, True))
    assert sorted(asked) == ["all well", "all well", "break", "they got lost"]
    signal = Signal(signal_id="s", model="handoff", display_name="S", labels=("fine", "bad"), fires_on=("bad",))
    assert [reading(signal, each).fired for each in found] == [False, True, False, False]


def test_R2_a_judge_needs_a_choice_to_be_a_reflex() -> None:
    class Comment(BaseModel):
        label: str

    with pytest.raises(InputError, match=r"Comment\.label"):
        JudgeReflex("c", FunctionEvaluator("c", "1", lambda _: Comment(label="x"), Transcript, Comment))


def test_R2_a_language_model_with_a_question_is_a_reflex() -> None:
    dspy: Any = pytest.importorskip("dspy")
    from dspy.utils import DummyLM

    lm = DummyLM([{"label": "bad"}, {"label": "no such"}], adapter=dspy.JSONAdapter())
    reflex = judge_reflex(
        "handoff", ["fine", "bad"], "Was the person handed on badly?", lm, limit=1, retry=Retry(tries=1)
    )
    first, second = run_sync(reflex.predict(["they got lost", "who knows"]))
    assert [each.label for each in first.classes if each.selected] == ["bad"]
    assert second.error is not None
    assert second.error.type == "inference_error"
    other = judge_reflex("handoff", ["fine", "bad"], "Another question?", lm)
    assert other.version != reflex.version


def test_R2_a_judge_needs_two_labels() -> None:
    with pytest.raises(InputError, match="two labels"):
        judge_reflex("j", ["only"], "?", None)


# Calibrating


class Scored:
    """A classifier whose score of `bad` is the number that a text is."""

    name, version, labels = "scored", "3", ("fine", "bad")

    def predict(self, texts: Sequence[str]) -> list[Prediction]:
        return [
            Prediction(
                "scored",
                "single_label",
                (
                    LabelScore("fine", 1 - float(text), float(text) < 0.5),
                    LabelScore("bad", float(text), float(text) >= 0.5),
                ),
            )
            for text in texts
        ]


SIGNAL = Signal(signal_id="bad", model="scored", display_name="Bad", labels=("fine", "bad"), fires_on=("bad",))


def traffic(n: int, *, seed: int = 1, users: int | None = None) -> list[Labelled]:
    """Random traffic in which the thing is rare, and a score of 0.5 is wrong three times of four."""
    draw = random.Random(seed)
    made = []
    for place in range(n):
        score = round(draw.random(), 6)
        bad = draw.random() < max(0.0, (score - 0.5) * 2.2)
        made.append(Labelled(str(score), "bad" if bad else "fine", "" if users is None else f"u{place % users}"))
    return made


def test_R3_calibrating_sets_a_threshold_whose_precision_is_shown_with_its_interval() -> None:
    found = calibrate_sync(SIGNAL, Scored(), traffic(1_500), target_precision=0.8, now=NOW)
    precision = found.precision
    assert precision is not None
    threshold = found.signal.thresholds["bad"]
    assert 0.7 < threshold < 1
    assert precision.low >= 0.8
    assert precision.low < precision.value < precision.high
    assert (precision.model_version, precision.transform_version, precision.thresholds) == ("3", 1, {"bad": threshold})
    assert found.signal.updated == NOW
    # What it says of other traffic of the same kind holds.
    others = traffic(20_000, seed=2)
    predictions = Scored().predict([each.text for each in others])
    fired = [each for each, said in zip(others, predictions, strict=True) if reading(found.signal, said).fired]
    share = sum(each.label == "bad" for each in fired) / len(fired)
    assert precision.low <= share <= precision.high
    assert f"from {threshold:.3g}: precision " in str(found)
    assert Signal.model_validate(found.signal.to_dict()) == found.signal


def test_R3_a_precision_holds_for_what_was_calibrated_and_nothing_else() -> None:
    signal = calibrate_sync(SIGNAL, Scored(), traffic(1_500), target_precision=0.8).signal
    assert signal.precision_with("3") == signal.precision
    assert signal.precision is not None
    assert signal.precision_with("4") is None
    assert signal.model_copy(update={"thresholds": {"bad": 0.5}}).precision_with("3") is None
    newer = signal.transform.model_copy(update={"version": 2})
    assert signal.model_copy(update={"transform": newer}).precision_with("3") is None
    assert SIGNAL.precision_with("3") is None


def test_R3_what_labels_cannot_show_is_not_quoted() -> None:
    few = calibrate_sync(SIGNAL, Scored(), traffic(30), now=NOW)
    assert (few.precision, few.signal) == (None, SIGNAL)
    assert "not calibrated" in str(few)
    never = calibrate_sync(SIGNAL, Scored(), [each._replace(label="fine") for each in traffic(500)], now=NOW)
    assert (never.precision, never.positives) == (None, 0)


def test_R3_texts_of_one_user_are_one_voice() -> None:
    assert calibrate_sync(SIGNAL, Scored(), traffic(1_500, users=1), target_precision=0.8).precision is None
    alone = calibrate_sync(SIGNAL, Scored(), traffic(1_500), target_precision=0.8).precision
    assert alone is not None


def test_R3_texts_that_trained_the_classifier_do_not_measure_it() -> None:
    pytest.importorskip("sklearn")
    reflex = train_reflex("refunds", TEXTS, LABELS)
    signal = Signal(signal_id="r", model="refunds", display_name="R", labels=("refund", "other"), fires_on=("refund",))
    known = [Labelled(text, label) for text, label in zip(TEXTS, LABELS, strict=True)]
    with pytest.raises(InputError, match="40 used to train the classifier"):
        calibrate_sync(signal, reflex, known)
    fresh = [Labelled(f"I want a refund {n}", "refund") for n in range(5)]
    found = calibrate_sync(signal, reflex, [*known, *fresh, fresh[0]])
    assert (found.used, found.left_out) == (5, {"used to train the classifier": 40, TWICE: 1})


def test_R3_a_text_that_the_classifier_failed_on_is_left_out() -> None:
    class Broken(Scored):
        def predict(self, texts: Sequence[str]) -> list[Prediction]:
            return [
                Prediction("scored", error=ErrorInfo("inference_error", "no")) if place == 0 else found
                for place, found in enumerate(super().predict(texts))
            ]

    found: Calibrated = run_sync(calibrate(SIGNAL, Broken(), traffic(100)))
    assert (found.used, found.left_out) == (99, {"the classifier failed": 1})


@pytest.mark.parametrize(
    ("change", "labels", "options", "words"),
    [
        ({"fires_on": ()}, [Labelled("0.5", "bad")], {}, "fires on no label"),
        ({}, [Labelled("0.5", "awful")], {}, "'awful' is none of"),
        ({}, [], {}, "none was given"),
        ({}, [Labelled("0.5", "bad")], {"target_precision": 1.0}, "target_precision"),
    ],
)
def test_R3_what_cannot_be_calibrated_is_refused(
    change: dict[str, Any], labels: list[Labelled], options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        calibrate_sync(SIGNAL.model_copy(update=change), Scored(), labels, **options)


def test_R2_a_model_of_the_service_is_a_reflex() -> None:
    fake = FakeReflex(fail_row=lambda text: "odd" in text, cut_after=1)
    hosted = ServiceReflex("m1", ("good", "bad"), Account("ann"), fake.service(), version="7")
    assert isinstance(hosted, Reflex)
    texts = ["bad one", "fine one", "odd one", "  ", "x" * 350_001]
    found = run_sync(hosted.predict(texts))
    assert [reading(a_signal("m1"), each).fired for each in found] == [True, False, False, False, False]
    errors = [None if each.error is None else each.error.type for each in found]
    assert errors == [None, None, "status_422", "no_text", "input_too_long"]
    assert {each.version for each in found} == {"7"}
    # A cut connection is tried again under the same key, so that the text is paid for once.
    assert fake.billed == {("bad one", "m1"): 1, ("fine one", "m1"): 1}
    assert KEY not in repr(hosted)
    fake.fail_model = lambda model: model == "m1"
    assert [each.error and each.error.type for each in run_sync(hosted.predict(["fine"]))] == ["inference_error"]
    with pytest.raises(TransportError):
        run_sync(replace(hosted, service=fake.service(key="sk-wrong")).predict(["fine"]))

"""Decision evaluators: they answer where labels show that they may, hand the rest on, and are measured on others."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, Field, model_validator

from evalr import (
    DatasetError,
    Evaluator,
    Failure,
    Fallback,
    FieldTypeError,
    FunctionEvaluator,
    HandOff,
    InputError,
    Verdict,
)
from evalr.inputs import Input, Session
from evalr.labels import (
    Classifier,
    Dataset,
    DecisionEvaluator,
    DecisionFit,
    Example,
    fit_thresholds,
    fit_thresholds_sync,
    measure_decisions_sync,
    transcript_text,
)
from evalr.labels.classifiers import mark, text_mark
from evalr.labels.fitting import Row, fitted_threshold
from evalr.measures import TaskCompletion, Transcript, Turn
from evalr.runs import evaluate_all_sync
from evalr.testing import EvaluatorContract


class Said(BaseModel):
    done: bool
    why: str | None = None


class Tone(Enum):
    KIND = "kind"
    RUDE = "rude"


class Many(BaseModel):
    done: bool
    tone: Tone
    stars: int = Field(ge=1, le=3)
    topic: Literal["billing", "other"] | None = None
    note: str = ""

    @model_validator(mode="after")
    def _goes_together(self) -> Many:
        if self.tone is Tone.RUDE and self.stars == 3:
            raise ValueError("rude with three stars")
        return self


def scores(label: str, score: float, labels: Sequence[str]) -> dict[str, float]:
    rest = (1 - score) / (len(labels) - 1)
    return {each: score if each == label else rest for each in labels}


@dataclass
class Stub:
    """Reads its answer from the text, `true 0.9`, at a word of its own, and keeps what it was asked."""

    labels: Sequence[str] = ("false", "true")
    word: int = 0
    version: str = "stub:1"
    seen: frozenset[str] = frozenset()
    asked: list[int] = field(default_factory=list)

    def classify(self, texts: Sequence[str], /) -> list[Mapping[str, float]]:
        self.asked.append(len(texts))
        said = [text.split()[self.word : self.word + 2] for text in texts]
        return [scores(label, float(score), self.labels) for label, score in said]


class AsyncStub(Stub):
    async def classify(self, texts: Sequence[str], /) -> list[Mapping[str, float]]:  # type: ignore[override]
        await asyncio.sleep(0)
        return Stub.classify(self, texts)


class Broken(Stub):
    def classify(self, texts: Sequence[str], /) -> Any:
        raise RuntimeError("out of memory")


@dataclass
class Giving(Stub):
    found: Any = None

    def classify(self, texts: Sequence[str], /) -> Any:
        return self.found


def request(transcript: Transcript) -> str:
    return transcript.request


def given(text: str, name: str = "t") -> Transcript:
    return Transcript(id=name, request=text)


def decision(classifier: Any = None, verdict_type: Any = Said, **more: Any) -> DecisionEvaluator[Any, Any]:
    return DecisionEvaluator(verdict_type, Stub() if classifier is None else classifier, text=request, **more)


def examples(count: int, *, right: float = 0.95, seed: int = 0, groups: int | None = None, start: int = 0) -> Any:
    """Examples whose texts say an answer and a score; the higher the score, the more often people say the same."""
    choose = random.Random(seed)
    made = []
    for number in range(start, start + count):
        answer, score = choose.random() < 0.6, 0.5 + choose.random() / 2
        agrees = choose.random() < (right if score > 0.7 else 0.5)
        text = f"{'true' if answer else 'false'} {score:.6f}"
        group = None if groups is None else f"g{number % groups}"
        made.append(Example(given(text, f"t{number}"), expected=Said(done=answer == agrees), group=group))
    return made


def dataset(made: Any, name: str = "labels") -> Dataset[Said]:
    return Dataset(name, made)


# ---------------------------------------------------------------------------------------------------------------------
# Verdicts and hand-offs
# ---------------------------------------------------------------------------------------------------------------------


def test_it_decides_from_the_threshold_on_and_hands_the_rest_on_with_its_verdict() -> None:
    decides = decision(thresholds={"done": 0.8})
    sure, unsure = decides.evaluate_many_sync([given("true 0.8", "a"), given("false 0.79", "b")])
    assert isinstance(sure, Verdict)
    assert (sure.value, sure.evaluator, sure.confidence) == (Said(done=True), "said", None)
    assert isinstance(unsure, HandOff)
    assert unsure.reason == "done: the score of 'false' is under its threshold"
    assert unsure.verdict is not None
    assert unsure.verdict.value == Said(done=False)
    assert (unsure.about and unsure.about.id, unsure.version) == ("b", decides.version)


def test_without_thresholds_it_decides_nothing_and_says_what_to_do() -> None:
    result = decision().evaluate_sync(given("true 0.999"))
    assert isinstance(result, HandOff)
    assert "no threshold, so fit one to people's labels (fit_thresholds)" in result.reason


def test_the_name_is_that_of_the_measure_with_the_verdict_type() -> None:
    classifiers = {"completed": Stub(), "quality": Stub(("1", "5"), word=2)}
    assert decision(classifiers, TaskCompletion).name == "completion"
    assert decision(classifiers, TaskCompletion, name="mine").name == "mine"


def test_every_field_is_decided_by_its_own_classifier() -> None:
    classifiers = {
        "done": Stub(),
        "tone": Stub(("kind", "rude"), word=2),
        "stars": Stub(("1", "2", "3"), word=4),
    }
    bars = {"done": 0.8, "tone": 0.8, "stars": 0.0}
    decides = decision(classifiers, Many, thresholds=bars)
    sure, unsure, torn = decides.evaluate_many_sync(
        [given("true 0.9 kind 0.9 3 0.4"), given("true 0.7 kind 0.7 3 0.4"), given("true 0.9 rude 0.9 3 0.9")]
    )
    assert isinstance(sure, Verdict)
    assert sure.value == Many(done=True, tone=Tone.KIND, stars=3)
    assert isinstance(unsure, HandOff)
    assert unsure.reason == (
        "done: the score of 'true' is under its threshold; tone: the score of 'kind' is under its threshold"
    )
    assert isinstance(torn, HandOff)
    assert torn.reason == "done, tone, stars: the answers do not go together in one Many"


def test_labels_of_a_classifiers_own_stand_for_values() -> None:
    own = Stub(("NEGATIVE", "POSITIVE"))
    decides = decision(own, values={"done": {"POSITIVE": True, "NEGATIVE": False}}, thresholds={"done": 0})
    result = decides.evaluate_sync(given("POSITIVE 0.9"))
    assert isinstance(result, Verdict)
    assert result.value == Said(done=True)
    with pytest.raises(InputError, match=r"Said.done has no value 'NEGATIVE'.*Pass values="):
        decision(own)
    with pytest.raises(InputError, match=r"values\['done'\] has 1, which is no value of Said.done"):
        decision(own, values={"done": {"POSITIVE": 1, "NEGATIVE": False}})


@pytest.mark.parametrize("kind", [Stub, AsyncStub])
def test_many_inputs_are_asked_in_batches_whether_it_is_async_or_not(kind: type[Stub]) -> None:
    classifier = kind()
    decides = decision(classifier, thresholds={"done": 0.5})
    inputs = [given(f"true 0.{number}", f"t{number}") for number in (6, 7, 8, 9, 99)]
    awaited = asyncio.run(decides.evaluate_many(inputs, batch=2))
    assert classifier.asked == [2, 2, 1]
    same = decides.evaluate_many_sync(inputs, batch=3)
    assert [each.value for each in awaited] == [each.value for each in same] == [Said(done=True)] * 5  # type: ignore[union-attr]
    assert [each.about and each.about.id for each in same] == [f"t{number}" for number in (6, 7, 8, 9, 99)]
    with pytest.raises(InputError, match="batch is counted from 1"):
        decides.evaluate_many_sync(inputs, batch=0)


def test_async_classifiers_work_where_a_loop_is_running() -> None:
    async def inside() -> Any:
        return decision(AsyncStub(), thresholds={"done": 0}).evaluate_sync(given("true 0.9"))

    assert isinstance(asyncio.run(inside()), Verdict)


# ---------------------------------------------------------------------------------------------------------------------
# What goes wrong
# ---------------------------------------------------------------------------------------------------------------------


def test_a_classifier_that_breaks_fails_each_input_of_its_batch() -> None:
    results = decision(Broken()).evaluate_many_sync([given("x", "a"), given("y", "b")])
    assert [type(each) for each in results] == [Failure, Failure]
    assert [each.error for each in results] == ["RuntimeError: out of memory"] * 2  # type: ignore[union-attr]


def test_a_text_that_cannot_be_read_fails_that_input_alone() -> None:
    def read(transcript: Transcript) -> str:
        if transcript.request == "bad":
            raise KeyError("missing")
        return transcript.request if transcript.request != "none" else None  # type: ignore[return-value]

    decides = DecisionEvaluator(Said, Stub(), text=read, thresholds={"done": 0})  # type: ignore[arg-type]
    found = decides.evaluate_many_sync([given("bad"), given("true 0.9"), given("none"), given("false 0.9")])
    assert [type(each) for each in found] == [Failure, Verdict, Failure, Verdict]
    assert found[3].value == Said(done=False)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([], "given 1 texts and gave 0 scores"),
        (None, "gave a NoneType"),
        ([0.5], "gave a float where scores by label were promised"),
        ([{"true": 0.5}], "it must score each"),
        ([{"true": 0.5, "false": 0.2, "maybe": 0.3}], "it must score each"),
        ([{"true": float("nan"), "false": 0.5}], "a score of nan: scores are from 0 to 1"),
        ([{"true": 1.5, "false": 0.5}], "a score of 1.5: scores are from 0 to 1"),
    ],
)
def test_scores_that_are_none_are_a_failure(found: Any, words: str) -> None:
    result = decision(Giving(found=found), thresholds={"done": 0}).evaluate_sync(given("x"))
    assert isinstance(result, Failure)
    assert words in result.error


def test_of_equal_scores_the_first_label_is_the_answer() -> None:
    tied = Giving(found=[{"true": 0.5, "false": 0.5}])
    result = decision(tied, thresholds={"done": 0}).evaluate_sync(given("x"))
    assert isinstance(result, Verdict)
    assert result.value == Said(done=False)


def test_verdict_types_that_need_a_text_are_refused_by_the_name_of_the_field() -> None:
    class Explained(BaseModel):
        done: bool
        why: str

    class Measured(BaseModel):
        share: float

    class Tagged(BaseModel):
        tags: list[Literal["a", "b"]]

    class Free(BaseModel):
        note: str = ""

    with pytest.raises(FieldTypeError, match=r"Explained\.why is a text and required.*a default, such as None"):
        decision(Stub(), Explained)
    with pytest.raises(FieldTypeError, match=r"Measured\.share is of kind 'number'"):
        decision(Stub(), Measured)
    with pytest.raises(FieldTypeError, match=r"Tagged\.tags is of kind 'choices'"):
        decision(Stub(), Tagged)
    with pytest.raises(FieldTypeError, match="Free has no field that a classifier can decide"):
        decision(Stub(), Free)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match=r"TaskCompletion\.quality is required and has no classifier"):
        decision({"completed": Stub()}, TaskCompletion)
    with pytest.raises(InputError, match=r"2 fields to decide .completed, quality.: pass classifiers by field"):
        decision(Stub(), TaskCompletion)
    with pytest.raises(InputError, match=r"no field 'dome' that a classifier can decide.*did you mean 'done'"):
        decision({"dome": Stub()})
    with pytest.raises(InputError, match="Said needs a classifier of done"):
        decision({})
    with pytest.raises(InputError, match="thresholds names 'x'"):
        decision(thresholds={"x": 0.5})
    with pytest.raises(InputError, match="scores are from 0 to 1"):
        decision(thresholds={"done": 1.5})
    with pytest.raises(InputError, match="is no classifier"):
        decision({"done": object()})
    with pytest.raises(InputError, match="two labels or more"):
        decision(Stub(("true",)))
    assert isinstance(Stub(), Classifier)


def test_costs_add_up_and_one_that_is_unknown_makes_the_total_unknown() -> None:
    class Priced(Stub):
        cost_per_text = 0.25

    two = {"completed": Priced(), "quality": Priced(("1", "5"), word=2)}
    bars = {"completed": 0, "quality": 0}
    result = decision(two, TaskCompletion, thresholds=bars).evaluate_sync(given("true 0.9 5 0.9"))
    assert result.cost == 0.5
    assert decision(two | {"quality": Stub(("1", "5"), word=2)}, TaskCompletion).cost_per_text is None


def test_the_text_of_a_transcript_is_what_was_said() -> None:
    turns = [Turn(role="person", text="help"), Turn(role="tool", text="{}"), Turn(role="agent", text="done")]
    said = Transcript(request="help", turns=turns, result="a file")
    assert transcript_text(said) == "request: help\nperson: help\nagent: done\nresult: a file"


# ---------------------------------------------------------------------------------------------------------------------
# Chains
# ---------------------------------------------------------------------------------------------------------------------


def judge(name: str = "judge") -> FunctionEvaluator[Transcript, Said]:
    return FunctionEvaluator(
        name, "7", lambda given: Verdict(Said(done=True), name, cost=1.0), Transcript, Said, inline=True
    )


def test_in_a_chain_the_judge_is_asked_of_the_unsure_ones_and_each_verdict_credits_who_gave_it() -> None:
    class Free(Stub):
        cost_per_text = 0.0

    decides = decision(Free(), thresholds={"done": 0.8})
    chain = Fallback(decides, judge())
    sure, unsure = (chain.evaluate_sync(given(text)) for text in ("false 0.9", "false 0.6"))
    assert isinstance(sure, Verdict)
    assert isinstance(unsure, Verdict)
    assert (sure.value.done, sure.given_by, sure.cost) == (False, f"said@{decides.version}", 0)
    assert (unsure.value.done, unsure.given_by, unsure.cost) == (True, "judge@7", 1)
    assert {sure.evaluator, unsure.evaluator} == {chain.name}
    assert {sure.version, unsure.version} == {chain.version}


def test_a_run_keeps_who_gave_each_verdict_in_its_journal(tmp_path: Path) -> None:
    chain = Fallback(decision(thresholds={"done": 0.8}), judge())
    inputs = [given("false 0.9", "a"), given("false 0.6", "b")]
    first, again = (
        sorted(
            (str(each.about and each.about.id), each.given_by)  # type: ignore[union-attr]
            for each in evaluate_all_sync([chain], inputs, journal=tmp_path / "run.db")
        )
        for _ in range(2)
    )
    assert first == again == [("a", f"said@{chain.evaluators[0].version}"), ("b", "judge@7")]


# ---------------------------------------------------------------------------------------------------------------------
# Thresholds
# ---------------------------------------------------------------------------------------------------------------------


def rows(count: int, wrong: int, *, groups: int | None = None) -> list[Row]:
    """`wrong` of the rows are wrong, those with the lowest scores."""
    return [
        Row(("g", str(n if groups is None else n % groups)), 1 - n / (2 * count), n < count - wrong)
        for n in range(count)
    ]


def test_a_threshold_stands_where_the_lower_limit_clears_the_target_and_not_where_the_share_does() -> None:
    found = fitted_threshold("done", "true", rows(200, 30), 0.9, 0.95)
    assert found.at is not None
    assert found.low is not None
    assert found.low >= 0.9
    assert found.right / found.decided > 0.95
    assert found.decided < 200
    everything = fitted_threshold("done", "true", rows(200, 2), 0.9, 0.95)
    assert (everything.decided, everything.labels, everything.at) == (200, 200, 0.5025)
    # 184 of 200 are 92%, whose exact 99% interval begins at 86%: seen, but not shown
    assert fitted_threshold("done", "true", [row._replace(score=0.9) for row in rows(200, 16)], 0.9, 0.95).at is None


def test_the_limits_are_those_of_clopper_and_pearson_at_the_level_of_five_tries() -> None:
    from scipy.stats import binomtest

    found = fitted_threshold("done", "true", rows(200, 2), 0.9, 0.95)
    exact = binomtest(198, 200).proportion_ci(0.99, method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), rel=1e-9)


def test_too_few_labels_say_how_many_it_takes() -> None:
    found = fitted_threshold("done", "true", rows(20, 0), 0.9, 0.95)
    assert (found.at, found.low) == (None, None)
    # 0.005 ** (1 / 51) is 0.901, and of 50 labels 0.899
    assert found.reason == "since 20 labels of it cannot show 90.0%: it takes 51 if all are right"
    assert fitted_threshold("done", "true", rows(51, 0), 0.9, 0.95).at is not None
    assert fitted_threshold("done", "true", rows(50, 0), 0.9, 0.95).at is None
    assert str(found) == f"done true: never, {found.reason}"
    assert "single group" in str(fitted_threshold("done", "true", rows(100, 3, groups=1), 0.9, 0.95))


def test_labels_of_few_groups_count_as_few() -> None:
    alone = fitted_threshold("done", "true", rows(300, 6), 0.9, 0.95)
    assert alone.at is not None
    together = [row._replace(cluster=("g", str(n // 15)), score=0.9) for n, row in enumerate(rows(300, 6))]
    grouped = fitted_threshold("done", "true", together, 0.9, 0.95)
    assert (grouped.at, grouped.labels) == (None, 300)


def test_equal_scores_are_never_parted() -> None:
    tied = [row._replace(score=round(row.score, 1)) for row in rows(400, 20)]
    found = fitted_threshold("done", "true", tied, 0.9, 0.95)
    assert found.decided == sum(row.score >= (found.at or 2) for row in tied)


def test_a_target_of_none_takes_any_score() -> None:
    found = fitted_threshold("done", "true", rows(10, 5), None, 0.95)
    assert (found.at, found.decided, found.right) == (0, 10, 5)
    assert fitted_threshold("done", "true", [], None, 0.95).at == 0


def test_the_precision_from_a_fitted_threshold_on_is_at_least_the_target_as_often_as_promised() -> None:
    choose, target, missed, found = random.Random(3), 0.9, 0, 0
    for _ in range(200):
        drawn = [choose.random() for _ in range(500)]
        made = [Row(("id", str(n)), s, choose.random() < 0.7 + 0.29 * s) for n, s in enumerate(drawn)]
        at = fitted_threshold("done", "true", made, target, 0.95).at
        if at is not None:
            found += 1
            missed += 0.7 + 0.29 * (at + 1) / 2 < target  # the mean chance of being right from there on
    assert found > 60
    assert missed <= 0.05 * 200


# ---------------------------------------------------------------------------------------------------------------------
# Fitting and measuring
# ---------------------------------------------------------------------------------------------------------------------


def test_what_is_fitted_decides_and_says_how_sure_it_is() -> None:
    fitted = fit_thresholds_sync(decision(), dataset(examples(600)), target_precision=0.8)
    assert fitted.fit is not None
    assert fitted.fit.used == 600
    assert [each.label for each in fitted.fit.thresholds] == ["false", "true"]
    assert all(each.at is not None and 0.55 < each.at < 0.95 for each in fitted.fit.thresholds)
    sure, unsure = fitted.evaluate_many_sync([given("true 0.99", "a"), given("true 0.51", "b")])
    assert isinstance(sure, Verdict)
    assert sure.confidence is not None
    assert 0.9 < sure.confidence["done"] < 1
    assert isinstance(unsure, HandOff)
    assert unsure.verdict is not None
    assert (unsure.verdict.confidence or {})["done"] < 0.75
    lines = str(fitted.fit).splitlines()
    assert lines[0] == "600 examples used · 99% limits, since 5 scores were tried of each"
    assert lines[1].startswith("done false: from a score of 0.")


def test_what_was_fitted_holds_on_others_and_never_sees_its_own_labels() -> None:
    fitting, others = examples(600), examples(400, seed=1, start=600)
    fitted = fit_thresholds_sync(decision(), dataset(fitting), target_precision=0.8)
    quality = measure_decisions_sync(fitted, dataset([*fitting, *others]))
    assert quality.left_out == {"used to train or fit it": 600}
    assert quality.decided.n == 400
    results = fitted.evaluate_many_sync([each.given() for each in others])
    pairs = [(r.value.done, e.expected.done) for r, e in zip(results, others, strict=True) if isinstance(r, Verdict)]
    assert quality.precision["done"].counts == {"hits": sum(a == b for a, b in pairs), "total": len(pairs)}
    assert quality.decided.counts == {"hits": len(pairs), "total": 400}
    assert quality.precision["done"].value is not None
    assert quality.precision["done"].value > 0.8
    assert sum(each.counts["total"] for each in quality.by_label["done"].values()) == len(pairs)
    brier = quality.brier["done"].value
    assert brier is not None
    assert brier < 0.2
    assert sum(each.n for each in quality.reliability["done"].bins) == 400
    assert "left out: 600 used to train or fit it" in str(quality)
    with pytest.raises(InputError, match="no example to use: 600 used to train or fit it; label others"):
        measure_decisions_sync(fitted, dataset(fitting))


def test_an_example_that_was_seen_is_known_by_its_name_and_one_that_only_says_the_same_is_counted() -> None:
    text, other = "true 0.9", "true 0.8"
    trained = Stub(seen=frozenset({mark(given(text, "a")), text_mark(text)}))
    same_text, went_on, new = given(text, "b"), given(other, "a"), given(other, "c")
    of_another = Transcript(id="a", user="ann", request=other)
    labels = dataset([Example(each, expected=Said(done=True)) for each in (same_text, went_on, new)])
    decides = decision(trained, thresholds={"done": 0})
    kept = measure_decisions_sync(decides, labels)
    assert (kept.decided.n, kept.left_out, kept.repeats) == (2, {"used to train or fit it": 1}, 1)
    assert "1 have a text that it has seen, of another example" in str(kept)
    fitted = fit_thresholds_sync(decides, labels, target_precision=None)
    assert fitted.fit is not None
    assert str(fitted.fit).startswith("2 examples used, 1 with a text that trained a classifier, 1 used to train")
    assert measure_decisions_sync(decides, dataset([Example(of_another, expected=Said(done=True))])).left_out == {}


def test_what_trained_a_classifier_that_does_not_say_so_can_be_excluded() -> None:
    class Silent:
        labels, version = ("false", "true"), "1"

        def classify(self, texts: Sequence[str], /) -> Any:
            return Stub().classify(texts)

    made = examples(300)
    decides = decision(Silent())
    fitted = fit_thresholds_sync(decides, dataset(made), target_precision=0.6, exclude=made[:100])
    assert fitted.fit is not None
    assert (fitted.fit.used, fitted.fit.left_out) == (200, {"excluded": 100})


def test_what_is_left_out_is_counted_under_its_own_name() -> None:
    class Opinion(BaseModel):
        done: bool | None = None

    made: list[Any] = [Example(given(f"true 0.{n}", f"t{n}"), expected=Opinion(done=True)) for n in range(10, 15)]
    made.append(Example(given("true 0.7", "none"), expected=Opinion()))
    made.append(Example(given("true 0.8", "bare")))
    labels: Dataset[Opinion] = Dataset("o", made)
    fitted = fit_thresholds_sync(decision(Stub(), Opinion), labels, target_precision=None)
    assert fitted.fit is not None
    assert fitted.fit.left_out == {"without a label": 1, "without a label of done": 1}
    assert fitted.fit.used == 6

    def read(transcript: Transcript) -> str:
        if transcript.id == "none":
            raise KeyError("x")
        return transcript.request

    odd = DecisionEvaluator(Opinion, Stub(), text=read)  # type: ignore[arg-type]
    again = fit_thresholds_sync(odd, labels, target_precision={"done": None})
    assert again.fit is not None
    assert again.fit.left_out == {"without a label": 1, "not classified": 1}
    with pytest.raises(RuntimeError, match="out of memory"):
        fit_thresholds_sync(decision(Broken(), Opinion), labels)


def test_labels_may_fit_it_again_and_each_fit_is_a_version_of_its_own() -> None:
    labels = dataset(examples(300))
    plain = decision()
    first = fit_thresholds_sync(plain, labels, target_precision=0.7)
    again = fit_thresholds_sync(first, labels, target_precision=0.7)
    stricter = asyncio.run(fit_thresholds(first, labels, target_precision=0.75))
    assert first.version == again.version
    assert len({plain.version, first.version, stricter.version}) == 3
    by_hand = decision(thresholds={"done": 0.8})
    others = [by_hand, decision(thresholds={"done": 0.81}), decision(thresholds={"done": 0.8}, text_version="2")]
    others += [decision(Stub(version="stub:2"), thresholds={"done": 0.8})]
    assert len({each.version for each in others}) == 4
    assert by_hand.version == decision(thresholds={"done": 0.8}).version


def test_a_fit_holds_for_its_classifiers_alone() -> None:
    fitted = fit_thresholds_sync(decision(), dataset(examples(300)), target_precision=0.7)
    with pytest.raises(InputError, match=r"the fit is of done by version 'stub:1', and the classifier is 'stub:2'"):
        decision(Stub(version="stub:2"), fit=fitted.fit)
    with pytest.raises(InputError, match="pass one of them"):
        decision(fit=fitted.fit, thresholds={"done": 0.5})


def test_a_fit_is_read_back_as_it_was(tmp_path: Path) -> None:
    fitted = fit_thresholds_sync(decision(), dataset(examples(300)), target_precision=0.7)
    assert fitted.fit is not None
    fitted.fit.save(tmp_path / "fit.json")
    again = DecisionFit.load(tmp_path / "fit.json")
    assert again == fitted.fit
    assert decision(fit=again).version == fitted.version


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x80\x04\x95", "a pickle or an archive, which is never loaded"),
        (b"PK\x03\x04", "a pickle or an archive"),
        (b"{", "not JSON"),
        (b"[]", 'no "type": "decision-fit"'),
        (b'{"type": "decision-fit", "format": 99}', "this evalr reads format 1"),
        (b'{"type": "decision-fit", "format": 1, "fit": {"level": 1}}', "thresholds: Field required"),
    ],
)
def test_a_file_that_is_no_fit_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=words) as raised:
        DecisionFit.load(path)
    assert str(path) in str(raised.value)


def test_options_that_cannot_be_used_are_refused() -> None:
    labels = dataset(examples(20))
    for target in (0, 1, 1.5, -1, "0.9"):
        with pytest.raises(InputError, match="must lie between 0 and 1, both excluded"):
            fit_thresholds_sync(decision(), labels, target_precision=target)
    with pytest.raises(InputError, match=r"target_precision names 'dome'.*did you mean 'done'"):
        fit_thresholds_sync(decision(), labels, target_precision={"dome": 0.9})
    with pytest.raises(InputError, match="says nothing of done"):
        fit_thresholds_sync(decision(), labels, target_precision={})
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        fit_thresholds_sync(decision(), labels, level=1)
    others: Any = Dataset("c", [Example(given("x"), expected=TaskCompletion(completed=True, quality=3))])
    with pytest.raises(InputError, match="is labelled with TaskCompletion, and the evaluator decides Said"):
        fit_thresholds_sync(decision(), others)
    with pytest.raises(InputError, match="holds Session, and the evaluator reads Transcript"):
        measure_decisions_sync(decision(), Dataset("s", [Example(Session(id="s"), expected=Said(done=True))]))
    with pytest.raises(InputError, match="it is empty"):
        measure_decisions_sync(decision(), Dataset("e", verdict_type=Said, input_type=Transcript))


# ---------------------------------------------------------------------------------------------------------------------
# The contract
# ---------------------------------------------------------------------------------------------------------------------


class TestContract(EvaluatorContract):
    evaluator: ClassVar[Evaluator[Any, Any]] = decision(thresholds={"done": 0.8})
    inputs: ClassVar[Sequence[Input]] = [given("true 0.9", "a"), given("false 0.6", "b"), given("x", "c")]


class TestContractOfAsync(EvaluatorContract):
    evaluator: ClassVar[Evaluator[Any, Any]] = replace(decision(AsyncStub()), thresholds={"done": 0.8})
    inputs: ClassVar[Sequence[Input]] = [given("true 0.9", "a"), given("false 0.6", "b")]

"""What an evaluator was trained with never enters a comparison with people, and nobody has to name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evalr import About, Failure, Fallback, FunctionEvaluator, HandOff, InputError, Rate, Verdict
from evalr.labels import (
    Dataset,
    DecisionEvaluator,
    Example,
    agreement,
    calibration,
    corrected,
    feedback,
    fit_thresholds_sync,
)
from evalr.labels.subjects import subject_of
from evalr.measures import Transcript
from evalr.runs import evaluate_all_sync


class Said(BaseModel):
    ok: bool


ok_rate = Rate("ok", of=Said, hits=lambda v: v.ok, noun="answer")
YES, NO = Said(ok=True), Said(ok=False)


def about(n: int, user: str = "u") -> About:
    return About("transcript", f"t{n}", user=f"{user}{n}")


def judged(n: int, value: Said = YES, trained_on: bool = False) -> Verdict[Said]:
    flags = ("trained_on",) if trained_on else ()
    return Verdict(value, "judge", "1", about(n), confidence={"ok": 0.8}, flags=flags)


# Right on all that it was trained on, and wrong on half of the rest.
RESULTS = [judged(n, YES, trained_on=n < 40) for n in range(60)]
LABELS = [feedback(about(n), YES if n < 50 else NO) for n in range(60)]
REST, REST_LABELS = RESULTS[40:], LABELS[40:]


def test_agreement_leaves_it_out_and_counts_it() -> None:
    found, rest = agreement(RESULTS, LABELS), agreement(REST, REST_LABELS)
    assert (found.pairs, found.trained_on, found.excluded, found.unjudged) == (20, 40, 0, 0)
    assert {name: each.value for name, each in found["ok"].items()} == {
        name: each.value for name, each in rest["ok"].items()
    }
    assert found["ok"]["accuracy"].value == 0.5
    assert all(each.left_out == {"trained on": 40} for each in found["ok"].values())
    assert "40 results left out, which the judge was trained on" in str(found)
    assert found.to_dict()["trained_on"] == 40


def test_calibration_leaves_it_out_and_counts_it() -> None:
    found = calibration(RESULTS, LABELS, exclude=["t59"])
    assert found.brier.n == 19
    assert found.brier.left_out == {"trained on": 40, "excluded": 1}
    assert found.reliability == calibration(REST[:-1], REST_LABELS[:-1]).reliability


def test_a_calibration_on_nothing_else_says_so() -> None:
    with pytest.raises(InputError, match="the judge was made with 40 results, which are all there are"):
        calibration(RESULTS[:40], LABELS)


def test_corrected_rates_leave_it_out_and_count_it() -> None:
    unlabelled = [judged(n, YES) for n in range(60, 160)]
    found = corrected(ok_rate, [*RESULTS, *unlabelled], LABELS)
    rest = corrected(ok_rate, [*REST, *unlabelled], REST_LABELS)
    assert (found.value, found.judged, found.labelled) == (rest.value, 120, 20)
    assert found.estimate.left_out == {"trained on": 40}
    assert "left out: 40 trained on ·" in str(found)  # it is not unknown, and so reaches nowhere
    here = [Verdict(YES, "judge", "1", About("transcript", f"h{n}")) for n in range(100)]
    elsewhere = corrected(ok_rate, here, LABELS, labels_are="elsewhere", judged_elsewhere=RESULTS)
    assert elsewhere.labelled == 20
    assert "40 labelled cases left out, which the judge was trained on" in str(elsewhere)


def test_what_is_named_as_well_is_left_out_too_and_counted_as_named() -> None:
    found = agreement(RESULTS, LABELS, exclude=["t0", "t59", ("transcript", "u58", None, "t58")])
    assert (found.pairs, found.trained_on, found.excluded, found.unmatched) == (18, 39, 3, 0)


def test_a_tentative_verdict_that_was_handed_on_says_so_too() -> None:
    doubtful = HandOff("unsure", "judge", "1", about(0), verdict=judged(0, trained_on=True))
    found = agreement([doubtful, judged(1)], LABELS[:2])
    assert (found.pairs, found.trained_on, found.no_verdict) == (1, 1, {})


def test_every_result_of_such_a_subject_is_left_out() -> None:
    """Of two readings one failed, and says nothing; the other says that the judge was trained on it."""
    results = [judged(0, trained_on=True), Failure("x", "judge", "1", about(0)), judged(1)]
    found = agreement(results, LABELS[:2], duplicates="first")
    assert (found.pairs, found.trained_on, found.no_verdict) == (1, 2, {})


def test_rates_count_it_and_say_so() -> None:
    found = ok_rate.estimate(RESULTS)
    assert (found.n, found.flags) == (60, ("trained_on",))


def test_an_evaluator_of_ones_own_says_so_by_the_flag_and_a_journal_keeps_it(tmp_path: Path) -> None:
    trained = {"t0", "t1"}

    def classify(given: Transcript) -> Verdict[Said]:
        return Verdict(YES, "mine", flags=("trained_on",) if given.id in trained else ())

    mine = FunctionEvaluator("mine", "1", classify, Transcript, Said, inline=True)
    inputs = [Transcript(id=f"t{n}", request="?") for n in range(5)]
    labels = [feedback(each, YES) for each in inputs]
    for _ in range(2):
        results = list(evaluate_all_sync(mine, inputs, journal=tmp_path / "run.db"))
        assert (agreement(results, labels).pairs, agreement(results, labels).trained_on) == (3, 2)


@pytest.mark.parametrize("confident", [False, True])
def test_a_chain_is_trained_on_what_any_that_it_asked_was(confident: bool) -> None:
    """The threshold of the first decided who answers, so its label has had a say in the chain's verdict."""
    tentative = judged(0, trained_on=True)

    def first(given: Transcript) -> Any:
        return tentative if confident else HandOff("unsure", verdict=tentative)

    chain = Fallback(
        FunctionEvaluator("first", "1", first, Transcript, Said, inline=True),
        FunctionEvaluator("judge", "1", lambda given: NO, Transcript, Said, inline=True),
    )
    verdict = chain.evaluate_sync(Transcript(id="t0", user="u0", request="?"))
    assert isinstance(verdict, Verdict)
    assert verdict.flags == ("trained_on",)
    assert verdict.given_by == ("first@1" if confident else "judge@1")


class Reads:
    """Reads its answer from the text, and says which examples trained it."""

    labels = ("false", "true")
    version = "reads:1"

    def classify(self, texts: Any) -> Any:
        return [{"true": 0.9, "false": 0.1} if "yes" in text else {"true": 0.1, "false": 0.9} for text in texts]


def test_labels_that_fitted_a_threshold_do_not_measure_the_evaluator() -> None:
    def example(n: int) -> Example[Said]:
        given = Transcript(id=f"t{n}", user=f"u{n}", request="yes" if n % 2 else "no")
        return Example(given, expected=YES if n % 2 else NO)

    fit, others = (Dataset(name, [example(n) for n in ns]) for name, ns in (("fit", range(80)), ("b", range(80, 90))))
    decides = DecisionEvaluator(Said, {"ok": Reads()}, text=lambda given: given.request or "", name="said")
    fitted = fit_thresholds_sync(decides, fit, target_precision=0.6)
    results = fitted.evaluate_many_sync([*fit.inputs(), *others.inputs()])
    assert [each.flags for each in results if isinstance(each, Verdict)] == [("trained_on",)] * 80 + [()] * 10
    found = agreement(results, [*fit.labels(), *others.labels()])
    assert (found.pairs, found.trained_on) == (10, 80)


def test_subjects_are_read_off_whatever_is_about_one() -> None:
    given = Transcript(id="t1", user="ada", request="?")
    subject = ("transcript", "ada", None, "t1")
    for each in (given, Example(given), given.about(), feedback(given, YES), subject):
        assert subject_of(each) == subject
    assert subject_of(Example(given, id="renamed")) == ("transcript", "ada", None, "renamed")
    for nothing in (Transcript(request="?"), About("transcript"), ("transcript", None, None, None), (1, 2), YES):
        assert subject_of(nothing) is None
    with pytest.raises(InputError, match="exclude= names a tuple that has no id"):
        agreement(RESULTS, LABELS, exclude=[("transcript", "ada", None)])  # type: ignore[list-item]

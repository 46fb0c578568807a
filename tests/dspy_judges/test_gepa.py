"""Training by GEPA against a scripted model: it improves what it can, and says where it could not."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM
from model_server import Answer, Asked, ModelServer

from evalr import InputError, run_sync
from evalr.dspy import DspyJudge, Gepa, Training, completion_judge
from evalr.inputs import Transcript
from evalr.labels import Dataset, Example, agreement
from evalr.measures import TaskCompletion
from evalr.runs import evaluate_all_sync
from evalr_dspy.agreement import feedback

RULE = "A result without a risks section is not completed."
NOT_DONE = '{"completed": false, "quality": 2}'
BETTER = f"You judge whether the request was achieved. {RULE}"


def example(number: int, **fields: Any) -> Example[TaskCompletion]:
    """A launch brief; people miss the risks in every second one."""
    whole = number % 2 == 0
    result = f"# Launch {number}\n\nWe ship on Monday." + ("\n\n## Risks\n\n- Legal." if whole else "")
    expected = TaskCompletion(completed=whole, quality=4 if whole else 2)
    reason = None if whole else "The risks were missing"
    given = Transcript(id=f"t{number}", user=f"u{number}", request=f"Draft brief {number} and its risks", result=result)
    return Example(given, **{"expected": expected, "reason": reason, **fields})


LABELS = Dataset("briefs", [example(number) for number in range(30)])


def easily_pleased(asked: Asked, n: int) -> str:
    """A judge that overlooks missing risks, unless its rubric tells it to look."""
    whole = RULE not in asked.system or "## Risks" in asked.data["result"]
    return TaskCompletion(completed=whole, quality=4).model_dump_json()


def reflecting(asked: Asked, n: int) -> str:
    """Judges as above; asked for a new rubric, it proposes the one with the rule."""
    if "new_instruction" in asked.system:
        return json.dumps({"new_instruction": BETTER})
    return easily_pleased(asked, n)


def trained(server: ModelServer, gepa: Gepa, labels: Dataset[TaskCompletion] = LABELS) -> Training[Any, Any]:
    judge = completion_judge(lm=server.lm())
    training = gepa.train_sync(judge, labels)
    run_sync(judge.lm.aclose())
    return training


def test_training_improves_the_agreement_with_people_on_what_it_has_not_seen(model_server: ModelServer) -> None:
    model_server.script = reflecting
    lm = model_server.lm()
    training = trained(model_server, Gepa(reflection_lm=lm, calls=60))
    lm.close()
    assert training.status == "trained"
    assert training.judge.instructions == BETTER
    assert training.before.value is not None
    assert training.before.value < 0.8
    assert training.after.value == 1
    assert training.proposed >= 1
    assert sum(training.counts.values()) == 30
    assert training.after.n == training.counts["measurement"]
    assert training.on == "completed"
    assert training.judge.version != completion_judge(lm=model_server.lm()).version


def test_people_and_their_reasons_are_the_feedback(model_server: ModelServer) -> None:
    model_server.script = reflecting
    lm = model_server.lm()
    trained(model_server, Gepa(reflection_lm=lm, calls=60))
    lm.close()
    reflections = [asked.user for asked in model_server.asked if "new_instruction" in asked.system]
    assert any("Their reason: The risks were missing" in text for text in reflections)
    assert all("people are right" in text or "and so did you" in text for text in reflections)


def test_what_is_measured_on_is_never_seen_in_training(model_server: ModelServer) -> None:
    """Each measured example is judged twice, before and after training, by the old rubric and by the new one."""
    model_server.script = reflecting
    lm = model_server.lm()
    training = trained(model_server, Gepa(reflection_lm=lm, calls=60))
    lm.close()
    old, new = set(), set()
    for asked in model_server.asked[-2 * training.counts["measurement"] :]:
        (new if RULE in asked.system else old).add(asked.data["request"])
    assert len(old) == len(new) == training.counts["measurement"]
    assert old == new
    seen = " ".join(asked.user for asked in model_server.asked[: -2 * training.counts["measurement"]])
    assert not [request for request in old if f"{request}\n" in seen]


def test_a_trained_judge_knows_what_it_was_trained_on_and_agreement_leaves_it_out(
    model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script = reflecting
    lm = model_server.lm()
    training = trained(model_server, Gepa(reflection_lm=lm, calls=60))
    lm.close()
    judge = training.judge
    assert len(set(judge.trained_on)) == training.counts["training"] + training.counts["validation"]
    assert set(judge.trained_on) < {example.about().subject for example in LABELS}
    judge.save(tmp_path / "judge.json")
    assert json.loads((tmp_path / "judge.json").read_text())["trained_on"] == [list(each) for each in judge.trained_on]
    assert "Launch" not in (tmp_path / "judge.json").read_text()  # ids, and never texts
    for each in (judge, DspyJudge.load(tmp_path / "judge.json", lm=judge.lm)):
        results = list(evaluate_all_sync(each, LABELS.inputs()))
        found = agreement(results, LABELS)
        assert (found.pairs, found.trained_on) == (training.counts["measurement"], len(set(judge.trained_on)))
        assert agreement(results, LABELS, exclude=judge.trained_on).trained_on == 0  # named by the caller
        assert each.version == judge.version
    again = trained(model_server, Gepa(reflection_lm=DummyLM([]), calls=10), LABELS)
    assert again.judge.trained_on == ()  # it is the judge as it was
    run_sync(judge.lm.aclose())


def test_what_trained_a_judge_before_does_not_measure_it_after_another_training(model_server: ModelServer) -> None:
    model_server.script = easily_pleased
    judge: DspyJudge[Any, Any] = completion_judge(lm=model_server.lm(), trained_on=[*LABELS][:15])
    training = Gepa(reflection_lm=DummyLM([{"nothing": "of use"}] * 1000), calls=10).train_sync(judge, LABELS)
    run_sync(judge.lm.aclose())
    assert training.left_out["also in training"] >= 1
    assert sum(training.counts.values()) + sum(training.left_out.values()) == 30


def test_demonstrations_are_what_a_judge_was_made_with(model_server: ModelServer) -> None:
    judge: DspyJudge[Any, Any] = completion_judge(lm=model_server.lm(), demos=[example(0)])
    flags = [judge.evaluate_sync(example(number).given()).flags for number in range(2)]  # type: ignore[union-attr]
    run_sync(judge.lm.aclose())
    assert flags == [("trained_on",), ()]


def test_what_a_judge_was_trained_on_is_a_part_of_its_version() -> None:
    plain: DspyJudge[Any, Any] = completion_judge(lm=DummyLM([]))
    one, other = (replace(plain, trained_on=[example(number)]) for number in range(2))
    assert len({plain.version, one.version, other.version}) == 3
    assert replace(plain, trained_on=Dataset("one", [example(0)])).version == one.version
    with pytest.raises(InputError, match="trained_on= names a Transcript that has no id"):
        replace(plain, trained_on=[Transcript(request="?")])


def test_a_run_whose_reflection_never_parses_says_so(model_server: ModelServer) -> None:
    model_server.script = easily_pleased
    silent = DummyLM([{"nothing": "of use"}] * 1000)
    training = trained(model_server, Gepa(reflection_lm=silent, calls=40))
    assert training.status == "no candidate"
    assert training.proposed == 0
    assert training.failed >= 1
    assert sum(training.errors.values()) == training.failed
    assert any("parse" in why.lower() for why in training.errors)
    assert training.judge.instructions == completion_judge(lm=model_server.lm()).instructions
    assert training.before is training.after
    assert str(training).startswith("no candidate · 0 rubrics proposed · ")


def test_a_reflection_that_repeats_what_it_was_shown_does_not_put_it_into_the_errors(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: asked.user if "new_instruction" in asked.system else easily_pleased(asked, n)
    lm = model_server.lm()
    training = trained(model_server, Gepa(reflection_lm=lm, calls=40))
    lm.close()
    assert training.status == "no candidate"
    assert list(training.errors) == ["the model's answer could not be parsed as a rubric"]


def test_a_rubric_that_is_no_better_is_not_taken(model_server: ModelServer) -> None:
    model_server.script = easily_pleased
    same = DummyLM([{"new_instruction": "Judge it."}] * 1000, adapter=dspy.JSONAdapter())
    training = trained(model_server, Gepa(reflection_lm=same, calls=40))
    assert training.status == "no better candidate"
    assert training.proposed >= 1


def test_the_same_text_under_another_id_is_not_measured_on(model_server: ModelServer) -> None:
    model_server.script = easily_pleased
    silent = DummyLM([{"nothing": "of use"}] * 1000)
    twins = [example(number, id=f"again{number}", group=f"again{number}") for number in range(30)]
    labels = Dataset("twins", [*LABELS, *twins])
    training = trained(model_server, Gepa(reflection_lm=silent, calls=10), labels)
    assert training.left_out["also in training"] >= 1
    assert sum(training.counts.values()) + sum(training.left_out.values()) == 60


def test_nor_is_the_same_text_with_other_spaces_and_capitals(model_server: ModelServer) -> None:
    model_server.script = easily_pleased
    silent = DummyLM([{"nothing": "of use"}] * 1000)

    def twin(number: int) -> Example[TaskCompletion]:
        fields = example(number).input.model_dump(include={"request", "result"})
        given = Transcript(id=f"again{number}", **{name: f" {text.upper()}\n" for name, text in fields.items()})
        return Example(given, expected=example(number).expected)

    labels = Dataset("twins", [*LABELS, *map(twin, range(30))])
    training = trained(model_server, Gepa(reflection_lm=silent, calls=10), labels)
    assert training.left_out["also in training"] >= 1


def test_judges_that_fail_are_missing_and_not_wrong(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: Answer("no idea")
    silent = DummyLM([{"nothing": "of use"}] * 1000)
    training = trained(model_server, Gepa(reflection_lm=silent, calls=10))
    assert training.before.value is None
    assert training.before.left_out == {"failed": training.counts["measurement"]}
    assert training.judge_errors == {
        "the model's answer has no JSON object with a verdict: 'no idea'": len(model_server.asked)
        - training.counts["measurement"]
    }


def test_training_prints_nothing_unless_asked_for_its_progress(
    model_server: ModelServer, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    model_server.script = reflecting
    lm = model_server.lm()
    with caplog.at_level("INFO"):
        trained(model_server, Gepa(reflection_lm=lm, calls=60))
    assert capfd.readouterr() == ("", "")
    assert not [record for record in caplog.records if "risks section" in record.getMessage()]
    trained(model_server, Gepa(reflection_lm=lm, calls=60, progress=True))
    lm.close()
    assert "60" in capfd.readouterr().err


def test_training_waits_as_a_run_does_and_takes_no_answer_that_was_cut_off(model_server: ModelServer) -> None:
    def script(asked: Asked, n: int) -> Answer | str:
        if "new_instruction" in asked.system:
            return reflecting(asked, n)
        if n in (3, 8):
            return Answer(status=429, headers={"Retry-After": "0"})
        return Answer(easily_pleased(asked, n), finish="length" if n % 5 == 0 else "stop")

    model_server.script = script
    lm = model_server.lm()
    training = trained(model_server, Gepa(reflection_lm=lm, calls=60))
    lm.close()
    (why,) = training.judge_errors  # and no 429 among them
    assert why.startswith("the model's answer was cut off")
    assert training.proposed >= 1


def test_an_answer_that_cannot_be_read_is_something_to_reflect_on(model_server: ModelServer) -> None:
    def script(asked: Asked, n: int) -> str:
        if "new_instruction" in asked.system:
            return reflecting(asked, n)
        return easily_pleased(asked, n) if RULE in asked.system else "It is done, I would say."

    model_server.script = script
    lm = model_server.lm()
    training = trained(model_server, Gepa(reflection_lm=lm, calls=60))
    lm.close()
    assert training.status == "trained"
    reflections = [asked.user for asked in model_server.asked if "new_instruction" in asked.system]
    assert any("Your answer was no verdict: the model's answer has no JSON object" in text for text in reflections)
    assert all("Feedback" in text for text in reflections)


def test_feedback_is_never_empty_whatever_people_and_judge_said() -> None:
    for n in range(2):
        for said in (
            {"completed": True, "quality": 4, "reason": None},
            {"completed": None, "quality": 9, "reason": ""},
        ):
            for reason in (None, "", "The risks were missing"):
                assert feedback(example(n, reason=reason), said, "completed").startswith(("People said", "You said"))


def test_training_within_a_loop_asks_in_that_loop(model_server: ModelServer) -> None:
    model_server.script = reflecting
    lm = model_server.lm()
    judge: DspyJudge[Any, Any] = completion_judge(lm=model_server.lm())

    async def main() -> Training[Any, Any]:
        try:
            return await Gepa(reflection_lm=lm, calls=60).train(judge, LABELS)
        finally:
            await judge.lm.aclose()

    assert asyncio.run(main()).status == "trained"
    lm.close()


def test_a_judge_that_cannot_be_reached_is_no_reason_to_reflect(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: Answer(status=401)
    training = trained(model_server, Gepa(reflection_lm=DummyLM([]), calls=20))
    assert (training.status, training.proposed, training.failed) == ("no candidate", 0, 0)
    assert training.reason == "the judge gave no verdicts to reflect on"
    (why,) = training.judge_errors
    assert why.startswith("LMAuthError")


def test_a_judge_that_agrees_everywhere_has_nothing_to_learn(model_server: ModelServer) -> None:
    model_server.script = lambda asked, n: easily_pleased(asked, n) if "## Risks" in asked.data["result"] else NOT_DONE
    training = trained(model_server, Gepa(reflection_lm=DummyLM([]), calls=40))
    assert training.status == "no candidate"
    assert training.reason is not None
    assert "nothing to reflect on" in training.reason
    assert training.before.value == 1


@pytest.mark.parametrize(
    "options",
    [
        {"calls": 0},
        {"limit": True},
        {"parts": {"training": 0.5, "validation": 0.5}},
        {"reflection_lm": "openai/gpt-5"},
    ],
)
def test_what_cannot_be_used_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Gepa(**{"reflection_lm": DummyLM([]), **options})


def test_labels_of_another_type_and_too_few_are_refused() -> None:
    judge: DspyJudge[Any, Any] = completion_judge(lm=DummyLM([]))
    gepa = Gepa(reflection_lm=DummyLM([]))
    with pytest.raises(InputError, match="leave a part empty"):
        gepa.train_sync(judge, Dataset("one", [example(0)]))
    with pytest.raises(InputError, match="labels are a dataset here, not a list"):
        gepa.train_sync(judge, list(LABELS))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be a field of TaskCompletion"):
        Gepa(reflection_lm=DummyLM([]), on="nothing").train_sync(judge, LABELS)

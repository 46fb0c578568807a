"""The classifier of the extra `local`: trained alike each time, read back as it was, and never run as code."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from evalr import DatasetError, Fallback, FieldTypeError, FunctionEvaluator, InputError, Verdict
from evalr.labels import (
    Classifier,
    Dataset,
    Example,
    LocalClassifier,
    fit_thresholds,
    fit_thresholds_sync,
    measure_decisions_sync,
    split,
    train_decision,
)
from evalr.measures import TaskCompletion, Transcript, Turn

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
DATA = os.environ.get("EVALR_DATA")

GOOD = ["thanks", "great", "works", "solved", "perfect"]
BAD = ["wrong", "broken", "fails", "again", "useless"]
PLAIN = ["the", "report", "please", "can", "you", "make", "table", "for", "my", "page", "it", "and"]


def sentence(good: bool, choose: random.Random) -> str:
    words = choose.choices(PLAIN, k=12) + choose.choices(GOOD if good else BAD, k=2)
    choose.shuffle(words)
    return " ".join(words)


def some(count: int, *, seed: int = 0, unlike: float = 0.05) -> list[Example[TaskCompletion]]:
    """Sessions that say, in words, whether they were completed, but for a share that says otherwise."""
    choose = random.Random(seed)
    made = []
    for number in range(count):
        done = choose.random() < 0.6
        said = sentence(done != (choose.random() < unlike), choose)
        label = TaskCompletion(completed=done, quality=4 if done else 2)
        transcript = Transcript(id=f"t{number}", request="a report", turns=[Turn(role="person", text=said)])
        made.append(Example(transcript, expected=label))
    return made


TEXTS = ["it works great", "great, thanks", "it fails again", "broken and wrong", "works, thanks", "again wrong"]
LABELS = ["true", "true", "false", "false", "true", "false"]


def test_it_learns_words_and_its_scores_add_up() -> None:
    found = LocalClassifier.train(TEXTS, LABELS)
    assert isinstance(found, Classifier)
    good, bad = found.classify(["great works", "wrong fails"])
    assert good["true"] > 0.5 > bad["true"]
    assert [sum(each.values()) for each in (good, bad)] == pytest.approx([1, 1])
    assert found.labels == ("false", "true")
    assert found.trained_on == {"false": 3, "true": 3}
    assert found.classify([]) == []
    assert sum(found.classify([""])[0].values()) == pytest.approx(1)


@pytest.mark.parametrize(("grams", "span"), [("words", (1, 2)), ("characters", (2, 5))])
@pytest.mark.parametrize("labels", [LABELS, ["a", "b", "c", "a", "b", "c"]], ids=["two", "three"])
def test_its_scores_are_those_of_scikit_learn(grams: Any, span: tuple[int, int], labels: list[str]) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    analyzer = {"words": "word", "characters": "char_wb"}[grams]
    pipeline = make_pipeline(
        TfidfVectorizer(analyzer=analyzer, ngram_range=span, sublinear_tf=True, token_pattern=r"(?u)\b\w+\b"),
        LogisticRegression(class_weight="balanced", max_iter=1000),
    )
    if grams == "characters":
        pipeline[0].set_params(token_pattern=r"(?u)\b\w\w+\b")  # its default, or it warns of a setting without effect
    expected = pipeline.fit(TEXTS, labels).predict_proba(["great, it fails", "thanks"])
    found = LocalClassifier.train(TEXTS, labels, grams=grams).classify(["great, it fails", "thanks"])
    assert [list(each.values()) for each in found] == [pytest.approx(list(row), abs=1e-7) for row in expected]


def test_training_is_the_same_in_every_process() -> None:
    program = f"from evalr.labels import LocalClassifier\nprint(LocalClassifier.train({TEXTS!r}, {LABELS!r}).version)"
    here = LocalClassifier.train(TEXTS, LABELS).version
    assert run(program, PYTHONHASHSEED="1") == f"{here}\n"


def run(program: str, **more: str) -> str:
    environment = {**os.environ, "PYTHONPATH": SOURCE, **more}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_version_covers_what_may_change_its_scores() -> None:
    plain = LocalClassifier.train(TEXTS, LABELS)
    others = [
        LocalClassifier.train(TEXTS, LABELS, strength=2),
        LocalClassifier.train(TEXTS, LABELS, grams="characters"),
        LocalClassifier.train(TEXTS, LABELS, n=(1, 1)),
        LocalClassifier.train(TEXTS, LABELS, most_terms=5),
        LocalClassifier.train([*TEXTS, "good"], [*LABELS, "true"]),
        LocalClassifier.train(TEXTS, LABELS, class_weight={"true": 2, "false": 1}),
    ]
    assert len({each.version for each in (plain, *others)}) == 7
    assert plain.version.startswith("local:1:")


def test_it_is_read_back_as_it_was(tmp_path: Path) -> None:
    trained = LocalClassifier.train(TEXTS, LABELS, grams="characters", seen={"ab"})
    trained.save(tmp_path / "c.json")
    again = LocalClassifier.load(tmp_path / "c.json")
    assert (again.version, again.seen, again.trained_on) == (trained.version, {"ab"}, trained.trained_on)
    asked = ["great", "", "wr\N{LATIN SMALL LETTER O WITH DIAERESIS}ng \ud800", "\u2028"]
    assert again.classify(asked) == trained.classify(asked)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    for protocol in (2, 5):
        (tmp_path / "c.json").write_bytes(pickle.dumps(Trap(), protocol=protocol))
        with pytest.raises(DatasetError, match="a pickle or an archive, which is never loaded"):
            LocalClassifier.load(tmp_path / "c.json")
    (tmp_path / "c.json").write_bytes(pickle.dumps(Trap(), protocol=0))
    with pytest.raises(DatasetError, match="not JSON"):
        LocalClassifier.load(tmp_path / "c.json")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"labels": ["true"]},
        {"labels": ["true", "true"]},
        {"weights": []},
        {"weights": [[1.0]]},
        {"idf": None},
        {"intercepts": ["x"]},
        {"intercepts": [float("inf")]},
        {"grams": "lines"},
        {"n": [2, 1]},
        {"terms": [1]},
        {"labels": ["true", "false"]},
        {"version": "local:1:000000000000"},
    ],
    ids=str,
)
def test_a_file_that_was_changed_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    LocalClassifier.train(TEXTS, LABELS).save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DatasetError, match=r"no whole classifier|changed or damaged") as raised:
        LocalClassifier.load(path)
    assert str(path) in str(raised.value)


def test_a_file_that_is_missing_or_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    with pytest.raises(DatasetError, match="cannot be read"):
        LocalClassifier.load(path)
    LocalClassifier.train(TEXTS, LABELS).save(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DatasetError, match="not JSON"):
        LocalClassifier.load(path)


@pytest.mark.parametrize(
    ("texts", "labels", "options", "words"),
    [
        (TEXTS, ["true"] * 6, {}, "all 6 labels say the same .'true'.: to tell labels apart"),
        ([], [], {}, "all 0 labels say the same"),
        (TEXTS, LABELS[:5], {}, "6 texts and 5 labels: one for each"),
        ([*TEXTS[:5], None], LABELS, {}, "texts and labels are texts, not None"),
        (["", "  "], ["true", "false"], {}, "no terms to learn from"),
        (TEXTS, LABELS, {"grams": "lines"}, "must be 'words' or 'characters'"),
        (TEXTS, LABELS, {"n": (2, 1)}, "no terms to learn from"),
        (TEXTS, LABELS, {"strength": 0}, "a number above 0"),
        (TEXTS, LABELS, {"class_weight": "even"}, "must be 'balanced'"),
        (TEXTS, LABELS, {"class_weight": {"maybe": 1}}, "cannot use these options: .*class_weight"),
        (TEXTS, LABELS, {"most_terms": 0}, "no terms to learn from"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(texts: Any, labels: Any, options: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        LocalClassifier.train(texts, labels, **options)


BLOCKED = """
import sys
sys.modules["sklearn"] = None
from evalr import MissingExtraError
from evalr.labels import LocalClassifier, train_decision, DecisionEvaluator, fit_thresholds
try:
    LocalClassifier.train(["a", "b"], ["x", "y"])
except MissingExtraError as error:
    print(error)
"""


def test_without_the_extra_everything_else_works_and_the_error_says_what_to_install() -> None:
    assert run(BLOCKED) == "a LocalClassifier needs scikit-learn, which is not installed: pip install 'evalr[local]'\n"


# ---------------------------------------------------------------------------------------------------------------------
# Decision evaluators
# ---------------------------------------------------------------------------------------------------------------------


def test_labels_train_fit_and_measure_each_in_its_own_part() -> None:
    labels = Dataset("sessions", some(1200))
    parts = split(labels, {"train": 0.4, "fit": 0.4, "test": 0.2}, stratify="completed")
    decision = train_decision(parts["train"])
    assert (decision.name, set(decision.classifiers)) == ("completion", {"completed", "quality"})
    assert decision.cost_per_text == 0
    targets = {"completed": 0.9, "quality": None}
    fitted = fit_thresholds_sync(decision, parts["fit"], target_precision=targets)
    assert fitted.fit is not None
    assert fitted.fit.used == parts.counts["fit"]
    quality = measure_decisions_sync(fitted, labels)  # the whole: what was used before leaves itself out
    assert quality.decided.n == parts.counts["test"]
    assert quality.left_out == {"used to train or fit it": parts.counts["train"] + parts.counts["fit"]}
    assert quality.precision["completed"].value is not None
    assert quality.precision["completed"].value > 0.9
    assert (quality.decided.value or 0) > 0.5

    judge = FunctionEvaluator(
        "judge", "1", lambda given: TaskCompletion(completed=True, quality=3), Transcript, TaskCompletion, inline=True
    )
    chain = Fallback(fitted, judge)
    given_by = {chain.evaluate_sync(each).given_by for each in parts["test"].inputs()}  # type: ignore[union-attr]
    assert given_by == {f"completion@{fitted.version}", "judge@1"}


def test_labels_that_words_do_not_tell_are_left_to_the_judge() -> None:
    labels = Dataset("noise", some(500, unlike=0.5))
    parts = split(labels, {"train": 0.5, "fit": 0.5})
    fitted = fit_thresholds_sync(train_decision(parts["train"]), parts["fit"])
    assert fitted.fit is not None
    assert {each.at for each in fitted.fit.thresholds} == {None}
    assert "since no score of" in str(fitted.fit)


def test_training_asks_for_what_it_needs() -> None:
    class Explained(BaseModel):
        done: bool
        why: str

    class Loose(BaseModel):
        tone: Literal["kind", "rude"] | None = None
        done: bool | None = None

    transcript = Transcript(id="a", request="x")
    with pytest.raises(FieldTypeError, match=r"Explained\.why is a text and required"):
        train_decision(Dataset("e", [Example(transcript, expected=Explained(done=True, why="x"))]))
    with pytest.raises(InputError, match="labels are a dataset here, not a list"):
        train_decision([Example(transcript)])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no labels to learn from"):
        train_decision(Dataset("e", [Example(transcript)]))  # type: ignore[type-var]
    with pytest.raises(InputError, match=r"field completed: all 1 label say the same"):
        train_decision(Dataset("e", [Example(transcript, expected=TaskCompletion(completed=True, quality=3))]))
    tones: Any = [
        Example(Transcript(id=str(n), request=text), expected=Loose(tone="kind" if label == "true" else "rude"))
        for n, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    tones.append(Example(Transcript(id="none", request="?"), expected=Loose()))
    decision: Any = train_decision(Dataset("t", tones), fields=["tone"])
    assert decision.classifiers["tone"].trained_on == {"kind": 3, "rude": 3}
    result = asyncio.run(
        fit_thresholds(decision, Dataset("u", [*tones[6:], *more_tones(Loose)]), target_precision=None)
    )
    verdict = result.evaluate_sync(Transcript(id="z", request="great, thanks"))
    assert isinstance(verdict, Verdict)
    assert verdict.value == Loose(tone="kind")
    with pytest.raises(InputError, match=r"fields names 'tune'.*did you mean 'tone'"):
        train_decision(Dataset("t", tones), fields=["tune"])


def more_tones(kind: Any) -> list[Any]:
    said = ["so great", "so wrong", "thanks for that", "useless, again"]
    tones = ["kind", "rude", "kind", "rude"]
    return [
        Example(Transcript(id=f"m{n}", request=text), expected=kind(tone=tone))
        for n, (text, tone) in enumerate(zip(said, tones, strict=True))
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Real sessions
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(DATA is None, reason="EVALR_DATA names no folder with the sample data")
def test_a_hundred_sessions_of_an_airline_desk_are_too_few_to_decide_by_and_it_says_so() -> None:
    path = Path(DATA or "") / "taubench_airline" / "dev.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    labels = Dataset("airline", [airline(row) for row in rows])
    parts = split(labels, {"train": 0.4, "fit": 0.6})
    assert not {each.group for each in parts["train"]} & {each.group for each in parts["fit"]}
    fitted = fit_thresholds_sync(train_decision(parts["train"], fields=["completed", "quality"]), parts["fit"])
    assert fitted.fit is not None
    assert {each.at for each in fitted.fit.thresholds} == {None}
    quality = measure_decisions_sync(train_decision(parts["train"]), labels)
    assert (quality.decided.value, quality.decided.n) == (0, parts.counts["fit"])


def airline(row: dict[str, Any]) -> Example[TaskCompletion]:
    turns = [Turn(role=each["role"], text=each["text"] or "") for each in row["turns"]]
    request = next(each.text for each in turns if each.role == "person")
    done = row["reward"] == 1
    label = TaskCompletion(completed=done, quality=5 if done else 1)
    transcript = Transcript(id=row["id"], request=request, turns=turns)
    return Example(transcript, expected=label, group=f"task {row['task_id']}")

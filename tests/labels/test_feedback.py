"""Feedback: what people say, as verdicts that datasets, logs and reports carry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evalr import About, Failure, InputError, Skip, Verdict
from evalr.bulk import report
from evalr.labels import Dataset, Example, agreement, feedback, labels_of
from evalr.logs import Stored, read, to_line
from evalr.measures import DropOff, Session, TaskCompletion, Transcript, completion_rate

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
DONE = TaskCompletion(completed=True, quality=4)
NOT_DONE = TaskCompletion(completed=False, quality=2)


def test_feedback_is_a_verdict_by_people_and_names_its_author() -> None:
    given = Transcript(id="t1", user="u1", request="x", attributes={"team": "a"})
    said = feedback(given, DONE, author="ann", at=NOON)
    assert (said.evaluator, said.as_of, said.value) == ("people", NOON, DONE)
    assert said.about is not None
    assert said.about.subject == given.about().subject
    assert said.about.attributes == {"team": "a", "labelled_by": "ann"}
    assert completion_rate.by([said], "labelled_by")["ann"].value == 1.0
    assert given.attributes == {"team": "a"}


def test_feedback_needs_something_to_be_about() -> None:
    with pytest.raises(InputError, match="an input with an id"):
        feedback(Transcript(request="x"), DONE)
    for other in ("t1", Verdict(DONE, "judge", about=About("transcript", "t1"))):
        with pytest.raises(InputError, match=r"not a (str|Verdict): pass the input, or the \.about of a result"):
            feedback(other, DONE)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="feedback is a verdict, not a dict"):
        feedback(About("transcript", "t1"), {"completed": True})  # type: ignore[type-var]
    with pytest.raises(InputError, match="author='' must be a name"):
        feedback(About("transcript", "t1"), DONE, author="")


def test_labels_of_a_log_are_those_by_people_with_their_silences() -> None:
    about = About("transcript", "t1")
    said, judged = feedback(about, DONE), Verdict(DONE, "judge", about=about)
    silent = Skip("did not answer", "people", about=About("transcript", "t2"))
    assert labels_of([judged, said, silent, Failure("no", "judge", about=about)]) == [said, silent]


def test_feedback_is_read_back_from_a_log(tmp_path: Path) -> None:
    labels = [feedback(About("transcript", f"t{n}"), DONE, author=f"p{n % 2}", at=NOON) for n in range(4)]
    judged = [Verdict(DONE, "judge", about=About("transcript", f"t{n}")) for n in range(4)]
    lines = [to_line(Stored("completion", result)) for result in [*labels, *judged]]
    (tmp_path / "log.jsonl").write_text("\n".join(lines), encoding="utf-8")
    stored = [item.result for item in read(tmp_path / "log.jsonl") if isinstance(item, Stored)]
    assert labels_of(stored) == labels_of(read(tmp_path / "log.jsonl")) == labels
    found = agreement([each for each in stored if each.evaluator == "judge"], labels_of(stored))
    assert (found.pairs, found.labellers) == (4, {"p0": 2, "p1": 2})


def test_what_several_people_say_of_one_input_is_all_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    labels = [
        feedback(About("transcript", f"t{n % 30}"), DONE if n % 4 else NOT_DONE, author=f"p{n // 30}")
        for n in range(60)
    ]
    again = feedback(About("transcript", "t0"), DONE, author="p0")
    path.write_text("\n".join(to_line(Stored("completion", each)) for each in [*labels, again]), encoding="utf-8")
    log = read(path)
    assert labels_of(log) == labels
    assert log.left_out.counts == {"duplicate id": 1}
    found = report(path, now=NOON, measures=["completion"])["completion"]
    assert (found.n, found.clusters, found.clustered_by) == (60, 30, {"item": 30})


def test_labels_are_looked_for_among_results_and_nowhere_else() -> None:
    said = feedback(About("transcript", "t1"), DONE)
    given = Transcript(id="t1", request="x", result="its own result, which is no verdict")
    assert labels_of([given, Stored("completion", said)]) == [said]
    with pytest.raises(InputError, match=r"labels_of\(read\(path\)\)"):
        labels_of("log.jsonl")
    with pytest.raises(InputError, match="not a bool"):
        labels_of([True])


def test_labels_of_a_dataset_keep_who_gave_them() -> None:
    dataset = Dataset("some", [Example(Transcript(id="t1", request="x"), expected=DONE, author="ann")])
    (label,) = labels_of(dataset)
    assert label.about is not None
    assert (label.about.attributes or {})["labelled_by"] == "ann"


def test_the_last_word_of_a_person_counts_where_asked() -> None:
    about = About("transcript", "t1")
    labels = [
        feedback(about, NOT_DONE, author="ann", at=NOON + timedelta(days=1)),
        feedback(about, DONE, author="ann", at=NOON),
    ]
    judged = [Verdict(NOT_DONE, "judge", about=about)]
    assert agreement(judged, labels, duplicates="latest")["completed"]["accuracy"].value == 1.0
    assert agreement(judged, labels, duplicates="first")["completed"]["accuracy"].value == 1.0
    assert agreement(judged, labels[::-1], duplicates="first")["completed"]["accuracy"].value == 0.0


def test_labels_of_sessions_reach_what_judges_sessions(tmp_path: Path) -> None:
    """mlflow#22530: expectations were not to be had where whole sessions were scored."""
    stayed = DropOff(outcome="continued")
    examples = [Example(Session(id=f"s{n}", user=f"u{n}", activities=[]), expected=stayed) for n in range(3)]
    Dataset("sessions", examples).save(tmp_path / "sessions.jsonl")
    dataset: Dataset[DropOff] = Dataset.load(tmp_path / "sessions.jsonl")
    judged = [Verdict(stayed, "judge", about=session.about()) for session in dataset.inputs()]
    found = agreement(judged, dataset)
    assert (found.pairs, found.unlabelled, found.unjudged) == (3, 0, 0)
    assert found["outcome"]["accuracy"].counts == {"hits": 3, "total": 3}

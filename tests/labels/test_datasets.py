"""Datasets: what is written is read back, and nobody's examples are lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from evalr import DatasetError, DuplicateError, InputError
from evalr.inputs import Activity, History, Input, Revision, Session
from evalr.labels import Dataset, Example, append
from evalr.measures import TaskCompletion, Transcript, Turn, completion_rate

SOURCE = str(Path(__file__).resolve().parents[2] / "src")


class Opinion(BaseModel):
    text: str
    tone: Literal["good", "bad"] = "good"
    score: float | None = None


def transcript(name: str, **more: Any) -> Transcript:
    return Transcript(id=name, request=more.pop("request", f"help with {name}"), **more)


def example(name: str, **more: Any) -> Example[TaskCompletion]:
    label = TaskCompletion(completed=more.pop("completed", True), quality=3)
    return Example(transcript(name, user=more.pop("user", None)), expected=label, **more)


def dataset(*names: str) -> Dataset[TaskCompletion]:
    return Dataset("some", [example(name) for name in names], verdict_type=TaskCompletion, input_type=Transcript)


# Examples


def test_an_example_takes_its_id_and_its_group_from_the_input() -> None:
    found = Example(transcript("a", user="ann"))
    assert (found.id, found.group, found.labelled) == ("a", "ann", False)
    assert Example(transcript("a", user="ann"), "b", group="team").about().attributes == {"group": "team"}


def test_results_are_about_the_id_of_the_example_rather_than_that_of_the_input() -> None:
    found = Example(Transcript(request="x"), "e1", attributes={"topic": "billing"})
    assert found.given().id == "e1"
    assert (found.about().id, found.about().attributes) == ("e1", {"topic": "billing"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id": ""}, "needs an id"),
        ({"id": "a", "author": ""}, "author must be a text that is not empty"),
        ({"id": "a", "attributes": {"x": 1.5j}}, "attributes must be"),
    ],
)
def test_an_example_that_cannot_be_used_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Example(Transcript(request="x"), **options)


def test_an_example_of_something_that_is_no_input_is_refused() -> None:
    with pytest.raises(InputError, match="pass an input"):
        Example("text")  # type: ignore[arg-type]


# Datasets


def test_two_examples_with_one_id_are_an_error_that_names_both_positions() -> None:
    with pytest.raises(DuplicateError, match=r"examples 0 and 2 both have the id 'a'"):
        Dataset("some", [example("a"), example("b"), example("a")])


def test_types_are_those_of_the_first_example_and_the_first_label() -> None:
    found = Dataset("some", [Example(transcript("a")), example("b")])
    assert (found.input_type, found.verdict_type) == (Transcript, TaskCompletion)


def test_other_inputs_and_other_labels_are_refused() -> None:
    with pytest.raises(InputError, match="'b' holds a Session, where the dataset's input type is Transcript"):
        Dataset("some", [example("a"), Example(Session(id="b"))])
    with pytest.raises(InputError, match="label of example 'b' is a Opinion"):
        Dataset("some", [example("a"), Example(transcript("b"), expected=Opinion(text="x"))])


def test_an_empty_dataset_needs_its_input_type() -> None:
    with pytest.raises(InputError, match="needs input_type="):
        Dataset("some")
    assert len(Dataset("some", input_type=Transcript)) == 0


def test_labels_are_verdicts_that_summaries_read() -> None:
    found = Dataset("some", [example("a"), example("b", completed=False), Example(transcript("c"))])
    assert completion_rate(found.labels()) == 0.5
    assert {label.evaluator for label in found.labels()} == {"people"}


# The hash


def test_the_hash_changes_with_inputs_labels_groups_and_the_verdict_type_and_not_with_order_or_name() -> None:
    class Narrow(BaseModel):
        completed: bool
        quality: int

    base = dataset("a", "b")
    assert base.hash == dataset("b", "a").hash
    assert base.hash == Dataset("other name", list(base)).hash
    others = [
        dataset("a"),
        Dataset("some", [example("a", completed=False), example("b")]),
        Dataset("some", [example("a", group="x"), example("b")]),
        Dataset("some", [example("a", reason="because"), example("b")]),
        Dataset("some", [example("a", attributes={"topic": "x"}), example("b")]),
        Dataset("some", [example("a", user="u"), example("b")]),
        Dataset("some", [Example(transcript(n), expected=Narrow(completed=True, quality=3)) for n in "ab"]),
    ]
    assert len({base.hash, *(other.hash for other in others)}) == 1 + len(others)


def test_the_hash_covers_the_schema_of_a_verdict_type_of_the_same_name() -> None:
    def declared(high: int) -> type[BaseModel]:
        class Same(BaseModel):
            score: int

        return Same if high == 5 else type("Same", (Same,), {"__annotations__": {"more": bool}, "more": True})

    hashes = {Dataset("some", [Example(transcript("a"))], verdict_type=declared(high)).hash for high in (5, 10)}
    assert len(hashes) == 2


HASH_PROBE = """
from evalr.labels import Dataset, Example
from evalr.measures import TaskCompletion, Transcript
label = TaskCompletion(completed=True, quality=3)
print(Dataset("some", [Example(Transcript(id=n, request="x"), expected=label, attributes={"a": "1", "b": "2"})
                       for n in "abc"]).hash)
"""


def test_the_hash_is_the_same_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", HASH_PROBE],
            env={**os.environ, "PYTHONPATH": SOURCE, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


# Files

HOSTILE = [
    "\u2028",
    "\u2029",
    "\x85",
    "\r",
    "\r\n",
    "\n",
    "\x00",
    "\x1b[31m",
    "\ud83d",
    "\udc00x",
    '"',
    "\\",
    "é中",
    "💥",
]
texts = st.text(st.characters() | st.sampled_from([c for text in HOSTILE for c in text]), max_size=12)


def _paired(text: str) -> bool:
    """Whether a high surrogate stands before a low one: the character that both stand for, in JSON as everywhere."""
    return any("\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff" for a, b in pairwise(text))


labels = st.builds(
    Opinion,
    text=texts.filter(lambda text: not _paired(text)),
    tone=st.sampled_from(["good", "bad"]),
    score=st.none() | st.floats(allow_nan=False),
)
examples = st.lists(
    st.builds(
        lambda name, request, label, reason, group: Example(
            Transcript(request=request, turns=[Turn(role="agent", text=request, metadata={"x": [request, None]})]),
            name,
            expected=label,
            reason=reason,
            group=group,
            attributes={"a": name},
        ),
        texts.filter(bool),
        texts,
        st.none() | labels,
        st.none() | texts,
        st.none() | texts.filter(bool),
    ),
    max_size=4,
    unique_by=lambda each: each.id,
)


@given(examples)
@settings(max_examples=60, deadline=None)
def test_whatever_is_written_is_read_back(found: list[Example[Opinion]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some.jsonl"
        written = Dataset("some", found, verdict_type=Opinion, input_type=Transcript)
        written.save(path)
        read = Dataset.load(path, verdict_type=Opinion)
        assert read == written
        assert read.hash == written.hash
        assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + len(found), (
            "a line for whoever uses splitlines"
        )


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_read_back_exactly_and_stays_on_its_line(tmp_path: Path, text: str) -> None:
    written = Dataset("some", [Example(transcript("a"), expected=Opinion(text=text))])
    written.save(tmp_path / "some.jsonl")
    assert Dataset.load(tmp_path / "some.jsonl", verdict_type=Opinion)["a"].expected == Opinion(text=text)
    assert len((tmp_path / "some.jsonl").read_text(encoding="utf-8").splitlines()) == 2


def test_every_input_type_is_read_back(tmp_path: Path) -> None:
    at = datetime(2026, 3, 1, 10, tzinfo=UTC)
    session = Session(
        id="s",
        user="u",
        arm="treatment",
        read_at=at,
        weight=2.5,
        activities=[Activity(at=at, role="agent", kind="proposal", ref="p"), Activity(at=at, role="person")],
    )
    history = History(
        id="h", revisions=[Revision(at=at, role="agent", text="x\u2028"), Revision(at=at, role="person", text="y")]
    )
    inputs: list[Input] = [session, history, *session.waits(now=at), *history.drafts()]
    assert {type(each).__name__ for each in inputs} == {"Session", "History", "Wait", "Draft"}
    for number, each in enumerate(inputs):
        path = tmp_path / str(number)
        Dataset("some", [Example(each)]).save(path)
        assert Dataset.load(path)[str(each.id)].input == each


def test_people_can_read_the_file(tmp_path: Path) -> None:
    Dataset("some", [Example(transcript("a", request="héllo 中文"))]).save(tmp_path / "some.jsonl")
    assert "héllo 中文" in (tmp_path / "some.jsonl").read_text(encoding="utf-8")


def test_a_label_that_would_not_be_read_back_is_an_error_before_anything_is_written(tmp_path: Path) -> None:
    bad = Dataset("some", [Example(transcript("a"), expected=Opinion(text="x", score=float("nan")))])
    with pytest.raises(InputError, match="'a' would not be read back"):
        bad.save(tmp_path / "some.jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], r"1 example, and its first line says 2"),
        (lambda lines: [*lines[:-1], lines[-1][:-9]], r"line 3: not JSON"),
        (lambda lines: [*lines, "[1]"], r"line 4: a list"),
        (lambda lines: [*lines[:-1], '{"id": "b"}'], r"line 3: missing field 'input'"),
        (lambda lines: [*lines[:-1], lines[-1].replace('"expected"', '"expcted"')], r"line 3: unknown field 'expcted'"),
        (lambda lines: [*lines[:-1], lines[-1].replace('"quality": 3', '"quality": 9')], r"line 3: expected.quality"),
        (lambda lines: lines[1:], r"line 1: no header"),
        (lambda lines: [], r"line 1: no header"),
        (lambda lines: [lines[0].replace('"format": 1', '"format": 2'), *lines[1:]], r"line 1: format 2"),
        (lambda lines: [lines[0].replace("TaskCompletion", "Other"), *lines[1:]], r"line 1: verdicts of type 'Other'"),
        (lambda lines: [lines[0].replace("Transcript", "Other"), *lines[1:]], r"line 1: inputs of type 'Other'"),
    ],
)
def test_damage_names_the_file_and_the_line(tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "some.jsonl"
    dataset("a", "b").save(path)
    path.write_text("\n".join(change(path.read_text().split("\n")[:-1])))
    with pytest.raises(DatasetError, match=rf"some\.jsonl.*{message}"):
        Dataset.load(path)


def test_two_lines_with_one_id_are_an_error_that_names_both(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    dataset("a", "b").save(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[1]]))
    with pytest.raises(DuplicateError, match="lines 2 and 4 both have the id 'a'"):
        Dataset.load(path)


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"none\.jsonl: it cannot be read"):
        Dataset.load(tmp_path / "none.jsonl")


def test_the_type_asked_for_must_be_the_one_in_the_file(tmp_path: Path) -> None:
    dataset("a").save(tmp_path / "some.jsonl")
    with pytest.raises(DatasetError, match="it holds 'TaskCompletion', and verdict_type=Opinion"):
        Dataset.load(tmp_path / "some.jsonl", verdict_type=Opinion)


# Saving over what is there


def test_a_file_that_someone_changed_since_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    dataset("a").save(path)
    mine, theirs = Dataset.load(path, verdict_type=TaskCompletion), Dataset.load(path, verdict_type=TaskCompletion)
    theirs.add(example("theirs")).save(path)
    with pytest.raises(DatasetError, match=r"changed since this dataset was loaded.*append"):
        mine.add(example("mine")).save(path)
    assert [each.id for each in append(path, [example("mine")])] == ["a", "theirs", "mine"]


def test_a_file_that_it_never_came_from_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    dataset("a").save(path)
    with pytest.raises(DatasetError, match="it is there already"):
        dataset("b").save(path)
    dataset("a").save(path)  # the same content loses nothing
    dataset("b").save(path, overwrite=True)
    assert "b" in Dataset.load(path)


def test_saving_again_and_again_works(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    found = dataset("a")
    found.save(path)
    more = found.add(example("b"))
    more.save(path)
    more.add(example("c")).save(path)
    assert len(Dataset.load(path)) == 3
    assert [each.name for each in tmp_path.iterdir()] == ["some.jsonl"]


def test_a_link_is_kept_and_so_are_the_files_permissions(tmp_path: Path) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    dataset("a").save(real)
    real.chmod(0o640)
    link.symlink_to(real)
    append(link, [example("b")])
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert len(Dataset.load(real)) == 2


def test_what_is_added_twice_is_there_once_and_what_differs_is_an_error(tmp_path: Path) -> None:
    base = dataset("a", "b")
    assert base.add(example("a")) == base
    with pytest.raises(DuplicateError, match="added example 0 and example 1 both have the id 'b', and differ"):
        base.add(example("b", completed=False))
    assert base.add(example("b", completed=False), duplicates="first") == base
    relabelled = base.add(example("b", completed=False), duplicates="latest")
    assert [each.id for each in relabelled] == ["a", "b"]
    assert relabelled["b"].expected == TaskCompletion(completed=False, quality=3)


APPENDER = """
import sys
from evalr.labels import Example, append
from evalr.measures import TaskCompletion, Transcript
path, who = sys.argv[1:]
for n in range(8):
    append(path, [Example(Transcript(id=f"{who}-{n}", request="x" * 2000))], verdict_type=TaskCompletion, name="all")
"""


def test_processes_that_add_at_once_lose_nothing_and_tear_nothing(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    append(path, [Example(transcript("first"))], name="all", verdict_type=TaskCompletion)
    env = {**os.environ, "PYTHONPATH": SOURCE}
    processes = [subprocess.Popen([sys.executable, "-c", APPENDER, str(path), who], env=env) for who in "abcd"]
    read = 0
    while any(process.poll() is None for process in processes):
        Dataset.load(path)  # never a part of a file
        read += 1
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    found = Dataset.load(path)
    assert {each.id for each in found} == {"first", *(f"{who}-{n}" for who in "abcd" for n in range(8))}
    assert read > 1
    assert [each.name for each in tmp_path.iterdir()] == ["some.jsonl"]


LOADER = """
import sys
from evalr import DatasetError
from evalr.labels import Dataset, Example
from evalr.measures import Transcript
path, who = sys.argv[1:]
refused = 0
for n in range(5):
    while True:
        found = Dataset.load(path).add(Example(Transcript(id=f"{who}-{n}", request="x" * 500)))
        try:
            found.save(path)
            break
        except DatasetError as error:
            assert "changed since" in str(error), error
            refused += 1
print(refused)
"""


def test_processes_that_save_at_once_are_refused_rather_than_lose_what_others_saved(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    dataset("first").save(path)
    env = {**os.environ, "PYTHONPATH": SOURCE}
    command = [sys.executable, "-c", LOADER, str(path)]
    processes = [subprocess.Popen([*command, who], env=env, stdout=subprocess.PIPE) for who in "abc"]
    said = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert {each.id for each in Dataset.load(path)} == {"first", *(f"{who}-{n}" for who in "abc" for n in range(5))}


def test_threads_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    threads = [
        threading.Thread(target=lambda n=n: [append(path, [example(f"{n}-{k}")]) for k in range(5)]) for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Dataset.load(path)) == 30


SAVER = """
import sys
from evalr.labels import Dataset, Example
from evalr.measures import Transcript
found = Dataset("big", [Example(Transcript(id=str(n), request="x" * 20000)) for n in range(300)])
print("ready", flush=True)
while True:
    found.save(sys.argv[1], overwrite=True)
"""


def test_a_process_that_is_killed_while_it_saves_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    dataset("old").save(path)
    for delay in (0.0, 0.013, 0.05):
        child = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(path)], env={**os.environ, "PYTHONPATH": SOURCE}, stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        threading.Event().wait(delay)
        child.kill()
        child.wait()
        child.stdout.close()
        assert len(Dataset.load(path)) in (1, 300)
    (tmp_path / ".some.jsonl.1-0123abcd.tmp").write_text("half a li")  # as a killed save may leave it
    others = [tmp_path / ".some.jsonl.tmp", tmp_path / ".other.jsonl.1-0123abcd.tmp"]
    for other in others:
        other.touch()
    append(tmp_path / "some.jsonl", [Example(transcript("after"))])  # a lock of a dead process holds nobody up
    assert set(tmp_path.iterdir()) == {path, *others}


def test_a_disk_that_is_full_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.jsonl"
    found = dataset("a")
    found.save(path)

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DatasetError, match="cannot be written: No space left on device"):
        found.add(example("b")).save(path)
    monkeypatch.undo()
    assert [each.name for each in tmp_path.iterdir()] == ["some.jsonl"]
    assert len(Dataset.load(path)) == 1


def test_the_header_says_what_the_file_is(tmp_path: Path) -> None:
    dataset("a").save(tmp_path / "some.jsonl")
    header = json.loads((tmp_path / "some.jsonl").read_text().splitlines()[0])
    assert header == {
        "type": "dataset",
        "format": 1,
        "name": "some",
        "input": "Transcript",
        "verdict": "TaskCompletion",
        "examples": 1,
    }


def test_a_dataset_without_a_name_says_so_in_one_line() -> None:
    with pytest.raises(InputError, match="a dataset needs a name, not ") as caught:
        Dataset(["\x1b[2J" * 1000])  # type: ignore[arg-type]
    assert len(str(caught.value)) < 120
    assert "\x1b" not in str(caught.value)

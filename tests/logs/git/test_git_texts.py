"""Texts stay in the repository: they are read when they are used, for as long as anything may use them."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from repositories import AGENT, OTHER, PERSON, Repo, Story, histories, told

from evalr import report
from evalr.errors import LogError
from evalr.inputs import History, Revision, StoredRevision
from evalr.logs import read, to_line
from evalr.logs.git import blobs as blobs_module
from evalr.measures import measure_rewrites, rewrite_evaluator
from evalr.verdicts import Verdict

NOW = datetime(2026, 11, 30, tzinfo=UTC)
A, P, S = "agent", "person", "system"


def some_story() -> Story:
    story = Story()
    story.commit({"a.py": "zero\n", "b.py": "zero\n"})
    story.commit({"a.py": "one\n", "b.py": "one\n"}, by=AGENT)
    story.commit({"a.py": "two\n"})
    story.commit({"a.py": None})
    return story


@pytest.fixture
def history(tmp_path: Path) -> History:
    """The history of a file whose log, reader and repository object nobody holds any more."""
    found = histories(some_story().write(tmp_path / "repo").log())[0]
    gc.collect()
    return found


TOLD = [(S, "zero\n"), (A, "one\n"), (P, "two\n"), (P, "")]


def test_texts_outlive_the_log(history: History) -> None:
    assert all(isinstance(revision, StoredRevision) for revision in history.revisions)
    assert told(history) == TOLD
    assert told(history) == TOLD


def test_a_stored_revision_is_as_any_other(history: History) -> None:
    plain = [Revision.model_validate(revision.model_dump()) for revision in history.revisions]
    assert [type(revision) for revision in plain] == [Revision] * 4
    assert plain == history.revisions
    assert history.revisions == plain
    assert history.revisions[1] != plain[2]
    assert pickle.loads(pickle.dumps(history.revisions)) == plain
    assert copy.deepcopy(history.revisions) == plain
    assert history.revisions[1].model_dump(mode="json") == plain[1].model_dump(mode="json")
    assert history.revisions[1].model_dump_json() == plain[1].model_dump_json()
    assert history.revisions[1].model_copy().text == "one\n"


def test_a_history_survives_every_way_of_storing(history: History, tmp_path: Path) -> None:
    line = to_line(history)
    (tmp_path / "log.jsonl").write_text(line + "\n")
    [again] = read(tmp_path / "log.jsonl")
    assert isinstance(again, History)
    assert again == history
    assert to_line(again) == line
    assert pickle.loads(pickle.dumps(history)) == history
    assert History.model_validate(history.model_dump()) == history
    assert history.about() == again.about()


def test_texts_are_read_from_many_threads(tmp_path: Path) -> None:
    story = Story()
    random.seed(20)
    texts = [f"{number} " * random.randrange(1, 4000) for number in range(60)]
    for number, text in enumerate(texts):
        story.commit({"a.py": text}, by=PERSON if number % 3 else AGENT)
    [history] = histories(story.write(tmp_path / "repo").log())
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            found = pool.map(lambda number: history.revisions[number].text, [*range(60), *reversed(range(60))])
            assert list(found) == [*texts, *reversed(texts)]


def test_a_log_read_in_one_thread_is_used_in_another(tmp_path: Path) -> None:
    repo = some_story().write(tmp_path / "repo")
    found: list[History] = []
    thread = threading.Thread(target=lambda: found.extend(histories(repo.log())))
    thread.start()
    thread.join()
    assert told(found[0]) == TOLD


def test_an_interrupted_reading_is_not_taken_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [history, other] = histories(some_story().write(tmp_path / "repo").log())
    real = blobs_module._answer

    def interrupted(process: object, name: bytes) -> bytes | None:
        stdin = process.stdin  # type: ignore[attr-defined]
        stdin.write(name + b"\n")
        stdin.flush()
        raise KeyboardInterrupt

    monkeypatch.setattr(blobs_module, "_answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        assert history.revisions[2].text
    monkeypatch.setattr(blobs_module, "_answer", real)
    assert told(history) == TOLD
    assert told(other) == [(S, "zero\n"), (A, "one\n")]


def test_a_git_that_died_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs_module, "REMEMBERED", 0)
    [history, _] = histories(some_story().write(tmp_path / "repo").log())
    begun = []
    real = blobs_module._answer

    def watched(process: object, name: bytes) -> bytes | None:
        begun.append(process)
        return real(process, name)  # type: ignore[arg-type]

    monkeypatch.setattr(blobs_module, "_answer", watched)
    assert history.revisions[0].text == "zero\n"
    begun[0].kill()  # type: ignore[attr-defined]
    begun[0].wait()  # type: ignore[attr-defined]
    assert history.revisions[1].text == "one\n"
    assert history.revisions[2].text == "two\n"
    assert len({id(process) for process in begun}) == 2


def test_a_repository_that_went_away_is_told_of(tmp_path: Path) -> None:
    repo = some_story().write(tmp_path / "repo")
    log = repo.log()
    item = next(iter(log))
    assert isinstance(item, History)
    (repo.path / ".git").rename(tmp_path / "gone")
    with pytest.raises(LogError, match="cannot be read"):
        assert item.revisions[2].text


def test_a_report_reads_a_repository(tmp_path: Path) -> None:
    repo = some_story().write(tmp_path / "repo")
    found = report(repo.path, now=NOW)
    assert found["rewrites"].counts["hits"] == 1
    assert found["rewrites"].counts["total"] == 2


def test_drafts_at_a_cut_are_pending(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "one\n"}, by=AGENT)
    story.commit({"a.py": "two\n"}, by="dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>")
    story.commit({"b.py": "one\n"}, by=AGENT)
    first, second = histories(story.write(tmp_path / "repo").log())
    assert (measure_rewrites(first, now=NOW).pending, measure_rewrites(second, now=NOW).pending) == (1, 0)


# Memory

LINES = 1_000
WIDTH = 70


def large_story(revisions: int) -> Story:
    """A file of 70 kB, of which every commit changes a line."""
    chance = random.Random(2026)
    lines = ["".join(chance.choices("abcdefghij ", k=WIDTH - 1)) for _ in range(LINES)]
    story = Story()
    for number in range(revisions):
        lines[chance.randrange(LINES)] = f"{number:0{WIDTH - 1}d}"
        by = (AGENT, PERSON, OTHER)[number % 3]
        story.commit({"large.txt": "\n".join(lines) + "\n"}, by=by)
    return story


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    """A thousand revisions of one file: 70 MB of text."""
    return large_story(1_000).write(tmp_path_factory.mktemp("large") / "repo")


def test_a_long_history_does_not_sit_in_memory(large: Repo) -> None:
    evaluator = rewrite_evaluator(now=NOW)
    tracemalloc.start()
    try:
        drafts = 0
        for item in large.log():
            assert isinstance(item, History)
            assert len(item.revisions) == 1_000
            for draft in item.each_draft(now=NOW):
                drafts += 1
                assert len(draft.text) == LINES * WIDTH
                assert isinstance(evaluator.evaluate_inline(draft), Verdict)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert drafts == 334
    assert peak < 25 << 20


def test_wide_texts_are_remembered_by_their_size(tmp_path: Path) -> None:
    story = Story()
    for number in range(60):
        story.commit({"a.txt": f"{number}" + "🙂" * 250_000}, by=PERSON if number % 2 else AGENT)
    repo = story.write(tmp_path / "repo")
    del story
    tracemalloc.start()
    try:
        [history] = histories(repo.log())
        assert all(len(revision.text) > 250_000 for revision in history.revisions)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 << 20
